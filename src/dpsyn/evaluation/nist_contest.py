"""The metrics of the NIST contest together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import UserError
from dpsyn.evaluation import kernels
from dpsyn.evaluation.marginal_distances import total_variation_distances
from dpsyn.evaluation.marginal_scores import sample_triples
from dpsyn.evaluation.results import ContestScore, IncomeScore, Metric, RegionScore
from dpsyn.evaluation.tables import CodeColumns, CodedTables, Domain, EvaluationTables, make_generator
from dpsyn.schema import Ranged, Value, canonical_text
from dpsyn.sources import map_in_threads


def score_contest(
    comparison: EvaluationTables, preset: Preset, income: IncomeColumns | None = None, *, seed: int = 0
) -> ContestScore:
    """The contest's metrics with the parameters of a preset, and their mean."""
    triples = sample_density_triples(comparison, preset, make_generator(seed, "density"))
    queries = sample_range_queries(comparison, preset, make_generator(seed, "range queries"))
    density, ranges = score_density(comparison, triples), score_range_queries(comparison, queries)
    incomes = None if income is None else score_income(comparison, income)
    return ContestScore(
        preset=preset.name,
        density=density,
        triples=len(triples),
        range_queries=ranges,
        queries=len(queries),
        income=incomes,
        mean=Metric.mean([density, ranges, *([] if incomes is None else [incomes.score])]),
    )


def combine_scores(scores: Sequence[ContestScore]) -> Metric:
    """The score of several files, such as those of different ε, as the contest ranked its teams: the mean of all.

    They must have been scored alike, by the same metrics and preset.
    """
    if not scores:
        raise UserError("there are no scores to combine")
    if len({(score.preset, score.income is None) for score in scores}) > 1:
        raise UserError("scores of different presets, or with and without incomes, cannot be combined")
    return Metric.mean([score.mean for score in scores])


# ── The contest's metrics come in two sets of parameters ──


CategoryChoice = Literal["subset", "until a repeat"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """Parameters of the contest's metrics.

    Attributes:
        name: how it is called.
        triples: random triples of columns whose densities are compared.
        last_column: whether the last column is drawn into triples.
        queries: random range queries, at most; each starts from another row of the real table.
        chance: the probability with which a column has a condition.
        categories: which categories a condition admits besides the row's own: a random subset of random size, or codes
            drawn until one repeats.
    """

    name: str
    triples: int
    last_column: bool
    queries: int
    chance: float
    categories: CategoryChoice


PAPER = Preset(name="paper", triples=300, last_column=True, queries=300, chance=0.33, categories="subset")
"""As *DPSyn: Experiences in the NIST Differential Privacy Data Synthesis Challenges* describes the metrics."""

MATCH3 = Preset(name="match3", triples=100, last_column=False, queries=300, chance=0.10, categories="until a repeat")
"""As the scorer of the third match computed them."""

PRESETS = {preset.name: preset for preset in (PAPER, MATCH3)}


def find_preset(name: str) -> Preset:
    """A preset by its name; a UserError if there is none."""
    if name not in PRESETS:
        raise UserError(f"there is no preset {name!r}; there are {', '.join(PRESETS)}")
    return PRESETS[name]


# ── The contest's first metric: densities of random triples of columns ──


MAX_CONTEST_SCORE = 1_000_000
"""The score of a perfect table, in all of the contest's metrics."""


def score_density(comparison: EvaluationTables, triples: Sequence[tuple[int, ...]]) -> Metric:
    """10⁶·(1 − mean L1/2): one minus the mean total variation distance of the triples' densities.

    Numbers and dates are cut into 100 buckets between the schema's bounds; empty cells have a bucket of their own.
    """
    mean = Metric.mean(total_variation_distances(comparison.buckets(), triples))
    return Metric(
        synthetic=MAX_CONTEST_SCORE * (1 - mean.synthetic),
        floor=MAX_CONTEST_SCORE * (1 - mean.floor),
        independent=MAX_CONTEST_SCORE * (1 - mean.independent),
    )


def sample_density_triples(
    comparison: EvaluationTables, preset: Preset, rng: np.random.Generator
) -> list[tuple[int, ...]]:
    """The triples of a preset; the last column is among them if it is the only one, whatever the preset says."""
    columns = len(comparison.domains)
    return sample_triples(columns if preset.last_column else max(1, columns - 1), preset.triples, rng)


# ── The contest's second metric: answers of random range queries ──


MIN_ANSWER = 1e-6
"""An answer below this counts as this."""

MAX_LOG_ERROR = math.log(1000)
"""Answers off by a factor of a thousand score nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class RangeCondition:
    """What a query asks of one attribute, in exact codes.

    Attributes:
        axis: the attribute.
        low: the lowest code that meets it.
        high: the highest.
        code_mask: which codes meet it, where they are not a range.
    """

    axis: int
    low: int
    high: int
    code_mask: NDArray[np.bool_] | None = None


RangeQuery = tuple[RangeCondition, ...]
"""Conditions that a row must meet together."""


def score_range_queries(comparison: EvaluationTables, queries: Sequence[RangeQuery]) -> Metric:
    """10⁶·max(0, 1 − RMS(ln max(f, 10⁻⁶) − ln f_real)/ln 1000), where f is the share of rows that meet a query."""
    quick = _sort_conditions(comparison.exact, queries)
    answers = np.array(list(map_in_threads(lambda query: _matching_shares(comparison.exact, query), quick)))
    errors = np.log(np.maximum(answers[:, 1:], MIN_ANSWER)) - np.log(answers[:, :1])
    scores = MAX_CONTEST_SCORE * np.maximum(0.0, 1 - np.sqrt(np.mean(errors**2, axis=0)) / MAX_LOG_ERROR)
    synthetic, floor, independent = scores.tolist()
    return Metric(synthetic=synthetic, floor=floor, independent=independent)


def _sort_conditions(view: CodedTables, queries: Sequence[RangeQuery]) -> list[RangeQuery]:
    """The same queries; what few real rows meet is asked first, so that fewer are left to look at."""
    real = view.tables[0]
    counts = [np.bincount(column, minlength=size) for column, size in zip(real, view.sizes, strict=True)]

    def count_matches(condition: RangeCondition) -> int:
        weights = counts[condition.axis]
        within = (
            weights[condition.low : condition.high + 1] if condition.code_mask is None else weights[condition.code_mask]
        )
        return int(within.sum())

    return [tuple(sorted(query, key=count_matches)) for query in queries]


def _matching_shares(view: CodedTables, query: RangeQuery) -> list[float]:
    """The share of the rows of each table that meet a query."""
    return [_count_matches(table, query) / table.shape[1] for table in view.tables]


def _count_matches(columns: CodeColumns, query: RangeQuery) -> int:
    lists = [np.zeros(0, np.bool_) if condition.code_mask is None else condition.code_mask for condition in query]
    ends = np.cumsum([0, *map(len, lists)])
    offsets = [-1 if condition.code_mask is None else end for condition, end in zip(query, ends[:-1], strict=True)]
    places, lows, highs = np.array([(c.axis, c.low, c.high) for c in query]).T
    return kernels.count_matches(columns, places, lows, highs, np.array(offsets), np.concatenate(lists))


# ── drawing queries ──────────────────────────────────────────────────────────────────────────────────────────


def sample_range_queries(comparison: EvaluationTables, preset: Preset, rng: np.random.Generator) -> list[RangeQuery]:
    """Queries that each start from another row of the real table, which meets them, so that no answer is 0.

    A column has a condition with the preset's probability; columns are drawn again until one has.
    """
    real = comparison.exact.tables[0]
    bases = rng.choice(real.shape[1], min(preset.queries, real.shape[1]), replace=False)
    return [_sample_query(comparison.domains, real[:, base].tolist(), preset, rng) for base in bases]


def _sample_query(
    domains: Sequence[Domain], row: Sequence[int], preset: Preset, rng: np.random.Generator
) -> RangeQuery:
    drawn = np.zeros(0, np.int64)
    while not len(drawn):
        drawn = np.flatnonzero(rng.random(len(domains)) < preset.chance)
    return tuple(
        _sample_condition(place, domains[place], row[place], preset.categories, rng) for place in drawn.tolist()
    )


def _sample_condition(
    axis: int, domain: Domain, code: int, categories: CategoryChoice, rng: np.random.Generator
) -> RangeCondition:
    """A condition that a code meets; where that means empty, others must be empty too."""
    if code == domain.missing:
        return RangeCondition(axis, code, code)
    if isinstance(domain.attribute, Ranged) and domain.steps is not None:
        reach = rng.uniform(0, domain.attribute.steps - 1)
        low = np.searchsorted(domain.steps, domain.steps[code] - reach, side="left")
        after = np.searchsorted(domain.steps, domain.steps[code] + reach, side="right")
        return RangeCondition(axis, int(low), int(after) - 1)
    chosen = np.zeros(domain.size, np.bool_)
    chosen[[code, *_sample_other_categories(domain.missing, code, categories, rng)]] = True
    return RangeCondition(axis, 0, domain.size - 1, chosen)


def _sample_other_categories(size: int, code: int, categories: CategoryChoice, rng: np.random.Generator) -> list[int]:
    """Codes that a condition admits besides one, of ``size`` codes that are not empty."""
    if categories == "subset":
        others = rng.choice(size - 1, rng.integers(0, size), replace=False) if size > 1 else np.zeros(0, np.int64)
        return [int(other) for other in others + (others >= code)]
    drawn = {code}
    while (another := int(rng.integers(size))) not in drawn:
        drawn.add(another)
    return sorted(drawn - {code})


# ── The contest's third metric: inequality and gender gap of incomes, region by region ──


FIRST_INCOME_CODE = 999_998
"""Incomes from here on are codes, not amounts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IncomeColumns:
    """Which columns the metric is about.

    Attributes:
        region: where a person lives.
        sex: which group she or he belongs to.
        income: a column of numbers.
        sexes: the two values that are compared; by default 1 and 2 if they are values, else the first two.
    """

    region: str
    sex: str
    income: str
    sexes: tuple[Value, Value] | None = None


@dataclass(frozen=True, slots=True)
class RegionIncome:
    """Gini index and gender gap of the incomes of one region in one table."""

    gini: float
    gap: float


RegionIncomes = dict[int, RegionIncome]
"""By the code of the region; only those in which somebody has an income."""


def score_income(comparison: EvaluationTables, columns: IncomeColumns) -> IncomeScore:
    """5·10⁵·√mean(1−|ΔGini|)² + 5·10⁵·√mean max(0, 1−|Δrank|/(K−1))² over the K regions of the real table.

    Incomes of 999998 and more are codes and left out, as are empty ones. Regions are ranked by gender gap, the largest
    first, among those of their own table; equal gaps in the schema's order. A region without incomes in the synthetic
    table scores 0. This index of N people lies between −1/N and 1; a difference of more than 1 counts as 1.
    """
    region, sex, income = (_find_domain(comparison, name) for name in (columns.region, columns.sex, columns.income))
    amounts = income.numbers()
    if amounts is None:
        raise UserError(f"column {columns.income!r} is {income.kind}; incomes must be numbers")
    sexes = _find_sexes(sex, columns.sexes)
    places = [comparison.axis_of(domain.name) for domain in (region, sex, income)]
    real, *others = (_compute_region_incomes(table[places], amounts, sexes) for table in comparison.exact.tables)
    if not real:
        raise UserError(f"no row of the real table has an income below {FIRST_INCOME_CODE:,} in {columns.income!r}")
    synthetic, floor, independent = (_score_regions(real, other) for other in others)
    names, labels = sex.labels(), region.labels()
    return IncomeScore(
        score=Metric(synthetic=synthetic, floor=floor, independent=independent),
        sexes=(names[sexes[0]], names[sexes[1]]),
        regions=tuple(_region_score(labels[code], real[code], others[0].get(code)) for code in real),
    )


def _find_domain(comparison: EvaluationTables, name: str) -> Domain:
    found = [domain for domain in comparison.domains if domain.name == name]
    if not found:
        known = ", ".join(domain.name for domain in comparison.domains)
        raise UserError(f"there is no column {name!r} to compare; there are {known}")
    return found[0]


def _find_sexes(domain: Domain, given: tuple[Value, Value] | None) -> tuple[int, int]:
    """The codes of the two sexes."""
    labels = domain.labels()[: domain.missing]
    wanted = ("1", "2") if given is None else tuple(map(canonical_text, given))
    if given is None and not {*wanted} <= {*labels} and len(labels) > 1:
        return 0, 1
    unknown = [value for value in wanted if value not in labels]
    if unknown or len({*wanted}) < 2:
        some = ", ".join(labels[:8]) + (" …" if len(labels) > 8 else "")
        raise UserError(f"the two values of {domain.name!r} to compare must be among {some}")
    return labels.index(wanted[0]), labels.index(wanted[1])


def _compute_region_incomes(
    columns: CodeColumns, amounts: NDArray[np.float64], sexes: tuple[int, int]
) -> RegionIncomes:
    """The regions of a table; ``columns`` are region, sex and income."""
    wages = amounts[columns[2]]
    valid = np.flatnonzero(wages < FIRST_INCOME_CODE)  # nobody is below not-a-number
    regions, sex, wages = columns[0][valid], columns[1][valid], wages[valid]
    order = np.lexsort((wages, regions))
    codes, starts = np.unique(regions[order], return_index=True)
    ends = [*starts.tolist(), len(order)]
    parts = [order[first:stop] for first, stop in pairwise(ends)]
    return {
        int(code): _compute_region_income(wages[part], sex[part], sexes)
        for code, part in zip(codes, parts, strict=True)
    }


def _compute_region_income(wages: NDArray[np.float64], sex: NDArray[Any], sexes: tuple[int, int]) -> RegionIncome:
    """One region; its wages ascend."""
    return RegionIncome(_gini(wages), _mean_or_zero(wages[sex == sexes[0]]) - _mean_or_zero(wages[sex == sexes[1]]))


def _gini(wages: NDArray[np.float64]) -> float:
    """1 − 2·Σⱼ cumwageⱼ/(N·W) over ascending wages of sum W; 1 if all are zero."""
    total = float(wages.sum())
    return 1 - 2 * float(np.cumsum(wages).sum()) / (len(wages) * total) if total else 1.0


def _mean_or_zero(wages: NDArray[np.float64]) -> float:
    """The mean of some wages; 0 if there are none."""
    return float(wages.mean()) if len(wages) else 0.0


def _score_regions(real: RegionIncomes, other: RegionIncomes) -> float:
    ranks, theirs = _gap_ranks(real), _gap_ranks(other)
    steps = max(len(real) - 1, 1)
    common = [code for code in real if code in other]
    ginis = sum(max(0.0, 1 - abs(real[code].gini - other[code].gini)) ** 2 for code in common)
    gaps = sum(max(0.0, 1 - abs(ranks[code] - theirs[code]) / steps) ** 2 for code in common)
    return MAX_CONTEST_SCORE / 2 * (math.sqrt(ginis / len(real)) + math.sqrt(gaps / len(real)))


def _gap_ranks(regions: RegionIncomes) -> dict[int, int]:
    """The place of each region if those with the largest gap come first."""
    order = sorted(regions, key=lambda code: (-regions[code].gap, code))
    return {code: place for place, code in enumerate(order)}


def _region_score(label: str, real: RegionIncome, other: RegionIncome | None) -> RegionScore:
    gini, gap = (None, None) if other is None else (other.gini, other.gap)
    return RegionScore(region=label, gini=(real.gini, gini), gap=(real.gap, gap))
