"""The options of commands that read a private table for release, and how they call the library."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, TypeVar

import click

import dpsyn
from dpsyn.cli.output import is_folder
from dpsyn.errors import JournalError, LedgerError, OutputError, SourceError, UserError
from dpsyn.progress import Progress

if TYPE_CHECKING:
    from dpsyn import Schema, Synopsis

_C = TypeVar("_C", bound=Callable[..., Any])

RECIPE_NAMES = ("dpsyn", "privsyn", "priview", "independent", "explore", "direct", "fourier", "mwem", "mwem-practical")
"""Names for ``--help``, which must not load the recipes; a test compares them with the library's."""

DEFAULT_WEIGHT = 4.0
"""The weight of an attribute that is said to matter more, without saying how much."""

_RELEASE_FILES = (
    ("synthetic.csv",),
    ("synthetic", "part-00000.parquet"),
    ("synopsis.dpsyn",),
    ("certificate.json",),
    ("certificate.txt",),
    ("datapackage.json",),
    ("README.txt",),
)
"""Files of a release folder, as far as a pattern may tell them apart; a test compares them with a release."""

_OPTIONS = (
    click.argument("data", metavar="DATA"),
    click.option(
        "-s",
        "--schema",
        required=True,
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="What is public about the table; see dpsyn schema.",
    ),
    click.option("--epsilon", required=True, type=float, metavar="E", help="ε of the promise; 1 is a usual value."),
    click.option(
        "--delta", type=float, metavar="D", help="δ of the promise; by default 1e-9, or 1/expected_size² if smaller."
    ),
    click.option(
        "--recipe",
        default=RECIPE_NAMES[0],
        show_default=True,
        metavar="NAME",
        help=f"How to choose what to measure: {', '.join(RECIPE_NAMES)}.",
    ),
    click.option(
        "--workload",
        multiple=True,
        metavar="NAME[=WEIGHT]",
        help=f"An attribute that matters more, such as a label: its tables count WEIGHT times, or {DEFAULT_WEIGHT:g}.",
    ),
    click.option(
        "--views",
        metavar="VIEWS",
        help="Tables that priview publishes: random:50x8, covering:2x8; by default those with the least noise.",
    ),
    click.option(
        "--plan",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="What you know about the table: recodings, groups, tables to measure; see dpsyn plan.",
    ),
    click.option("--ledger", type=click.Path(path_type=Path), metavar="FILE", help="Record what it costs here."),
    click.option("--dataset", metavar="NAME", help="The dataset's name in the ledger, if not that of the schema."),
    click.option(
        "--query",
        metavar="SQL",
        help="A SELECT, or the name of a table, if DATA is a DuckDB or PostgreSQL database; or a SELECT on the files "
        "of DATA, which it calls data.",
    ),
    click.option(
        "--engine",
        default="auto",
        show_default=True,
        type=click.Choice(["auto", "memory", "stream", "spark"]),
        help="Hold the codes of all rows in memory, read the file for each question, or let Spark count.",
    ),
    click.option("--resume", is_flag=True, help="Go on with a run that was interrupted, without paying twice."),
    click.option("--force", is_flag=True, help="Overwrite files that exist."),
    click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors."),
)


def release_options(command: _C) -> _C:
    """Give a command the arguments and options of a release."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def journal_path(target: str) -> Path | None:
    """Where the answers of a running release are kept: beside its result, until that is written."""
    return None if target == "-" else Path(f"{target.rstrip('/')}.journal")


def check_resume(journal: Path | None, resume: bool) -> None:
    """Refuse options that do not fit what an earlier run left behind."""
    if journal is None and resume:
        raise OutputError(
            "a run that writes to standard output keeps no journal, so it cannot be resumed; give -o FILE"
        )


def refuse_collisions(outputs: Mapping[str, object], inputs: Mapping[str, object]) -> None:
    """Refuse to write two things to one place, or over something that is read."""
    places: dict[str, str] = {}
    read = {words: inputs.get(words) for words in ("data", "schema", "plan", "ledger", "extend", "synopsis")}
    for words, given in {**read, **outputs}.items():
        if given is None or str(given) == "-":
            continue
        place = os.path.realpath(str(given))
        if place in places:
            raise OutputError(f"{given} is given twice, as {places[place]} and as {words}; give another name")
        places[place] = words
        if words in outputs and _would_be_read(inputs.get("data"), place, is_folder(str(given))):
            raise OutputError(f"{given} would be among the files of the private table next time; give another place")


def _would_be_read(data: object, target: str, folder: bool) -> bool:
    """Whether what is written to a place would be read as a part of the table: below its folder, or by its pattern."""
    if not isinstance(data, str) or "://" in data:
        return False
    path = PurePath(os.path.realpath(data))
    if os.path.exists(path):
        return os.path.isdir(path) and PurePath(target).is_relative_to(path)
    written = [PurePath(target), *(PurePath(target, *names) for names in _RELEASE_FILES if folder)]
    return any(_matches_pattern(file.parts, path.parts) for file in written)


def _matches_pattern(names: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether a path matches a pattern, in which ** stands for any number of folders."""
    if not pattern:
        return not names
    if pattern[0] == "**":
        return _matches_pattern(names, pattern[1:]) or (bool(names) and _matches_pattern(names[1:], pattern))
    return bool(names) and fnmatch(names[0], pattern[0]) and _matches_pattern(names[1:], pattern[1:])


@contextlib.contextmanager
def explain_resume(journal: Path | None) -> Iterator[None]:
    """Say how to go on if the block is interrupted, by a full disk too.

    An error of the ledger or of the journal is such an interruption only where the run began in this block: one that
    is resumed may be refused by them.
    """
    began_here = journal is not None and not journal.exists()
    try:
        yield
    except (KeyboardInterrupt, SourceError, OutputError, LedgerError, JournalError) as error:
        refused = isinstance(error, LedgerError | JournalError) and not began_here
        if journal is not None and journal.exists() and not refused:
            click.echo(
                f"what was paid for and stored is kept in {journal}; the same command with --resume goes on without "
                "paying for it again",
                err=True,
            )
        raise


def measure_table(journal: Path | None, progress: Progress, *, quiet: bool, **options: Any) -> Synopsis:
    """Measure a table, with the library's warnings as lines for the person."""
    data, file = options.pop("data"), options.pop("schema")
    schema = dpsyn.Schema.load(file)
    schema.require_public(str(file))
    epsilon, workload = options.pop("epsilon"), parse_weights(options.pop("workload"))
    if not quiet:
        _print_resources(data, schema, options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if quiet else "always", UserWarning)
        warnings.showwarning = _print_note
        return dpsyn.measure(data, schema, epsilon, workload=workload, journal=journal, progress=progress, **options)


def _print_resources(data: str, schema: Schema, options: Mapping[str, Any]) -> None:
    """Say how a table that is not held in memory will be read."""
    about = {name: options[name] for name in ("recipe", "plan", "query", "engine") if name in options}
    plan = dpsyn.estimate_resources(data, schema, **about)
    if plan.engine != "memory":
        _print_note(plan.describe())


def parse_weights(texts: Iterable[str]) -> dict[str, float]:
    """Weights by attribute, from texts such as ``income`` and ``age=2``."""
    found: dict[str, float] = {}
    for text in texts:
        name, equals, weight = (
            (part.strip() for part in text.rpartition("=")) if "=" in text else (text.strip(), "", "")
        )
        try:
            found[name] = float(weight) if equals else DEFAULT_WEIGHT
        except ValueError:
            raise UserError(f"the workload {text!r} has no number as its weight; write NAME or NAME=WEIGHT") from None
    return found


def _print_note(message: Warning | str, *_: object, **__: object) -> None:
    """A warning as a line for the person, at once: before anything is paid for."""
    click.echo(f"Note: {message}", err=True)


def discard_journal(journal: Path | None) -> None:
    """Remove a journal once everything it was kept for is written."""
    if journal is not None:
        journal.unlink(missing_ok=True)


def print_certificate(synopsis: Synopsis, *, to_errors: bool = False) -> None:
    """The guarantee of the last release in words, and of all releases together if there are several."""
    certificate = synopsis.certificates[-1]
    if certificate is not None:
        click.echo(certificate.summary(), err=to_errors)
    if len(synopsis.releases) > 1:
        from dpsyn.report import synopsis as words

        click.echo("\n".join(words.overview_lines(synopsis)), err=to_errors)
