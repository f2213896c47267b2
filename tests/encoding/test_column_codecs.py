"""Every entry has a code, whatever it holds, and codes are decoded to values of the right type."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from dpsyn.encoding import ABOVE, BELOW, EMPTY, IN_DOMAIN, MISSING_STEP, UNREADABLE, RangedCodec, column_codec_for
from dpsyn.encoding.binning import CellLookup
from dpsyn.schema import Attribute, Boolean, Categorical, Datetime, Integer, Ordinal, Real, Time, canonical_text
from tests import naive, strategies

NASTY = (
    b"", b" ", b"NaN", b"nan", b"-nan", b"nAn", b"nan(7)", b"inf", b"-inf", b"Infinity", b"+infinity", b"None", b"NA",
    b"?", b"1,234", b"1.234,5", b" 42 ", b"\t42\n", b"+42", b"-0", b"0x1F", b"1e3", b"1E+3", b"1e999", b"-1e999", b"5.",
    b".5", b".", b"-", b"1_000", b"7.0", b"007", b"99999999999999999999", b"-99999999999999999999",
    b"999999999999999999", b"9999999999999999999", b"12345678901234567", b"0.1", b"0.125", b"1.005", b"2.5", b"3.5",
    b"123456789012345.123456789012345", b"1234567890123456.5", b"true", b"TRUE", b"True", b"yes", b"N", b"1", b"0",
    b"\xff\xfe", b"caf\xe9", b"\x00", b"x" * 10_000, b"7" * 5_000, "４２".encode(), "٣".encode(), "\u00a042".encode(),
    b"2016-01-05", b"20160105", b"2016-1-5", b"2016-01-05T10:11:12Z", b"2016-01-05T10:11:12+02:00", b"2016-01-05 10:11",
    b"2016-01-05T10:11:12.123456", b"2016-01-05T10:11:12.123456789", b"2016-02-30", b"2016-13-01", b"2016-01-05T24:00",
    b"2016-01-05T10:11:60", b"0000-01-01", b"0001-01-01", b"0001-01-01T00:00:00+14:00", b"9999-12-31T23:59:59-14:00",
    b"2016-W01-2", b"2016", b"2016-07", b"2016-01-05T10", b"01/05/2016", b"10:30",
    b"8:30", b" 08:30:15.25 ", b"24:00", b"24:01", b"23:59:60", b"08:60", b"8:30 PM", b"12:00 a.m.", b"13:00 pm",
    b"0830", b"T08:30", b"08:30+02:00", b"1:2", "٠٨:٣٠".encode(), b"08:30:15.123456789",
)  # fmt: skip
"""What people, programs and accidents write into tables."""


def entries() -> st.SearchStrategy[bytes | None]:
    """Text entries, both usual and unusual."""
    numbers = st.integers(-(10**20), 10**20).map(str) | st.floats().map(repr) | st.decimals(places=2).map(str)
    dates = (
        st.datetimes().map(dt.datetime.isoformat)
        | st.dates().map(dt.date.isoformat)
        | st.times().map(dt.time.isoformat)
    )
    texts = numbers | dates | strategies.texts()
    return st.none() | st.sampled_from(NASTY) | texts.map(str.encode) | st.binary(max_size=12)


def read(attribute: Attribute, values: list[Any], kind: pa.DataType | None = None) -> list[int]:
    """The fine codes of some values."""
    codes: list[int] = column_codec_for(attribute).read(pa.array(values, kind)).codes.tolist()
    return codes


def read_statuses(attribute: Attribute, values: list[Any], kind: pa.DataType | None = None) -> list[int]:
    """The statuses of some values."""
    statuses: list[int] = column_codec_for(attribute).read(pa.array(values, kind)).statuses.tolist()
    return statuses


# ── round trips ───────────────────────────────────────────────────────────────────────────────────────────


@given(strategies.coded(), st.integers(0, 2**32))
def test_every_code_survives_decoding_and_encoding(attribute: Attribute, seed: int) -> None:
    column = column_codec_for(attribute)
    codes = np.arange(attribute.cells)

    written = column.write(codes, np.random.default_rng(seed))

    assert column.read(written).codes.tolist() == codes.tolist()


@given(strategies.coded(), st.integers(0, 2**32))
def test_every_code_survives_a_text_file(attribute: Attribute, seed: int) -> None:
    assume(not (isinstance(attribute, Datetime) and attribute.format))
    column = column_codec_for(attribute)
    codes = np.arange(attribute.cells)
    written = column.write(codes, np.random.default_rng(seed))
    values = [None if value is None else str(value) for value in written.cast(pa.string()).to_pylist()]

    again = column.read(pa.array(values, pa.string()))

    assert again.codes.tolist() == codes.tolist()


@given(strategies.categoricals(), st.data())
def test_listed_values_survive_a_round_trip(attribute: Categorical, data: st.DataObject) -> None:
    column = column_codec_for(attribute)
    value = data.draw(st.sampled_from(attribute.all_values()))
    kind = column.write(np.array([0]), np.random.default_rng(0)).type
    plain = canonical_text(value) if pa.types.is_string(kind) else value

    codes = column.read(pa.array([plain], kind)).codes

    assert column.write(codes, np.random.default_rng(0)).to_pylist() == [plain]


@given(st.integers(-500, 500), st.integers(0, 900), st.data())
def test_integers_of_a_short_range_survive_a_round_trip(low: int, length: int, data: st.DataObject) -> None:
    attribute = Integer(name="a", low=low, high=low + length)
    value = data.draw(st.integers(low, low + length))
    column = column_codec_for(attribute)

    back = column.write(column.read(pa.array([value])).codes, np.random.default_rng(0))

    assert back.to_pylist() == [value]
    assert back.type == pa.int64()


@given(st.integers(0, 900), st.data())
def test_decimals_of_a_short_range_survive_a_round_trip(length: int, data: st.DataObject) -> None:
    attribute = Real(name="a", low=0.0, high=length / 100, decimals=2)
    value = data.draw(st.integers(0, length)) / 100
    column = column_codec_for(attribute)

    back = column.write(column.read(pa.array([value])).codes, np.random.default_rng(0))

    assert back.to_pylist() == [value]


@given(strategies.rangeds(), st.lists(entries(), max_size=20))
def test_the_step_of_an_entry_lies_in_the_cell_of_its_code(attribute: Any, values: list[bytes | None]) -> None:
    column = column_codec_for(attribute)
    assert isinstance(column, RangedCodec)
    array = pa.array(values, pa.binary())

    steps, statuses = column.read_steps(array)

    missing = steps == MISSING_STEP
    codes = np.where(missing, attribute.proper_cells, attribute.grid().cell_of(steps))
    assert codes.tolist() == column.read(array).codes.tolist()
    assert statuses.tolist() == column.read(array).statuses.tolist()
    assert column.read_steps(array.dictionary_encode())[0].tolist() == steps.tolist()


def test_steps_are_exact_where_cells_are_wide() -> None:
    column = column_codec_for(Integer(name="a", low=0, high=10**9, missing=True))
    assert isinstance(column, RangedCodec)

    steps, _ = column.read_steps(pa.array([0, 123_456_789, None, 10**10]))

    assert steps.tolist() == [0, 123_456_789, MISSING_STEP, 10**9]


@given(strategies.rangeds(), st.data(), st.integers(0, 2**32))
def test_a_value_of_a_wide_range_stays_in_its_cell(attribute: Any, data: st.DataObject, seed: int) -> None:
    assume(not (isinstance(attribute, Datetime) and attribute.format))
    step = data.draw(st.integers(0, attribute.steps - 1))
    column = column_codec_for(attribute)
    code = column.read(pa.array([attribute.text_at(step)])).codes

    back = column.write(code, np.random.default_rng(seed))

    edges = attribute.grid().edges
    assert edges[code[0]] <= step < edges[code[0] + 1]
    assert column.read(back).codes.tolist() == code.tolist()


# ── encoding is total, and an entry is read by itself ────────────────────────────────────────────────────────


@given(strategies.coded(), st.lists(entries(), max_size=12))
@example(Integer(name="a", missing="no", low=0, high=3), [b"true", b"False ", b"no", b"yes"])
@example(Integer(name="a", missing="1", low=2, high=3), [b"TRUE", b"1.0", b"true"])
def test_every_text_entry_is_read_as_by_the_naive_reader(attribute: Attribute, values: list[bytes | None]) -> None:
    assume(not (isinstance(attribute, Datetime) and attribute.format))

    codes = read(attribute, values, pa.binary())

    assert codes == [naive.cell_of_text(attribute, value) for value in values]


@given(strategies.coded(), st.lists(entries(), min_size=2, max_size=8))
def test_an_entry_does_not_change_the_codes_of_others(attribute: Attribute, values: list[bytes | None]) -> None:
    together = read(attribute, values, pa.binary())

    alone = [read(attribute, [value], pa.binary())[0] for value in values]

    assert together == alone


@pytest.mark.parametrize("value", NASTY)
@pytest.mark.parametrize(
    "attribute",
    [
        Integer(name="a", low=-5, high=2000),
        Real(name="a", low=-5, high=2000, decimals=2),
        Datetime(name="a", start="1900-01-01", end="2030-12-31"),
        Datetime(name="a", start="1900-01-01", end="2030-12-31", resolution="microsecond"),
        Datetime(name="a", start="1900-01-01", end="2030-12-31", format="%m/%d/%Y"),
        Time(name="a", resolution="second"),
        Boolean(name="a"),
        Categorical(name="a", values=("x", "y"), other="z"),
        Categorical(name="a", codes=100, missing=True),
    ],
    ids=lambda attribute: f"{attribute.kind}-{getattr(attribute, 'resolution', '')}",
)
def test_a_nasty_entry_is_read_and_changes_no_code_of_plain_ones(attribute: Attribute, value: bytes) -> None:
    plain = [b"7", b"2016-03-04", b"01/05/2016", b"x", b"true", b"12.5"]

    codes = read(attribute, [*plain, value], pa.binary())

    assert codes[:-1] == read(attribute, plain, pa.binary())
    assert 0 <= codes[-1] < attribute.cells


@given(strategies.coded(), st.lists(st.integers(-(2**63), 2**63 - 1) | st.none(), max_size=6))
def test_timestamps_and_dates_of_any_size_have_a_code(attribute: Attribute, ticks: list[int | None]) -> None:
    column = column_codec_for(attribute)
    kinds = [pa.timestamp(unit, tz) for unit in ("s", "ms", "us", "ns") for tz in (None, "UTC")]
    kinds += [pa.time64("us"), pa.time64("ns"), pa.duration("s"), pa.duration("ns"), pa.date64()]
    arrays = [pa.array(ticks, pa.int64()).view(kind) for kind in kinds]
    narrow = pa.array([None if t is None else t >> 32 for t in ticks], pa.int32())
    arrays += [narrow.view(kind) for kind in (pa.date32(), pa.time32("s"), pa.time32("ms"))]

    for array in arrays:
        codes = column.read(array).codes

        assert len(codes) == len(ticks)
        assert all(0 <= code < attribute.cells for code in codes)


@given(st.lists(st.floats(width=64) | st.none(), max_size=8), strategies.integers() | strategies.reals())
def test_floats_are_read_like_their_text(values: list[float | None], attribute: Integer | Real) -> None:
    as_floats = read(attribute, values, pa.float64())

    as_text = read(attribute, [None if value is None else repr(value) for value in values], pa.string())

    assert as_floats == as_text


def test_numbers_beyond_64_bits_go_to_the_bound() -> None:
    attribute = Integer(name="a", low=0, high=10)

    assert read(attribute, [2**64 - 1, 3], pa.uint64()) == [10, 3]
    assert read(attribute, [Decimal(10) ** 30, Decimal(3)], pa.decimal128(38, 0)) == [10, 3]


# ── the cell of an entry ─────────────────────────────────────────────────────────────────────────────────────


def test_a_null_goes_to_missing_if_declared_and_otherwise_to_other() -> None:
    assert read(Integer(name="a", low=0, high=9, missing=True), [None, ""], pa.string()) == [10, 10]
    assert read(Integer(name="a", low=0, high=9), [None, ""], pa.string()) == [0, 0]
    assert read(Integer(name="a", low=0, high=9, other=5), [None, ""], pa.string()) == [5, 5]
    assert read(Integer(name="a", low=0, high=9, other=5, missing=True), [None, "x"], pa.string()) == [10, 5]


def test_an_unknown_category_goes_to_other_then_missing_then_the_first() -> None:
    values = ("x", "y")

    assert read(Categorical(name="a", values=values), ["q"]) == [0]
    assert read(Categorical(name="a", values=values, missing=True), ["q"]) == [2]
    assert read(Categorical(name="a", values=values, other="y", missing=True), ["q", None]) == [1, 2]
    assert read(Categorical(name="a", values=values, other="z", missing=True), ["q", "z", None]) == [2, 2, 3]


def test_out_of_range_goes_to_the_nearest_bound() -> None:
    attribute = Integer(name="a", low=0, high=9, missing=True)

    assert read(attribute, ["-3", "12", "-inf", "inf"]) == [0, 9, 0, 9]
    assert read_statuses(attribute, ["-3", "12", "-inf", "inf", "4", "", "x"]) == [
        BELOW, ABOVE, BELOW, ABOVE, IN_DOMAIN, EMPTY, UNREADABLE,
    ]  # fmt: skip


def test_a_number_or_date_can_be_a_spelling_of_missing_in_files_and_in_typed_tables() -> None:
    number = Integer(name="a", low=0, high=9, missing=("-1", "?"))
    date = Datetime(name="a", start="2000-01-01", end="2000-12-31", missing="9999-12-31")

    assert read(number, ["-1", "-1.0", "?", "-2"]) == [10, 10, 10, 0]
    assert read(number, [-1, -2]) == [10, 0]
    assert read(date, ["9999-12-31", "9999-12-30"]) == [366, 365]
    assert read(date, [dt.date(9999, 12, 31), dt.date(9999, 12, 30)]) == [366, 365]


def test_many_spellings_of_missing_do_not_let_entries_change_others() -> None:
    years = tuple(f"18{k:02}-01-01" for k in range(30))
    date = column_codec_for(Datetime(name="d", start="1990-01-01", end="2024-12-31", missing=years))
    numbers = (*(str(-k) for k in range(2, 14)), "-0.6")
    number = column_codec_for(Integer(name="i", low=0, high=9, missing=numbers))
    seconds = pa.array([10**9, 10**9 + 2**58]).view(pa.timestamp("s"))
    large = pa.array([2**53, 2**53 + 1])

    for column, array in ((date, seconds), (number, large)):
        together = column.read(array)

        assert together.codes.tolist() == [column.read(array.slice(i, 1)).codes[0] for i in range(2)]
        assert EMPTY not in together.statuses


def test_a_fraction_is_not_a_spelling_of_missing() -> None:
    attribute = Integer(name="a", low=0, high=9, missing="-1")

    assert read_statuses(attribute, ["-1", "-1.2", "-1.0"]) == [EMPTY, BELOW, EMPTY]
    assert read_statuses(attribute, [-1.0, -1.2]) == [EMPTY, BELOW]


def test_a_date_after_the_last_hour_is_above_the_range() -> None:
    attribute = Datetime(name="h", start="2020-01-01T08", end="2024-12-31T10", resolution="hour")

    assert read_statuses(attribute, [dt.date(2025, 12, 16), dt.date(2024, 12, 31), dt.date(2019, 12, 31)]) == [
        ABOVE,
        IN_DOMAIN,
        BELOW,
    ]


def test_timestamps_of_an_unknown_zone_and_small_decimals_match_listed_values() -> None:
    attribute = Categorical(name="a", values=("1970-01-01 00:00:00", "1.5"), other="1.5")
    strange = pa.array([0]).view(pa.timestamp("s", tz="Bogus/X"))

    assert column_codec_for(attribute).read(strange).codes.tolist() == [0]
    assert column_codec_for(attribute).read(pa.array([Decimal("1.5")]).cast(pa.decimal64(3, 1))).codes.tolist() == [1]


def test_a_long_list_is_read_like_a_short_one() -> None:
    attribute = Categorical(name="a", codes=60_000, missing=True)

    assert read(attribute, ["59999", " 7 ", "", "x"]) == [59_999, 7, 60_000, 60_000]


def test_lists_of_integers_and_fractions_that_floats_cannot_hold_are_text() -> None:
    column = column_codec_for(Categorical(name="a", values=(2**53 + 1, 0.5)))

    assert column.write(np.array([0, 1]), np.random.default_rng(0)).to_pylist() == [str(2**53 + 1), "0.5"]


def test_an_empty_text_is_a_value_where_it_is_listed() -> None:
    attribute = Categorical(name="a", values=("x", ""))

    assert read(attribute, ["", "x", None]) == [1, 0, 0]


def test_numeric_categories_match_any_spelling_and_text_ones_only_their_own() -> None:
    numbers = Categorical(name="a", values=(1, 2), other=2)
    texts = Categorical(name="a", values=("01", "2"), other="2")

    assert read(numbers, ["1", "01", "1.0", " 1 "]) == [0, 0, 0, 0]
    assert read(numbers, [1.0, 2.0]) == [0, 1]
    assert read(texts, ["01", "1"]) == [0, 1]


def test_iso_dates_in_their_usual_forms_mean_the_same_day() -> None:
    attribute = Datetime(name="a", start="2016-01-01", end="2016-12-31")
    forms = [
        "2016-01-05",
        "20160105",
        "2016-01-05T10:11:12Z",
        "2016-01-05 10:11",
        "2016-W01-2",
        "2016-01-05T10:11:12.5",
    ]

    assert read(attribute, forms) == [4] * len(forms)


def test_an_offset_is_converted_to_utc() -> None:
    attribute = Datetime(name="a", start="2016-01-01", end="2016-12-31")

    assert read(attribute, ["2016-01-05T00:30:00+02:00", "2016-01-05T23:30:00-02:00"]) == [3, 5]


def test_a_declared_format_is_read() -> None:
    attribute = Datetime(name="a", start="2016-01-01", end="2016-12-31", format="%m/%d/%Y", missing=True)

    assert read(attribute, ["01/05/2016", " 01/05/2016 ", "1/5/2016", "2016-01-05"]) == [4] * 4
    assert read(attribute, ["13/05/2016", "02/31/2016", "", "x", "\t"]) == [366] * 5


def test_a_declared_format_with_a_clock_is_read() -> None:
    attribute = Datetime(
        name="a", start="2016-01-01", end="2016-12-31", resolution="hour", format="%d.%m.%Y %I:%M:%S %p", bins=366
    )

    codes = read(attribute, ["02.01.2016 11:30:00 PM", "2.1.2016 11:30:00 pm", "02.01.2016 23:30:00"])

    cell = naive.cell_of_text(
        Datetime(name="a", start="2016-01-01", end="2016-12-31", resolution="hour", bins=366), b"2016-01-02T23:30"
    )
    assert codes == [cell, cell, 0]


def test_times_before_1970_fall_on_the_right_day() -> None:
    attribute = Datetime(name="a", start="1960-01-01", end="1960-12-31")

    assert read(attribute, [dt.datetime(1960, 1, 2, 23, 59, 59)]) == [1]
    assert read(attribute, ["1960-01-02T23:59:59"]) == [1]


# ── types ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("attribute", "kind"),
    [
        (Categorical(name="a", values=("x", "y")), pa.string()),
        (Ordinal(name="a", values=(1, 2)), pa.int64()),
        (Categorical(name="a", values=(1, 2.5)), pa.float64()),
        (Categorical(name="a", values=(1, "x")), pa.string()),
        (Categorical(name="a", codes=3), pa.int64()),
        (Boolean(name="a"), pa.bool_()),
        (Integer(name="a", low=0, high=10**6), pa.int64()),
        (Real(name="a", low=0, high=1, decimals=3), pa.float64()),
        (Datetime(name="a", start="2000", end="2020", resolution="year"), pa.date32()),
        (Datetime(name="a", start="2000-01-01", end="2020-01-01"), pa.date32()),
        (Datetime(name="a", start="2000-01-01", end="2020-01-01", resolution="minute"), pa.timestamp("s")),
        (Datetime(name="a", start="2000-01-01", end="2020-01-01", resolution="microsecond"), pa.timestamp("us")),
        (Time(name="a"), pa.time32("s")),
        (Time(name="a", resolution="millisecond"), pa.time32("ms")),
        (Time(name="a", resolution="microsecond"), pa.time64("us")),
    ],
)
def test_decoded_columns_have_the_type_of_their_kind_and_missing_is_null(
    attribute: Attribute, kind: pa.DataType
) -> None:
    attribute = msgspec.structs.replace(attribute, missing=True)
    column = column_codec_for(attribute)

    written = column.write(np.arange(attribute.cells), np.random.default_rng(0))

    assert written.type == kind
    assert written.null_count == 1
    assert written[-1].as_py() is None


@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view(),
     pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.uint32(), pa.large_string())],
)  # fmt: skip
@pytest.mark.parametrize(
    "attribute", [Integer(name="a", low=0, high=9, missing=True), Categorical(name="a", codes=10, missing=True)]
)
def test_text_is_read_from_every_arrow_layout(attribute: Attribute, kind: pa.DataType) -> None:
    texts = pa.array(["7", None, "3", "x"])
    array = texts.dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else texts.cast(kind)

    assert column_codec_for(attribute).read(array).codes.tolist() == [7, 10, 3, 10]


def test_a_slice_of_an_array_is_read_without_the_rest() -> None:
    attribute = Integer(name="a", low=0, high=99)
    array = pa.array(["1", "2", " 3", "4", "5"])

    assert column_codec_for(attribute).read(array.slice(1, 3)).codes.tolist() == [2, 3, 4]


YEAR = Datetime(name="a", start="2000", end="2020", resolution="year", missing=True)
DIGITS = Datetime(name="a", start="2000-01-01", end="2020-12-31", format="%Y%m%d", missing=True)


@pytest.mark.parametrize(
    ("attribute", "texts", "arrays"),
    [
        (Integer(name="a", low=0, high=9, missing=True), ["7", None], [
            pa.array([7, None]), pa.array([7.0, None]), pa.array([7, None], pa.decimal128(3, 1)),
            pa.array([7, None]).dictionary_encode()]),
        (Integer(name="a", low=0, high=9, missing=True), ["true", None, "False"], [pa.array([True, None, False])]),
        (Real(name="a", low=0, high=9, missing=True), ["2020-01-01", None], [
            pa.array([dt.date(2020, 1, 1), None]), pa.array([dt.time(1), None]),
            pa.array([[1], None]), pa.array([{"x": 1}, None])]),
        (Real(name="a", low=0, high=9, decimals=6, missing=True), ["1.5", None, "0.000001", "-1"], [
            pa.array([dt.timedelta(seconds=1.5), None, dt.timedelta(microseconds=1), dt.timedelta(seconds=-1)]),
            pa.array([1_500_000_999, None, 1_000, -1_000_000_000], pa.duration("ns"))]),
        (Integer(name="a", low=0, high=99_999, missing=True), ["86400", None], [
            pa.array([dt.timedelta(1), None], pa.duration(unit)) for unit in ("s", "ms", "us")]),
        (YEAR, ["2019", None], [pa.array([2019, None]), pa.array([2019.0, None]), pa.array([2019.0, float("nan")])]),
        (YEAR, ["2019.5", "x", None], [pa.array([2019.5, -1e300, None])]),
        (YEAR, ["x", None], [pa.array([True, None]), pa.array([[2019], None]), pa.array([dt.time(1), None])]),
        (YEAR, [None, None], [pa.array([float("nan"), None]), pa.nulls(2)]),
        (DIGITS, ["20190430", None], [pa.array([20190430, None]), pa.array([20190430.0, None])]),
        (Categorical(name="a", values=("2020-01-01 10:00:00", "x"), missing=True), ["2020-01-01 10:00:00", None], [
            pa.array([dt.datetime(2020, 1, 1, 10), None], pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")]),
        (Boolean(name="a", missing=True), ["1", None, "x"], [pa.array([1.0, None, 2.5]), pa.array([1, None, 2])]),
    ],
)  # fmt: skip
def test_an_entry_of_any_type_is_read_like_its_text(
    attribute: Attribute, texts: list[str | None], arrays: list[pa.Array]
) -> None:
    column = column_codec_for(attribute)
    expected = column.read(pa.array(texts, pa.string()))

    for array in arrays:
        encoded = column.read(array)

        assert encoded.codes.tolist() == expected.codes.tolist()[: len(array)], array.type
        assert encoded.statuses.tolist() == expected.statuses.tolist()[: len(array)], array.type


# ── the look-up of cells ─────────────────────────────────────────────────────────────────────────────────────


@given(st.sets(st.integers(1, 2**40), max_size=60), st.integers(1, 2**40), st.data())
def test_the_lookup_gives_the_cells_of_a_binary_search(cuts: set[int], last: int, data: st.DataObject) -> None:
    edges = np.array(sorted({0, last + 2**40} | cuts), np.int64)
    steps = np.array(
        data.draw(st.lists(st.integers(0, int(edges[-1]) - 1) | st.sampled_from(edges[:-1].tolist()))), np.int64
    )

    cells = CellLookup(edges)(steps)

    assert cells.tolist() == (np.searchsorted(edges, steps, side="right") - 1).tolist()


@pytest.mark.parametrize("form", ["%Y-%m-%d %H:%M %z", "%F %R %z", "%d.%m.%Y %I:%M %p %z", "%D %T %z"])
def test_times_with_an_offset_become_utc_next_to_any_other_entry(form: str) -> None:
    attribute = Datetime(name="a", start="2016-01-01", end="2016-12-31", resolution="hour", format=form, missing=True)
    instant = dt.datetime(2016, 5, 4, 23, 0, tzinfo=dt.timezone(dt.timedelta(hours=-3)))
    texts = [instant.strftime(form), "unknown", "", None, "(", "05/04/16 23:00:00"]

    for length in range(len(texts) + 1):
        codes = column_codec_for(attribute).read(pa.array(texts[:length], pa.string())).codes.tolist()

        expected = column_codec_for(attribute).read(pa.array(["2016-05-05 02:00"], pa.string())).codes.tolist()
        assert codes[:1] == expected[:length]
        assert len(codes) == length
