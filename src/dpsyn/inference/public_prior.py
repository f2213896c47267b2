"""Public rows as a prior: what they say about private tables, trusted as far as released numbers agree with them.

The public table answers the questions that were asked about the private one. A private count is then expected near n·q,
with q the public share and n the number of private rows. With v = q·(1 − q), its variance from that is n·v by sampling
of the private rows, n²·v/m by that of m public ones, and (φ·n·v)² because the two populations differ: on the scale of
log odds, by φ. How much they differ is not known. So φ is one of a few values, or the public table says nothing;
which of these holds for a table follows from its noisy counts and from those of similar tables (empirical Bayes), and
noisy counts move towards n·q by as much. A count that is far from n·q keeps its value.

Pairs that were not measured depend on each other as in the public table, with the one-way marginals of the private one
(raking, Deming and Stephan 1940). They enter the fit as tables with the variance of such a prediction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from dpsyn.encoding import Recoding, project_to_levels
from dpsyn.inference.measurements import MeasurementRound, Release
from dpsyn.inference.table_smoothing import OrderedAttributes, count_parameters, rake, smooth_tables
from dpsyn.marginals import Estimate, Marginal
from dpsyn.suggestions import format_names

Values = NDArray[np.float64]

DISPERSIONS = (0.0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5)
"""The standard deviations of private log odds from public ones that are considered; for rare values, of shares."""

UNRELATED = (1.0, 3.0)
"""The relative standard deviations from equal shares that are considered if the public table says nothing."""

PRIOR_UNRELATED = 0.005
"""The probability that the public table says nothing, where noise is so large that released numbers do not show it."""

USUAL_DISPERSION, PRIOR_TABLES = 0.05, 10
"""What is assumed before numbers are released: a dispersion φ is as likely as 1/(φ + 0.05)², as if seen in ten tables.
Where noise is so large that it hides a dispersion, noisy counts would be no better than public ones."""

CLEAR_SIGMAS = 5.0
"""A count that is so many standard deviations from what is expected keeps its value."""

EM_ROUNDS = 20
"""Rounds of expectation maximization for how often each of these holds."""

MIN_COUNT = 0.25
"""The public count that a cell without public rows stands for when its variance is estimated."""

SHRUNK_LATTICE = 20
"""The lattice of shrunk counts: a millionth of a row."""

MIN_MARGIN = 1e-9
"""The least share of a value to which tables are raked."""


# ── what the public table leads one to expect ────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, eq=False)
class Expectation:
    """What the public table leads one to expect of a private table.

    Attributes:
        shares: the expected shares.
        rows: the number of public rows behind them.
    """

    shares: Values
    rows: float

    def spread(self, total: float, dispersion: float) -> Values:
        """The variance of private counts from the expected ones."""
        varied = self.shares * (1 - self.shares)
        sampling = total * varied + total**2 * (varied + MIN_COUNT / self.rows) / self.rows
        spread: Values = sampling + (dispersion * total * varied) ** 2
        return spread


def expect_shares(counts: NDArray[np.int64] | Values, rows: float, margins: Sequence[Values] = ()) -> Expectation:
    """The expected shares of a table with these public counts; raked to one-way ``margins`` if there are any."""
    shares, _ = shrink_interaction(counts.astype(np.float64))
    return Expectation(rake_shares(shares, margins) if margins else shares, rows)


def expect_table(
    counts: NDArray[np.int64] | Values,
    rows: float,
    margins: Mapping[str, Values],
    total: float,
    ordered: OrderedAttributes,
) -> Expectation:
    """The expected shares of a table of several attributes, raked to one-way tables in the order of its axes.

    A table of numbers or dates is smoothed, with the sampling of public rows as its noise (``table_smoothing``), so
    that it stands for more rows. Of others, the interaction is shrunk.
    """
    own = list(margins.values())
    if count_parameters(counts.shape, [name in ordered.names for name in margins]) is None:
        return expect_shares(counts, rows, own)
    one_way = [Estimate((name,), values, 0.0) for name, values in margins.items()]
    raked = total * rake_shares(counts.astype(np.float64) + 1 / counts.size, own)
    noisy = Estimate(tuple(margins), raked, total**2 / rows / counts.size)
    *_, smooth = smooth_tables([*one_way, noisy], ordered, total, [None] * (len(one_way) + 1))
    return Expectation(smooth.values / max(float(smooth.values.sum()), 1e-9), rows * noisy.variance / smooth.variance)


def shrink_interaction(counts: Values) -> tuple[Values, float]:
    """The shares of public counts with their interaction shrunk by what sampling alone causes, and the part kept of it.

    The difference of the shares of m rows from the product of their one-way marginals has a squared length of about
    Π(1 − Σp²)/m by sampling (positive-part James-Stein 1961). One row more is divided equally among the values of each
    attribute, so that none is impossible.
    """
    total = float(counts.sum())
    margins = []
    for axis in range(counts.ndim):
        sums = counts.sum(axis=tuple(other for other in range(counts.ndim) if other != axis))
        margins.append((sums + 1 / len(sums)) / (total + 1))
    independent = np.asarray(reduce(np.multiply.outer, margins), np.float64)
    if counts.ndim == 1 or total <= 0:
        return independent, 0.0
    difference = counts / total - independent
    length = float((difference**2).sum())
    noise = math.prod(1 - float((margin**2).sum()) for margin in margins) / total
    kept = max(0.0, 1 - noise / length) if length > 0 else 0.0
    return independent + kept * difference, kept


def rake_shares(shares: Values, margins: Sequence[Values]) -> Values:
    """Shares with the same interaction and other one-way marginals, given as counts or shares."""
    positive = [np.maximum(margin, MIN_MARGIN * max(float(margin.sum()), MIN_MARGIN)) for margin in margins]
    return rake(shares, [margin / margin.sum() for margin in positive])


# ── how far it is trusted ────────────────────────────────────────────────────────────────────────────────────

Evidence = Sequence[tuple[Marginal, Expectation]]
"""Noisy marginals with what is expected of them: those of one attribute, or one of several attributes."""


@dataclass(frozen=True, slots=True, eq=False)
class Trust:
    """How far tables follow the public one.

    Attributes:
        weights: tables × cases: the probability of each dispersion, then of the cases in which the public table says
            nothing.
    """

    weights: Values

    @property
    def relevance(self) -> Values:
        """For each table, the probability that the public table says something about it."""
        relevance: Values = self.weights[:, : len(DISPERSIONS)].sum(axis=1)
        return relevance

    @property
    def dispersions(self) -> Values:
        """For each table, the expected dispersion, if the public table says something."""
        weights = self.weights[:, : len(DISPERSIONS)]
        means: Values = weights @ np.array(DISPERSIONS) / np.maximum(weights.sum(axis=1), 1e-300)
        return means


def learn_trust(tables: Sequence[Evidence], total: float) -> Trust:
    """The posterior probabilities of all cases for each table, with the prior that explains all of them best."""
    if not tables:
        return Trust(np.empty((0, len(DISPERSIONS) + len(UNRELATED))))
    logs = np.array([_log_likelihoods(evidence, total) for evidence in tables])
    likelihoods = np.exp(logs - logs.max(axis=1, keepdims=True))
    likely = 1 / (np.array(DISPERSIONS) + USUAL_DISPERSION) ** 2
    unlikely = np.full(len(UNRELATED), PRIOR_UNRELATED / len(UNRELATED))
    prior = expected = np.append((1 - PRIOR_UNRELATED) * likely / likely.sum(), unlikely)
    for _ in range(EM_ROUNDS):
        posterior = likelihoods * prior
        sums = (posterior / posterior.sum(axis=1, keepdims=True)).sum(axis=0)
        prior = (sums + PRIOR_TABLES * expected) / (len(tables) + PRIOR_TABLES)
    posterior = likelihoods * prior
    return Trust(posterior / posterior.sum(axis=1, keepdims=True))


def _log_likelihoods(evidence: Evidence, total: float) -> Values:
    """How likely noisy marginals are in each case; several of one attribute tell the same, each by its precision."""
    logs = np.zeros(len(DISPERSIONS) + len(UNRELATED))
    precisions = np.array([1 / max(marginal.std**2 * marginal.raw.size, 1e-9) for marginal, _ in evidence])
    for (marginal, expected), weight in zip(evidence, precisions / precisions.sum(), strict=True):
        for number, (center, spread) in enumerate(_list_cases(expected, total)):
            variance = np.maximum(marginal.std**2 + spread, 1e-9)
            distance = (marginal.counts - center) ** 2 / variance
            logs[number] -= 0.5 * float(weight) * float((np.log(variance) + distance).sum())
    return logs


def _list_cases(expected: Expectation, total: float) -> list[tuple[Values, Values]]:
    """The expected counts in each case, and their variances."""
    equal = np.full(expected.shares.shape, total / expected.shares.size)
    cases = [(total * expected.shares, expected.spread(total, dispersion)) for dispersion in DISPERSIONS]
    return cases + [(equal, (factor * equal) ** 2) for factor in UNRELATED]


def shrink_marginals(evidence: Evidence, weights: Values, total: float) -> list[Marginal]:
    """Noisy marginals moved towards what is expected of them, by the probabilities of all cases.

    Several marginals of one attribute share what the public table says, so each gets its part of that precision: kᵢ is
    the part of its difference that a marginal keeps, and its variance from the truth is kᵢσᵢ². All of them together
    keep r, with r/(1 − r) the mean of kᵢ/(1 − kᵢ). Of the variance, noise causes r and the public table 1 − r. Only the
    former is stated, because that is what is smoothed away later; it leaves the weights of the marginals as they are.
    """
    values, kept = [], []
    unrelated = float(weights[len(DISPERSIONS) :].sum())
    for marginal, expected in evidence:
        noise, mean, part_kept = marginal.std**2, np.zeros_like(expected.shares), 0.0
        for number, (weight, (center, spread)) in enumerate(zip(weights, _list_cases(expected, total), strict=True)):
            difference, hidden = marginal.counts - center, noise
            if number >= len(DISPERSIONS):  # the surer it is that the public table says nothing, the less is moved
                hidden = noise * (1 - unrelated)
            part = len(evidence) * spread / np.maximum(len(evidence) * spread + hidden, 1e-9)
            part = np.where(np.abs(difference) > CLEAR_SIGMAS * np.sqrt(spread + noise), 1.0, part)
            mean = mean + weight * (center + part * difference)
            part_kept += float(weight) * float(part.mean())
        values.append(mean)
        kept.append(part_kept)
    odds = float(np.mean([part / max(1 - part, 1e-12) for part in kept]))
    return [
        replace(
            marginal,
            raw=np.rint(mean * 2.0**SHRUNK_LATTICE).astype(np.int64),
            lattice=SHRUNK_LATTICE,
            std=marginal.std * math.sqrt(part * odds / (1 + odds)),
        )
        for (marginal, _), mean, part in zip(evidence, values, kept, strict=True)
    ]


# ── a release with a prior ───────────────────────────────────────────────────────────────────────────────────


def shrink_one_ways(release: Release, total: float | None = None) -> tuple[Release, dict[str, tuple[float, float]]]:
    """A release whose one-way marginals are moved towards the public ones, and how far each attribute is trusted.

    That is the probability that the public table says something about it, and the dispersion then. The result has no
    prior any more, except for pairs.
    """
    if release.public is None:
        return release, {}
    total = count_rows(release) if total is None else total
    found: dict[str, dict[tuple[int, int], tuple[Marginal, Expectation]]] = {}
    for number, each in enumerate(release.rounds):
        for position, marginal in enumerate(each.marginals):
            counts = release.public.counts[number][position]
            if len(marginal.clique) == 1 and counts is not None:
                expected = expect_shares(counts, release.public.rows)
                found.setdefault(marginal.clique[0], {})[number, position] = (marginal, expected)
    trust = learn_trust([list(evidence.values()) for evidence in found.values()], total)
    replaced: dict[tuple[int, int], Marginal] = {}
    for evidence, weights in zip(found.values(), trust.weights, strict=True):
        replaced.update(zip(evidence, shrink_marginals(list(evidence.values()), weights, total), strict=True))
    related, dispersions = trust.relevance.tolist(), trust.dispersions.tolist()
    return _replace_marginals(release, replaced), dict(zip(found, zip(related, dispersions, strict=True), strict=True))


def _replace_marginals(release: Release, replaced: Mapping[tuple[int, int], Marginal]) -> Release:
    rounds = tuple(
        MeasurementRound(
            each.recoding,
            tuple(replaced.get((number, position), marginal) for position, marginal in enumerate(each.marginals)),
        )
        for number, each in enumerate(release.rounds)
    )
    return replace(release, rounds=rounds)


def count_rows(release: Release) -> float:
    """About how many rows a release is of: the sums of its one-way marginals, by inverse variance."""
    one_way = [m for each in release.rounds for m in each.marginals if len(m.clique) == 1]
    marginals = one_way or [m for each in release.rounds for m in each.marginals]
    precisions = [1 / max(marginal.std**2 * marginal.raw.size, 1e-9) for marginal in marginals]
    return max(float(np.average([marginal.counts.sum() for marginal in marginals], weights=precisions)), 1.0)


def predict_pairs(
    release: Release,
    recoding: Recoding,
    margins: Mapping[str, Values],
    total: float,
    measured: Sequence[Estimate],
    ordered: OrderedAttributes,
) -> list[Estimate]:
    """The public pairs of a release under a recoding, raked to one-way tables, as far as they were not measured."""
    if release.public is None or release.public.pairs is None:
        return []
    finer = [frozenset(table.clique) for table in measured if not table.levels]
    result = []
    for marginal in release.public.pairs.marginals:
        projected = project_to_levels(marginal, release.public.pairs.recoding, recoding)
        if projected is None or projected.levels or any({*projected.clique} <= clique for clique in finer):
            continue
        own, rows = {name: margins[name] for name in projected.clique}, release.public.rows
        expected = expect_table(projected.values, rows, own, total, ordered)
        variance = total / projected.values.size + projected.variance * (total / rows) ** 2
        result.append(Estimate(projected.clique, total * expected.shares, variance * rows / expected.rows))
    return result


def shrink_larger(
    release: Release,
    total: float,
    margin: Callable[[Recoding, str], Values],
    ordered: Callable[[Recoding], OrderedAttributes],
) -> Release:
    """A release whose marginals of several attributes are moved towards the public ones, raked to one-way tables.

    They stay as they are if the dependence in the public table is not trusted.

    Args:
        release: the release.
        total: the number of rows.
        margin: the one-way table of an attribute under a recoding.
        ordered: the attributes of a recoding whose codes are in order.
    """
    public = release.public
    if public is None or public.pairs is None:
        return release
    places, tables = [], []
    for number, each in enumerate(release.rounds):
        for position, marginal in enumerate(each.marginals):
            counts = public.counts[number][position]
            if len(marginal.clique) > 1 and counts is not None:
                margins = {name: margin(each.recoding, name) for name in marginal.clique}
                expected = expect_table(counts, public.rows, margins, total, ordered(each.recoding))
                tables.append([(marginal, expected)])
                places.append((number, position))
    trust = learn_trust(tables, total)
    shrunk = [shrink_marginals(table, w, total)[0] for table, w in zip(tables, trust.weights, strict=True)]
    return _replace_marginals(release, dict(zip(places, shrunk, strict=True)))


# ── what was trusted, in words ───────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class PublicTrust:
    """How far a release trusts public rows, as its released numbers decided.

    Attributes:
        rows: the number of public rows; fewer if they are known with noise.
        one_way: for each attribute that they have, the probability that they say something about it.
        dispersions: the relative difference of private shares from public ones, if they do.
        pairs: the number of pairs whose dependence is that of the public rows where it was not measured.
    """

    rows: float
    one_way: Mapping[str, float]
    dispersions: Mapping[str, float]
    pairs: int

    @property
    def description(self) -> str:
        """One sentence on one-way marginals, and one on dependence."""
        trusted = [name for name, part in self.one_way.items() if part >= 0.5]
        others = [name for name in self.one_way if name not in trusted]
        usual = 100 * float(np.median([self.dispersions[name] for name in trusted])) if trusted else 0.0
        first = f"Public rows ({round(self.rows):,}) were a prior. "
        first += (
            f"Of {len(self.one_way)} one-way marginals, {len(trusted)} follow them as far as noise leaves open; "
            f"private shares differ from public ones by about {usual:.0f} %"
            if trusted
            else "Released one-way marginals contradict them, and do not follow them"
        )
        first += f". Not followed: {format_names(others)}. " if trusted and others else ". "
        pairs = "1 pair" if self.pairs == 1 else f"{self.pairs:,} pairs"
        return first + (
            f"The dependence of {pairs} is that of the public rows where it was not measured."
            if self.pairs
            else "Their dependence is not followed: scores did not bear it out, or there is none."
        )


def describe_trust(release: Release) -> PublicTrust | None:
    """How far a release trusts public rows; None if there are none."""
    if release.public is None:
        return None
    _, trust = shrink_one_ways(release)
    pairs = release.public.pairs
    return PublicTrust(
        release.public.rows,
        {name: related for name, (related, _) in trust.items()},
        {name: dispersion for name, (_, dispersion) in trust.items()},
        len(pairs.marginals) if pairs else 0,
    )
