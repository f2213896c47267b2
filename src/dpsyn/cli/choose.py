"""``dpsyn choose``: several candidate releases, and a private choice among them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import dpsyn
from dpsyn import atomic_files
from dpsyn.cli import output, release_run
from dpsyn.cli.common_options import LEDGER_OPTIONS, common_options
from dpsyn.errors import OutputError
from dpsyn.release_files import CHOICE_JSON_NAME, CHOICE_TEXT_NAME, is_release

if TYPE_CHECKING:
    from dpsyn import Choice


@click.command()
@common_options("data", "schema")
@click.option(
    "--candidates",
    "candidates",
    multiple=True,
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Recipes, options and plans to choose among, as YAML; may be given several times.",
)
@common_options("epsilon", epsilon={"help": "ε of each candidate: every one is a release, charged in full."})
@click.option(
    "--choice-epsilon",
    type=float,
    default=0.1,
    show_default=True,
    metavar="E",
    help="ε of the choice, however many candidates there are.",
)
@common_options(
    "delta",
    "allow_large_epsilon",
    *LEDGER_OPTIONS,
    "query",
    "protect",
    "engine",
    "output",
    "rows",
    "seed",
    "resume",
    "quiet",
    delta={"help": "δ of each candidate; by default 1e-9, or 1/expected_size² if that is smaller."},
    output={"metavar": "FOLDER", "help": "Where to write the release folder of the chosen candidate."},
    seed={"default": 0, "show_default": True},
)
def command(
    data: str,
    schema: Path,
    candidates: tuple[Path, ...],
    target: str,
    rows: int | None,
    seed: int,
    ledger: Path | None,
    resume: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Release a table by several candidates, and choose among them within the guarantee.

    Choosing the best of several releases by dpsyn evaluate looks at the real rows and breaks the guarantee. Here every
    candidate is a release that is charged in full, and the one whose rows have the smallest mean distance of two-way
    marginals from the real rows is chosen by the exponential mechanism, which costs --choice-epsilon more.

    \b
      dpsyn choose people.csv -s schema.yaml --candidates candidates.yaml --epsilon 0.5 --ledger ledger.db -o release/

    \b
      dpsyn_candidates: 1
      candidates:
        default: {recipe: dpsyn}
        views: {recipe: priview, set: {synthesis: gum}}
        mine: {plan: plan.yaml}

    FOLDER becomes the release folder of the chosen candidate; choice.txt and choice.json in it state what all of it
    cost. FOLDER.candidates keeps the synopsis of every candidate, and journals of unfinished ones: an interrupted
    choice is continued by the same command with --resume, and nothing that was charged is charged again.
    """
    folder = Path(target.rstrip("/"))
    work = folder.with_name(f"{folder.name}.candidates")
    if target == "-" or atomic_files.is_table_name(target):
        raise OutputError(f"{target} is no folder; give the name of a new folder, such as release/")
    for path in candidates:
        release_run.refuse_collisions(
            {"--output": folder, "the folder of candidates": work},
            {"data": data, "schema": schema, "ledger": ledger, "plan": path},
        )
    if not resume or not folder.exists():
        output.check_target(f"{folder}/", force=False)
    with (
        release_run.explain_resume(work),
        output.show_progress(quiet) as progress,
        release_run.show_notes(quiet),
    ):
        choice = dpsyn.choose(
            data,
            schema,
            candidates,
            rows=rows,
            seed=seed,
            ledger=ledger,
            folder=work,
            resume=resume,
            progress=progress,
            **options,
        )
        if is_release(folder):
            _require_same_release(folder, choice)
            _write_choice(folder, choice)
        else:  # under its name, the release never stands without what all of it cost
            with atomic_files.atomic_folder(folder) as temporary:
                choice.synopsis.write(f"{temporary}/", rows, seed=seed, progress=progress)
                _write_choice(temporary, choice)
    if not quiet:
        output.print_line(f"Wrote {folder}/: the chosen release; {CHOICE_TEXT_NAME} states what all of it cost.")
        output.print_line(f"Wrote {work}/: the synopsis of every candidate.\n")
        output.print_line(choice.text().rstrip("\n"))


def _write_choice(folder: Path, choice: Choice) -> None:
    """Write what was chosen, and what all of it cost, into a release folder."""
    atomic_files.write_text(folder / CHOICE_TEXT_NAME, choice.text())
    atomic_files.write_text(folder / CHOICE_JSON_NAME, output.format_json(choice.to_dict()) + "\n")


def _require_same_release(folder: Path, choice: Choice) -> None:
    """Refuse a folder with another release than the chosen one."""
    held, chosen = (
        [certificate.run for certificate in synopsis.certificates if certificate]
        for synopsis in (dpsyn.Synopsis.load(folder), choice.synopsis)
    )
    if held != chosen:
        raise OutputError(f"{folder} holds another release than the chosen one; give another folder")
