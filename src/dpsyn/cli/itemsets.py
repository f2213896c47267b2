"""``dpsyn itemsets``: the most frequent itemsets of a file of baskets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import dpsyn
from dpsyn import atomic_files
from dpsyn.cli import output, release_run
from dpsyn.cli.common_options import LEDGER_OPTIONS, common_options
from dpsyn.errors import OutputError, UserError
from dpsyn.progress import Step
from dpsyn.report import answers as words
from dpsyn.report.numbers import format_count

if TYPE_CHECKING:
    from dpsyn import FrequentItemsets


MINING_STEPS = (
    Step("reading the baskets", 0),
    Step("discovering the items", 2),
    Step("selecting frequent items", 3),
    Step("counting", 3),
)
"""The steps of a search; the second is for items without a public list."""


@click.command()
@click.argument("baskets", metavar="BASKETS")
@click.option(
    "--items",
    metavar="FILE|RANGE",
    help="The universe of items: a file with one item per line, or a range as 1..16470.",
)
@click.option(
    "--discover",
    is_flag=True,
    help="The universe of items is not public: discover frequent items privately, with --delta and --max-items.",
)
@common_options(
    "epsilon",
    "delta",
    "allow_large_epsilon",
    delta={"help": "δ of the privacy guarantee, such as 1e-9; with --discover only."},
)
@click.option(
    "--max-items", type=int, metavar="L", help="Use at most L items of each basket to discover items; with --discover."
)
@click.option("--top", type=int, metavar="K", help="Number of itemsets; 100 unless --min-support is given.")
@click.option(
    "--min-support", type=float, metavar="F", help="Only itemsets in this fraction of the baskets, such as 0.02."
)
@click.option(
    "--method",
    type=click.Choice(["auto", "bases"]),
    default="auto",
    show_default=True,
    help="bases: PrivBasis alone, as always with --synopsis. auto: noisy counts of items and pairs where they are "
    "predicted to miss fewer itemsets.",
)
@common_options(
    "output",
    "json",
    output={
        "required": False,
        "default": "-",
        "help": "Where to write: .csv, .parquet, .arrow, .json; by default a list is printed.",
    },
)
@click.option("--rules", metavar="FILE", help="Also association rules, as a table; - prints them.")
@click.option(
    "--confidence", type=float, default=0.5, show_default=True, metavar="C", help="Lowest confidence of a rule."
)
@common_options("keep_synopsis")
@click.option(
    "--basket", default="basket", show_default=True, metavar="COLUMN", help="In a table: the column of the basket."
)
@click.option("--item", default="item", show_default=True, metavar="COLUMN", help="In a table: the column of the item.")
@click.option(
    "--unit",
    metavar="COLUMN",
    help="The column of the privacy unit, such as a person: its baskets are protected together.",
)
@click.option(
    "--max-baskets",
    type=int,
    default=1,
    show_default=True,
    metavar="N",
    help="Use at most N baskets of each privacy unit.",
)
@click.option(
    "--neighbors",
    type=click.Choice(["add-remove", "replace"]),
    default="add-remove",
    show_default=True,
    help="Neighboring relation: one basket is added or removed, or one is replaced.",
)
@common_options(
    *LEDGER_OPTIONS,
    "query",
    "protect",
    "resume",
    "force",
    "quiet",
    dataset={"default": "", "help": "Name of the dataset in the ledger."},
)
def command(
    baskets: str,
    items: str | None,
    discover: bool,
    target: str,
    as_json: bool,
    rules: str | None,
    confidence: float,
    synopsis: Path | None,
    force: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """List the most frequent itemsets of a file of baskets, with counts and standard errors.

    BASKETS is a .dat file with a basket on each line, its items separated by spaces (also .dat.gz), or a long table
    (.csv, .parquet, …) with a row for each item of a basket. The universe of items is published, so it must be known
    without looking at the baskets, or be discovered privately.

    \b
      dpsyn itemsets baskets.dat --items 1..16470 --epsilon 1 --top 100
      dpsyn itemsets baskets.csv --items items.txt --epsilon 1 -o itemsets.csv --rules rules.csv --synopsis s.dpsyn
      dpsyn itemsets baskets.csv --basket order --unit customer --max-baskets 5 --items items.txt --epsilon 1
      dpsyn itemsets baskets.dat --discover --delta 1e-9 --max-items 20 --epsilon 1

    A run that writes a FILE keeps its noisy answers in FILE.journal until FILE is written. If it is interrupted, the
    same command with --resume continues it. With --ledger, give a FILE by -o or --synopsis.
    """
    if (items is None) != discover:
        raise UserError("give the universe of items: --items FILE or RANGE if it is public, else --discover")
    if not 0 <= confidence <= 1:
        raise UserError(f"the confidence is {confidence}; give a number from 0 to 1")
    outputs = {"--output": target, "--rules": rules, "--synopsis": synopsis}
    release_run.refuse_collisions(outputs, {"data": baskets, "schema": items, "ledger": options["ledger"]})
    journal = release_run.journal_path(target, synopsis)
    complete = release_run.find_complete_output(target, journal, resume=options["resume"], force=force)
    _check_targets(outputs, force or complete is not None, options["resume"])
    release_run.check_journal(journal, resume=options["resume"], ledger=options["ledger"])
    with release_run.explain_resume(journal), output.show_progress(quiet, MINING_STEPS) as progress:
        options["method"] = "bases" if synopsis else options["method"]
        result = dpsyn.frequent_itemsets(baskets, items, journal=journal, progress=progress, **options)
        if complete is not None:
            release_run.finish_complete_run(target, journal, complete, quiet=quiet)
            return
        if synopsis and result.bases:
            result.to_synopsis().save(synopsis)
        if rules and rules != "-":
            _write_result(
                rules,
                result.association_rules_table(confidence, as_text=_lacks_lists(rules)),
                [rule.to_data() for rule in result.association_rules(confidence)],
            )
        if target != "-":
            _write_result(
                target, result.table(as_text=_lacks_lists(target)), result.to_data(confidence if rules else None)
            )
    release_run.discard_journal(journal)
    if as_json:
        output.print_json(result.to_data(confidence if rules else None))
        return
    if target == "-":
        output.print_table(
            words.itemset_title(result), words.ITEMSET_HEADINGS, words.itemset_rows(result), right=(0, 2, 3, 4)
        )
    if rules == "-":
        _show_rules(result, confidence)
    if synopsis and not result.bases:
        note = f"No item is frequent enough to be discovered, so {synopsis} was not written."
        output.print_line(note, to_stderr=True)
    if quiet:
        return
    for path in (str(path) for path in outputs.values() if path and str(path) != "-"):
        if path != str(synopsis) or result.bases:
            output.print_written(path)
    output.print_line("\n" + result.certificate.summary().rstrip("\n"), to_stderr=target == "-")


def _check_targets(outputs: dict[str, Any], force: bool, resume: bool) -> None:
    """Refuse paths that cannot be written, before any budget is spent."""
    for option, path in outputs.items():
        if path is None:
            continue
        if str(path) == "-":
            output.require_standard_output()
            continue
        if option != "--synopsis":
            _check_suffix(str(path))
        if option == "--output" or not resume:  # an interrupted run may have written the others
            output.refuse_to_overwrite(str(path), force)
        atomic_files.check_writable(Path(path))
    if str(outputs["--synopsis"]) == "-":
        raise OutputError("a synopsis cannot go to standard output; give the name of a file, such as s.dpsyn")


def _check_suffix(path: str) -> None:
    if path.lower().endswith(".json"):
        return
    try:
        atomic_files.table_format(path)
    except OutputError as error:
        raise OutputError(f"{error}, or .json") from None


def _lacks_lists(path: str) -> bool:
    """Whether the cells of a file cannot hold lists."""
    return not path.lower().endswith(".json") and not atomic_files.stores_types(path)


def _write_result(path: str, table: Any, data: Any) -> None:
    if path.lower().endswith(".json"):
        output.write_text(path, output.format_json(data) + "\n")
    else:
        dpsyn.write_table(table, path, synthetic=False)


def _show_rules(result: FrequentItemsets, confidence: float) -> None:
    rows = words.rule_rows(result, confidence)
    title = f"{format_count(len(rows), 'rule')} with a confidence of at least {confidence:.0%}"
    output.print_table(title, words.RULE_HEADINGS, rows, right=(1, 2, 3, 4))
