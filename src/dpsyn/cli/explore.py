"""``dpsyn explore``: a first look at a table, for a plan."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import dpsyn
from dpsyn import atomic_files
from dpsyn.cli import output, release_run
from dpsyn.cli.common_options import LEDGER_OPTIONS, SYNOPSIS_OUTPUT, common_options
from dpsyn.errors import OutputError, UserError
from dpsyn.report.numbers import format_number

if TYPE_CHECKING:
    from dpsyn import Exploration

MAX_SHOWN_PAIRS = 15
"""The largest number of pairs, groups and mappings that are printed; the synopsis holds all."""

MAX_SHOWN_ATTRIBUTES, MAX_SHOWN_VALUES = 100, 4
"""The largest number of attributes that are printed, and of values of each."""

MAX_SHOWN_TABLES, MAX_SHOWN_CELLS = 8, 3
"""The largest number of tables of pairs that are printed, and of cells of each."""

DEPENDENCE_LEGEND = (
    "Dependence: the share of rows that are in other cells than if the two attributes were independent (half of "
    "InDif), from 0 to 1. Noise: its standard deviation. Second from first: how much of the second attribute follows "
    "from the first, 1 if all of it does; noise may push a figure below 0 or above 1."
)
"""What the columns of the strongest dependences mean."""

EXACT_NOTICE = (
    "EXACT: these figures were counted without noise. Use them in a plan only if the table itself is public; "
    "a plan made from private rows breaks the guarantee of every release that uses it."
)


@click.command()
@common_options(
    "data",
    "schema",
    "epsilon",
    "delta",
    "allow_large_epsilon",
    "set",
    epsilon={"required": False, "help": "ε of the privacy guarantee, such as 0.1; with few rows that shows little."},
    set={"help": "An option of the recipe explore; dpsyn recipes explore lists them. May be given several times."},
)
@click.option("--exact", is_flag=True, help="The table is public: count exactly; no privacy is spent.")
@common_options("output", output={**SYNOPSIS_OUTPUT, "required": False})
@click.option("--plan", "draft", type=click.Path(path_type=Path), metavar="FILE", help="Also write a first plan here.")
@common_options(*LEDGER_OPTIONS, "query", "protect", "resume", "force", "quiet")
def command(
    data: str,
    schema: Path,
    exact: bool,
    target: str | None,
    draft: Path | None,
    force: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Take a first look at a table, for a plan: one-way marginals, dependences of pairs, tables of the strongest.

    A third of the budget goes to each of the three. The look spends privacy budget like any release, and the synopsis
    it writes may be published; dpsyn query shows whole tables of it. A plan made from it is public.

    \b
      dpsyn explore people.csv -s schema.yaml --epsilon 0.1 --ledger ledger.db -o first.dpsyn
      dpsyn plan draft first.dpsyn -o plan.yaml
      dpsyn explore sample.csv -s schema.yaml --exact --plan plan.yaml      for data that is public
    """
    _check_options(exact, target, options)
    if str(draft) == "-":
        raise UserError("--plan cannot go to standard output; give the name of a file")
    release_run.refuse_collisions({"--output": target, "--plan": draft}, {"data": data, "schema": schema, **options})
    for path in [str(given) for given in (target, draft) if given]:
        if not options["resume"]:
            output.refuse_to_overwrite(path, force)
        atomic_files.check_writable(Path(path))
    exploration = (
        dpsyn.explore_public_data(data, schema, query=options["query"])
        if exact
        else _measure_exploration(data, schema, str(target), quiet, options)
    )
    if draft:
        atomic_files.write_text(draft, dpsyn.Plan.draft(exploration).to_yaml())
    _show_exploration(exploration)
    if quiet:
        return
    if target:
        output.print_written(target, f"Draft a plan with: dpsyn plan draft {target} -o plan.yaml")
    if draft:
        output.print_written(str(draft), "It is a guess; complete it by hand.")


def _check_options(exact: bool, target: str | None, options: dict[str, Any]) -> None:
    if exact and (target or options["epsilon"] is not None or options["ledger"] or options["resume"]):
        raise UserError("--exact counts public data without noise; leave out --epsilon, --ledger, --resume and -o")
    if exact and options["settings"]:
        raise UserError("--set is about noisy measurements, which --exact does without; leave one of them out")
    if not exact and options["epsilon"] is None:
        raise UserError(
            "a look at private rows spends privacy budget; give --epsilon 0.1, or --exact if they are public"
        )
    if not exact and (not target or target == "-"):
        raise OutputError("give the name of a file for what is released, such as -o first.dpsyn")


def _measure_exploration(data: str, schema: Path, target: str, quiet: bool, options: dict[str, Any]) -> Exploration:
    journal = release_run.journal_path(target)
    release_run.check_journal(journal, resume=options["resume"], ledger=options["ledger"])
    with release_run.explain_resume(journal), output.show_progress(quiet) as progress:
        synopsis = release_run.measure_table(
            journal, progress, quiet=quiet, data=data, schema=schema, recipe="explore", **options
        )
        synopsis.save(target)
    release_run.discard_journal(journal)
    return dpsyn.Exploration.from_synopsis(synopsis)


def _show_exploration(exploration: Exploration) -> None:
    if exploration.exact:
        output.print_line(EXACT_NOTICE)
    _show_one_way(exploration)
    pairs = exploration.dependences[:MAX_SHOWN_PAIRS]
    output.print_table(
        f"The {len(pairs)} strongest dependences of {len(exploration.dependences):,}",
        ("first", "second", "dependence", "noise", "second from first", "first from second"),
        [(*d.pair, f"{d.indif / 2:.3f}", f"{d.std / 2:.3f}", f"{d.forward:.2f}", f"{d.backward:.2f}") for d in pairs],
        right=(2, 3, 4, 5),
    )
    output.print_line(f"{DEPENDENCE_LEGEND}\n")
    _show_tables(exploration)
    groups, mappings = exploration.groups(), exploration.mappings()
    for group in groups[:MAX_SHOWN_PAIRS]:
        output.print_line(f"Recode together: {', '.join(group)}")
    for name, source, strength in mappings[:MAX_SHOWN_PAIRS]:
        output.print_line(f"Nearly a function: {name} follows from {source} ({strength:.2f})")
    if not groups and not mappings:
        output.print_line("No attributes depend on each other so strongly that a plan should recode them together.")


def _show_one_way(exploration: Exploration) -> None:
    shown = list(exploration.one_way.values())[:MAX_SHOWN_ATTRIBUTES]
    more = len(exploration.one_way) - len(shown)
    output.print_table(
        "One-way marginals" + (f", of the first {len(shown)} attributes" if more else ""),
        ("attribute", "values", "above noise", "noise, rows", "most frequent values, fraction of rows"),
        [
            (
                table.clique[0],
                f"{table.counts.size:,}",
                f"{int(table.visible.sum()):,}",
                format_number(table.std, 3),
                ", ".join(f"{cell.values[0]} {cell.share:.3f}" for cell in table.largest_cells(MAX_SHOWN_VALUES)),
            )
            for table in shown
        ],
        right=(1, 2, 3),
    )


def _show_tables(exploration: Exploration) -> None:
    tables = exploration.tables[:MAX_SHOWN_TABLES]
    lines = [
        (*(table.clique if first else ("", "")), *cell.values, f"{cell.share:.3f}", f"{cell.independent_share:.3f}")
        for table in tables
        for first, cell in zip((True, False, False), table.largest_cells(MAX_SHOWN_CELLS), strict=False)
    ]
    if lines:
        output.print_table(
            f"Tables of {len(tables)} of {len(exploration.tables)} strong pairs: the cells furthest above independence",
            ("first", "second", "value", "value", "fraction of rows", "if independent"),
            lines,
            right=(4, 5),
        )
