"""``dpsyn ledger``: the privacy budget that all releases of a dataset spend together."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import click

import dpsyn
from dpsyn.cli import output
from dpsyn.cli.command_group import CommandGroup
from dpsyn.cli.common_options import common_options
from dpsyn.errors import LedgerError
from dpsyn.report import ledger as words
from dpsyn.report.numbers import format_count
from dpsyn.suggestions import suggest_names

_FILE = click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
_MISMATCH_ADVICE = (
    "Make sure that they belong together: it may be a certificate of another ledger. If the ledger has the entry that "
    "it names, the certificate was changed: do not rely on it, and get it again from where it was released. If not, do "
    "not release from the ledger: compare it with a backup, and find out who could write to it."
)
"""What to do if a ledger that is intact by itself does not agree with what a release recorded."""
_UNKNOWN_TO_VERIFY = (
    "It cannot be known from here whether later entries that only others have seen were cut off, or whether the ledger "
    "was rewritten from scratch: compare it with the certificates of its releases (--against)."
)
"""What verifying a ledger does not show, in so many words."""
_MODEL_NOT_COVERED = (
    "Of a synopsis, the hashes cover the numbers that were released, the attributes of its schema and the recodings. "
    "The model that rows are sampled from is post-processing: it costs no privacy, and no hash covers it. If you must "
    "rely on it, compare it with the numbers, which are in the same file."
)
"""What the hashes of a synopsis do not cover, in so many words."""


@click.group(cls=CommandGroup)
def command() -> None:
    """Show and limit the privacy budget that all releases of a dataset spend together.

    Every release of the same people adds to what can be learned about each of them. The ledger is one file in which
    each release reserves its privacy budget before it reads a row, and records every noisy measurement. A cap limits
    the total; a release that would exceed it is refused.

    \b
      dpsyn ledger new ledger.db                       begin one, once
      dpsyn ledger set-cap ledger.db --dataset people --epsilon 4 --delta 1e-8
      dpsyn ledger show ledger.db                      what is spent, what is left
      dpsyn ledger verify ledger.db                    was it tampered with?
      dpsyn ledger close ledger.db 9f86d081884c7d65    end a run that crashed
    """


@command.command(short_help="Begin a ledger in a new file.")
@_FILE
@common_options(
    "dataset",
    "epsilon",
    "delta",
    dataset={"help": "Name of a dataset to limit at once, as in its schema."},
    epsilon={"required": False, "help": "ε of all its releases together."},
    delta={"help": "δ of all its releases together, such as 1e-9."},
)
def new(file: Path, dataset: str | None, epsilon: float | None, delta: float | None) -> None:
    """Begin a ledger in a new file; every release of the same people records its budget there (--ledger FILE).

    No other command begins one, so a mistyped path is an error and not a ledger in which nothing was spent. With
    --dataset, --epsilon and --delta it gets its first cap, as by `dpsyn ledger set-cap`.

    Keep the file on a local drive, or on a network drive on which files can be locked. Do not keep it in a folder that
    is synchronized between computers, or under version control: an older copy that comes back forgets what was spent.

    \b
      dpsyn ledger new ledger.db
      dpsyn ledger new ledger.db --dataset people --epsilon 4 --delta 1e-8
    """
    if dataset is None and epsilon is None and delta is None:
        dpsyn.Ledger.create(file)
        output.print_line(f"Began the ledger {file}. Give it to every release of the same people: --ledger {file}")
        output.print_line("Nothing is limited yet; set a cap with dpsyn ledger set-cap.")
        return
    if dataset is None or epsilon is None or delta is None:
        raise click.UsageError("a cap needs --dataset, --epsilon and --delta; give all of them, or none")
    cap = dpsyn.Cap.for_guarantee(epsilon, delta)
    dpsyn.Ledger.create(file, caps={dataset: cap})
    output.print_line(f"Began the ledger {file}. Give it to every release of the same people: --ledger {file}")
    _print_account(file, dataset)


@command.command(short_help="What is spent, what is left, and every run.")
@_FILE
@common_options("dataset", "json", dataset={"help": "Only this dataset."})
def show(file: Path, dataset: str | None, as_json: bool) -> None:
    """Show the privacy unit, the cap, what is spent and left, and every run.

    Costs add up as ρ. They are shown as ε at a δ, because that is the form of a guarantee. An open run holds its whole
    budget; a closed one holds what it spent.

    \b
      dpsyn ledger show ledger.db
      dpsyn ledger show ledger.db --dataset people --json
    """
    accounts = dpsyn.Ledger(file).datasets()
    names = [account.dataset for account in accounts]
    if dataset is not None and dataset not in names:
        known = suggest_names(dataset, names, "it has: ") if names else "it has: none yet"
        raise LedgerError(f"there is no dataset {dataset!r} in {file}; {known}")
    shown = [account for account in accounts if dataset in (None, account.dataset)]
    if as_json:
        output.print_json([words.account_data(account) for account in shown])
        return
    if not accounts:
        output.print_line(f"{file} has no dataset yet: nothing was released, and no cap is set.")
    for account in shown:
        _print_lines(f"Dataset {account.dataset}", words.account_lines(account))
        if account.runs:
            output.print_table("", words.RUN_HEADINGS, words.run_rows(account), right=(2, 3, 4, 5))
        for note in words.run_notes(account, str(file)):
            output.print_line(note)


@command.command(short_help="Was the ledger tampered with?")
@_FILE
@click.option(
    "--against",
    "records",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="RECORD",
    help="A file that recorded an entry of the ledger; may be given several times.",
)
@common_options("json")
def verify(file: Path, records: tuple[Path, ...], as_json: bool) -> int:
    """Check that no entry was changed, removed or reordered, and that no run spent more than its budget.

    The entries are chained by hashes, so a change is detected. An end that was cut off, or an older copy in place of
    the ledger, is intact by itself; it is detected because your account of this computer remembers the last entry that
    it has seen. It cannot know of entries that only others have seen, and a ledger that was rewritten from scratch is
    another ledger to it. Those are detected by an entry that was recorded elsewhere: give it with --against.

    RECORD is a certificate in JSON, a synopsis, or what an earlier `verify --json` printed. A certificate must also
    agree with what the ledger recorded of its run: the budget, the dataset, the privacy unit, what was declared public,
    the query, every noisy measurement with the hash of its answer, the cost that follows from them, which is
    recomputed, and what a damaged journal lost. In a synopsis, every number must be the answer whose hash was recorded,
    and the attributes of the schema and the recodings must be those of the release. Its fitted model is post-processing
    of these numbers: no hash covers it. A release that kept no ledger cannot be compared, and is named.

    The exit code is 0 if the ledger is intact and agrees with everything that was given, and 2 if not, or if something
    cannot be compared.

    \b
      dpsyn ledger verify ledger.db
      dpsyn ledger verify ledger.db --against released.dpsyn --against certificate.json
      dpsyn ledger verify ledger.db --json > head.json        a record to keep elsewhere
    """
    checkpoints = [dpsyn.read_ledger_checkpoint(record) for record in records]
    verification = dpsyn.Ledger(file).verify(checkpoints)
    head, remembered = verification.head, verification.remembered
    faults, not_compared = list(verification.faults), list(verification.not_compared)
    if as_json:
        output.print_json(
            {
                "entries": verification.entries,
                "head": head.to_data() if head else None,
                "remembered": remembered.to_data() if remembered else None,
                "faults": faults,
                "not_compared": not_compared,
            }
        )
    elif not verification.intact:
        _print_lines(f"{file} is NOT intact:", faults)
        output.print_line("Do not release from it. Compare it with a backup, and find out who could write to it.")
    elif faults:
        _print_lines(f"{file} is NOT intact, or a record was changed or belongs to another ledger:", faults)
        output.print_line(_MISMATCH_ADVICE)
    else:
        agrees = f"; it agrees with {', '.join(map(str, records))}" if records and not not_compared else ""
        output.print_line(
            f"{file} is intact: {verification.entries} entries, none changed, removed or reordered{agrees}."
        )
        if head:
            output.print_line(f"Its last entry is {head.sequence}, {head.hash}.")
        output.print_line(
            f"Your account of this computer had seen it up to entry {remembered.sequence}; all of that is there."
            if remembered
            else "Your account of this computer sees it for the first time, so it cannot know what was there before."
        )
        output.print_line(_UNKNOWN_TO_VERIFY)
        if any(zipfile.is_zipfile(record) for record in records):
            output.print_line(_MODEL_NOT_COVERED)
    if not_compared and not as_json:
        _print_lines("NOT compared, because there is nothing in the ledger to compare it with:", not_compared)
        output.print_line("Nothing is known here about what they cost; everything else that was given was compared.")
    return 2 if faults or not_compared else 0


@command.command("set-cap", short_help="Limit the budget that all releases may spend together.")
@_FILE
@common_options(
    "dataset",
    "epsilon",
    "delta",
    dataset={"required": True, "help": "Name of the dataset, as in its schema."},
    epsilon={"help": "ε of all releases together."},
    delta={"required": True, "help": "δ of all releases together, such as 1e-9."},
)
def set_cap(file: Path, dataset: str, epsilon: float, delta: float) -> None:
    """Limit the budget that all releases of a dataset may spend together.

    A cap can be raised and lowered at any time. It does not take back what was spent: if the new cap is lower than
    that, every further release is refused. A tenth of δ is kept for values that are discovered privately.

    Even a first release can have a little less than the cap: a single release is accounted exactly, several together
    by a coarser sum that holds for every kind of release.

    \b
      dpsyn ledger set-cap ledger.db --dataset people --epsilon 4 --delta 1e-8
    """
    dpsyn.Ledger(file).set_cap(dataset, dpsyn.Cap.for_guarantee(epsilon, delta))
    _print_account(file, dataset)


@command.command(short_help="End a run that was abandoned.")
@_FILE
@click.argument("run", metavar="RUN")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def close(file: Path, run: str, yes: bool) -> None:
    """End a run that was abandoned: what it measured stays spent, the rest of its budget is free again.

    A release that is still running stops at its next measurement, and a closed run cannot be resumed.

    \b
      dpsyn ledger show ledger.db                          lists open runs
      dpsyn ledger close ledger.db 9f86d081884c7d65
    """
    dataset, known = dpsyn.Ledger(file).find_run(run)
    if known.closed:
        output.print_line(f"Run {run} of {dataset} is closed already.")
        return
    if not yes:
        _confirm(f"Close run {run} of {dataset}? It cannot be resumed then.")
    dpsyn.Ledger(file).close(run)
    kept = (
        f"the cost of {format_count(len(known.measurements), 'noisy measurement')} stays spent"
        if known.measurements
        else "it had measured nothing"
    )
    output.print_line(f"Closed run {run} of {dataset}: {kept}; the rest of its budget is free again.")


def _confirm(question: str) -> None:
    if not sys.stdin.isatty():
        raise click.UsageError(
            "closing a run cannot be undone, and there is no terminal to ask on; give --yes to confirm"
        )
    click.confirm(question, abort=True)


def _print_account(file: Path, dataset: str) -> None:
    account = next(account for account in dpsyn.Ledger(file).datasets() if account.dataset == dataset)
    _print_lines(f"Dataset {dataset} in {file}", words.account_lines(account))


def _print_lines(title: str, lines: Sequence[str]) -> None:
    output.print_line("\n".join([title, *(f"  {line}" for line in lines)]))
