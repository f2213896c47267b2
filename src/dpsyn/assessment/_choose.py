"""``choose``: several releases, each charged in full, and a private choice among them.

**Why every candidate is charged in full.** A choice whose cost does not grow with the number of candidates (Liu and
Talwar 2019; Papernot and Steinke 2022) holds only if nothing of the losers is ever seen: not their numbers, not their
hashes, not how many were tried. Here each candidate is an ordinary release: its answers are stored before they are
used, so that a crash loses nothing, its measurements and their hashes are in the ledger, and its synopsis is kept and
may be published. So each of them costs its own ε, and the choice costs ``choice_epsilon`` on top, however many there
are.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from dpsyn import notebook
from dpsyn.accounting import Budget, Certificate, Ledger, check_large_epsilon, combine_budgets, default_delta
from dpsyn.accounting.exact_numbers import format_short
from dpsyn.assessment.candidates import check_candidates, load_candidates
from dpsyn.assessment.evaluation_plan import MAX_CELLS, split_by_size
from dpsyn.assessment.synthetic_table import read_synthetic_tables
from dpsyn.encoding import Codec, Recoding
from dpsyn.errors import LedgerError, UserError, quote_argument
from dpsyn.marginals import Clique
from dpsyn.options import check_row_count, check_seed, suggest_arguments
from dpsyn.private import Protect, open_private
from dpsyn.progress import Progress, ignore_progress
from dpsyn.recipes import Recipe, measure
from dpsyn.recipes._measure import choose_noise
from dpsyn.schema import Schema, SchemaDraft
from dpsyn.synopsis import Synopsis

RECIPE_NAME = "choice"
"""What the ledger and the certificate call the run of a choice."""

CHOICE_FORMAT = 1
"""The version of the JSON form."""

DEFAULT_CHOICE_EPSILON = 0.1

_JOURNAL = "choice.journal"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Choice:
    """The chosen release and what all of it cost: what ``dpsyn.choose`` returns.

    Attributes:
        name: the chosen candidate.
        synopsis: its release.
        table: its synthetic rows, which were compared.
        candidates: the releases of all candidates, by name; all of them were charged and may be published.
        certificate: the certificate of the choice alone; each synopsis has its own.
        epsilon: the ε of all releases and the choice together.
        delta: the δ of all of them together.
    """

    name: str
    synopsis: Synopsis
    table: pa.Table
    candidates: Mapping[str, Synopsis]
    certificate: Certificate
    epsilon: float
    delta: float

    def __repr__(self) -> str:
        return f"<Choice of {self.name} among {', '.join(self.candidates)}: ε = {self.epsilon:.6g} in all>"

    @property
    def certificates(self) -> dict[str, Certificate]:
        """The certificate of every candidate."""
        found = {name: synopsis.certificates[-1] for name, synopsis in self.candidates.items()}
        return {name: certificate for name, certificate in found.items() if certificate is not None}

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, with every certificate."""
        return {
            "format": CHOICE_FORMAT,
            "chosen": self.name,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "choice": self.certificate.to_data(),
            "candidates": {name: each.to_data() for name, each in self.certificates.items()},
        }

    def text(self) -> str:
        """What was chosen and what it cost, in words."""
        parts = [
            f"Chosen: {self.name}, among {', '.join(self.candidates)}.",
            "",
            f"Guarantee of all of it: ε = {_round_up(self.epsilon)}, δ = {_round_up(self.delta)}, against "
            f"{self.certificate.privacy_unit.description}.",
            f"The {len(self.candidates)} candidates are releases of their own, each charged in full: "
            + "; ".join(f"{name} ({certificate.guarantee})" for name, certificate in self.certificates.items())
            + ".",
            f"The choice itself: {self.certificate.guarantee}, however many candidates there are.",
            "Whoever publishes the chosen release states the guarantee of all of it, because the choice depends on "
            "every candidate.",
        ]
        if not self.certificate.uses_real_noise:
            parts.insert(0, "NOT PRIVATE: the noise came from a test.\n")
        return "\n".join(parts) + "\n"


@suggest_arguments
@notebook.show_progress
def choose(
    data: Any,
    schema: Schema | SchemaDraft | str | Path,
    candidates: Mapping[str, Recipe | str] | str | Path | Sequence[str | Path],
    *,
    epsilon: float,
    choice_epsilon: float = DEFAULT_CHOICE_EPSILON,
    delta: float | None = None,
    allow_large_epsilon: bool = False,
    rows: int | None = None,
    seed: int = 0,
    ledger: Ledger | str | Path | None = None,
    dataset: str | None = None,
    query: str | None = None,
    protect: Protect = "base rows",
    engine: Literal["auto", "memory", "stream", "spark"] = "auto",
    folder: str | Path | None = None,
    resume: bool = False,
    progress: Progress = ignore_progress,
) -> Choice:
    """Release a table by several candidates, and choose among them within the guarantee.

    The candidate whose synthetic rows have the smallest mean distance of two-way marginals from the private rows is the
    most likely choice: one that is better by 46 rows (2·ln(10)/0.1, times the rows per privacy unit) is chosen at odds
    of 10 to 1 if ``choice_epsilon`` is 0.1.

    >>> from dpsyn.demo import people, people_schema
    >>> both = {"pairs": "dpsyn", "columns": "independent"}
    >>> choice = choose(people(rows=2_000), people_schema(), both, epsilon=2.0, choice_epsilon=1.0)
    >>> choice.name, round(choice.epsilon, 1) <= 5.0
    ('pairs', True)

    Privacy: every candidate is a release of (ε, δ), charged in full, and the choice is the exponential mechanism with
    pure ``choice_epsilon``. ``Choice.epsilon`` is the guarantee of all of it together. The candidates must be declared
    without looking at the rows.

    Args:
        data: the private table, as for ``measure``.
        schema: what is public about it, or the path of its file.
        candidates: recipes by name, or the path of a file of candidates, or several paths.
        epsilon: the ε of each candidate.
        choice_epsilon: the ε of the choice.
        delta: the δ of each candidate; by default min(1e-9, 1/expected_size²).
        allow_large_epsilon: allow an ε above 20, which is no meaningful guarantee.
        rows: the number of synthetic rows of each candidate; by default as many as the private table has, by its
            noisy counts.
        seed: of the synthetic rows: the same seed samples the same rows from a synopsis.
        ledger: where all runs are recorded; without one, they are accounted alone.
        dataset: its name in the ledger, if not that of the schema.
        query: as for ``measure``.
        protect: as for ``measure``.
        engine: as for ``measure``.
        folder: where the synopsis of each candidate is kept as soon as it is released, journals until then, and the
            journal of the choice.
        resume: continue a choice in its folder: nothing that was charged is charged again.
        progress: called with what is going on.
    """
    schema = Schema.coerce(schema).with_dataset(dataset)
    schema.require_public()
    check_seed(seed)
    if rows is not None:
        check_row_count(rows)
    recipes = _read_candidates(candidates, schema)
    check_large_epsilon(epsilon, allowed=allow_large_epsilon)
    check_large_epsilon(choice_epsilon, allowed=allow_large_epsilon)
    book = Ledger(Path(ledger)) if isinstance(ledger, str | Path) else ledger
    whole_delta = default_delta(schema.expected_size) if delta is None else delta
    budgets = plan_budgets(schema, recipes, epsilon, choice_epsilon, whole_delta, book is not None)
    total = combine_budgets(budgets)
    place = None if folder is None else Path(folder)
    if book is not None and not resume:
        book.check_room(schema.dataset, total)
    _prepare_folder(place, recipes, resume)
    source = {"query": query, "protect": protect, "engine": engine}
    synopses = {}
    for position, ((name, recipe), budget) in enumerate(zip(recipes.items(), budgets[:-1], strict=True), start=1):
        progress(f"candidate {position} of {len(recipes)}: {name}", 0.0)
        synopses[name] = _release_candidate(
            place,
            resume,
            name,
            budget,
            data,
            schema,
            epsilon,
            delta=delta,
            allow_large_epsilon=allow_large_epsilon,
            recipe=recipe,
            ledger=book,
            **source,
        )
    progress("choosing", 0.0)
    tables = {name: synopsis.generate_arrow(rows, seed=seed) for name, synopsis in synopses.items()}
    certificate, position = _choose_nearest(place, resume, data, schema, tables, synopses, budgets[-1], book, source)
    chosen = list(synopses)[position]
    return Choice(
        name=chosen,
        synopsis=synopses[chosen],
        table=tables[chosen],
        candidates=synopses,
        certificate=certificate,
        epsilon=total.worst_epsilon,
        delta=float(total.delta),
    )


def plan_budgets(
    schema: Schema, recipes: Mapping[str, Recipe], epsilon: float, choice_epsilon: float, delta: float, in_ledger: bool
) -> list[Budget]:
    """The budget of each candidate, and last that of the choice; all are fixed before the first row is read."""
    budgets = []
    for recipe in recipes.values():
        noise = choose_noise(recipe, schema, epsilon, delta, in_ledger=in_ledger)
        budgets.append(recipe.plan_budget(schema, epsilon, 0 if noise.kind == "laplace" else delta))
    return [*budgets, Budget.for_pure_steps(choice_epsilon, [1])]


def synopsis_path(folder: Path, name: str) -> Path:
    """Where the synopsis of a candidate is kept."""
    return folder / f"{name}.dpsyn"


def _read_candidates(candidates: Any, schema: Schema) -> dict[str, Recipe]:
    if isinstance(candidates, str | Path):
        candidates = [candidates]
    if isinstance(candidates, Mapping):
        return check_candidates(candidates, schema)
    if not isinstance(candidates, Sequence) or not all(isinstance(path, str | Path) for path in candidates):
        raise UserError(f"candidates is {quote_argument(candidates)}; give recipes by name, or paths of files")
    return load_candidates(candidates, schema)


def _prepare_folder(folder: Path | None, recipes: Mapping[str, Recipe], resume: bool) -> None:
    """Refuse a folder with results of another choice, and a choice that cannot be resumed."""
    if folder is None:
        if resume:
            raise UserError("a choice is resumed from its folder; give the folder")
        return
    used = folder.is_dir() and any(folder.iterdir())
    if used and not resume:
        raise UserError(f"{folder} is not empty; resume the choice that began there, or give another folder")
    if resume and not used:
        raise UserError(f"there is no choice to resume in {folder}")
    known = {*(synopsis_path(folder, name) for name in recipes), *(folder / f"{n}.journal" for n in recipes)}
    if unknown := [path for path in (folder.iterdir() if used else ()) if path not in known | {folder / _JOURNAL}]:
        raise UserError(f"{unknown[0]} belongs to no candidate; resume with the candidates that the choice began with")
    folder.mkdir(parents=True, exist_ok=True)


def _release_candidate(
    folder: Path | None,
    resume: bool,
    name: str,
    budget: Budget,
    data: Any,
    schema: Schema,
    epsilon: float,
    **options: Any,
) -> Synopsis:
    """The release of a candidate: made now, continued from its journal, or read back from its synopsis."""
    if folder is None:
        return measure(data, schema, epsilon, **options)
    path, journal = synopsis_path(folder, name), folder / f"{name}.journal"
    if resume and path.exists():
        synopsis = Synopsis.load(path)
        _require_same_release(synopsis, name, schema, budget, **options)
        journal.unlink(missing_ok=True)
        return synopsis
    synopsis = measure(data, schema, epsilon, journal=journal, resume=resume and journal.exists(), **options)
    synopsis.save(path)
    journal.unlink(missing_ok=True)
    return synopsis


def _require_same_release(
    synopsis: Synopsis,
    name: str,
    schema: Schema,
    budget: Budget,
    *,
    recipe: Recipe,
    ledger: Ledger | None,
    **_: Any,
) -> None:
    """Refuse to continue with a release that was made by other terms than those that are given now.

    Privacy: what is stated of all of it follows from these terms, so every candidate must have been released by them.
    """
    certificate = synopsis.certificates[-1]
    expected = json.loads(json.dumps(recipe.to_data()))
    recorded = certificate.recipe if certificate else {}
    same = all(recorded.get(key) == value for key, value in expected.items())
    if certificate is None or not same or certificate.dataset != schema.dataset:
        raise UserError(f"the candidate {name} was released by another recipe or of another dataset; undo the change")
    own, unit = certificate.account.budget, certificate.privacy_unit
    planned = schema.privacy_unit
    declared = (schema.neighbors, planned.id if planned else "", planned.max_rows if planned else 1)
    differences = {
        "another ledger": not _is_recorded(certificate, ledger),
        f"another ε than {float(budget.epsilon):g}": own.epsilon != budget.epsilon,
        f"another δ than {format_short(budget.delta)}": own.delta != budget.delta,
        "another budget": own != budget,
        "another privacy unit": (unit.neighbors, unit.id, unit.max_rows) != declared,
    }
    if found := next((what for what, differs in differences.items() if differs), ""):
        raise UserError(f"the candidate {name} was released with {found}; give the same as before")


def _refuse_second_choice(ledger: Ledger, candidates: Set[str]) -> None:
    """Refuse to choose among releases again if the journal of the first choice is gone.

    Privacy: the second one would be charged, too, but what is stated of all of it has one choice.
    """
    for run in (run for dataset in ledger.datasets() for run in dataset.runs if run.recipe.get("name") == RECIPE_NAME):
        earlier = {candidate["run"] for candidate in run.recipe["candidates"]}
        if earlier & candidates and (run.measurements or not run.closed):
            raise LedgerError(
                f"the ledger {ledger.path} has a choice among these candidates already, run {run.run}, and its journal "
                f"{_JOURNAL} is missing; restore it from a backup, or begin again in another folder"
            )


def _require_same_table(released: Certificate | None, name: str, choice: Certificate) -> None:
    """Refuse a candidate that was released by another query, or for another privacy unit, than the choice is made."""
    if released is None or (released.query, released.privacy_unit) != (choice.query, choice.privacy_unit):
        raise UserError(f"the candidate {name} was released by another query; give the same as before")


def _is_recorded(certificate: Certificate, ledger: Ledger | None) -> bool:
    """Whether a release is recorded where the others will be: in the ledger, or nowhere."""
    if ledger is None:
        return certificate.ledger_head is None
    return any(run.run == certificate.run for dataset in ledger.datasets() for run in dataset.runs)


def _choose_nearest(
    folder: Path | None,
    resume: bool,
    data: Any,
    schema: Schema,
    tables: Mapping[str, pa.Table],
    synopses: Mapping[str, Synopsis],
    budget: Budget,
    ledger: Ledger | None,
    source: dict[str, Any],
) -> tuple[Certificate, int]:
    """The certificate of the choice, and the position of the chosen candidate."""
    schema, read = read_synthetic_tables(list(tables.values()), schema)
    recoding = Recoding.coarse(Codec(schema))
    cliques = _compared_cliques(recoding, len(read))
    runs = {name: certificate.run if (certificate := each.certificates[-1]) else "" for name, each in synopses.items()}
    recipe = {
        "name": RECIPE_NAME,
        "candidates": [
            {"name": name, "run": runs[name], "synthetic_hash": table.digest}
            for name, table in zip(tables, read, strict=True)
        ],
    }
    journal = None if folder is None else folder / _JOURNAL
    if ledger is not None and not (journal is not None and journal.exists()):
        _refuse_second_choice(ledger, set(runs.values()))
    with open_private(
        data,
        schema,
        budget,
        ledger,
        **source,
        journal=journal,
        resume=resume and journal is not None and journal.exists(),
        recipe=recipe,
        declared_public=(f"the synthetic rows of {len(read)} candidates, which are released, too",),
    ) as private:
        for name, synopsis in synopses.items():
            _require_same_table(synopsis.certificates[-1], name, private.certificate())
        counts = [table.count(cliques, recoding) for table in read]
        position = private.recode(recoding).choose_nearest(cliques, counts, budget.pure_epsilons[0])
        private.bind_contents(hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest())
    return private.certificate(), position


def _compared_cliques(recoding: Recoding, tables: int) -> list[Clique]:
    """All pairs whose marginals are not too large; single attributes if there are none."""
    sizes = dict(zip(recoding.names, recoding.sizes, strict=True))
    pairs, _ = split_by_size(list(combinations(recoding.names, 2)), sizes)
    cells = sum(sizes[first] * sizes[second] for first, second in pairs)
    if cells * tables > MAX_CELLS:
        raise UserError(
            f"the two-way marginals of all candidates have more than {MAX_CELLS:,} cells together; declare fewer "
            "values or bins, or fewer candidates"
        )
    return pairs or [(name,) for name in recoding.names]


def _round_up(number: float) -> str:
    """A number as text with six digits, not less than it is."""
    text = format_short(number)
    return text if float(text) >= number else format_short(number * (1 + 1e-5))
