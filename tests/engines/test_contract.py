"""The contract of all engines: exact counts, and nothing else of the rows is revealed."""

from __future__ import annotations

import copy
import datetime as dt
import math
import pickle
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsyn.encoding import Codec, Grouping, Recoding, column_codec_for
from dpsyn.engines import open_engine
from dpsyn.errors import InternalError, SchemaError, SourceError
from dpsyn.schema import (
    Categorical,
    Datetime,
    Identifier,
    Impossible,
    Integer,
    JointAttribute,
    Open,
    Schema,
    Time,
    UnitDeclaration,
)
from dpsyn.sources import open_source
from tests import naive
from tests.engines.engines import KEY, InBatches, Opener, every_engine, every_local_engine, in_memory, streamed_by_three

few = settings(max_examples=25)


@st.composite
def tables(draw: st.DrawFn, widest: int = 300) -> tuple[Schema, list[list[int]]]:
    """A table of codes: no rows, one, or a few; attributes of one value, of a few, of more than a byte holds."""
    sizes = draw(st.lists(st.integers(1, 4) | st.sampled_from([1, 256, 257, widest]), min_size=1, max_size=10))
    rows = draw(st.lists(st.tuples(*(st.integers(0, size - 1) for size in sizes)), max_size=12))
    names = [f"a{number}" for number in range(len(sizes))]
    attributes = [Categorical(name=name, codes=size) for name, size in zip(names, sizes, strict=True)]
    return Schema(attributes=tuple(attributes)), [list(row) for row in rows]


def table_of(schema: Schema, rows: list[list[int]]) -> pa.Table:
    return pa.table({name: pa.array([row[axis] for row in rows], pa.int64()) for axis, name in enumerate(schema.names)})


def cliques_of(sizes: tuple[int, ...], max_cells: int = 3000) -> st.SearchStrategy[list[tuple[int, ...]]]:
    """Cliques of any length, with the empty one and repeated ones, that are small enough for naive counting."""
    clique = st.lists(st.sampled_from(range(len(sizes))), unique=True).map(tuple)
    return st.lists(clique.filter(lambda c: math.prod(sizes[p] for p in c) <= max_cells), max_size=6)


# ── count ────────────────────────────────────────────────────────────────────────────────────────────────────


@every_local_engine
@few
@given(tables(), st.data())
def test_counts_are_those_of_counting_row_by_row(
    opened: Opener, drawn: tuple[Schema, list[list[int]]], data: st.DataObject
) -> None:
    schema, rows = drawn
    recoding = Recoding.fine(Codec(schema))
    cliques = data.draw(cliques_of(recoding.sizes))

    counted = opened(table_of(schema, rows), schema).count(cliques, recoding)

    assert [table.ravel().tolist() for table in counted] == [
        naive.count(rows, clique, recoding.sizes) for clique in cliques
    ]
    assert [table.shape for table in counted] == [tuple(recoding.sizes[p] for p in clique) for clique in cliques]
    assert all(table.dtype == np.int64 for table in counted)


@every_local_engine
@few
@given(tables(widest=5), st.integers(0, 99))
def test_counts_follow_merged_and_joint_attributes(
    opened: Opener, drawn: tuple[Schema, list[list[int]]], seed: int
) -> None:
    schema, rows = drawn
    recoding = Recoding.fine(Codec(schema))
    groups = np.random.default_rng(seed).integers(0, 2, recoding.sizes[0])
    recoding = recoding.merge("a0", Grouping(np.unique(groups, return_inverse=True)[1]))
    if len(recoding.columns) > 1:
        recoding = recoding.join("both", ["a1", "a0"])
    fine = np.array(rows, np.uint16).reshape(len(rows), len(schema.names))

    last = len(recoding.columns) - 1
    cliques = [(last,), tuple(dict.fromkeys([last, 0]))]

    counted = opened(table_of(schema, rows), schema).count(cliques, recoding)

    codes = recoding.apply(fine).tolist()
    assert [table.ravel().tolist() for table in counted] == [
        naive.count(codes, clique, recoding.sizes) for clique in cliques
    ]


@every_engine
def test_ten_attributes_are_counted_together_in_the_order_of_the_clique(opened: Opener) -> None:
    schema = Schema(attributes=tuple(Categorical(name=f"a{n}", codes=2 + n % 2) for n in range(10)))
    rng = np.random.default_rng(5)
    rows = [[int(rng.integers(0, 2 + n % 2)) for n in range(10)] for _ in range(40)]
    clique = tuple(rng.permutation(10).tolist())

    (counted,) = opened(table_of(schema, rows), schema).count([clique], Recoding.fine(Codec(schema)))

    expected = Counter(tuple(row[axis] for axis in clique) for row in rows)
    assert {tuple(map(int, cell)): int(counted[tuple(cell)]) for cell in np.argwhere(counted)} == expected
    assert counted.shape == tuple(2 + axis % 2 for axis in clique)


@every_engine
def test_timestamps_are_counted_by_their_parts(opened: Opener) -> None:
    when = Datetime(name="when", start="2024-01-01", end="2024-01-14", resolution="hour", missing=True)
    unit = UnitDeclaration(id="who", max_rows=1)
    schema = Schema(attributes=(Identifier(name="who"), when, Time(name="at", resolution="hour")), privacy_unit=unit)
    stamps = [dt.datetime(2024, 1, 1, 8), dt.datetime(2024, 1, 7, 8), None, dt.datetime(2024, 1, 8, 23)]
    at = [dt.time(7), dt.time(8), dt.time(7), dt.time(23)]
    table = pa.table({"who": ["a", "b", "c", "d"], "when": stamps, "at": at})
    codec = Codec(schema)

    date, weekday, time, both = opened(table, schema).count([(0,), (1,), (2,), (1, 3)], Recoding.fine(codec))

    assert codec.names == ("when.date", "when.weekday", "when.time", "at")
    assert np.flatnonzero(date).tolist() == [0, 6, 7, 14]
    assert weekday.tolist() == [2, 0, 0, 0, 0, 0, 1, 1]
    assert {hour: int(time[hour]) for hour in np.flatnonzero(time)} == {8: 2, 23: 1, 24: 1}
    assert np.argwhere(both).tolist() == [[0, 7], [0, 23], [6, 8], [7, 7]]


@every_engine
def test_many_rows_and_cliques_are_counted_as_numpy_does(opened: Opener) -> None:
    sizes = (2, 3, 40, 300, 2)
    schema = Schema(attributes=tuple(Categorical(name=f"a{n}", codes=size) for n, size in enumerate(sizes)))
    codes = np.stack([np.random.default_rng(n).integers(0, size, 150_001) for n, size in enumerate(sizes)], axis=1)
    data = pa.table({f"a{n}": codes[:, n] for n in range(5)})
    source = InBatches(data, 70_000) if opened is streamed_by_three else data
    cliques = [(0,), (3,), (1, 2), (3, 2), (2, 3), (4, 0, 1), (3, 2, 1, 0), ()]

    counted = opened(source, schema).count(cliques, Recoding.fine(Codec(schema)))

    for clique, table in zip(cliques, counted, strict=True):
        shape = tuple(sizes[axis] for axis in clique)
        flat = np.ravel_multi_index(codes[:, list(clique)].T, shape) if clique else np.zeros(len(codes), np.int64)
        assert np.array_equal(table.ravel(), np.bincount(flat, minlength=table.size))


@every_engine
def test_a_repeated_clique_gets_a_table_of_its_own(opened: Opener) -> None:
    schema = Schema(attributes=(Categorical(name="a0", codes=2),))

    first, second = opened(table_of(schema, [[1]]), schema).count([(0,), (0,)], Recoding.fine(Codec(schema)))
    first += 5

    assert second.tolist() == [0, 1]


@every_engine
def test_invalid_cliques_and_recodings_of_another_schema_are_refused(opened: Opener) -> None:
    schema = Schema(attributes=(Categorical(name="a0", codes=2), Categorical(name="a1", codes=3)))
    wider = Schema(attributes=(Categorical(name="a0", codes=4),))
    engine = opened(table_of(schema, [[1, 2]]), schema)

    for clique in [(0, 0), (2,), (-1,)]:
        with pytest.raises(InternalError, match="not a clique of 2 attributes"):
            engine.count([clique], Recoding.fine(Codec(schema)))
    with pytest.raises(InternalError, match="made for another schema"):
        engine.count([(0,)], Recoding.fine(Codec(wider)))


# ── open attributes ──────────────────────────────────────────────────────────────────────────────────────────

OPEN = Schema(
    attributes=(
        Categorical(name="sex", values=("F", "M")),
        Open(name="town", missing=("-", "n/a")),
        Integer(name="age", low=0, high=99),
    ),
    measure_together=(JointAttribute(name="both", attributes=("sex", "town")),),
    rules=(Impossible(where=(("town", "Ur"), ("sex", "F"))), Impossible(where=(("sex", "M"), ("age", "0..9")))),
)
CODED = Schema(attributes=tuple(attribute for attribute in OPEN if attribute.coded))
TOWNS = pa.table(
    {
        "sex": ["F", "M", "F", "M", "F", "M", "F"],
        "town": [b"Ur", b" Ur ", b"-", None, b" ", b"\xff", b"n/a "],
        "age": [1, 2, 4, 9, 1000, -3, 17],
    }
)


@every_engine
def test_texts_are_counted_without_spaces_and_without_empty_entries(opened: Opener) -> None:
    counted = opened(TOWNS, OPEN).count_texts("town")

    assert counted == {"Ur": 2, "�": 1}


@every_local_engine
@pytest.mark.parametrize(
    ("array", "texts"),
    [
        (pa.array([1, 2, None, 1]), {"1": 2, "2": 1}),
        (pa.array([1.0, 2.5, None, float("nan")]), {"1": 1, "2.5": 1}),
        (pa.array([1.0, 2.0, None]), {"1": 1, "2": 1}),
        (pa.array([True, False, True]), {"true": 2, "false": 1}),
        (pa.array(["b", "a", "b", None]).dictionary_encode(), {"b": 2, "a": 1}),
        (pa.array([0, 86_400], pa.timestamp("s")), {"1970-01-01 00:00:00": 1, "1970-01-02 00:00:00": 1}),
        (pa.nulls(3), {}),
        (pa.array([], pa.string()), {}),
    ],
)
def test_texts_of_any_type_are_spelled_as_listed_values_are_compared(
    opened: Opener, array: pa.Array, texts: dict[str, int]
) -> None:
    schema = Schema(attributes=(Open(name="x"),))
    listed = Categorical(name="x", values=tuple(texts) or ("none",), other="other")
    table = pa.table({"x": array})

    counted = opened(table, schema).count_texts("x")

    assert counted == texts
    engine = opened(table, schema).with_schema(schema.replace_attribute(listed))
    (histogram,) = engine.count([(0,)], Recoding.fine(Codec(Schema(attributes=(listed,)))))
    assert histogram[: len(texts)].tolist() == list(texts.values())


@every_engine
def test_only_texts_of_open_attributes_are_counted(opened: Opener) -> None:
    with pytest.raises(SchemaError, match="'sex' is categorical"):
        opened(TOWNS, OPEN).count_texts("sex")


@every_engine
def test_coded_attributes_are_counted_while_others_are_open(opened: Opener) -> None:
    codec = Codec(OPEN)

    (counted,) = opened(TOWNS, OPEN).count([(0,)], Recoding.fine(codec))

    assert codec.names == ("sex", "age")
    assert counted.tolist() == [4, 3]


@every_engine
def test_rows_are_counted_even_if_all_attributes_are_open(opened: Opener) -> None:
    schema = Schema(attributes=(Open(name="town"),))

    (counted,) = opened(TOWNS, schema).count([()], Recoding((), ()))

    assert counted == len(TOWNS)


@every_engine
def test_a_discovered_attribute_is_counted_with_the_others_under_a_new_schema(opened: Opener) -> None:
    town = OPEN["town"]
    assert isinstance(town, Open)
    discovered = OPEN.replace_attribute(town.to_categorical(["Ur"]))

    engine = opened(TOWNS, OPEN).with_schema(discovered)
    (counted,) = engine.count([(0, 1)], Recoding.fine(Codec(discovered)))

    assert counted.tolist() == [[1, 0, 3], [1, 1, 1]]  # Ur, other, missing


@every_engine
def test_a_column_is_counted_in_another_encoding(opened: Opener) -> None:
    powers = Integer(name="age", low=-4, high=2048, bins=(-4, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024))
    cells = powers.cells

    counted = opened(TOWNS, OPEN).count_column("age", column_codec_for(powers), cells)

    values = np.array([1, 2, 4, 9, 1000, -3, 17])
    expected = column_codec_for(powers).read(pa.array(values)).codes
    assert counted.tolist() == np.bincount(expected, minlength=cells).tolist()


@every_engine
def test_a_column_that_gives_other_codes_is_refused(opened: Opener) -> None:
    schema = Schema(attributes=(Categorical(name="day", codes=3),))
    number = column_codec_for(Integer(name="day", low=0, high=9))

    with pytest.raises(InternalError, match="beyond its size"):
        opened(pa.table({"day": [9]}), schema).count_column("day", number, 3)


# ── what is not revealed, and what is refused ────────────────────────────────────────────────────────────────


@every_engine
def test_an_engine_reveals_nothing_of_its_rows(opened: Opener) -> None:
    engine: Any = opened(TOWNS, OPEN)
    engine.count([(0,)], Recoding.fine(Codec(OPEN)))

    assert repr(engine) == str(engine) == f"<{type(engine).__name__}: private rows>"
    for look in (len, iter, pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            look(engine)


@every_engine
def test_the_structure_is_checked_before_a_row_is_read(opened: Opener) -> None:
    source = InBatches(TOWNS.select(["sex", "town"]), 3)

    with pytest.raises(SourceError, match="no column 'age'"):
        opened(source, OPEN)

    assert source.readings == 0


def one_time_reader() -> pa.RecordBatchReader:
    return TOWNS.to_reader()


def test_a_source_that_can_be_read_once_is_held_in_memory_if_nothing_is_open() -> None:
    schema = CODED
    engine = in_memory(one_time_reader(), schema)
    recoding = Recoding.fine(Codec(schema))

    assert [engine.count([(0,)], recoding)[0].tolist() for _ in range(2)] == [[4, 3], [4, 3]]
    with pytest.raises(SourceError, match="read only once"):
        engine.with_schema(schema)
    with pytest.raises(SourceError, match="read only once"):
        engine.count_column("age", column_codec_for(schema["age"]), 100)


def test_a_source_that_can_be_read_once_is_refused_before_it_is_read_if_more_readings_are_needed() -> None:
    reader = one_time_reader()

    for kind, schema, why in [("memory", OPEN, "values of town"), ("stream", CODED, "the stream engine")]:
        with pytest.raises(SourceError, match=f"read only once, but .*{why}"):
            open_engine(open_source(reader), schema, kind=kind, key=KEY)  # type: ignore[arg-type]
    assert reader.read_all().num_rows == len(TOWNS)


def test_each_query_is_one_reading_and_memory_reads_once() -> None:
    schema = CODED
    recoding = Recoding.fine(Codec(schema))
    held, streamed = InBatches(TOWNS, 3), InBatches(TOWNS, 3)
    engines = in_memory(held, schema), streamed_by_three(streamed, schema)
    assert (held.readings, streamed.readings) == (0, 0)

    for engine in engines:
        engine.count([(0,), (1,), (0, 1)], recoding)
        engine.count([(1, 0)], Recoding.coarse(Codec(schema)))

    assert (held.readings, streamed.readings) == (1, 2)


def test_another_privacy_unit_of_the_same_rows_is_refused() -> None:
    schema = Schema(attributes=(Identifier(name="town"), Categorical(name="sex", values=("F", "M"))))
    with_unit = Schema(attributes=schema.attributes, privacy_unit=UnitDeclaration(id="town"))

    with pytest.raises(InternalError, match="same privacy unit"):
        in_memory(TOWNS, schema).with_schema(with_unit)
