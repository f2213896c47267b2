"""The metrics of the NIST Differential Privacy Synthetic Data Challenge, and their mean.

They are the density of random triples of columns, the answers to random range queries, and, for tables of incomes, the
Gini index and gender gap of regions. Each score lies between 0 and 1 000 000. They are described in *DPSyn: Experiences
in the NIST Differential Privacy Data Synthesis Challenges*.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import InternalError, UserError, quote_argument
from dpsyn.evaluation import kernels
from dpsyn.evaluation.enumerations import Enumerations, sample_code_set
from dpsyn.evaluation.marginal_distances import total_variation_distances
from dpsyn.evaluation.marginal_scores import sample_triples
from dpsyn.evaluation.results import ContestScore, IncomeScore, RegionScore
from dpsyn.evaluation.tables import CodeColumns, CodedTables, Domain, EvaluationTables, make_generator
from dpsyn.marginals import Metric
from dpsyn.schema import Ranged, Value, canonical_text
from dpsyn.sources import map_in_threads
from dpsyn.suggestions import suggest_names


def score_contest(
    tables: EvaluationTables,
    preset: Preset,
    income_columns: IncomeColumns | None = None,
    *,
    enumerations: Enumerations | None = None,
    seed: int = 0,
) -> ContestScore:
    """Compute the contest's metrics with the parameters of a preset, and their mean.

    A preset of enumerations needs the tables as ``enumerations``.
    """
    if preset.enumerations != (enumerations is not None):
        raise InternalError(f"preset {preset.name}: tables are read as enumerations if the preset compares these")
    compared = tables if enumerations is None else enumerations.tables
    triples = sample_density_triples(len(compared.domains), preset, make_generator(seed, "density"))
    rng = make_generator(seed, "range queries")
    if enumerations is None:
        density, queries = score_density(tables.buckets(), triples), sample_range_queries(tables, preset, rng)
    else:
        density, queries = score_density(compared.exact, triples), sample_set_queries(enumerations, preset, rng)
    ranges = score_range_queries(compared.exact, queries)
    income = None if income_columns is None else score_income(tables, income_columns)
    return ContestScore(
        preset=preset.name,
        columns=len(compared.domains),
        density=density,
        triples=len(triples),
        range_queries=ranges,
        queries=len(queries),
        income=income,
        mean=Metric.mean([density, ranges, *([] if income is None else [income.score])]),
    )


def combine_scores(scores: Sequence[ContestScore]) -> Metric:
    """The mean score of several synthetic tables, for example of different ε: how the contest ranked its teams.

    All must have been scored with the same metrics and preset.
    """
    if not scores:
        raise UserError("there are no scores to combine")
    if len({(score.preset, score.income is None) for score in scores}) > 1:
        raise UserError("scores of different presets, or with and without incomes, cannot be combined")
    return Metric.mean([score.mean for score in scores])


# ── presets: two sets of parameters ──────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """Parameters of the contest's metrics.

    Attributes:
        name: the name of the preset.
        triples: how many random triples of columns are compared.
        queries: the largest number of random range queries; each is built around a different row of the real table.
        chance: the probability that a column has a condition.
        enumerations: whether every column is an enumeration of codes, as in the third match: numbers and derived
            columns too. Then triples are compared in exact codes and may repeat, the last column is in none of them,
            and a condition is a set of random codes. Otherwise triples differ and are compared in buckets, and a
            condition is a random subset of random size of a list, or a range of a number.
    """

    name: str
    triples: int
    queries: int
    chance: float
    enumerations: bool


PAPER = Preset(name="paper", triples=300, queries=300, chance=0.33, enumerations=False)
"""As *DPSyn: Experiences in the NIST Differential Privacy Data Synthesis Challenges* describes the metrics."""

MATCH3 = Preset(name="match3", triples=100, queries=300, chance=0.10, enumerations=True)
"""As the official scorer of the third match computed them."""

PRESETS = {preset.name: preset for preset in (PAPER, MATCH3)}


def find_preset(name: str) -> Preset:
    """A preset by its name; a UserError if there is none."""
    if name not in PRESETS:
        raise UserError(f"there is no preset {quote_argument(name)}; {suggest_names(name, tuple(PRESETS))}")
    return PRESETS[name]


# ── first metric: densities of random triples of columns ─────────────────────────────────────────────────────


MAX_CONTEST_SCORE = 1_000_000
"""The score of a perfect table in each of the contest's metrics."""


def score_density(view: CodedTables, triples: Sequence[tuple[int, ...]]) -> Metric:
    """10⁶·(1 − mean L1/2): one minus the mean total variation distance of the triples' densities.

    The paper divides numbers and dates into 100 buckets between the schema's bounds, with a separate bucket for empty
    cells. The third match compared exact codes.
    """
    mean = Metric.mean(total_variation_distances(view, triples))
    return Metric(
        synthetic=MAX_CONTEST_SCORE * (1 - mean.synthetic),
        floor=MAX_CONTEST_SCORE * (1 - mean.floor),
        independent=MAX_CONTEST_SCORE * (1 - mean.independent),
    )


def sample_density_triples(columns: int, preset: Preset, rng: np.random.Generator) -> list[tuple[int, ...]]:
    """The triples of a preset; with fewer than three columns to choose from, the one set of all of them."""
    if not preset.enumerations:
        return sample_triples(columns, preset.triples, rng)
    columns = max(1, columns - 1)  # an only column is compared all the same
    return [tuple(rng.choice(columns, min(3, columns), replace=False).tolist()) for _ in range(preset.triples)]


# ── second metric: answers to random range queries ───────────────────────────────────────────────────────────


MIN_ANSWER = 1e-6
"""Answers below this are raised to it before the logarithm."""

MAX_LOG_ERROR = math.log(1000)
"""Answers that are wrong by a factor of a thousand score 0."""


@dataclass(frozen=True, slots=True, eq=False)
class RangeCondition:
    """The condition of a query on one attribute, in exact codes.

    Attributes:
        axis: the attribute.
        low: the lowest code that satisfies it.
        high: the highest.
        code_mask: which codes satisfy it, if they are not a range.
    """

    axis: int
    low: int
    high: int
    code_mask: NDArray[np.bool_] | None = None


RangeQuery = tuple[RangeCondition, ...]
"""Conditions that a row must satisfy together."""


def score_range_queries(view: CodedTables, queries: Sequence[RangeQuery]) -> Metric:
    """10⁶·max(0, 1 − RMS(ln max(f, 10⁻⁶) − ln f_real)/ln 1000), where f is the share of rows that satisfy a query."""
    ordered = _sort_conditions(view, queries)
    answers = np.array(list(map_in_threads(lambda query: _matching_shares(view, query), ordered)))
    errors = np.log(np.maximum(answers[:, 1:], MIN_ANSWER)) - np.log(answers[:, :1])
    scores = MAX_CONTEST_SCORE * np.maximum(0.0, 1 - np.sqrt(np.mean(errors**2, axis=0)) / MAX_LOG_ERROR)
    synthetic, floor, independent = scores.tolist()
    return Metric(synthetic=synthetic, floor=floor, independent=independent)


def _sort_conditions(view: CodedTables, queries: Sequence[RangeQuery]) -> list[RangeQuery]:
    """The same queries with the most selective condition first, so that later ones are tested on fewer rows."""
    real = view.tables[0]
    counts = [np.bincount(column, minlength=size) for column, size in zip(real, view.sizes, strict=True)]

    def count_rows(condition: RangeCondition) -> int:
        codes = slice(condition.low, condition.high + 1) if condition.code_mask is None else condition.code_mask
        return int(counts[condition.axis][codes].sum())

    return [tuple(sorted(query, key=count_rows)) for query in queries]


def _matching_shares(view: CodedTables, query: RangeQuery) -> list[float]:
    """The share of the rows of each table that satisfy a query."""
    return [_count_matches(table, query) / table.shape[1] for table in view.tables]


def _count_matches(columns: CodeColumns, query: RangeQuery) -> int:
    if not query:
        return int(columns.shape[1])
    masks = [np.zeros(0, np.bool_) if condition.code_mask is None else condition.code_mask for condition in query]
    ends = np.cumsum([0, *map(len, masks)])
    offsets = [-1 if condition.code_mask is None else end for condition, end in zip(query, ends[:-1], strict=True)]
    axes, lows, highs = np.array([(c.axis, c.low, c.high) for c in query]).T
    return kernels.count_matches(columns, axes, lows, highs, np.array(offsets), np.concatenate(masks))


def sample_range_queries(tables: EvaluationTables, preset: Preset, rng: np.random.Generator) -> list[RangeQuery]:
    """Sample the paper's queries, each around a different row of the real table, which satisfies it: no answer is 0.

    A column has a condition with the preset's probability. The columns are sampled again until at least one has a
    condition.
    """
    real = tables.exact.tables[0]
    bases = rng.choice(real.shape[1], min(preset.queries, real.shape[1]), replace=False)
    return [_sample_query(tables.domains, real[:, base].tolist(), preset.chance, rng) for base in bases]


def _sample_query(domains: Sequence[Domain], row: Sequence[int], chance: float, rng: np.random.Generator) -> RangeQuery:
    axes = np.zeros(0, np.int64)
    while not len(axes):
        axes = np.flatnonzero(rng.random(len(domains)) < chance)
    return tuple(_sample_condition(axis, domains[axis], row[axis], rng) for axis in axes.tolist())


def _sample_condition(axis: int, domain: Domain, code: int, rng: np.random.Generator) -> RangeCondition:
    """A condition that a code satisfies. If the code means missing, the condition accepts only missing."""
    if code == domain.missing:
        return RangeCondition(axis, code, code)
    if isinstance(domain.attribute, Ranged) and domain.steps is not None:
        reach = rng.uniform(0, domain.attribute.steps - 1)
        low = np.searchsorted(domain.steps, domain.steps[code] - reach, side="left")
        after = np.searchsorted(domain.steps, domain.steps[code] + reach, side="right")
        return RangeCondition(axis, int(low), int(after) - 1)
    accepted = np.zeros(domain.size, np.bool_)
    accepted[[code, *_sample_other_categories(domain.missing, code, rng)]] = True
    return set_condition(axis, accepted)


def _sample_other_categories(size: int, code: int, rng: np.random.Generator) -> list[int]:
    """Codes that a condition accepts besides ``code``, out of ``size`` codes that do not mean missing."""
    others = rng.choice(size - 1, rng.integers(0, size), replace=False) if size > 1 else np.zeros(0, np.int64)
    return [int(other) for other in others + (others >= code)]


def sample_set_queries(enumerations: Enumerations, preset: Preset, rng: np.random.Generator) -> list[RangeQuery]:
    """Sample the queries of the third match, each around a row of the real table that satisfies it.

    Rows are sampled with replacement, and each makes one query. A column has a condition with the preset's probability;
    a query without any is satisfied by all rows.
    """
    tables = enumerations.tables
    real = tables.exact.tables[0]
    return [
        tuple(
            set_condition(
                axis, sample_code_set(tables.domains[axis], real[axis, base], enumerations.code_counts[axis], rng)
            )
            for axis in np.flatnonzero(rng.random(len(tables.domains)) < preset.chance).tolist()
        )
        for base in np.unique(rng.integers(0, real.shape[1], preset.queries)).tolist()
    ]


def set_condition(axis: int, code_mask: NDArray[np.bool_]) -> RangeCondition:
    """The condition that a code is in a set."""
    return RangeCondition(axis, 0, len(code_mask) - 1, code_mask)


# ── third metric: Gini index and gender gap of incomes by region ─────────────────────────────────────────────


FIRST_INCOME_CODE = 999_998
"""Incomes from this value on are codes, not amounts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IncomeColumns:
    """The columns of the third metric: ``IncomeColumns(region="district", sex="sex", income="income")``.

    Attributes:
        region: the column of the region where a person lives.
        sex: the column of a person's sex.
        income: the column of incomes, which must be numbers.
        sexes: the two values of ``sex`` that are compared; by default 1 and 2 if it has them, else its first two.
    """

    region: str
    sex: str
    income: str
    sexes: tuple[Value, Value] | None = None

    @property
    def names(self) -> tuple[str, str, str]:
        """The names of the three columns."""
        return self.region, self.sex, self.income


@dataclass(frozen=True, slots=True, repr=False)
class RegionIncome:
    """Gini index and gender gap of one region in one table."""

    gini: float
    gap: float


RegionIncomes = dict[int, RegionIncome]
"""By the code of the region; only regions with at least one income."""


def score_income(tables: EvaluationTables, columns: IncomeColumns) -> IncomeScore:
    """5·10⁵·√mean(1−|ΔGini|)² + 5·10⁵·√mean max(0, 1−|Δrank|/(K−1))² over the K regions of the real table.

    Incomes of 999998 and more are codes and are left out, as are missing ones. The regions of each table are ranked by
    their gender gap, the largest first; regions with equal gaps keep the schema's order. A region without incomes in
    the synthetic table scores 0. The contest's Gini index of N people lies between −1/N and 1; a difference of more
    than 1 counts as 1.
    """
    region, sex, income = (_find_domain(tables, name) for name in columns.names)
    amounts = income.numbers()
    if amounts is None:
        raise UserError(f"column {columns.income!r} is {income.kind}; the column of incomes must have numbers")
    sexes = _find_sexes(sex, columns.sexes)
    axes = [tables.axis_of(name) for name in columns.names]
    real, *others = (_compute_region_incomes(table[axes], amounts, sexes) for table in tables.exact.tables)
    if not real:
        raise UserError(f"no row of the real table has an income below {FIRST_INCOME_CODE:,} in {columns.income!r}")
    synthetic, floor, independent = (_score_regions(real, other) for other in others)
    names, labels = sex.labels(), region.labels()
    return IncomeScore(
        score=Metric(synthetic=synthetic, floor=floor, independent=independent),
        sexes=(names[sexes[0]], names[sexes[1]]),
        regions=tuple(_region_score(labels[code], real[code], others[0].get(code)) for code in real),
    )


def unknown_column_error(name: str, compared: Sequence[str]) -> UserError:
    """The error for a column that is not among those compared."""
    suggestion = suggest_names(name, compared, "the compared columns are ")
    return UserError(f"there is no column {quote_argument(name)} to compare; {suggestion}")


def _find_domain(tables: EvaluationTables, name: str) -> Domain:
    for domain in tables.domains:
        if domain.name == name:
            return domain
    raise unknown_column_error(name, [domain.name for domain in tables.domains])


def _find_sexes(domain: Domain, given: tuple[Value, Value] | None) -> tuple[int, int]:
    """The codes of the two sexes."""
    labels = domain.labels()[: domain.missing]
    pair = ("1", "2") if given is None else tuple(map(canonical_text, given))
    if given is None and not {*pair} <= {*labels} and len(labels) > 1:
        return 0, 1
    if not {*pair} <= {*labels} or len({*pair}) < 2:
        listed = ", ".join(labels[:8]) + (" …" if len(labels) > 8 else "")
        raise UserError(f"the two values of {domain.name!r} to compare must be two of {listed}")
    return labels.index(pair[0]), labels.index(pair[1])


def _compute_region_incomes(
    columns: CodeColumns, amounts: NDArray[np.float64], sexes: tuple[int, int]
) -> RegionIncomes:
    """The Gini index and gender gap of each region of a table; ``columns`` are region, sex and income."""
    wages = amounts[columns[2]]
    valid = np.flatnonzero(wages < FIRST_INCOME_CODE)  # missing incomes are NaN, which is not below
    regions, sex, wages = columns[0][valid], columns[1][valid], wages[valid]
    order = np.lexsort((wages, regions))
    codes, starts = np.unique(regions[order], return_index=True)
    ends = [*starts.tolist(), len(order)]
    groups = [order[first:stop] for first, stop in pairwise(ends)]
    return {
        int(code): _compute_region_income(wages[rows], sex[rows], sexes)
        for code, rows in zip(codes, groups, strict=True)
    }


def _compute_region_income(wages: NDArray[np.float64], sex: NDArray[Any], sexes: tuple[int, int]) -> RegionIncome:
    """One region; its wages are in ascending order."""
    return RegionIncome(_gini(wages), _mean_or_zero(wages[sex == sexes[0]]) - _mean_or_zero(wages[sex == sexes[1]]))


def _gini(wages: NDArray[np.float64]) -> float:
    """1 − 2·Σⱼ cumwageⱼ/(N·W) over ascending wages with sum W; 1 if all are zero."""
    total = float(wages.sum())
    return 1 - 2 * float(np.cumsum(wages).sum()) / (len(wages) * total) if total else 1.0


def _mean_or_zero(wages: NDArray[np.float64]) -> float:
    """The mean wage; 0 if there are none."""
    return float(wages.mean()) if len(wages) else 0.0


def _score_regions(real: RegionIncomes, other: RegionIncomes) -> float:
    real_ranks, other_ranks = _gap_ranks(real), _gap_ranks(other)
    steps = max(len(real) - 1, 1)
    common = [code for code in real if code in other]
    ginis = sum(max(0.0, 1 - abs(real[code].gini - other[code].gini)) ** 2 for code in common)
    gaps = sum(max(0.0, 1 - abs(real_ranks[code] - other_ranks[code]) / steps) ** 2 for code in common)
    return MAX_CONTEST_SCORE / 2 * (math.sqrt(ginis / len(real)) + math.sqrt(gaps / len(real)))


def _gap_ranks(regions: RegionIncomes) -> dict[int, int]:
    """The rank of each region by its gap, the largest first."""
    order = sorted(regions, key=lambda code: (-regions[code].gap, code))
    return {code: rank for rank, code in enumerate(order)}


def _region_score(label: str, real: RegionIncome, other: RegionIncome | None) -> RegionScore:
    gini, gap = (None, None) if other is None else (other.gini, other.gap)
    return RegionScore(region=label, gini=(real.gini, gini), gap=(real.gap, gap))
