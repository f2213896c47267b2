"""At most k rows of each privacy unit count, and the choice depends only on the unit's own rows and the key."""

from __future__ import annotations

import datetime as dt
from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsyn.encoding import Codec, Recoding, column_codec_for
from dpsyn.encoding.entry_parser import bytes_of_object
from dpsyn.encoding.unit_ids import normalize_ids
from dpsyn.engines import kernels
from dpsyn.engines.contribution_bounding import RowHasher
from dpsyn.errors import InternalError
from dpsyn.schema import Categorical, Identifier, Integer, Open, Schema, UnitDeclaration
from tests import naive
from tests.engines.engines import (
    ALL,
    KEY,
    InBatches,
    Opener,
    every_engine,
    every_local_engine,
    in_memory,
    streamed_at_once,
    streamed_by_three,
)

few = settings(max_examples=25)

Row = tuple[str | None, int, int, str | None]
"""The id, two codes, a text."""

PEOPLE = st.sampled_from(["ann", "bob", "cy", "", " ", None])
ROWS: st.SearchStrategy[list[Row]] = st.lists(
    st.tuples(PEOPLE, st.integers(0, 2), st.integers(0, 1), st.sampled_from(["x", " x", "y", None])), max_size=20
)
MAX_ROWS = st.integers(1, 3)


def schema_of(max_rows: int) -> Schema:
    return Schema(
        attributes=(
            Identifier(name="who"),
            Categorical(name="a", codes=3),
            Categorical(name="b", codes=2),
            Open(name="town"),
        ),
        privacy_unit=UnitDeclaration(id="who", max_rows=max_rows),
    )


def table_of(rows: list[Row]) -> pa.Table:
    kinds = {"who": pa.string(), "a": pa.int64(), "b": pa.int64(), "town": pa.string()}
    return pa.table({name: pa.array([row[n] for row in rows], kind) for n, (name, kind) in enumerate(kinds.items())})


def count_codes(opened: Opener, rows: list[Row], max_rows: int, key: bytes = KEY) -> list[int]:
    schema = schema_of(max_rows)
    (table,) = opened(table_of(rows), schema, key).count([(0, 1)], Recoding.fine(Codec(schema)))
    return [int(count) for count in table.ravel()]


def rows_by_unit(rows: list[Row]) -> dict[str, list[Row]]:
    units: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        units[(row[0] or "").strip()].append(row)
    return units


# ── the rule ─────────────────────────────────────────────────────────────────────────────────────────────────


@every_local_engine
@few
@given(ROWS, MAX_ROWS)
def test_all_rows_of_a_unit_count_or_exactly_k(opened: Opener, rows: list[Row], max_rows: int) -> None:
    for name, theirs in rows_by_unit(rows).items():
        expected = [naive.count([[row[1], row[2]] for row in theirs], (0, 1), (3, 2))]

        counts = count_codes(opened, theirs, max_rows)

        assert sum(counts) == (min(len(theirs), max_rows) if name else 0)  # rows without an id do not count
        assert all(count <= whole for count, whole in zip(counts, expected[0], strict=True))


@few
@given(ROWS, MAX_ROWS, st.randoms(use_true_random=False), st.binary(min_size=16, max_size=16))
def test_engines_orders_and_batches_make_no_difference(
    rows: list[Row], max_rows: int, random: object, key: bytes
) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)  # type: ignore[attr-defined]

    answers = [
        (
            count_codes(opened, order, max_rows, key),
            opened(table_of(order), schema_of(max_rows), key).count_texts("town"),
        )
        for opened in ALL
        for order in (rows, shuffled)
    ]

    assert all(answer == answers[0] for answer in answers)


@every_local_engine
@few
@given(ROWS, MAX_ROWS)
def test_removing_a_unit_changes_the_counts_by_at_most_k_and_only_by_its_own_rows(
    opened: Opener, rows: list[Row], max_rows: int
) -> None:
    everyone = np.array(count_codes(opened, rows, max_rows))

    for name, theirs in rows_by_unit(rows).items():
        others = [row for row in rows if (row[0] or "").strip() != name]
        without = np.array(count_codes(opened, others, max_rows))

        assert np.abs(everyone - without).sum() <= max_rows
        assert (everyone - without).tolist() == count_codes(opened, theirs, max_rows)


@every_local_engine
@few
@given(ROWS, MAX_ROWS)
def test_texts_and_other_encodings_are_bounded_too(opened: Opener, rows: list[Row], max_rows: int) -> None:
    engine = opened(table_of(rows), schema_of(max_rows))
    other = column_codec_for(Categorical(name="a", codes=3, other=2))
    kept = sum(min(len(theirs), max_rows) for name, theirs in rows_by_unit(rows).items() if name)

    texts, column = engine.count_texts("town"), engine.count_column("a", other, 3)

    assert sum(texts.values()) <= kept
    assert column.sum() == kept


@every_local_engine
@few
@given(ROWS, MAX_ROWS)
def test_the_same_rows_count_after_values_are_discovered(opened: Opener, rows: list[Row], max_rows: int) -> None:
    schema = schema_of(max_rows)
    town = schema["town"]
    assert isinstance(town, Open)
    engine = opened(table_of(rows), schema)
    texts = engine.count_texts("town")
    discovered = schema.replace_attribute(town.to_categorical(["x", "y"]))

    (table,) = engine.with_schema(discovered).count([(0, 1, 2)], Recoding.fine(Codec(discovered)))

    assert table.sum(axis=2).ravel().tolist() == count_codes(opened, rows, max_rows)
    assert table.sum(axis=(0, 1))[:2].tolist() == [texts.get("x", 0), texts.get("y", 0)]


@every_engine
def test_rows_that_the_schema_encodes_alike_are_chosen_by_the_other_encoding(opened: Opener) -> None:
    schema = Schema(
        attributes=(Identifier(name="who"), Integer(name="age", low=0, high=9)), privacy_unit=UnitDeclaration(id="who")
    )
    ages = [50, 60, 70, 80, 90, 100, 110, 120]
    wide = column_codec_for(Integer(name="age", low=0, high=127, bins=128))

    counts = [
        opened(pa.table({"who": ["ann"] * 8, "age": order}), schema).count_column("age", wide, 128).tolist()
        for order in (ages, ages[::-1])
    ]

    assert counts[0] == counts[1]
    assert sum(counts[0]) == 1


# ── the key ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_which_rows_count_depends_on_the_key() -> None:
    rows: list[Row] = [("ann", number % 3, number % 2, None) for number in range(6)]

    counts = {tuple(count_codes(in_memory, rows, 1, bytes([number] * 16))) for number in range(64)}

    assert len(counts) == 6


def test_every_row_of_a_unit_is_equally_likely_to_count() -> None:
    rows: list[Row] = [("ann", number, 0, None) for number in range(3)]

    totals = np.sum([count_codes(in_memory, rows, 1, number.to_bytes(16)) for number in range(600)], axis=0)

    assert totals.reshape(3, 2)[:, 0].min() > 150  # 200 expected; below 150 with probability 10⁻⁵


def test_units_are_bounded_independently_of_each_other() -> None:
    rows: list[Row] = [(f"p{unit}", code, 0, "x") for unit in range(1_000) for code in (0, 1)]

    kept = count_codes(in_memory, rows, 1)

    assert kept[0] + kept[2] == 1_000
    assert abs(kept[0] - 500) < 100  # six standard deviations: a false alarm in 10⁹ keys


def test_a_key_of_another_length_is_refused() -> None:
    with pytest.raises(InternalError, match="16 bytes, not 3"):
        RowHasher(b"abc")


@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 15, 63, 300])
def test_texts_are_hashed_as_in_the_paper(length: int) -> None:
    text, key = bytes(number % 256 for number in range(length)), np.frombuffer(KEY, "<u8").copy()
    hashes = np.empty(2, np.uint64)

    data = np.frombuffer(b"before" + text + b"after", np.uint8).copy()
    kernels.hash_texts(data, np.array([6, 6 + length, 11 + length]), key, hashes)

    assert hashes.tolist() == [naive.siphash(text, KEY), naive.siphash(b"after", KEY)]


def test_the_hash_of_the_example_in_the_paper_is_correct() -> None:
    assert naive.siphash(bytes(range(15)), bytes(range(16))) == 0xA129CA6149BE45E5


@pytest.mark.parametrize("attributes", [0, 1, 2, 5])
def test_rows_are_hashed_as_words_of_two_codes(attributes: int) -> None:
    codes = np.arange(3 * attributes, dtype=np.uint16).reshape(attributes, 3)
    words = np.array([[7, 8, 2**63]], np.uint64)
    hashes = np.empty(3, np.uint64)

    kernels.hash_rows(codes, words, np.frombuffer(KEY, "<u8").copy(), hashes)

    for row in range(3):
        message = b"".join(int(code).to_bytes(4, "little") for code in codes[:, row])
        message += bytes(4 * (attributes % 2)) + int(words[0, row]).to_bytes(8, "little")
        assert int(hashes[row]) == naive.siphash(message, KEY)


# ── ids ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("array", "ids"),
    [
        (pa.array(["42", " 42\t", "", "NaN", "?", None]), [b"42", b"42", None, None, None, None]),
        (pa.array([42, None]), [b"42", None]),
        (pa.array([42, None], pa.uint8()), [b"42", None]),
        (pa.array([42.0, None]), [b"42", None]),
        (pa.array([42.0, 0.5, float("nan")]), [b"42", b"0.5", None]),
        (pa.array([42.0, 0.5], pa.float16()), [b"42", b"0.5"]),
        (pa.array([b"\xff", b"\xfe"]), [b"\xff", b"\xfe"]),
        (pa.array([b"ab", b"cd"], pa.binary(2)), [b"ab", b"cd"]),
        (pa.array(["b", "a", None]).dictionary_encode(), [b"b", b"a", None]),
        (pa.array([42, 7], pa.decimal128(5, 1)), [b"42", b"7"]),
        (pa.array(["42", "42.0", "42.00", "4.20", "a.0", "1.0.0"]), [b"42", b"42", b"42", b"4.20", b"a.0", b"1.0.0"]),
        (pa.array([b"\xff42.0", b"-1.0", b"x" * 10_001, b"x" * 10_000]), [b"\xff42.0", b"-1", None, b"x" * 10_000]),
        (pa.array([dt.datetime(2020, 1, 1)], pa.timestamp("ns")), [b"2020-01-01 00:00:00"]),
        (pa.array([[1], None]), [b"[1]", None]),
        (pa.array([True, None]), [b"true", None]),
        (pa.array([1], pa.date32()), [b"1970-01-02"]),
        (pa.array([1], pa.time32("s")), [b"00:00:01"]),
        (pa.nulls(2), [None, None]),
        (pa.array(["skipped", "42", "x"])[1:], [b"42", b"x"]),
    ],
)
def test_ids_of_any_type_are_compared_by_their_text(array: pa.Array, ids: list[bytes | None]) -> None:
    assert normalize_ids(array, Identifier(name="who", missing="?")).to_pylist() == ids


def test_ids_of_a_slice_are_hashed_like_ids_of_a_whole() -> None:
    hasher, who = RowHasher(KEY), Identifier(name="who")
    ids, codes = pa.array(["a", "bc", None, "d"]), np.zeros((4, 1), np.uint8)

    whole, part = hasher.compute_keys(ids, who, codes), hasher.compute_keys(ids[1:3], who, codes[:2])

    assert part.tolist() == whole[:, 1:3].tolist()


@pytest.mark.parametrize("max_rows", [1, 3])
def test_memory_and_streams_count_the_same_rows_of_many_units(max_rows: int) -> None:
    rng = np.random.default_rng(9)
    table = pa.table(
        {"who": rng.integers(0, 30_000, 90_000), "a": rng.integers(0, 3, 90_000), "b": rng.integers(0, 2, 90_000)}
    ).append_column("town", pa.nulls(90_000, pa.string()))
    schema = schema_of(max_rows)
    recoding = Recoding.fine(Codec(schema))
    expected = sum(min(rows, max_rows) for rows in Counter(table["who"].to_pylist()).values())

    tables = [
        engine.count([(0, 1)], recoding)[0]
        for engine in (
            in_memory(table, schema),
            streamed_at_once(table, schema),
            streamed_by_three(InBatches(table, 7_000), schema),
        )
    ]

    assert tables[0].sum() == expected
    assert np.array_equal(tables[0], tables[1])
    assert np.array_equal(tables[0], tables[2])


def test_in_a_table_that_grows_between_two_readings_at_most_k_rows_still_count() -> None:
    rows: list[Row] = [("ann", number % 3, 0, None) for number in range(3)]
    grown: list[Row] = [*rows * 5, ("bob", 1, 1, None)]
    schema = schema_of(2)

    class Growing(InBatches):
        def batches(self, columns):  # type: ignore[no-untyped-def]
            yield from super().batches(columns)
            self._table = table_of(grown)

    engine = streamed_at_once(Growing(table_of(rows), 3), schema)
    (table,) = engine.count([(0, 1)], Recoding.fine(Codec(schema)))

    assert table.sum() == 2


def test_entries_without_a_text_are_no_ids() -> None:
    too_long = [10**5000, 10**5000 + 1]  # Python writes no text of them
    objects = pa.array([bytes_of_object(entry) for entry in [*too_long, 7]], pa.large_binary())
    durations = pa.array([2**62, 2**62 + 5], pa.duration("s"))

    assert normalize_ids(objects, Identifier(name="id")).to_pylist() == [None, None, b"7"]
    assert normalize_ids(durations, Identifier(name="id")).null_count == 2
