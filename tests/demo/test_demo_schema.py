"""The example's schema describes whatever table the generator makes."""

from __future__ import annotations

import datetime as dt
from importlib import resources
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from numpy.typing import NDArray

from dpsyn.demo import people, people_schema
from dpsyn.demo.region import DISTRICTS, OCCUPATIONS
from dpsyn.schema import AnyAttribute, Boolean, Categorical, Impossible, Ranged, Real, Schema

SCHEMA = people_schema()
CODED = [attribute for attribute in SCHEMA if attribute.coded]
IMPOSSIBLE = [rule for rule in SCHEMA.rules if isinstance(rule, Impossible)]

Cells = dict[str, NDArray[np.int64]]  # by attribute, one per row


@pytest.fixture(scope="module", params=[0, 1, 2])
def table(request: pytest.FixtureRequest) -> pa.Table:
    return people(30_000, seed=request.param)


@pytest.fixture(scope="module")
def cells(table: pa.Table) -> Cells:
    return {attribute.name: cells_of(attribute, table[attribute.name]) for attribute in CODED}


def cells_of(attribute: AnyAttribute, column: pa.ChunkedArray) -> NDArray[np.int64]:
    """The cell of every value, found value by value; an error if one is outside the domain."""
    values = column.unique().to_pylist()
    known = [value for value in values if value is not None]
    cell_of = dict(zip(known, proper_cells(attribute, known), strict=True))
    assert None not in values or attribute.has_missing, f"{attribute.name} is empty somewhere"
    missing = attribute.proper_cells
    return np.array([cell_of.get(value, missing) for value in column.to_pylist()], dtype=np.int64)


def proper_cells(attribute: AnyAttribute, values: list[Any]) -> list[int]:
    if isinstance(attribute, Ranged):
        steps = [attribute.step_of(v.isoformat() if isinstance(v, dt.date) else v) for v in values]
        return list(attribute.grid().cell_of(np.array(steps, dtype=np.int64)).tolist())
    if isinstance(attribute, Boolean):
        return [int(value) for value in values]
    assert isinstance(attribute, Categorical)
    return [attribute.all_values().index(value) for value in values]


def test_the_schema_names_the_columns_of_the_table_in_their_order() -> None:
    assert list(SCHEMA.names) == people(0).column_names


@pytest.mark.parametrize("attribute", CODED, ids=lambda attribute: attribute.name)
def test_every_value_is_inside_the_declared_domain(cells: Cells, attribute: AnyAttribute) -> None:
    codes = cells[attribute.name]

    assert 0 <= codes.min() <= codes.max() < attribute.cells


@pytest.mark.parametrize("attribute", CODED, ids=lambda attribute: attribute.name)
def test_missing_is_declared_exactly_where_it_occurs(attribute: AnyAttribute) -> None:
    assert attribute.has_missing == (people()[attribute.name].null_count > 0)


def test_real_values_are_on_the_declared_lattice(table: pa.Table) -> None:
    attribute = SCHEMA["commute_km"]
    assert isinstance(attribute, Real)

    values = np.unique(table["commute_km"].drop_null().to_numpy())
    steps = np.array([attribute.step_of(value) for value in values])

    assert np.array_equal(attribute.values_at(steps), values)


def test_lists_of_values_are_those_of_the_region() -> None:
    district, occupation = SCHEMA["district"], SCHEMA["occupation"]
    assert isinstance(district, Categorical)
    assert isinstance(occupation, Categorical)

    assert district.all_values() == tuple(d.name for d in DISTRICTS)
    assert occupation.all_values() == tuple(o.name for o in OCCUPATIONS)


@pytest.mark.parametrize("rule", IMPOSSIBLE, ids=lambda rule: rule.because)
def test_no_row_has_an_impossible_combination_even_by_its_cells(cells: Cells, rule: Impossible) -> None:
    met = [SCHEMA[name].select(condition)[cells[name]] for name, condition in rule.where]

    assert not np.logical_and.reduce(met).any()


@pytest.mark.parametrize("rule", IMPOSSIBLE, ids=lambda rule: rule.because)
def test_every_rule_forbids_what_single_columns_allow(cells: Cells, rule: Impossible) -> None:
    """Each condition alone is met by some row, so the rule is not vacuous."""
    for name, condition in rule.where:
        assert SCHEMA[name].select(condition)[cells[name]].any()


def test_visits_follow_the_move(table: pa.Table) -> None:
    moved, visited = table["move_in_date"], table["last_doctor_visit"]

    assert pc.all(pc.greater_equal(visited, moved.cast(pa.timestamp("s")))).as_py()


def test_nobody_moved_in_before_birth(table: pa.Table) -> None:
    born = pc.subtract(2024, table["age"])

    assert pc.all(pc.greater_equal(pc.year(table["move_in_date"]), born)).as_py()


def test_age_groups_are_derived_from_ages(cells: Cells) -> None:
    (derive,) = SCHEMA.derive
    ages, groups = SCHEMA[derive.source], SCHEMA[derive.name]
    assert derive.otherwise is not None
    derived = np.full(ages.cells, proper_cells(groups, [derive.otherwise])[0])
    for value, result in derive.mapping:
        derived[ages.select(value)] = proper_cells(groups, [result])[0]

    assert np.array_equal(derived[cells["age"]], cells["age_group"])


def test_the_spikes_of_income_are_where_people_round() -> None:
    attribute = SCHEMA["income"]
    counts = np.bincount(cells_of(attribute, people(50_000)["income"]), minlength=attribute.cells)

    for spike in proper_cells(attribute, [20_000, 30_000, 50_000]):
        assert counts[spike] > 5 * counts[spike + 1]


def test_the_schema_is_public_and_gives_reasons() -> None:
    SCHEMA.require_public()

    assert all(stated.because for stated in (*SCHEMA.attributes, *SCHEMA.derive, *SCHEMA.rules))


def test_the_schema_reads_back_as_itself() -> None:
    assert Schema.from_yaml(SCHEMA.to_yaml()) == SCHEMA


def test_the_schema_with_its_optional_lines_is_valid_and_shows_every_feature() -> None:
    text = resources.files("dpsyn.demo").joinpath("schema.yaml").read_text("utf-8")

    schema = Schema.from_yaml(text.replace("#: ", ""))

    kinds = {attribute.__struct_config__.tag for attribute in schema}
    assert kinds == {"identifier", "categorical", "ordinal", "integer", "real", "datetime", "boolean", "open"}
    assert {rule.__struct_config__.tag for rule in schema.rules} == {"impossible", "order", "sum", "total"}
    assert schema.privacy_unit
    assert schema.derive
    assert schema.measure_together
    assert schema.groups
