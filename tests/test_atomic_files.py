"""Results appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dpsyn.atomic_files import (
    _acquire_lock,
    _LockOwner,
    _read_owner,
    _remove_lock_of,
    _start_of_process,
    atomic_folder,
    atomic_write,
    exclusive_edit,
    write_text,
)
from dpsyn.errors import OutputError


def fail_while_writing(path: Path, error: BaseException) -> None:
    """Write half a result, then fail."""
    with atomic_write(path) as beside:
        beside.write_text("half")
        raise error


def test_a_text_is_written_as_utf_8_with_plain_newlines(tmp_path: Path) -> None:
    write_text(tmp_path / "out.txt", "Größe\nzwei\n")

    assert (tmp_path / "out.txt").read_bytes() == "Größe\nzwei\n".encode()


def test_nothing_but_the_result_is_left(tmp_path: Path) -> None:
    write_text(tmp_path / "out.txt", "new")

    assert [path.name for path in tmp_path.iterdir()] == ["out.txt"]


def test_an_older_result_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("a much longer old text")

    write_text(path, "new")

    assert path.read_text() == "new"


def test_the_result_is_not_seen_before_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("old")

    with atomic_write(path) as beside:
        beside.write_text("half")
        seen = path.read_text()

    assert seen == "old"
    assert path.read_text() == "half"
    assert beside.parent == tmp_path
    assert not beside.exists()


@pytest.mark.parametrize("error", [ValueError("a slip"), KeyboardInterrupt()])
def test_a_failure_leaves_the_old_result_and_nothing_else(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "out.txt"
    path.write_text("old")

    with pytest.raises(type(error)):
        fail_while_writing(path, error)

    assert path.read_text() == "old"
    assert [left.name for left in tmp_path.iterdir()] == ["out.txt"]


def test_a_failure_leaves_nothing_where_nothing_was(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a slip"):
        fail_while_writing(tmp_path / "out.txt", ValueError("a slip"))

    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_reported_and_leaves_the_old_result(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("old")

    with pytest.raises(OutputError) as caught:
        fail_while_writing(path, OSError(28, "No space left on device"))

    assert str(caught.value) == f"{path} cannot be written: no space left on device"
    assert [left.name for left in tmp_path.iterdir()] == ["out.txt"]
    assert path.read_text() == "old"


def test_a_block_that_writes_nothing_is_an_error_and_no_empty_result(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot be written"), atomic_write(tmp_path / "out.txt"):
        pass

    assert list(tmp_path.iterdir()) == []


def test_two_writers_do_not_meet(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"

    with atomic_write(path) as first, atomic_write(path) as second:
        first.write_text("first")
        second.write_text("second")

    assert first != second
    assert path.read_text() == "first"


def test_a_folder_is_refused_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(OutputError) as caught, atomic_write(tmp_path):
        pytest.fail("the block must not run")

    assert str(caught.value) == f"{tmp_path} is a folder; give the name of a file in it"


def test_a_missing_folder_is_refused_before_any_work(tmp_path: Path) -> None:
    path = tmp_path / "none" / "out.txt"

    with pytest.raises(OutputError) as caught, atomic_write(path):
        pytest.fail("the block must not run")

    assert str(caught.value) == f"{path} cannot be written: there is no folder {tmp_path / 'none'}"


def test_a_file_is_no_folder_to_write_in(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")

    with pytest.raises(OutputError, match="there is no folder"):
        write_text(tmp_path / "file" / "out.txt", "x")


def test_a_refusal_by_the_system_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "replace", refuse)

    with pytest.raises(OutputError) as caught:
        write_text(tmp_path / "out.txt", "x")

    assert str(caught.value) == f"{tmp_path / 'out.txt'} cannot be written: permission denied"
    assert list(tmp_path.iterdir()) == []


def test_a_full_file_system_is_reported() -> None:
    with pytest.raises(OutputError, match=r"^/proc/dpsyn\.txt cannot be written: "):
        write_text(Path("/proc/dpsyn.txt"), "x")


def test_long_names_are_written_too(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 250 + ".txt")

    write_text(path, "new")

    assert path.read_text() == "new"


def test_long_names_of_many_byte_letters_are_written_too(tmp_path: Path) -> None:
    path = tmp_path / ("日" * 80)

    write_text(path, "new")

    assert path.read_text() == "new"


def test_a_link_stays_a_link_to_the_new_result(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    link, target = tmp_path / "latest.txt", tmp_path / "folder" / "out.txt"
    target.write_text("old")
    link.symlink_to(target)

    write_text(link, "new")

    assert link.is_symlink()
    assert target.read_text() == "new"


def test_a_device_or_a_pipe_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    with pytest.raises(OutputError) as caught:
        write_text(pipe, "new")

    assert str(caught.value) == f"{pipe} is a device or a pipe; give the name of a file"
    assert pipe.is_fifo()


def test_a_rewritten_file_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "private.yaml"
    path.write_text("old", "utf-8")
    path.chmod(0o600)

    write_text(path, "new")

    assert path.stat().st_mode & 0o777 == 0o600


def test_a_new_private_text_is_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "draft.yaml"

    write_text(path, "seen in the rows", private=True)

    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(("before", "after"), [(0o640, 0o640), (0o644, 0o640), (0o600, 0o600)])
def test_a_private_text_keeps_the_permissions_of_owner_and_group_only(tmp_path: Path, before: int, after: int) -> None:
    path = tmp_path / "draft.yaml"
    path.write_text("old", "utf-8")
    path.chmod(before)

    write_text(path, "new", private=True)

    assert path.stat().st_mode & 0o777 == after


def test_an_error_about_another_file_stays_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="source"), atomic_write(tmp_path / "out.txt"):
        (tmp_path / "source").read_bytes()

    assert list(tmp_path.iterdir()) == []


def test_an_error_about_the_file_itself_is_reported(tmp_path: Path) -> None:
    with pytest.raises(OutputError) as caught, atomic_write(tmp_path / "out.txt") as beside:
        (beside / "inside").write_text("x")

    assert str(caught.value) == f"{tmp_path / 'out.txt'} cannot be written: no such file or directory"


def test_the_pages_that_a_library_adds_to_an_error_are_cut(tmp_path: Path) -> None:
    with pytest.raises(OutputError) as caught:
        fail_while_writing(tmp_path / "out.txt", OSError(28, "No space left\n" * 1_000))

    assert str(caught.value).startswith(f"{tmp_path / 'out.txt'} cannot be written: no space left no space")
    assert len(str(caught.value)) < 400 + len(str(tmp_path))


def test_a_name_too_long_for_the_system_is_reported() -> None:
    with pytest.raises(OutputError, match="cannot be written: file name too long"):
        write_text(Path("x" * 5_000), "text")


def test_one_edit_waits_for_the_other(tmp_path: Path) -> None:
    path = tmp_path / "number.txt"
    path.write_text("0", "utf-8")

    def add_one(_: int) -> None:
        with exclusive_edit(path):
            write_text(path, str(int(path.read_text("utf-8")) + 1))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add_one, range(40)))

    assert path.read_text("utf-8") == "40"
    assert [left.name for left in tmp_path.iterdir()] == ["number.txt"]


def test_a_lock_that_was_left_behind_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpsyn.atomic_files.MAX_LOCK_WAIT", 0.0)
    (tmp_path / ".schema.yaml.lock").touch()

    with pytest.raises(OutputError) as caught, exclusive_edit(tmp_path / "schema.yaml"):
        pytest.fail("the block must not run")

    assert str(caught.value) == (
        f"{tmp_path / 'schema.yaml'} is being edited by another command; "
        f"if there is no such command, remove {tmp_path / '.schema.yaml.lock'}"
    )


@pytest.mark.parametrize(
    ("owner", "abandoned"),
    [
        ("{ended} - a1 {here}", True),
        ("{ended} boot/1 a1 {here}", True),
        ("{ended} - a1 elsewhere.example.org", False),
        ("{running} - a1 {here}", False),
        ("{running} {start} a1 {here}", False),
        ("{running} boot/1 a1 {here}", True),  # another process has got the number
        ("1 - a1 {here}", False),
        ("1 boot/1 a1 {here}", True),
        (f"{10**30} - a1 {{here}}", False),
        ("{ended} {here}", False),
        ("{ended} - ../a1 {here}", False),
        ("", False),
        ("\0 words a1 {here}", False),
    ],
)
def test_the_lock_of_a_process_that_was_killed_here_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: str, abandoned: bool
) -> None:
    monkeypatch.setattr("dpsyn.atomic_files.MAX_LOCK_WAIT", 0.0)
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    names = {
        "ended": int(ended.stdout),
        "running": os.getpid(),
        "start": _start_of_process(os.getpid()),
        "here": socket.gethostname(),
    }
    lock = tmp_path / ".schema.yaml.lock"
    lock.write_text(owner.format(**names), "utf-8")
    entered = False

    with contextlib.suppress(OutputError), exclusive_edit(tmp_path / "schema.yaml"):
        entered = True
        process, start, _, computer = lock.read_text("utf-8").split(" ")
        assert (int(process), start, computer) == (os.getpid(), names["start"], socket.gethostname())

    assert entered == abandoned
    assert lock.exists() != abandoned
    assert [path.name for path in tmp_path.iterdir()] == [lock.name] * lock.exists()


def test_a_slow_process_does_not_remove_the_lock_that_a_faster_one_has_taken(tmp_path: Path) -> None:
    path, lock = tmp_path / "schema.yaml", tmp_path / ".schema.yaml.lock"
    stale = _LockOwner(2**22 + 1, "-", "a1", socket.gethostname())
    lock.write_text(stale.to_text(), "utf-8")
    seen = _read_owner(lock)  # by the slow process, before the faster one
    assert seen is not None
    assert seen.is_gone()

    with exclusive_edit(path, wait=0.0):
        mine = lock.read_text("utf-8")
        assert _remove_lock_of(seen, lock)  # it looks again, and there is another lock
        assert lock.read_text("utf-8") == mine
        with pytest.raises(OutputError, match=rf"by process {os.getpid()} on this computer; wait until it has ended"):
            _acquire_lock(lock, path, 0.0)


def test_only_one_of_several_processes_removes_a_lock(tmp_path: Path) -> None:
    lock = tmp_path / ".schema.yaml.lock"
    stale = _LockOwner(2**22 + 1, "-", "a1", socket.gethostname())
    lock.write_text(stale.to_text(), "utf-8")
    (tmp_path / ".schema.yaml.lock.a1.claim").touch()  # by another process, which is about to remove it

    assert not _remove_lock_of(stale, lock)
    assert lock.exists()


def test_a_lock_of_another_computer_is_named_with_what_to_do(tmp_path: Path) -> None:
    lock = tmp_path / ".l.db.lock"
    lock.write_text("7 - a1 server.example.org", "utf-8")

    with pytest.raises(OutputError, match=r"process 7 on the computer 'server.example.org'; wait .* remove .*\.lock"):
        _acquire_lock(lock, tmp_path / "l.db", 0.0)


def test_a_failed_edit_lets_the_next_one_in(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a slip"), exclusive_edit(tmp_path / "schema.yaml"):
        raise ValueError("a slip")

    with exclusive_edit(tmp_path / "schema.yaml"):
        pass

    assert list(tmp_path.iterdir()) == []


# ── folders ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_folder_is_not_seen_before_it_is_whole(tmp_path: Path) -> None:
    with atomic_folder(tmp_path / "out") as beside:
        (beside / "a.txt").write_text("a")
        seen = (tmp_path / "out").exists()

    assert not seen
    assert [path.relative_to(tmp_path).as_posix() for path in sorted(tmp_path.rglob("*"))] == ["out", "out/a.txt"]


@pytest.mark.parametrize("error", [ValueError("a slip"), KeyboardInterrupt()])
def test_a_failure_leaves_no_folder(tmp_path: Path, error: BaseException) -> None:
    def fail() -> None:
        with atomic_folder(tmp_path / "out") as beside:
            (beside / "a.txt").write_text("a")
            raise error

    with pytest.raises(type(error)):
        fail()

    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_somebody_fills_meanwhile_is_left_to_them(tmp_path: Path) -> None:
    def write() -> None:
        with atomic_folder(tmp_path / "out") as beside:
            (beside / "ours.txt").write_text("ours")
            (tmp_path / "out").mkdir()
            (tmp_path / "out" / "theirs.txt").write_text("theirs")

    with pytest.raises(OutputError, match="out cannot be written"):
        write()

    assert sorted(path.name for path in tmp_path.rglob("*")) == ["out", "theirs.txt"]


def test_a_folder_replaces_neither_files_nor_folders_with_content(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "old").write_text("old")

    for name, words in (("file", "is a file"), ("full", "is not empty"), ("no/out", "there is no folder")):
        with pytest.raises(OutputError, match=words), atomic_folder(tmp_path / name):
            pass

    assert (tmp_path / "file").read_text() == (tmp_path / "full" / "old").read_text() == "old"


def test_a_link_to_an_empty_folder_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")

    with atomic_folder(tmp_path / "link") as beside:
        (beside / "a.txt").write_text("a")

    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "a.txt").read_text() == "a"
