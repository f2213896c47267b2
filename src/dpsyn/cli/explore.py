"""``dpsyn explore``: a first look at a table, for whoever writes a plan."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import dpsyn
from dpsyn import atomic_files
from dpsyn.cli import output, release_run
from dpsyn.errors import OutputError, UserError

if TYPE_CHECKING:
    from dpsyn import Exploration

MAX_SHOWN_PAIRS = 15
"""Pairs and mappings that are shown; the synopsis holds all."""

EXACT_NOTICE = (
    "EXACT: these figures were counted without noise. They may go into a plan only if the table itself is public; "
    "a plan that was made from private rows breaks the guarantee of every release that uses it."
)


@click.command()
@click.argument("data", metavar="DATA")
@click.option(
    "-s", "--schema", required=True, type=click.Path(path_type=Path), metavar="FILE", help="What is public about it."
)
@click.option("--epsilon", type=float, metavar="E", help="ε of the promise; 0.1 is often enough for a first look.")
@click.option("--delta", type=float, metavar="D", help="δ of the promise; by default as in dpsyn synthesize.")
@click.option("--public", is_flag=True, help="The table is public sample data: count exactly, pay nothing.")
@click.option("-o", "--output", "target", metavar="FILE", help="Where to write the synopsis: first.dpsyn.")
@click.option("--plan", "draft", type=click.Path(path_type=Path), metavar="FILE", help="Also write a first plan here.")
@click.option("--ledger", type=click.Path(path_type=Path), metavar="FILE", help="Record what it costs here.")
@click.option("--dataset", metavar="NAME", help="The dataset's name in the ledger, if not that of the schema.")
@click.option("--query", metavar="SQL", help="A SELECT on DATA: a table of a DuckDB database, or files, called data.")
@click.option("--resume", is_flag=True, help="Go on with an interrupted run.")
@click.option("--force", is_flag=True, help="Overwrite files that exist.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors.")
def command(
    data: str,
    schema: Path,
    public: bool,
    target: str | None,
    draft: Path | None,
    force: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Look at a table under a budget: 1-way marginals, how strongly pairs depend, what to recode or to map.

    The look is paid for like any release, and the synopsis it writes may be published. A plan made from it is public.

    \b
      dpsyn explore people.csv -s schema.yaml --epsilon 0.1 --ledger ledger.db -o first.dpsyn
      dpsyn plan draft first.dpsyn -o plan.yaml
      dpsyn explore sample.csv -s schema.yaml --public --plan plan.yaml      for data that is public anyway
    """
    _check_options(public, target, options)
    release_run.refuse_collisions({"--output": target, "--plan": draft}, {"data": data, "schema": schema, **options})
    for place in [str(given) for given in (target, draft) if given]:
        if not options["resume"]:
            output.refuse_to_overwrite(place, force)
        atomic_files.check_writable(Path(place))
    exploration = (
        dpsyn.explore_public_data(data, schema, query=options["query"])
        if public
        else _measure_exploration(data, schema, str(target), quiet, options)
    )
    if draft:
        atomic_files.write_text(draft, dpsyn.Plan.draft(exploration).to_yaml())
    if quiet:
        return
    _show_exploration(exploration)
    if target:
        output.print_written(target, f"Draft a plan with: dpsyn plan draft {target} -o plan.yaml")
    if draft:
        output.print_written(str(draft), "Finish it by hand: it is a guess.")


def _check_options(public: bool, target: str | None, options: dict[str, Any]) -> None:
    if public and (target or options["epsilon"] is not None or options["ledger"] or options["resume"]):
        raise UserError("public data is counted without noise; leave --epsilon, --ledger, --resume and -o out")
    if not public and options["epsilon"] is None:
        raise UserError("looking at private rows costs privacy; give --epsilon 0.1, or --public if they are public")
    if not public and (not target or target == "-"):
        raise OutputError("give the name of a file for what was paid for, such as -o first.dpsyn")


def _measure_exploration(data: str, schema: Path, target: str, quiet: bool, options: dict[str, Any]) -> Exploration:
    journal = release_run.journal_path(target)
    with release_run.explain_resume(journal), output.show_progress(quiet) as shown:
        synopsis = release_run.measure_table(
            journal, shown, quiet=quiet, data=data, schema=schema, recipe="explore", workload=(), **options
        )
        synopsis.save(target)
    release_run.discard_journal(journal)
    return dpsyn.Exploration.from_synopsis(synopsis)


def _show_exploration(exploration: Exploration) -> None:
    if exploration.exact:
        output.print_line(EXACT_NOTICE)
    pairs = exploration.dependences[:MAX_SHOWN_PAIRS]
    output.print_table(
        f"The {len(pairs)} strongest dependences of {len(exploration.dependences):,}",
        ("first", "second", "InDif, part of rows", "noise", "second follows", "first follows"),
        [(*d.pair, f"{d.indif:.3f}", f"{d.deviation:.3f}", f"{d.forward:.2f}", f"{d.backward:.2f}") for d in pairs],
        right=(2, 3, 4, 5),
    )
    groups, mappings = exploration.groups(), exploration.mappings()
    for group in groups[:MAX_SHOWN_PAIRS]:
        output.print_line(f"Recode together: {', '.join(group)}")
    for name, source, strength in mappings[:MAX_SHOWN_PAIRS]:
        output.print_line(f"Map: {name} follows from {source} ({strength:.2f})")
    if not groups and not mappings:
        output.print_line("No attributes belong together so closely that a plan should recode them.")
