"""Whole tables are encoded and decoded; tables whose structure does not fit are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpsyn.encoding import Codec, Grouping, check_structure, narrowest_dtype, type_remarks
from dpsyn.errors import InternalError, SchemaError, SourceError
from dpsyn.schema import (
    Boolean,
    Categorical,
    Datetime,
    Derive,
    Identifier,
    Integer,
    Open,
    Ordinal,
    Real,
    Schema,
    UnitDeclaration,
)
from tests import strategies

PEOPLE = Schema(
    attributes=(
        Identifier(name="id", output="fresh"),
        Integer(name="age", low=0, high=120, missing=True),
        Categorical(name="sex", values=("F", "M"), other="X"),
        Integer(name="income", low=0, high=999_998, bins=(0, 1, 100, 1000, 3000, 999_998)),
        Datetime(name="seen", start="2016-01-01", end="2016-12-31", resolution="minute"),
        Ordinal(name="stage", values=("young", "old", "unknown")),
    ),
    derive=(Derive(name="stage", source="age", mapping=(("0..17", "young"), ("18..120", "old")), otherwise="unknown"),),
)


def random_codes(sizes: tuple[int, ...], rows: int, seed: int = 0) -> NDArray[np.int64]:
    rng = np.random.default_rng(seed)
    return np.stack([rng.integers(0, size, rows) for size in sizes], axis=1)


@settings(max_examples=50)
@given(strategies.schemas(), st.integers(0, 2**32))
def test_codes_of_any_schema_survive_a_table(schema: Schema, seed: int) -> None:
    assume(not any(isinstance(attribute, Open) for attribute in schema.measured_attributes))
    codec = Codec(schema)
    codes = random_codes(codec.fine_sizes, 20, seed)

    table = codec.decode(codes, np.random.default_rng(seed))
    encoded = codec.encode(table)

    parts = [codec.names.index(name) for column in schema.timestamp_parts for name in schema.parts_of(column)]
    assert np.delete(encoded, parts, axis=1).tolist() == np.delete(codes, parts, axis=1).tolist()
    again = codec.encode(codec.decode(encoded, np.random.default_rng(seed)))  # now parts of timestamps fit together
    assert again.tolist() == encoded.tolist()
    check_structure(Schema(attributes=schema.measured_attributes), table.schema, "it")


def test_codes_take_the_narrowest_type_and_are_column_major() -> None:
    codec = Codec(PEOPLE)
    table = codec.decode(random_codes(codec.fine_sizes, 10), np.random.default_rng(0))

    codes = codec.encode(table)

    assert codes.dtype == np.uint16
    assert codes.flags.f_contiguous


@pytest.mark.parametrize(("size", "dtype"), [(1, "u1"), (256, "u1"), (257, "u2"), (65_536, "u2"), (65_537, "u4")])
def test_the_narrowest_type_holds_the_last_code(size: int, dtype: str) -> None:
    assert narrowest_dtype(size) == np.dtype(dtype)


def test_a_decoded_table_follows_the_schema() -> None:
    codec = Codec(PEOPLE)

    table = codec.decode(random_codes(codec.fine_sizes, 100), np.random.default_rng(0), first_row=7)

    assert table.column_names == ["id", "age", "sex", "income", "seen", "stage"]
    assert table["id"].to_pylist() == list(range(7, 107))
    for age, stage in zip(table["age"].to_pylist(), table["stage"].to_pylist(), strict=True):
        assert stage == ("unknown" if age is None else "young" if age < 18 else "old")


def test_a_dropped_identifier_is_not_in_the_table() -> None:
    schema = Schema(attributes=(Identifier(name="id"), Boolean(name="b")), privacy_unit=UnitDeclaration(id="id"))

    table = Codec(schema).decode(np.zeros((2, 1), np.uint8), np.random.default_rng(0))

    assert table.column_names == ["b"]


def test_decoding_is_reproducible_from_its_generator() -> None:
    codec = Codec(PEOPLE)
    codes = random_codes(codec.fine_sizes, 50)

    first, second, other = (codec.decode(codes, np.random.default_rng(seed)) for seed in (1, 1, 2))

    assert first.equals(second)
    assert not first.equals(other)


def test_open_attributes_have_no_codes_and_must_be_discovered_before_decoding() -> None:
    codec = Codec(Schema(attributes=(Open(name="city"), Boolean(name="b"))))

    codes = codec.encode(pa.table({"city": ["x"], "b": [True]}))

    assert codes.tolist() == [[1]]
    with pytest.raises(SchemaError, match="discovered privately before decoding"):
        codec.decode(codes, np.random.default_rng(0))


def test_a_table_without_rows_has_no_codes() -> None:
    codec = Codec(PEOPLE)
    table = codec.decode(np.empty((0, len(codec.names)), np.uint16), np.random.default_rng(0))

    assert codec.encode(table).shape == (0, 6)  # the timestamp has three parts


# ── structure ────────────────────────────────────────────────────────────────────────────────────────────────

FOUR = pa.schema([("age", pa.int64()), ("sex", pa.string()), ("income", pa.int64()), ("seen", pa.string())])


def test_a_missing_column_is_named_with_a_likely_one() -> None:
    table = FOUR.set(0, pa.field("Age", pa.int64()))

    with pytest.raises(SourceError, match=r"there is no column 'age' \(did you mean 'Age'\?\)"):
        check_structure(PEOPLE, table, "people.csv")


def test_a_column_that_occurs_twice_is_refused() -> None:
    with pytest.raises(SourceError, match="there are 2 columns 'age'"):
        check_structure(PEOPLE, FOUR.append(pa.field("age", pa.int8())), "people.csv")


def test_no_type_is_refused_but_the_data_owner_learns_of_nested_ones() -> None:
    table = FOUR.set(3, pa.field("seen", pa.list_(pa.int8()))).set(0, pa.field("age", pa.date32()))

    check_structure(PEOPLE, table, "people.csv")

    assert type_remarks(PEOPLE, table) == [
        "column 'seen' holds list<item: int8>, so its cells are not single values of kind datetime"
    ]


WARDS = Schema(attributes=(Categorical(name="ward", values=("001", "007", "120"), missing=True),))


@pytest.mark.parametrize(
    "kind", [pa.int64(), pa.uint8(), pa.float64(), pa.decimal128(9, 0), pa.dictionary(pa.int32(), pa.int64())], ids=str
)
def test_numbers_where_texts_with_leading_zeros_are_listed_are_read_and_remarked_on(kind: pa.DataType) -> None:
    table = pa.schema([("ward", kind)])

    check_structure(WARDS, table, "people.parquet")

    (remark,) = type_remarks(WARDS, table)
    assert f"column 'ward' holds {kind}, which has no leading zeros, but the schema lists '001'" in remark
    assert "read the column as text (with pandas: dtype={'ward': str})" in remark


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.string(), ("001", "007")),
        (pa.binary(), ("001", "007")),
        (pa.null(), ("001", "007")),
        (pa.int64(), ("1", "2", "unknown")),
        (pa.int64(), ("0", "10")),
        (pa.float64(), ("0.5", "0a")),
        (pa.int64(), (0, 1)),
    ],
)
def test_listed_values_that_a_column_can_hold_need_no_remark(kind: pa.DataType, values: tuple[str, ...]) -> None:
    schema = Schema(attributes=(Categorical(name="ward", values=values),))

    assert type_remarks(schema, pa.schema([("ward", kind)])) == []


def test_extra_columns_are_ignored_and_derived_ones_are_not_needed() -> None:
    check_structure(PEOPLE, FOUR.append(pa.field("extra", pa.int8())), "people.csv")


# ── grouping ─────────────────────────────────────────────────────────────────────────────────────────────────


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30), st.data(), st.integers(0, 2**32))
def test_sampled_members_belong_to_their_group_and_have_weight(
    labels: list[int], data: st.DataObject, seed: int
) -> None:
    group_of = np.unique(labels, return_inverse=True)[1]
    grouping = Grouping(group_of)
    weights = np.array(data.draw(st.lists(st.floats(0, 1e6), min_size=len(labels), max_size=len(labels))))
    groups = np.array(data.draw(st.lists(st.integers(0, grouping.size - 1), max_size=40)), np.int64)

    members = grouping.sample_members(groups, weights, np.random.default_rng(seed))

    assert grouping.merge(members).tolist() == groups.tolist()
    heavy = grouping.sums(weights) > 0
    assert all(weights[member] > 0 for member in members if heavy[group_of[member]])


@pytest.mark.parametrize("labels", [[0, 2], [1, 1]])
def test_groups_with_gaps_are_refused(labels: list[int]) -> None:
    with pytest.raises(InternalError, match="without gaps"):
        Grouping(np.array(labels))


def test_rounded_decimals_keep_their_precision() -> None:
    codec = Codec(Schema(attributes=(Real(name="a", low=0, high=1000, decimals=2),)))
    codes = random_codes(codec.fine_sizes, 2000)

    values: list[Any] = codec.decode(codes, np.random.default_rng(0))["a"].to_pylist()

    assert all(value == float(f"{value:.2f}") for value in values)
