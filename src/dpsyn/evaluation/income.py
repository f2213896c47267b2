"""The contest's third metric: inequality and gender gap of incomes, region by region."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import UserError
from dpsyn.evaluation.density import BEST
from dpsyn.evaluation.results import Figure, IncomeScore, RegionScore
from dpsyn.evaluation.tables import Columns, Comparison, Domain
from dpsyn.schema import Value, text_of

NOT_APPLICABLE = 999_998
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
class Region:
    """Gini index and gender gap of the incomes of one region in one table."""

    gini: float
    gap: float


Regions = dict[int, Region]
"""By the code of the region; only those in which somebody has an income."""


def income_score(comparison: Comparison, columns: IncomeColumns) -> IncomeScore:
    """5·10⁵·√mean(1−|ΔGini|)² + 5·10⁵·√mean max(0, 1−|Δrank|/(K−1))² over the K regions of the real table.

    Incomes of 999998 and more are codes and left out, as are empty ones. Regions are ranked by gender gap, the largest
    first, among those of their own table; equal gaps in the schema's order. A region without incomes in the synthetic
    table scores 0. This index of N people lies between −1/N and 1; a difference of more than 1 counts as 1.
    """
    region, sex, income = (_domain(comparison, name) for name in (columns.region, columns.sex, columns.income))
    amounts = income.numbers()
    if amounts is None:
        raise UserError(f"column {columns.income!r} is {income.kind}; incomes must be numbers")
    sexes = _sexes(sex, columns.sexes)
    places = [comparison.place_of(domain.name) for domain in (region, sex, income)]
    real, *others = (_regions(table[places], amounts, sexes) for table in comparison.exact.tables)
    if not real:
        raise UserError(f"no row of the real table has an income below {NOT_APPLICABLE:,} in {columns.income!r}")
    synthetic, floor, independent = (_score(real, other) for other in others)
    names, labels = sex.labels(), region.labels()
    return IncomeScore(
        score=Figure(synthetic=synthetic, floor=floor, independent=independent),
        sexes=(names[sexes[0]], names[sexes[1]]),
        regions=tuple(_region_score(labels[code], real[code], others[0].get(code)) for code in real),
    )


def _domain(comparison: Comparison, name: str) -> Domain:
    found = [domain for domain in comparison.domains if domain.name == name]
    if not found:
        known = ", ".join(domain.name for domain in comparison.domains)
        raise UserError(f"there is no column {name!r} to compare; there are {known}")
    return found[0]


def _sexes(domain: Domain, given: tuple[Value, Value] | None) -> tuple[int, int]:
    """The codes of the two sexes."""
    labels = domain.labels()[: domain.missing]
    wanted = ("1", "2") if given is None else tuple(map(text_of, given))
    if given is None and not {*wanted} <= {*labels} and len(labels) > 1:
        return 0, 1
    unknown = [value for value in wanted if value not in labels]
    if unknown or len({*wanted}) < 2:
        some = ", ".join(labels[:8]) + (" …" if len(labels) > 8 else "")
        raise UserError(f"the two values of {domain.name!r} to compare must be among {some}")
    return labels.index(wanted[0]), labels.index(wanted[1])


def _regions(columns: Columns, amounts: NDArray[np.float64], sexes: tuple[int, int]) -> Regions:
    """The regions of a table; ``columns`` are region, sex and income."""
    wages = amounts[columns[2]]
    valid = np.flatnonzero(wages < NOT_APPLICABLE)  # nobody is below not-a-number
    regions, sex, wages = columns[0][valid], columns[1][valid], wages[valid]
    order = np.lexsort((wages, regions))
    codes, starts = np.unique(regions[order], return_index=True)
    ends = [*starts.tolist(), len(order)]
    parts = [order[first:stop] for first, stop in pairwise(ends)]
    return {int(code): _region(wages[part], sex[part], sexes) for code, part in zip(codes, parts, strict=True)}


def _region(wages: NDArray[np.float64], sex: NDArray[Any], sexes: tuple[int, int]) -> Region:
    """One region; its wages ascend."""
    return Region(_gini(wages), _mean(wages[sex == sexes[0]]) - _mean(wages[sex == sexes[1]]))


def _gini(wages: NDArray[np.float64]) -> float:
    """1 − 2·Σⱼ cumwageⱼ/(N·W) over ascending wages of sum W; 1 if all are zero."""
    total = float(wages.sum())
    return 1 - 2 * float(np.cumsum(wages).sum()) / (len(wages) * total) if total else 1.0


def _mean(wages: NDArray[np.float64]) -> float:
    """The mean of some wages; 0 if there are none."""
    return float(wages.mean()) if len(wages) else 0.0


def _score(real: Regions, other: Regions) -> float:
    ranks, theirs = _ranks(real), _ranks(other)
    steps = max(len(real) - 1, 1)
    common = [code for code in real if code in other]
    ginis = sum(max(0.0, 1 - abs(real[code].gini - other[code].gini)) ** 2 for code in common)
    gaps = sum(max(0.0, 1 - abs(ranks[code] - theirs[code]) / steps) ** 2 for code in common)
    return BEST / 2 * (math.sqrt(ginis / len(real)) + math.sqrt(gaps / len(real)))


def _ranks(regions: Regions) -> dict[int, int]:
    """The place of each region if those with the largest gap come first."""
    order = sorted(regions, key=lambda code: (-regions[code].gap, code))
    return {code: place for place, code in enumerate(order)}


def _region_score(label: str, real: Region, other: Region | None) -> RegionScore:
    gini, gap = (None, None) if other is None else (other.gini, other.gap)
    return RegionScore(region=label, gini=(real.gini, gini), gap=(real.gap, gap))
