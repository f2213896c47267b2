"""``dpsyn ledger``: what was promised and spent on each dataset."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

import dpsyn
from dpsyn.cli import output
from dpsyn.errors import LedgerError
from dpsyn.report import ledger as words
from dpsyn.report.numbers import format_count

_FILE = click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_MISMATCH_ADVICE = (
    "Make sure that they belong together: it may be a certificate of another ledger. If the ledger has the entry that "
    "it names, the certificate was changed: do not rely on it, and get it again from where it was released. If not, do "
    "not release from the ledger: compare it with a backup, and find out who could write to it."
)
"""What to do if a ledger that is sound by itself does not agree with what a release recorded."""


@click.group()
def command() -> None:
    """See and limit what all releases of a dataset cost together.

    Every release of the same people adds to what can be learned about each of them. The ledger is one file in which
    releases write down what they promise before they read a row, and what they draw. A cap is the most that they may
    cost together; a release that would go beyond it is refused.

    \b
      dpsyn ledger cap ledger.db --dataset people --epsilon 4 --delta 1e-8
      dpsyn ledger show ledger.db                      what is used, what is left
      dpsyn ledger verify ledger.db                    was it tampered with?
      dpsyn ledger close ledger.db 9f86d081884c7d65    end a run that crashed
    """


@command.command(short_help="What is used, what is left, and every run.")
@_FILE
@click.option("--dataset", metavar="NAME", help="Only this dataset.")
@_JSON
def show(file: Path, dataset: str | None, as_json: bool) -> None:
    """Show whom the releases protect, the cap, what is used and left, and every run.

    Costs add up as ρ; they are shown as ε at a δ, because that is what a release promises. A run that is open holds
    its whole promise; a closed one what it drew.

    \b
      dpsyn ledger show ledger.db
      dpsyn ledger show ledger.db --dataset people --json
    """
    found = dpsyn.Ledger(file).datasets()
    names = [account.dataset for account in found]
    if dataset is not None and dataset not in names:
        raise LedgerError(f"there is no dataset {dataset!r} in {file}; it has: {', '.join(names)}")
    shown = [account for account in found if dataset in (None, account.dataset)]
    if as_json:
        _print_json([words.account_data(account) for account in shown])
        return
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
    "witnesses",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="WITNESS",
    help="A file that recorded an entry of the ledger; may be given several times.",
)
@_JSON
def verify(file: Path, witnesses: tuple[Path, ...], as_json: bool) -> int:
    """Check that no entry was changed, removed or reordered, and that no run spent more than its promise.

    The entries are chained by hashes, so a change is found. Somebody who rewrites the whole file, or cuts its end
    off, can only be found by an entry that was recorded elsewhere: give it with --against. WITNESS is a certificate
    in JSON, a synopsis, or what an earlier `verify --json` printed. A certificate must also say what the ledger
    recorded of its run: the promise, the dataset, whom it protects, every draw, and the cost that follows from them,
    which is computed anew. What the steward declared public is not in the ledger and cannot be compared.

    It ends with 0 if all is sound and with 2 if not.

    \b
      dpsyn ledger verify ledger.db
      dpsyn ledger verify ledger.db --against released.dpsyn --against certificate.json
      dpsyn ledger verify ledger.db --json > head.json        a witness to keep elsewhere
    """
    ledger, told = dpsyn.Ledger(file), [dpsyn.read_ledger_checkpoint(witness) for witness in witnesses]
    found = ledger.verify()
    faults = list(found.faults)
    for witness, tells in zip(witnesses, told, strict=True):
        faults += [f"{witness}: {fault}" for fault in ledger.verify([tells]).faults if fault not in found.faults]
    if as_json:
        last = found.head.to_data() if found.head else None
        _print_json({"entries": found.entries, "head": last, "faults": faults})
    elif found.faults:
        _print_lines(f"{file} is NOT sound:", faults)
        output.print_line("Do not release from it. Compare it with a backup, and find out who could write to it.")
    elif faults:
        _print_lines(f"{file} is NOT sound, or what it was compared with was changed or is of another ledger:", faults)
        output.print_line(_MISMATCH_ADVICE)
    else:
        agrees = f"; it agrees with {', '.join(map(str, witnesses))}" if witnesses else ""
        output.print_line(f"{file} is sound: {found.entries} entries, none changed, removed or reordered{agrees}.")
        output.print_line(
            f"Its last entry is {found.head.sequence}, {found.head.hash}." if found.head else "It is empty."
        )
    return 2 if faults else 0


@command.command(short_help="The most that all releases may cost together.")
@_FILE
@click.option("--dataset", required=True, metavar="NAME", help="The dataset, as its schema names it.")
@click.option("--epsilon", required=True, type=float, metavar="E", help="ε of all releases together.")
@click.option("--delta", required=True, type=float, metavar="D", help="δ of all releases together, such as 1e-9.")
def cap(file: Path, dataset: str, epsilon: float, delta: float) -> None:
    """Set the most that all releases of a dataset may cost together; FILE is made if there is none.

    A cap can be raised and lowered at any time. What was promised before stays promised: a cap below it refuses
    every further release. A tenth of δ is kept for values that are bought by a threshold.

    One release may promise a little less than the cap, even the first: a single release is counted exactly, several
    together by a coarser sum that holds whatever they are.

    \b
      dpsyn ledger cap ledger.db --dataset people --epsilon 4 --delta 1e-8
    """
    ledger = dpsyn.Ledger(file)
    ledger.set_cap(dataset, dpsyn.Cap.for_guarantee(epsilon, delta))
    account = next(account for account in ledger.datasets() if account.dataset == dataset)
    _print_lines(f"Dataset {dataset} in {file}", words.account_lines(account))


@command.command(short_help="End a run that was abandoned.")
@_FILE
@click.argument("run", metavar="RUN")
@click.option("--yes", is_flag=True, help="Do not ask.")
def close(file: Path, run: str, yes: bool) -> None:
    """End a run that was abandoned: what it drew stays spent, the rest of its promise is free again.

    A release that is still running stops at its next draw, and a closed run cannot be resumed.

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
        f"the cost of {format_count(len(known.measurements), 'draw')} stays spent"
        if known.measurements
        else "it had drawn nothing"
    )
    output.print_line(f"Closed run {run} of {dataset}: {kept}; the rest of its promise is free again.")


def _confirm(question: str) -> None:
    if not sys.stdin.isatty():
        raise click.UsageError("closing a run ends it for good, and there is nobody to ask; say --yes if you mean it")
    click.confirm(question, abort=True)


def _print_lines(title: str, lines: Sequence[str]) -> None:
    output.print_line("\n".join([title, *(f"  {line}" for line in lines)]))


def _print_json(data: Any) -> None:
    output.print_line(json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False))
