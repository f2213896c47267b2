"""``dpsyn itemsets``: the most frequent itemsets of a file of baskets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

import dpsyn
from dpsyn import atomic_files
from dpsyn.cli import output, release_run
from dpsyn.errors import OutputError, UserError
from dpsyn.report import answers as words


@click.command()
@click.argument("baskets", metavar="BASKETS")
@click.option(
    "--items", metavar="FILE|RANGE", help="The universe: a file with one item a line, or a range as 1..16470."
)
@click.option("--discover", is_flag=True, help="The universe is not public: buy it, with --delta and --max-items.")
@click.option("--epsilon", required=True, type=float, metavar="E", help="ε of the promise; 1 is a usual value.")
@click.option("--delta", type=float, metavar="D", help="δ of the promise, with --discover only; such as 1e-9.")
@click.option("--max-items", type=int, metavar="L", help="Look at so many items of a basket at most to buy items.")
@click.option("--top", type=int, metavar="K", help="How many itemsets; 100 unless --min-support is given.")
@click.option("--min-support", type=float, metavar="F", help="Only itemsets in this part of the baskets, such as 0.02.")
@click.option(
    "-o",
    "--output",
    "target",
    default="-",
    metavar="FILE",
    help="Where to write: .csv, .parquet, .arrow, .json; otherwise a list is printed.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--rules", metavar="FILE", help="Also association rules, as a table; - prints them.")
@click.option(
    "--confidence", type=float, default=0.5, show_default=True, metavar="C", help="The least confidence of a rule."
)
@click.option("--synopsis", type=click.Path(path_type=Path), metavar="FILE", help="Keep the noisy bases too.")
@click.option("--basket", default="basket", show_default=True, metavar="COLUMN", help="In a table: names the basket.")
@click.option("--item", default="item", show_default=True, metavar="COLUMN", help="In a table: names the item.")
@click.option("--unit", metavar="COLUMN", help="Names a person, whose baskets are protected together.")
@click.option(
    "--max-baskets", type=int, default=1, show_default=True, metavar="N", help="Use so many baskets of a person."
)
@click.option(
    "--neighbors",
    type=click.Choice(["add-remove", "replace"]),
    default="add-remove",
    show_default=True,
    help="Protect one basket that comes or goes, or one that is replaced.",
)
@click.option("--ledger", type=click.Path(path_type=Path), metavar="FILE", help="Record what it costs here.")
@click.option("--dataset", default="", metavar="NAME", help="The dataset's name in the ledger.")
@click.option(
    "--query", metavar="SQL", help="A SELECT on BASKETS: a table of a DuckDB database, or files, called data."
)
@click.option("--resume", is_flag=True, help="Go on with a run that was interrupted, without paying twice.")
@click.option("--force", is_flag=True, help="Overwrite files that exist.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors and the list.")
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
    (.csv, .parquet, …) with a row for each item of a basket. Which items there can be is published, so it must be known
    without the baskets, or bought.

    \b
      dpsyn itemsets baskets.dat --items 1..16470 --epsilon 1 --top 100
      dpsyn itemsets baskets.csv --items items.txt --epsilon 1 -o itemsets.csv --rules rules.csv --synopsis s.dpsyn
      dpsyn itemsets baskets.csv --basket order --unit customer --max-baskets 5 --items items.txt --epsilon 1
      dpsyn itemsets baskets.dat --discover --delta 1e-9 --max-items 20 --epsilon 1

    A run that writes a FILE keeps its answers in FILE.journal until that is done. If it was interrupted, the same
    command with --resume goes on where it stopped.
    """
    if (items is None) != discover:
        raise UserError("say which items there can be: --items FILE or RANGE if that is public, else --discover")
    if not 0 <= confidence <= 1:
        raise UserError(f"the confidence is {confidence}; give a number from 0 to 1")
    written = {"--output": target, "--rules": rules, "--synopsis": synopsis}
    release_run.refuse_collisions(written, {"data": baskets, "schema": items, "ledger": options["ledger"]})
    _check_targets(written, force, options["resume"])
    journal = release_run.journal_path(str(synopsis) if target == "-" and synopsis else target)
    release_run.check_resume(journal, options["resume"])
    with release_run.explain_resume(journal), output.show_progress(quiet) as shown:
        found = dpsyn.frequent_itemsets(baskets, items, journal=journal, progress=shown, **options)
        if synopsis and found.bases:
            found.to_synopsis().save(synopsis)
        if rules and rules != "-":
            _write_result(
                rules,
                found.association_rules_table(confidence, as_text=_is_csv(rules)),
                [r.to_data() for r in found.association_rules(confidence)],
            )
        if target != "-":
            _write_result(target, found.table(as_text=_is_csv(target)), found.to_data(confidence if rules else None))
    release_run.discard_journal(journal)
    if as_json:
        output.print_line(
            json.dumps(found.to_data(confidence if rules else None), ensure_ascii=False, allow_nan=False, indent=2)
        )
        return
    if target == "-":
        _show_itemsets(found)
    if rules == "-":
        _show_rules(found, confidence)
    if synopsis and not found.bases:
        click.echo(f"No item is frequent enough to be bought, so {synopsis} was not written.", err=True)
    if not quiet:
        for place in (str(place) for place in written.values() if place and str(place) != "-"):
            if place != str(synopsis) or found.bases:
                output.print_written(place)
        click.echo("\n" + found.certificate.summary(), nl=False, err=target == "-")


def _check_targets(written: dict[str, Any], force: bool, resume: bool) -> None:
    """Refuse places that cannot be written, before anything is paid for."""
    for option, place in written.items():
        if place is None or str(place) == "-":
            continue
        if option != "--synopsis":
            _check_suffix(str(place))
        if option == "--output" or not resume:  # an interrupted run may have written the others
            output.refuse_to_overwrite(str(place), force)
        atomic_files.check_writable(Path(place))
    if str(written["--synopsis"]) == "-":
        raise OutputError("a synopsis is a file; give its name, such as s.dpsyn")


def _check_suffix(path: str) -> None:
    if path.lower().endswith(".json"):
        return
    try:
        atomic_files.table_format(path)
    except OutputError as error:
        raise OutputError(f"{error}, or .json") from None


def _is_csv(path: str) -> bool:
    """Whether a file has no room for lists."""
    return not path.lower().endswith(".json") and atomic_files.table_format(path) == "csv"


def _write_result(path: str, table: Any, data: Any) -> None:
    if path.lower().endswith(".json"):
        output.write_text(path, json.dumps(data, ensure_ascii=False, allow_nan=False, indent=2) + "\n")
    else:
        dpsyn.write_table(table, path, synthetic=False)


def _show_itemsets(found: Any) -> None:
    output.print_table(
        words.itemset_title(found), words.ITEMSET_HEADINGS, words.itemset_rows(found), right=(0, 2, 3, 4)
    )


def _show_rules(found: Any, confidence: float) -> None:
    rows = words.rule_rows(found, confidence)
    title = f"{output.format_count(len(rows), 'rule')} of at least {confidence:.0%} confidence"
    output.print_table(title, words.RULE_HEADINGS, rows, right=(1, 2, 3, 4))
