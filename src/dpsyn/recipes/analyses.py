"""Analyses that are declared beforehand: the tables that they need are measured, whatever scores say.

What an analysis needs is public: a regression needs its outcome with every term, and the terms with each other, because
they are adjusted for; a cross table, or the mean of a group, needs one table. At a small ε scores are mostly noise, and
would often miss these tables.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

from dpsyn.errors import UserError, quote_argument
from dpsyn.inference import Release, estimate_one_way, estimate_row_count
from dpsyn.marginals import Clique
from dpsyn.private import PrivateTable
from dpsyn.progress import Progress
from dpsyn.recipes.adaptive_selection import Prepared, measure_tables, resolution_of
from dpsyn.recipes.base import Measurements
from dpsyn.recipes.resolution import Groups, Resolution, TableAtLevels
from dpsyn.schema import Schema
from dpsyn.schema.formula import parse_formula
from dpsyn.suggestions import suggest_names

OUTCOME_WEIGHT = 16.0
"""How much errors in tables with the outcome of a regression count, compared with those of its terms among each other.
Coefficients follow from the former; the latter only adjust. With ten columns of Adult (2 000 rows, ε = 0.5, 40 releases
each), weights of 1, 4 and 16 gave intervals that held in .94, .95 and .96 of cases, the last ones the narrowest."""

ANALYSIS_SHARE = 0.5
"""The part of ρ for the tables of analyses, of what is left after one-way marginals; all if they hold every pair."""

MAX_JOINT_CELLS = 4_096
"""The largest number of cells of one table for a whole regression."""

WORTHWHILE_DISTANCE = 0.15
"""How far from independent attributes are taken to be for the choice of a level: coarser ones lose a part of that."""


@dataclass(frozen=True, slots=True)
class Analysis:
    """An analysis that somebody is going to make.

    Attributes:
        text: as it was declared.
        outcome: the outcome of a regression; None if the attributes are one table.
        attributes: all attributes, the outcome first.
        together: further sets of attributes that are needed in one table: interactions, with the outcome.
    """

    text: str
    outcome: str | None
    attributes: tuple[str, ...]
    together: tuple[Clique, ...] = ()


def parse_analysis(text: str, names: Collection[str]) -> Analysis:
    """An analysis from its text: ``income ~ age + sex``, ``income by sex`` or ``sex, region``.

    >>> parse_analysis("income ~ age*sex", ["income", "age", "sex"]).together
    (('income', 'age', 'sex'),)
    """
    if isinstance(text, str) and "~" in text:
        formula = parse_formula(text, names)
        products = [tuple(factor.name for factor in term) for term in formula.terms if len(term) > 1]
        return Analysis(text, formula.outcome, formula.attributes, tuple((formula.outcome, *each) for each in products))
    parts = re.split(r",|\s+by\s+", text) if isinstance(text, str) else []
    found = tuple(part.strip().strip("`") for part in parts)
    if len({*found}) < 2 or not all(found):
        raise UserError(
            f"the analysis {quote_argument(text)} cannot be read; give a regression such as 'income ~ age + sex', a "
            "mean by groups such as 'income by sex', or a cross table such as 'sex, region'"
        )
    for name in found:
        if name not in names:
            raise UserError(
                f"the analysis {quote_argument(text)} names {quote_argument(name)}, which is no attribute; "
                f"{suggest_names(name, [*names])}"
            )
    return Analysis(text, None, tuple(dict.fromkeys(found)))


def check_analyses(analyses: Sequence[str], schema: Schema) -> None:
    """Refuse analyses that cannot be read, or name attributes that are not measured."""
    if isinstance(analyses, str):
        raise UserError(f"the analyses are {quote_argument(analyses)}; give a list of texts")
    modeled = {attribute.name for attribute in schema.modeled_attributes}
    for text in analyses:
        for name in parse_analysis(text, schema.names).attributes:
            if not set(schema.parts_of(name)) <= modeled:
                raise UserError(
                    f"the analysis {quote_argument(text)} names {quote_argument(name)}, which is not measured; leave "
                    "it out"
                )


def analyzed_attributes(analyses: Iterable[str], schema: Schema) -> tuple[str, ...]:
    """The modeled attributes that analyses name."""
    names = (name for text in analyses for name in parse_analysis(text, schema.names).attributes)
    return tuple(dict.fromkeys(part for name in names for part in schema.parts_of(name)))


def covers_all_pairs(analyses: Sequence[str], schema: Schema) -> bool:
    """Whether every pair of attributes is needed by an analysis."""
    sets = [set(analyzed_attributes([text], schema)) for text in analyses]
    names = [attribute.name for attribute in schema.modeled_attributes]
    return all(any({*pair} <= some for some in sets) for pair in combinations(names, 2))


def measure_analyses(
    prepared: Prepared, analyses: Sequence[str], rho: Fraction, max_cells: int, progress: Progress
) -> Measurements:
    """Measure the tables that analyses need, each at the level that its noise supports.

    Privacy: spends ``rho``.
    """
    table, resolution = prepared.table, resolution_of(prepared, max_cells)
    weights: dict[str, float] = {}
    cliques: dict[Clique, None] = {}
    for text in analyses:
        analysis = parse_analysis(text, table.schema.names)
        columns = {name: _columns_of(table, name) for name in analysis.attributes}
        cliques |= dict.fromkeys(_needed_cliques(analysis, columns, resolution))
        if analysis.outcome is not None:
            weights |= dict.fromkeys(columns[analysis.outcome], OUTCOME_WEIGHT)
    wanted = [c for c in cliques if not any({*c} < {*other} for other in cliques)]
    wanted = [clique for clique in wanted if all(resolution.sizes[name] > 1 for name in clique) and len(clique) > 1]
    tables = [(clique, _choose_level(prepared, resolution, clique, rho, len(wanted))) for clique in wanted]
    tables = _fit_limits(tables, resolution, table)
    if not tables:
        return prepared.measurements
    return measure_tables(table, prepared.measurements, tables, rho, weights, progress)


def _columns_of(table: PrivateTable, name: str) -> list[str]:
    """The attributes of the recoding that hold an attribute, or the parts of a timestamp."""
    parts = {*table.schema.parts_of(name)}
    joint = table.recoding.joint_parts
    return [column for column in table.recoding.names if parts & {column, *joint.get(column, ())}]


def _needed_cliques(analysis: Analysis, columns: Mapping[str, Sequence[str]], resolution: Resolution) -> list[Clique]:
    """The tables of an analysis: one of all attributes, or of each pair, whichever has less noise."""
    order = {name: position for position, name in enumerate(resolution.sizes)}

    def clique_of(names: Iterable[str]) -> Clique:
        return tuple(sorted({column for name in names for column in columns[name]}, key=order.__getitem__))

    everything = clique_of(analysis.attributes)
    if analysis.outcome is None or _is_less_noisy(everything, resolution):
        return [everything]
    found = [clique_of(pair) for pair in combinations(analysis.attributes, 2)]
    return [*found, *(clique_of(names) for names in analysis.together)]


def _is_less_noisy(clique: Clique, resolution: Resolution) -> bool:
    """Whether one table of all attributes tells more about each pair than a table of each pair.

    A cell of a pair is a sum of cells of the large table, and the variance of the sum is their number; in tables of
    their own, each pair has one of as many parts of ρ as there are pairs.
    """
    sizes = [resolution.sizes[name] for name in clique]
    pairs = list(combinations(sizes, 2))
    if math.prod(sizes) > min(MAX_JOINT_CELLS, resolution.max_cells) or not pairs:
        return False
    return sum(math.prod(sizes) / (one * other) for one, other in pairs) / len(pairs) <= len(pairs)


def _choose_level(prepared: Prepared, resolution: Resolution, clique: Clique, rho: Fraction, tables: int) -> Groups:
    """The level at which noise and what the level loses are smallest together, with equal parts of ρ."""
    releases = [Release(prepared.measurements.rounds)]
    estimates = [estimate_one_way(releases, prepared.table.recoding, name) for name in clique]
    rows = max(prepared.measurements.row_count or estimate_row_count(estimates), 1.0)
    std = math.sqrt(prepared.table.privacy_unit.l2_sensitivity_squared * tables / (2 * float(rho)))

    def error(groups: Groups) -> float:
        cells = resolution.count_cells(clique, groups)
        parameters = resolution.count_parameters(
            clique, [groups[n].size if n in groups else resolution.sizes[n] for n in clique]
        )
        noise = math.sqrt(cells * (parameters or cells)) * std * math.sqrt(2 / math.pi) / (2 * rows)
        return noise + WORTHWHILE_DISTANCE * (1 - resolution.kept_share(groups))

    options = resolution.options(clique) or [resolution.finest(clique)]
    return resolution.coarser(min(options, key=error))


def _fit_limits(tables: Sequence[TableAtLevels], resolution: Resolution, table: PrivateTable) -> list[TableAtLevels]:
    """The tables that are small enough, the smallest first where all together are not."""
    left, kept = table.noisy_values_left // 2, []
    for clique, groups in sorted(tables, key=lambda each: resolution.count_cells(*each)):
        cells = resolution.count_cells(clique, groups)
        if cells <= min(left, table.limits.max_marginal_cells):
            kept.append((clique, groups))
            left -= cells
    return kept
