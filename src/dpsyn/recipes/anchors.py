"""Anchors: attributes that nearly always agree are measured as their differences from one of them.

Ten dates of one event lie close together; two columns may repeat each other. A table of two such attributes would have
ten thousand cells, or millions, while their difference has a handful of frequent values. So pairs of attributes of the
same kind and the same values are asked in how many rows they agree. Of those that do, one becomes the *anchor*, and the
others are measured as differences from it (see ``DifferenceCoding``): what depends on the anchor, depends on all.

Which pairs are asked follows from the schema and from released one-way marginals: two attributes cannot agree more
often than their one-way marginals overlap. Without such pairs nothing is asked, and nothing is spent.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpsyn.accounting import exact_fraction, split_exactly
from dpsyn.encoding import (
    Codec,
    DifferenceCoding,
    RecodedColumn,
    Recoding,
    equal_mass_levels,
    expect_same_value,
    group_differences,
)
from dpsyn.inference import (
    MeasurementRound,
    Release,
    combine_one_way,
    count_rows,
    describe_cells,
    estimate_cell_counts,
)
from dpsyn.inference.histogram_hierarchy import Histogram
from dpsyn.marginals import Marginal
from dpsyn.private import PrivateTable
from dpsyn.public import PublicTable
from dpsyn.recipes.public_prior import Prior
from dpsyn.schema import AnyAttribute, Schema, Total

Counts = NDArray[np.float64]

MAX_QUESTION_SHARE = 0.02
"""The largest part of ρ for counts of rows that agree, where there are attributes that may."""

DIFFERENCE_SHARE = 0.02
"""The part of ρ for histograms of differences, where they are not measured with all one-way marginals."""

ANCHOR_PART = Fraction(3, 4)
"""The part of the ρ of differences that goes to their anchor: they have few frequent values, and it stands for all."""

MIN_VALUES = 32
"""Attributes that share at most so many values are measured together as they are: about 1 000 cells."""

NEAR = (0, 1, -1)
"""The differences, in cells, of rows that count as agreeing; the first one is equality."""

COMPARED_GROUPS = 32
"""One-way marginals are compared over so many groups of values to see whether attributes can agree."""

MIN_AGREEMENT = 0.9
"""Attributes are measured as differences if their agreement beyond chance (Cohen's κ) is at least this."""

AGREEMENT_STD, MAX_AGREEMENT_STD = 0.01, 0.05
"""The standard deviation of the noise in an agreement that is aimed at, and the largest with which a pair is asked."""


def find_anchors(
    table: PrivateTable,
    rounds: tuple[MeasurementRound, ...],
    rho: Fraction,
    *,
    kept: Collection[str] = (),
    public: PublicTable | None = None,
) -> tuple[PrivateTable, tuple[MeasurementRound, ...], Fraction]:
    """The table with differences in place of attributes that agree with another one; returns what was spent, too.

    Args:
        table: the table.
        rounds: what was measured, all one-way marginals included.
        rho: the ρ of the whole release.
        kept: attributes that are measured by their own values in any case.
        public: a public table.

    Privacy: each pair is asked by a histogram of rows, over groups of differences; which pairs are asked, and with how
    much of ρ, follows from public facts and released numbers. Spends at most ``MAX_QUESTION_SHARE`` of ``rho``.
    """
    seen = Prior(public, table.schema).shrink(rounds) if public is not None else rounds
    total = table.public_row_count() or count_rows(Release(seen))
    pairs = _find_pairs(table, seen)
    pairs, question_rho = _limit_noise(table, pairs, total, rho * exact_fraction(MAX_QUESTION_SHARE))
    if not pairs:
        return table, rounds, Fraction(0)
    asked = _ask(table, pairs, question_rho)
    links = [link for pair, marginal in zip(pairs, asked.marginals, strict=True) for link in pair.links(marginal)]
    counted = {name for rule in table.schema.rules if isinstance(rule, Total) for name in rule.mentions()}
    chosen = choose_anchors([link for link in links if link.attribute not in {*kept, *counted}])
    codings = {name: link.coding for name, link in chosen.items()}
    return table.recode(_code_differences(table.recoding, codings)), (*rounds, asked), question_rho


def measure_differences(
    table: PrivateTable, rounds: tuple[MeasurementRound, ...], rho: Fraction
) -> tuple[MeasurementRound, ...]:
    """Measure the differences of all attributes that have an anchor, with equal parts of ρ; returns all rounds.

    Privacy: spends ``rho``.
    """
    names = [column.name for column in table.recoding.columns if column.difference_codings]
    marginals = table.measure([(name,) for name in names], split_exactly(rho, [1] * len(names)))
    return (*rounds, MeasurementRound(table.recoding, tuple(marginals)))


def keep_anchors(recoding: Recoding, earlier: Recoding) -> Recoding:
    """A recoding with the differences of an earlier one, as fine as cells are."""
    codings = {c.name: c.difference_codings[0] for c in earlier.columns if len(c.sources) == 1 and c.difference_codings}
    return _code_differences(recoding, {name: coding for name, coding in codings.items() if coding})


def favor_anchors(rhos: Mapping[str, Fraction], recoding: Recoding) -> dict[str, Fraction]:
    """The ρ of all attributes, with a part of that of differences moved to their anchors."""
    names, moved = [name for name, _ in recoding.origin], dict(rhos)
    for source, coding in recoding.difference_codings.items():
        part = ANCHOR_PART * rhos[names[source]]
        moved[names[source]] -= part
        moved[names[coding.anchor]] += part
    return moved


def may_agree(schema: Schema) -> bool:
    """Whether there may be attributes that agree: a public fact. Values that are still to be discovered may."""
    coded = [attribute for attribute in schema.modeled_attributes if attribute.coded]
    return bool(schema.open_attributes) or any(
        _code_difference(one, other, 0) is not None for one, other in combinations(coded, 2)
    )


def _code_difference(attribute: AnyAttribute, anchor: AnyAttribute, index: int) -> DifferenceCoding | None:
    """How an attribute is coded relative to an anchor; None if they share too few values."""
    coding = expect_same_value(attribute, anchor, index)
    return coding if coding is not None and coding.modulus > MIN_VALUES else None


# ── which pairs are asked ────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, eq=False)
class Link:
    """How far an attribute agrees with another one, its anchor.

    Attributes:
        attribute: the attribute.
        anchor: the anchor.
        coding: its difference from the anchor.
        equal: the part of its rows in which both are equal; of those with a value that the anchor may have.
        agreement: how much more of these rows agree than would by chance, as a part of all that could (Cohen's κ).
    """

    attribute: str
    anchor: str
    coding: DifferenceCoding
    equal: float
    agreement: float


@dataclass(frozen=True, slots=True, eq=False)
class _Pair:
    """Two attributes that may agree: their positions, names, estimated counts, and the coding in both directions.

    The first one is the anchor of the question: the one with fewer values, which has none for missing.
    """

    positions: tuple[int, int]
    names: tuple[str, str]
    counts: tuple[Counts, Counts]
    codings: tuple[DifferenceCoding, DifferenceCoding]

    def rows(self, side: int) -> float:
        """About how many rows have a shared value in the attribute at this side."""
        return max(float(self.counts[side][: self.codings[side].modulus].sum()), 1.0)

    def max_agreeing(self, histograms: tuple[Histogram, Histogram]) -> float:
        """The largest part of the rows of the second attribute that can agree with the first one.

        They are compared over groups of values, whose counts are less noisy: rows that agree are in the same group or
        in the values next to it. Noise makes equal counts differ, so what it takes away from their overlap is added.
        """
        coding, other = self.codings[1], self.counts[1]
        expected = self._expected_counts(1)
        group_of = equal_mass_levels(other[: coding.modulus] + expected, COMPARED_GROUPS).codes
        first = np.searchsorted(group_of.group_of, np.arange(group_of.size))  # groups are contiguous
        own, near = group_of.sums(other[: coding.modulus]), group_of.sums(expected)
        near += expected[first - 1] + np.append(expected[first[1:]], expected[0])
        values = (coding.expected_codes, np.minimum(np.arange(len(other)), coding.modulus - 1))
        variances = np.zeros(group_of.size)
        for histogram, value_of in zip(histograms, values, strict=True):
            lowest = np.full(len(histogram.values), coding.modulus - 1)
            np.minimum.at(lowest, histogram.atom_of, value_of)
            groups, position = np.unique(group_of.group_of[lowest], return_inverse=True)
            variances[groups] += histogram.sum_atoms(position)[1]
        noise = float(np.sqrt(variances).sum()) / math.sqrt(2 * math.pi)
        return min(1.0, (float(np.minimum(own, near).sum()) + noise) / self.rows(1))

    def chance(self, side: int) -> float:
        """The part of these rows that would agree with the other attribute by chance."""
        own = self.counts[side][: self.codings[side].modulus]
        return float(own @ self._near(side)) / (max(float(self.counts[1 - side].sum()), 1.0) * self.rows(side))

    def agreement(self, side: int, part: float) -> float:
        """Cohen's κ, if this part of the rows agrees."""
        chance = min(self.chance(side), 1 - 1e-9)
        return (part - chance) / (1 - chance)

    def _near(self, side: int) -> Counts:
        """For each shared value, the rows of the other attribute whose value would agree with it."""
        expected = self._expected_counts(side)
        near: Counts = np.sum([np.roll(expected, difference) for difference in NEAR], axis=0)
        return near

    def _expected_counts(self, side: int) -> Counts:
        """For each shared value, the rows in which the other attribute leads one to expect it."""
        coding = self.codings[side]
        return np.bincount(coding.expected_codes, self.counts[1 - side], coding.modulus).astype(np.float64)

    def links(self, marginal: Marginal) -> list[Link]:
        """What the noisy counts of differences say about both directions."""
        near = marginal.counts[: len(NEAR)]
        shared = float(marginal.counts.sum())
        shared -= float(marginal.counts[len(NEAR) + 1 :].sum())  # values that only the second attribute has
        rows = (min(self.rows(0), float(marginal.counts.sum())), shared)
        return [
            Link(
                self.names[side],
                self.names[1 - side],
                self.codings[side],
                float(near[0]) / max(rows[side], 1.0),
                self.agreement(side, float(near.sum()) / max(rows[side], 1.0)),
            )
            for side in (0, 1)
        ]


def _find_pairs(table: PrivateTable, rounds: Sequence[MeasurementRound]) -> list[_Pair]:
    """The pairs of attributes with the same values whose one-way marginals overlap enough to agree.

    Noise makes one-way marginals of equal attributes differ, so what it would take away on average is added.
    """
    codec, release = Codec(table.schema), [Release(tuple(rounds))]
    parts = {part.name for parts in table.schema.timestamp_parts.values() for part in parts}
    plain = [column.sources[0] for column in table.recoding.columns if len(column.sources) == 1]
    sources = [source for source in plain if codec.names[source] not in parts]  # parts of a timestamp go together

    @cache
    def estimate(source: int) -> tuple[Histogram, Counts]:
        histogram = combine_one_way(release, codec.domain, codec.names[source])
        return histogram, estimate_cell_counts(histogram, describe_cells(codec.attributes[source]))

    pairs: list[_Pair] = []
    for unordered in combinations(sources, 2):
        one, other = sorted(unordered, key=lambda source: (codec.attributes[source].cells, source))
        forth = _code_difference(codec.attributes[other], codec.attributes[one], one)
        back = _code_difference(codec.attributes[one], codec.attributes[other], other)
        if forth is None or back is None:
            continue
        (histogram, counts), (other_histogram, other_counts) = estimate(one), estimate(other)
        names = codec.names[one], codec.names[other]
        pair = _Pair((one, other), names, (counts, other_counts), (back, forth))
        if pair.agreement(1, pair.max_agreeing((histogram, other_histogram))) >= MIN_AGREEMENT:
            pairs.append(pair)
    return pairs


def _limit_noise(
    table: PrivateTable, pairs: Sequence[_Pair], total: float, max_rho: Fraction
) -> tuple[list[_Pair], Fraction]:
    """The pairs whose agreement would stand out from the noise, and the ρ that it takes.

    The rows of a pair are at most all rows: without negative counts, the noise of many values adds to their sum.
    """
    shared = [min(pair.rows(1), total) * (1 - pair.chance(1)) for pair in pairs]
    rows = sorted(((count, n) for n, count in enumerate(shared)), reverse=True)

    def rho_for(number: int, std: float) -> float:
        squared = (rows[number - 1][0] * std) ** 2
        return len(NEAR) * table.privacy_unit.l2_sensitivity_squared * number / (2 * max(squared, 1e-9))

    visible = [n for n in range(1, len(pairs) + 1) if rho_for(n, MAX_AGREEMENT_STD) <= max_rho]
    number = max(visible, default=0)
    if not number:
        return [], Fraction(0)
    kept = sorted(n for _, n in rows[:number])
    return [pairs[n] for n in kept], min(max_rho, exact_fraction(rho_for(number, AGREEMENT_STD)))


def _ask(table: PrivateTable, pairs: Sequence[_Pair], rho: Fraction) -> MeasurementRound:
    """Count the rows of each pair by their difference: equal, near, other; or a value that has no difference."""
    codec = Codec(table.schema)
    columns = [
        RecodedColumn(
            f"{pair.names[1]} − {pair.names[0]}",
            (pair.positions[1],),
            (group_differences(pair.codings[1], codec.attributes[pair.positions[1]].cells, NEAR).group_of,),
            difference_codings=(pair.codings[1],),
        )
        for pair in pairs
    ]
    asked = table.recode(Recoding(tuple(columns), table.recoding.origin))
    marginals = asked.measure([(name,) for name in asked.recoding.names], split_exactly(rho, [1] * len(pairs)))
    return MeasurementRound(asked.recoding, tuple(marginals))


# ── which attributes become anchors ──────────────────────────────────────────────────────────────────────────


def choose_anchors(links: Sequence[Link]) -> dict[str, Link]:
    """The anchor of each attribute that agrees with one: that with which it is equal most often.

    An anchor has none itself. Anchors are chosen one after the other, each such that it is equal to the others in the
    most rows, summed over all that agree with it and have no anchor yet.
    """
    strong = [link for link in links if link.agreement >= MIN_AGREEMENT]
    anchors: list[str] = []
    free = {name for link in strong for name in (link.attribute, link.anchor)}
    while True:
        gains: dict[str, float] = {}
        for link in strong:
            if {link.attribute, link.anchor} <= free:
                gains[link.anchor] = gains.get(link.anchor, 0.0) + link.equal
        if not gains:
            break
        best = max(gains, key=lambda name: gains[name])
        anchors.append(best)
        free -= {best, *(link.attribute for link in strong if link.anchor == best)}
    coded: dict[str, Link] = {}
    for link in strong:
        if link.anchor in anchors and link.attribute not in anchors:
            best_link = coded.get(link.attribute, link)
            coded[link.attribute] = max(best_link, link, key=lambda one: one.equal)
    return coded


def _code_differences(recoding: Recoding, codings: Mapping[str, DifferenceCoding]) -> Recoding:
    """The recoding with differences, as fine as cells are, in place of the attributes that have an anchor."""
    cells = dict(recoding.origin)
    columns = tuple(
        replace(column, tables=(np.arange(cells[column.name]),), difference_codings=(codings[column.name],))
        if column.name in codings
        else column
        for column in recoding.columns
    )
    return replace(recoding, columns=columns)
