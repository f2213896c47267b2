"""Lines are there as a whole or not at all, and damage is never taken for a line."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from dpsyn.errors import JournalError
from dpsyn.private.append_log import AppendLog

TEXTS = [b'{"a":1}', b"", b'{"b":"\xc3\xa9"}', b'{"c":[1,2,3]}']


def written(path: Path, *texts: bytes) -> bytes:
    """A file of lines; its content."""
    lines = AppendLog.create(path)
    for text in texts:
        lines.append([text])
    lines.release()
    return path.read_bytes()


def read(path: Path) -> list[bytes]:
    """The lines of a file."""
    lines = AppendLog.reopen(path)
    lines.release()
    return list(lines.texts)


def test_appended_lines_are_read_back_and_more_can_follow(tmp_path: Path) -> None:
    path = tmp_path / "l"
    written(path, *TEXTS[:2])
    lines = AppendLog.reopen(path)

    lines.append(TEXTS[2:])

    lines.release()
    assert read(path) == TEXTS


def test_an_incomplete_last_line_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "l"
    whole = written(path, *TEXTS)
    last = whole[: -len(whole.rsplit(b"\n", 2)[1]) - 1]

    for end in range(len(last), len(whole)):
        path.write_bytes(whole[:end])

        lines = AppendLog.reopen(path)
        lines.append([b"next"])
        lines.release()

        assert read(path) == [*TEXTS[:3], b"next"]


def test_a_file_cut_anywhere_keeps_its_complete_lines(tmp_path: Path) -> None:
    path = tmp_path / "l"
    whole = written(path, *TEXTS)

    for end in range(whole.index(b"\n") + 1, len(whole)):
        path.write_bytes(whole[:end])

        assert read(path) == TEXTS[: whole[:end].count(b"\n")]


@pytest.mark.parametrize("change", [1, 128, ord("\n")])
def test_a_changed_byte_is_detected_anywhere(change: int, tmp_path: Path) -> None:
    path = tmp_path / "l"
    whole = written(path, *TEXTS)

    for position in range(len(whole) - 1):  # without the last line break the last line is not whole
        changed = bytes([*whole[:position], whole[position] ^ change, *whole[position + 1 :]])
        path.write_bytes(changed)

        with pytest.raises(JournalError, match="is damaged"):
            AppendLog.reopen(path)
        assert path.read_bytes() == changed


@pytest.mark.parametrize(
    "change",
    [lambda lines: lines[1:], lambda lines: [lines[0], *lines[2:]], lambda lines: [*lines[:2], lines[1], *lines[2:]]],
)
def test_removed_and_duplicated_lines_are_detected(tmp_path: Path, change: Any) -> None:
    path = tmp_path / "l"
    lines = written(path, *TEXTS).splitlines(keepends=True)
    path.write_bytes(b"".join(change(lines)))

    with pytest.raises(JournalError, match="is damaged"):
        AppendLog.reopen(path)


def test_another_file_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    for content in (b"", b"PAR1\x00\x01", b"age,sex\n1,F\n", b"half a line of somebody"):
        path = tmp_path / "table"
        path.write_bytes(content)

        with pytest.raises(JournalError, match=r"no complete line|is no journal"):
            AppendLog.reopen(path)

        assert path.read_bytes() == content


def test_only_the_owner_can_read_it_and_it_replaces_nothing(tmp_path: Path) -> None:
    path = tmp_path / "l"
    before = written(path, *TEXTS)

    with pytest.raises(JournalError, match="file exists"):
        AppendLog.create(path)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_bytes() == before


def test_only_one_process_can_have_it_open(tmp_path: Path) -> None:
    path = tmp_path / "l"
    first = AppendLog.create(path)
    first.append([b"a"])

    with pytest.raises(JournalError, match="in use"):
        AppendLog.reopen(path)
    first.release()

    assert read(path) == [b"a"]
    with pytest.raises(JournalError, match="is closed"):
        first.append([b"b"])


def test_a_file_that_cannot_be_created_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(JournalError, match="no such file or directory"):
        AppendLog.create(tmp_path / "no folder" / "l")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(JournalError, match="no space left"):
        AppendLog.create(tmp_path / "l")

    assert list(tmp_path.iterdir()) == []


def test_after_a_failed_write_nothing_more_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "l"
    lines = AppendLog.create(path)
    lines.append([b"a"])
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(JournalError, match="cannot be written: no space left"):
            lines.append([b"b"])

    with pytest.raises(JournalError, match="is closed"):
        lines.append([b"c"])

    assert read(path)[0] == b"a"
    assert b"c" not in read(path)
