"""How commands print lines and tables, show progress, and write files."""

from __future__ import annotations

import codecs
import contextlib
import errno
import json
import os
import re
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

import dpsyn
from dpsyn import atomic_files
from dpsyn.errors import OutputError, describe_os_error
from dpsyn.progress import Step, StepTracker, format_duration

if TYPE_CHECKING:
    from dpsyn import Synopsis


_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Characters that move the cursor, begin a terminal sequence or change the direction of writing."""


_SPELLINGS = {"ε": "epsilon", "δ": "delta", "ρ": "rho", "σ": "sigma", "Δ": "Delta", "…": "...", "−": "-", "×": "x"}
"""How characters are written where they do not exist, such as in a file in the Windows code page 1252."""

_ERROR_HANDLER = "dpsyn.spell"

PROGRESS_FILE_VARIABLE = "DPSYN_PROGRESS_FILE"
"""The environment variable that names a file for the progress of a command, in JSON, for programs that show it."""

MIN_TOTAL_SECONDS = 2.0
"""A command that takes longer ends with its total time."""


def allow_any_encoding() -> None:
    """Let standard output and standard error write every character, whatever their encoding, instead of failing."""
    codecs.register_error(_ERROR_HANDLER, _spell_out)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=_ERROR_HANDLER)


def _spell_out(error: UnicodeError) -> tuple[str, int]:
    """Spell the characters that an encoding does not have; characters without a spelling become ``\\u1234``."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    characters = error.object[error.start : error.end]
    spelled = "".join(_SPELLINGS.get(each) or each.encode("ascii", "backslashreplace").decode() for each in characters)
    return spelled, error.end


def escape_controls(text: str) -> str:
    """A text in which control characters, which a terminal would obey, are spelled out; line breaks stay."""
    return _CONTROLS.sub(lambda match: f"\\x{ord(match.group()):02x}", text)


def format_json(data: Any) -> str:
    """Plain data as JSON for people and programs: indented, readable letters, without NaN."""
    text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)
    return _CONTROLS.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def print_json(data: Any) -> None:
    """Print plain data as JSON on standard output, in UTF-8 whatever the encoding of the terminal."""
    write_text("-", format_json(data) + "\n")


def print_line(text: str, *, to_stderr: bool = False) -> None:
    """Print a line on standard output or standard error; nowhere if the process has none."""
    stream = sys.stderr if to_stderr else sys.stdout
    if stream is not None:  # print would take standard output instead
        with _translate_output_errors():
            print(escape_controls(text), file=stream, flush=True)


def print_written(target: str, then: str = "") -> None:
    """Print where a result was written, unless that is standard output."""
    if target != "-":
        print_line(f"Wrote {target}. {then}".rstrip())


def write_text(target: str, text: str, *, private: bool = False) -> None:
    """Write to a file, readable by its owner only if it is private, or to standard output for ``-``."""
    if target == "-":
        require_standard_output()
        with _translate_output_errors():
            click.echo(
                text.encode(), nl=False
            )  # UTF-8 whatever the encoding of the terminal, because it may be redirected to a file
    else:
        atomic_files.write_text(Path(target), text, private=private)


def refuse_to_overwrite(target: str, force: bool) -> None:
    """Refuse to write over a file that exists, without ``--force``."""
    if target != "-" and os.path.exists(target) and not force:
        raise OutputError(f"{target} exists; give another name, or --force to overwrite it")


def print_table(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> None:
    """Print a table as wide as the terminal; without a terminal, 200 characters wide. Long cells are folded."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    require_standard_output()
    console = Console(width=None if is_terminal(sys.stdout) else 200, highlight=False)
    shown = Table(
        title=Text(escape_controls(title)) if title else None,
        box=box.SIMPLE_HEAD,
        title_justify="left",
        title_style="bold",
    )
    for position, heading in enumerate(headings):
        shown.add_column(heading, justify="right" if position in right else "left", overflow="fold")
    for row in rows:
        shown.add_row(*(Text(escape_controls(cell)) for cell in row))
    with _translate_output_errors():
        console.print(shown)


def require_standard_output() -> None:
    """Refuse to print a result if the process has no standard output."""
    if sys.stdout is None:
        raise OutputError("there is no standard output; do not close it, or redirect it to a file")


@contextlib.contextmanager
def show_status(phase: str, quiet: bool = False) -> Iterator[None]:
    """Show on a terminal what is going on: the phase, never a number of rows."""
    if quiet or not is_terminal(sys.stderr):
        yield
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text(phase)):
        yield


def can_ask() -> bool:
    """Whether there is somebody to ask: standard input and output are a terminal."""
    return is_terminal(sys.stdin) and is_terminal(sys.stdout)


def ask_secret(question: str, *, twice: bool = False) -> str:
    """Ask for a text on the terminal without showing it."""
    answer: str = click.prompt(question, hide_input=True, confirmation_prompt=twice, err=True)
    return answer


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person reads this stream as it is written."""
    return stream is not None and stream.isatty()


@contextlib.contextmanager
def _translate_output_errors() -> Iterator[None]:
    """Turn a failure of standard output into an OutputError; a reader that stops early, such as head, is no error."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise
        raise OutputError(f"standard output cannot be written: {describe_os_error(error)}") from None


# ── progress: a bar on a terminal, a plain line for each phase elsewhere, nothing with --quiet ─────────────────


class ProgressDisplay:
    """Shows the progress of a command: this one nothing, its subclasses a bar or lines.

    It is called with phases, as a progress callback, and can be told which steps to expect.
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        self._start, self._tracker = time.monotonic(), StepTracker(steps)

    def expect(self, steps: Sequence[Step]) -> None:
        """Number the steps from now on, and estimate the time left."""
        self._tracker = StepTracker(steps)

    def __call__(self, phase: str, done: float) -> None:
        """Take note of a phase and of the fraction of it that is done."""

    def note(self, text: str) -> None:
        """Show a line that is no step."""

    def finish(self) -> None:
        """Show how long it took, once everything has succeeded."""

    def _total_line(self) -> str:
        """The total time of a command that took long enough to ask for it."""
        seconds = time.monotonic() - self._start
        return f"done in {format_duration(seconds)}" if seconds >= MIN_TOTAL_SECONDS else ""

    def _left_words(self) -> str:
        left = self._tracker.seconds_left
        return "" if left is None or left < 1 else f"about {format_duration(left)} left"


@contextlib.contextmanager
def show_progress(quiet: bool, steps: Sequence[Step] = ()) -> Iterator[ProgressDisplay]:
    """Show progress on standard error while the block runs, and the total time if it succeeds."""
    if quiet:
        yield ProgressDisplay(steps)
        return
    recorded = os.environ.get(PROGRESS_FILE_VARIABLE)
    display: _LineDisplay | _BarDisplay
    if recorded:
        display = _FileDisplay(steps, Path(recorded))
    else:
        display = _BarDisplay(steps) if is_terminal(sys.stderr) else _LineDisplay(steps)
    with display:
        yield display
        display.finish()


class _LineDisplay(ProgressDisplay):
    """Prints one line whenever a phase begins, for logs and pipes."""

    def __enter__(self) -> None:
        """Nothing is to be prepared."""

    def __exit__(self, *_: object) -> None:
        """Nothing is to be cleaned up."""

    def __call__(self, phase: str, done: float) -> None:
        if self._tracker.update(phase, done):
            label = f"{self._tracker.label}: " if self._tracker.label else ""
            left = f" ({words})" if (words := self._left_words()) else ""
            self.note(f"{label}{phase}{left}")

    def note(self, text: str) -> None:
        print_line(f"… {text}", to_stderr=True)

    def finish(self) -> None:
        if line := self._total_line():
            self.note(line)


class _FileDisplay(_LineDisplay):
    """Keeps the current state in a file, for a program that shows it; its reader always finds a whole one."""

    MIN_SECONDS = 0.2
    """Between two changes of the file, unless a phase begins."""

    def __init__(self, steps: Sequence[Step], path: Path) -> None:
        super().__init__(steps)
        self._path, self._phase = path, ""
        self._notes: list[str] = []
        self._written = 0.0

    def __call__(self, phase: str, done: float) -> None:
        self._phase = phase
        if self._tracker.update(phase, done) or time.monotonic() - self._written > self.MIN_SECONDS:
            self._write()

    def note(self, text: str) -> None:
        self._notes.append(text)
        self._write()

    def _write(self) -> None:
        state = {
            "steps": [step.phase for step in self._tracker.steps],
            "step": self._tracker.position,
            "phase": self._phase,
            "share": self._tracker.share_done,
            "left": self._left_words(),
            "notes": self._notes,
        }
        self._written = time.monotonic()
        temporary = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        with contextlib.suppress(OSError):  # a run does not fail because its progress cannot be shown
            temporary.write_text(json.dumps(state), "utf-8")
            os.replace(temporary, self._path)


class _BarDisplay(ProgressDisplay):
    """Shows the current step, how much of all steps is done and the time left; finished phases leave a line."""

    def __init__(self, steps: Sequence[Step]) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bars
        from rich.text import Text

        super().__init__(steps)
        self._console = Console(stderr=True)

        class TimeLeftColumn(ProgressColumn):
            """Counts down the time left, also while no phase reports anything."""

            def render(_, task: Task) -> Text:  # noqa: N805 -- self is the display
                return Text(self._left_words(), style="progress.remaining")

        description = TextColumn("{task.description}", markup=False)
        columns = (SpinnerColumn(), description, BarColumn(), TimeElapsedColumn(), TimeLeftColumn())
        self._bars = Bars(*columns, console=self._console, transient=True)
        self._task = self._bars.add_task("starting", total=None)
        self._phase = ""

    def __enter__(self) -> None:
        self._bars.start()

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def __call__(self, phase: str, done: float) -> None:
        if self._tracker.update(phase, done):
            self._leave_phase()
            self._phase = phase
            label = f"{self._tracker.label}: " if self._tracker.label else ""
            self._bars.update(self._task, description=f"{label}{phase}")
            if not self._tracker.steps:
                self._bars.reset(self._task, total=None)
        share = self._tracker.share_done if self._tracker.steps else done
        if share > 0:
            self._bars.update(self._task, total=1.0, completed=share)

    def note(self, text: str) -> None:
        from rich.text import Text

        self._console.print(Text(escape_controls(text)))

    def finish(self) -> None:
        self._leave_phase()
        if line := self._total_line():
            self.note(line[0].upper() + line[1:])

    def _leave_phase(self) -> None:
        if self._phase:
            self.note(f"✓ {self._phase}")
        self._phase = ""


# ── synthetic tables as files, folders or standard output ────────────────────────────────────────────────────


def check_target(target: str, force: bool, *, escape_formulas: bool = False, folders: bool = True) -> None:
    """Refuse a path that cannot be written, before any budget is spent."""
    if target == "-":
        require_standard_output()
        return
    if folders and not is_folder(target) and not atomic_files.is_table_name(target):
        raise OutputError(
            f"{target}: its suffix is not that of a table; use .csv, .csv.gz, .parquet or .arrow, or end it in a slash "
            f"for a folder with the rows, the synopsis and the certificate: {target}/"
        )
    if escape_formulas and not is_folder(target) and atomic_files.table_format(target) != "csv":
        raise OutputError(f"--escape-formulas is for CSV files, and {target} is none; leave it out")
    if is_folder(target):
        if os.path.isdir(target) and os.listdir(target):
            raise OutputError(f"the folder {target} is not empty; remove it, or give another name")
    else:
        atomic_files.table_format(target)
        refuse_to_overwrite(target, force)
    atomic_files.check_writable(Path(target.rstrip("/")))


def write_rows(
    synopsis: Synopsis,
    table: Any,
    target: str,
    where: dict[str, str] | None = None,
    *,
    escape_formulas: bool = False,
    **extras: Any,
) -> None:
    """Write an Arrow table of rows that were sampled from a synopsis; ``extras`` are those of a release folder."""
    if is_folder(target):
        synopsis.write_release(target, table, where=where, escape_formulas=escape_formulas, **extras)
    else:
        typed = target != "-" and atomic_files.stores_types(target)
        rows = synopsis.restore_types(table) if typed else table
        dpsyn.write_table(rows, target, synthetic=True, escape_formulas=escape_formulas)


def print_written_rows(target: str) -> None:
    """Print where rows were written, and what else is there."""
    if is_folder(target):
        print_line(f"Wrote {target}: the rows, the synopsis they were sampled from, and the certificate.")
    else:
        print_line(f"Wrote {target}.")


def number_targets(target: str, count: int) -> list[str]:
    """Paths for several tables: rows.csv becomes rows-1.csv and so on, folder/ becomes folder-1/ and so on."""
    if target == "-":
        raise OutputError("several tables cannot go to standard output; give the name of a file")
    slash = target[len(target.rstrip("/")) :]
    path = Path(target)
    stem, dot, suffixes = path.name.partition(".")
    return [f"{path.with_name(f'{stem}-{number}{dot}{suffixes}')}{slash}" for number in range(1, count + 1)]


def name_record(target: str) -> str:
    """The file that describes replicates: rows-replicates.json beside rows-1.csv, rows-2.csv and so on."""
    path = Path(target.rstrip("/"))
    return str(path.with_name(f"{path.name.partition('.')[0]}-replicates.json"))


def is_folder(target: str) -> bool:
    """Whether a path means a release folder: it ends in a slash, or is a folder that exists."""
    return target.endswith(("/", os.sep)) or Path(target).is_dir()
