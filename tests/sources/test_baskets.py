"""Baskets in every form become the same rows, and no content makes the reading fail."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn.errors import SourceError
from dpsyn.sources import baskets, open_basket_source
from tests.memory import trace_peak


def rows(data: Any) -> list[tuple[int, bytes | None]]:
    """Every row, with its item stripped of white space."""
    result = []
    for batch in open_basket_source(data).batches(["basket", "item"]):
        pairs = zip(batch.column("basket").to_pylist(), batch.column("item").to_pylist(), strict=True)
        result += [(basket, None if item is None else item.strip()) for basket, item in pairs]
    return sorted(result, key=lambda pair: (pair[0], pair[1] or b""))


def naive_rows(text: bytes) -> list[tuple[int, bytes | None]]:
    """Read line by line; the text after the last line break is a line unless it is empty."""
    lines = text.split(b"\n")
    lines = lines[:-1] if lines[-1] == b"" else lines
    none: list[Any] = [None]
    pairs = [(number, item) for number, line in enumerate(lines) for item in line.split() or none]
    return sorted(pairs, key=lambda pair: (pair[0], pair[1] or b""))


@given(st.binary(max_size=60) | st.text("ab1 \n\t\r", max_size=60).map(str.encode))
def test_any_bytes_are_baskets(tmp_path_factory: pytest.TempPathFactory, text: bytes) -> None:
    path = tmp_path_factory.mktemp("baskets") / "b.dat"
    path.write_bytes(text)

    assert rows(path) == naive_rows(text)


def test_files_and_lines_may_be_longer_than_a_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baskets, "BLOCK_BYTES", 7)
    text = b"1 2 3\n\n" + b"4 " * 50 + b"\n5 66666 7\n" * 9 + b"8"
    (tmp_path / "b.dat").write_bytes(text)

    assert rows(tmp_path / "b.dat") == naive_rows(text)


@given(st.text("ab \n\t", max_size=60), st.integers(1, 9))
def test_blocks_may_end_anywhere(tmp_path_factory: pytest.TempPathFactory, text: str, block: int) -> None:
    path = tmp_path_factory.mktemp("baskets") / "b.dat"
    path.write_text(text, "utf-8")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(baskets, "BLOCK_BYTES", block)
        assert rows(path) == naive_rows(text.encode())


@pytest.mark.parametrize("word", [b"x" * 9_000_000, b"x " * 4_500_000], ids=["item", "line"])
@pytest.mark.parametrize("name", ["b.dat", "b.dat.gz"])
def test_a_line_of_nine_megabytes_is_one_basket(tmp_path: Path, name: str, word: bytes) -> None:
    text = b"1 2\n3 " + word + b" 4\n5\n"
    (tmp_path / name).write_bytes(gzip.compress(text, 1) if name.endswith(".gz") else text)

    result = rows(tmp_path / name)

    items = [{item for basket, item in result if basket == number} for number in range(3)]
    assert items[0] == {b"1", b"2"}
    assert {b"3", b"4"} < items[1]
    assert items[2] == {b"5"}


def test_a_word_of_any_length_needs_little_memory(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "b.dat.gz", "wb", 1) as file:
        for _ in range(100):
            file.write(b"x" * 1_000_000)
        file.write(b" 1\n2\n")

    result, peak = trace_peak(rows, tmp_path / "b.dat.gz")

    assert [(basket, item) for basket, item in result if item in (b"1", b"2")] == [(0, b"1"), (1, b"2")]
    assert peak < 40_000_000


def test_a_compressed_file_reads_like_a_plain_one(tmp_path: Path) -> None:
    text = b"".join(b"%d %d\n" % (i, i * i) for i in range(1000))
    (tmp_path / "b.dat.gz").write_bytes(gzip.compress(text))

    assert rows(tmp_path / "b.dat.gz") == naive_rows(text)


def test_a_file_that_is_cut_off_is_refused_without_quoting_it(tmp_path: Path) -> None:
    whole = gzip.compress(b"".join(b"%d secret\n" % i for i in range(100_000)))
    (tmp_path / "b.dat.gz").write_bytes(whole[: len(whole) // 2])

    with pytest.raises(SourceError, match="may be cut off") as caught:
        rows(tmp_path / "b.dat.gz")

    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None


class Unreadable:
    """An object whose methods raise."""

    def __str__(self) -> str:
        raise RuntimeError("secret")

    def __iter__(self) -> Any:
        raise RuntimeError("secret")


def test_lists_of_anything_are_baskets() -> None:
    data = [["b", 1, None], (2.0,), {"c"}, [], None, "word", 3, Unreadable(), [Unreadable()], (item for item in "xy")]

    result = rows(data)

    assert Counter(basket for basket, _ in result) == {0: 3, 1: 1, 2: 1, 3: 1, 4: 1, 5: 1, 6: 1, 7: 1, 8: 1, 9: 2}
    assert [item for basket, item in result if basket < 7] == [None, b"1", b"b", b"2", b"c", None, None, b"word", b"3"]
    assert [item for basket, item in result if basket in (7, 8)] == [None, "\ufffd".encode()]


def test_a_long_list_is_read_in_several_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baskets, "BATCH_BASKETS", 3)

    result = rows([[number] for number in range(10)])

    assert result == [(number, str(number).encode()) for number in range(10)]


def test_anything_else_is_read_as_a_table(tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_text("basket,item\n1,a\n", "utf-8")

    assert open_basket_source(tmp_path / "b.csv").schema.names == ["basket", "item"]
    assert open_basket_source(pa.table({"x": [1]})).schema.names == ["x"]
    with pytest.raises(SourceError, match="there is no file"):
        open_basket_source(tmp_path / "none.dat")
    (tmp_path / "b.txt").write_text("1 2\n", "utf-8")
    with pytest.raises(SourceError, match=r"b\.txt: its suffix is not that of a known format; DPSyn reads \.dat \(one"):
        open_basket_source(tmp_path / "b.txt")
