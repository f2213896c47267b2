"""A public table in a recipe: what it predicts, whether scores bear that out, and what the model takes from it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpsyn.encoding import Recoding
from dpsyn.inference import (
    MeasurementRound,
    PublicTables,
    Release,
    count_rows,
    estimate_one_way,
    expect_shares,
    shrink_interaction,
    shrink_one_ways,
)
from dpsyn.marginals import Clique, Marginal
from dpsyn.public import PublicTable
from dpsyn.recipes.resolution import Counts, PredictedTable, coarsen_table
from dpsyn.schema import Schema

MAX_TESTED_PAIRS, MIN_TEST_SIGMAS = 5, 3.0
"""Of the pairs for which the public table predicts something else than independence, so many are scored in any case,
and nothing else if their scores would not stand out from the noise by so many standard deviations."""

MIN_TESTED_STRENGTH = 0.5
"""They have at least this part of the strength of the strongest one: the noise of a mean does not fall with their
number, because scores share a budget, so weak pairs would only dilute it."""

MAX_PAIR_CELLS, MAX_PRIOR_CELLS, MAX_PRIOR_PAIRS = 100_000, 4_000_000, 1_500
"""The largest public pair, and how many cells and pairs the model takes from a public table; the strongest ones."""

PRIOR_WRONG = 0.02
"""The probability that dependence in the public table is wrong, before scores tell. They are then expected to be worse
than those of independence by as much as they would be better if it is right: a test of likelihood ratios."""

MAX_DISPERSION = 1.0
"""Attributes whose log odds differ more from the public ones hardly have anything in common with them."""

CLEARLY_WORSE = 2.0
"""Standard deviations by which a pair, or all pairs of an attribute, must score worse than independence to be left out
although the public table as a whole is trusted."""


@dataclass(frozen=True, slots=True, eq=False)
class PublicPair:
    """A pair as the public table predicts it.

    Attributes:
        clique: the attributes.
        counts: the public counts, over the codes of the model.
        strength: how far its prediction is from independence, in private rows.
    """

    clique: Clique
    counts: NDArray[np.int64]
    strength: float


@dataclass(frozen=True, slots=True, eq=False)
class Prior:
    """A public table, and what of its dependence is trusted.

    Attributes:
        table: the public table.
        schema: the schema of the private one, with all that was found out about it.
        pairs: the pairs whose dependence is followed; None if none is, or if it was not tested yet.
        tested: whether scores decided on that.
    """

    table: PublicTable
    schema: Schema
    pairs: MeasurementRound | None = None
    tested: bool = False

    def tables(self, rounds: Sequence[MeasurementRound]) -> PublicTables:
        """What the public table answers to the questions of some rounds."""
        counts = tuple(
            tuple(self.table.count(self.schema, each.recoding, marginal.clique) for marginal in each.marginals)
            for each in rounds
        )
        return PublicTables(self.table.rows, counts, self.pairs)

    def shrink(self, rounds: Sequence[MeasurementRound]) -> tuple[MeasurementRound, ...]:
        """Rounds whose one-way marginals are moved towards the public ones, as far as they agree."""
        return shrink_one_ways(Release(tuple(rounds), public=self.tables(rounds)))[0].rounds

    def trusted_attributes(self, rounds: Sequence[MeasurementRound]) -> set[str]:
        """The attributes whose one-way marginals do not contradict the public ones; of others, no pair is followed."""
        trust = shrink_one_ways(Release(tuple(rounds), public=self.tables(rounds)))[1]
        return {name for name, (related, apart) in trust.items() if related >= 0.5 and apart < MAX_DISPERSION}

    def rare_counts(self, recoding: Recoding, rounds: Sequence[MeasurementRound], sigmas: float) -> dict[str, float]:
        """For each attribute, the count below which a value is rare.

        A count t is known with the variance σ² of its noise, and by the public table with t + t·n/m + (φt)². Where the
        public table says nothing, it is rare if it is below so many standard deviations. Where noise says nothing, it
        is rare if it is below one: such values are merged so that noise does not drown them, and there is none.
        """
        release = Release(tuple(rounds), public=self.tables(rounds))
        rows, (_, trust) = count_rows(release), shrink_one_ways(release)
        counts = np.geomspace(0.5, 1e9, 400)
        rare = {}
        for name in recoding.names:
            noise = estimate_one_way([release], recoding, name).variance
            related, dispersion = trust.get(name, (0.0, 0.0))
            spread = counts * (1 + rows / self.table.rows) + (dispersion * counts) ** 2
            known = noise * (related * spread / (spread + noise) + 1 - related)
            times = 1 + max(sigmas - 1, 0.0) * known / noise
            rare[name] = float(counts[np.argmax(counts >= times * np.sqrt(known))])
        return rare

    def find_pairs(
        self, recoding: Recoding, cliques: Sequence[Clique], margins: Mapping[str, Counts], rows: float
    ) -> list[PublicPair]:
        """The pairs in which the public table shows dependence beyond sampling, the strongest first."""
        sizes, found = dict(zip(recoding.names, recoding.sizes, strict=True)), []
        for clique in cliques:
            if math.prod(sizes[name] for name in clique) > MAX_PAIR_CELLS:
                continue
            counts = self.table.count(self.schema, recoding, clique)
            if counts is None or not shrink_interaction(counts.astype(np.float64))[1]:
                continue
            own = [margins[name] / max(float(margins[name].sum()), 1e-9) for name in clique]
            shares = expect_shares(counts, self.table.rows, own).shares
            strength = rows * float(np.abs(shares - np.multiply.outer(*own)).sum())
            found.append(PublicPair(clique, counts, strength))
        found.sort(key=lambda pair: -pair.strength)
        cells = np.cumsum([pair.counts.size for pair in found])
        return [pair for pair, total in zip(found, cells, strict=True) if total <= MAX_PRIOR_CELLS][:MAX_PRIOR_PAIRS]

    def predict(
        self, prediction: PredictedTable, recoding: Recoding, margins: Mapping[str, Counts], rows: float
    ) -> PredictedTable | None:
        """What the public table predicts for a clique, at the level of another prediction of it; None if nothing."""
        counts = self.table.count(self.schema, recoding, prediction.clique)
        if counts is None:
            return None
        coarse = coarsen_table(counts.astype(np.float64), prediction.clique, prediction.groups)
        own = [
            prediction.groups[name].sums(margins[name]) if name in prediction.groups else margins[name]
            for name in prediction.clique
        ]
        return replace(prediction, counts=rows * expect_shares(coarse, self.table.rows, own).shares)

    def trust(
        self,
        recoding: Recoding,
        pairs: Sequence[PublicPair],
        scored: Mapping[Clique, tuple[float, float]],
        std: float,
        rows: float,
    ) -> Prior:
        """Follow the public pairs if, of those that were scored, they are closer to the private ones than independence.

        Args:
            recoding: the codes of the model.
            pairs: the public pairs.
            scored: for the pairs that were scored, their distance from independence and that from the prediction.
            std: the noise of each of these.
            rows: the number of private rows.
        """
        strengths = {pair.clique: pair.strength for pair in pairs if pair.clique in scored}
        better = {clique: scored[clique][0] - scored[clique][1] for clique in strengths}

        def significance(cliques: Sequence[Clique]) -> float:
            weights = np.array([strengths[clique] for clique in cliques])
            length = math.sqrt(2) * std * float(np.sqrt((weights**2).sum()))
            return float((weights * [better[clique] for clique in cliques]).sum()) / max(length, 1e-9)

        power = math.sqrt(math.fsum([strength**2 for strength in strengths.values()])) / (math.sqrt(2) * std)
        if not strengths or significance(list(strengths)) <= -math.log(1 / PRIOR_WRONG - 1) / max(2 * power, 1e-9):
            return replace(self, pairs=None, tested=True)
        names = {name for clique in strengths for name in clique}
        of_name = {name: [clique for clique in strengths if name in clique] for name in names}
        wrong = {name for name, cliques in of_name.items() if significance(cliques) < -CLEARLY_WORSE}
        kept = []
        for pair in pairs:
            worse = pair.clique in better and better[pair.clique] < -CLEARLY_WORSE * math.sqrt(2) * std
            if not worse and not wrong.intersection(pair.clique):
                shown = scored[pair.clique][1] - CLEARLY_WORSE * std if pair.clique in scored else 0.0
                distance = max(shown, 0.0) / rows  # as far as noise does not explain it
                kept.append(self._as_marginal(pair, distance, rows))
        return replace(self, pairs=MeasurementRound(recoding, tuple(kept)) if kept else None, tested=True)

    def _as_marginal(self, pair: PublicPair, distance: float, rows: float) -> Marginal:
        """A public pair with the standard deviation of what it predicts, in public rows."""
        public, cells = self.table.rows, pair.counts.size
        shares = pair.counts / max(float(pair.counts.sum()), 1.0)
        sampling = float(np.sqrt(2 / math.pi * shares * (1 / public + 1 / rows)).sum())
        excess = math.sqrt(max(distance**2 - sampling**2, 0.0))
        variance = public / cells + math.pi / 2 * (excess * public / cells) ** 2
        return Marginal(pair.clique, pair.counts, 0, math.sqrt(variance))


def choose_tested(pairs: Sequence[PublicPair], cliques: Sequence[Clique], std: float) -> list[Clique]:
    """What is scored to test public pairs: the given cliques with the strongest pairs, or these alone.

    Scores share a budget: m of them have the noise ``std``·√m, and public pairs have two. If that would hide whether
    the public table is right, only the pairs that tell it most clearly are scored; unless it has few pairs, for which
    the scores of all others would be too much to lose.
    """
    strengths = {pair.clique: pair.strength for pair in pairs}
    strong = [pair.clique for pair in pairs if pair.strength >= MIN_TESTED_STRENGTH * pairs[0].strength]
    tested = strong[:MAX_TESTED_PAIRS]
    every = [*dict.fromkeys([*cliques, *tested])]
    own = [strengths[clique] for clique in every if clique in strengths]
    noise = std * math.sqrt(2 * (len(every) + len(own)))
    is_clear = math.sqrt(math.fsum([strength**2 for strength in own])) >= MIN_TEST_SIGMAS * noise
    return every if is_clear or 2 * len(pairs) < len(cliques) else tested
