"""Candidates: recipes and plans among which a release is chosen, declared in a small file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from dpsyn.errors import DocumentError, UserError, quote_argument
from dpsyn.plan import Plan
from dpsyn.recipes import RECIPES, Planned, Recipe, find_recipe
from dpsyn.recipes.dpsyn import DPSyn
from dpsyn.schema import Schema, yaml_documents
from dpsyn.schema.files import read_text
from dpsyn.schema.yaml_documents import convert, read_each, refuse_unknown_fields

FORMAT = 1
"""The version of the file format."""

KEY = "dpsyn_candidates"
"""The first key of a file of candidates; its value is the format."""

MAX_CANDIDATES = 50
"""Each candidate is a release that is charged in full, so nobody wants more."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,60}")


class CandidateEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A candidate, as a file declares it.

    Attributes:
        name: its name, which becomes that of a file.
        recipe: the recipe; by default dpsyn, or planned if there is a plan.
        set: options of the recipe by their paths, such as synthesis: gum.
        plan: the path of a plan, beside the file of candidates.
    """

    name: str
    recipe: str | None = None
    set: dict[str, Any] = msgspec.field(default_factory=dict)
    plan: str | None = None

    def to_recipe(self, schema: Schema, folder: Path) -> Recipe:
        """The recipe with its options; refused if it does not fit the schema."""
        options = dict(self.set)
        name = self.recipe or (DPSyn.name if self.plan is None else Planned.name)
        if self.plan is not None:
            if name != Planned.name:
                raise UserError(f"a plan decides itself what to measure; leave out recipe: {name}")
            options["plan"] = Plan.load(folder / self.plan, schema)
        elif name == Planned.name:
            raise UserError("recipe planned measures what a plan names; give plan: FILE")
        recipe = find_recipe(name, options)
        recipe.check(schema, None)
        return recipe


Candidates = Mapping[str, Recipe]
"""Recipes by the names of the candidates."""


def load_candidates(paths: Iterable[str | Path], schema: Schema) -> dict[str, Recipe]:
    """The candidates of one or several files, in their order; an error names the file and the line."""
    found: dict[str, Recipe] = {}
    for path in paths:
        text, folder = read_text(path, error=DocumentError), Path(path).parent

        def parse(text: str, folder: Path = folder) -> dict[str, Recipe]:
            return yaml_documents.parse_document(text, lambda data: _read(data, schema, folder), DocumentError)

        for name, recipe in yaml_documents.load_document(path, text, parse, DocumentError).items():
            if name in found:
                raise UserError(f"{path}: the candidate {name} is in another file, too; give each a name of its own")
            found[name] = recipe
    return check_candidates(found, schema)


def check_candidates(candidates: Mapping[str, Recipe | str], schema: Schema) -> dict[str, Recipe]:
    """Candidates as recipes; refused unless there are several with names of files and recipes that fit the schema."""
    if not isinstance(candidates, Mapping):
        raise UserError(
            f"candidates is {quote_argument(candidates)}; give recipes by name, such as {{'a': 'dpsyn', 'b': DPSyn()}}"
        )
    if not 2 <= len(candidates) <= MAX_CANDIDATES:
        raise UserError(f"there are {len(candidates)} candidates; a choice is among 2 to {MAX_CANDIDATES}")
    found = {}
    for name, recipe in candidates.items():
        _check_name(name)
        if isinstance(recipe, str):
            recipe = find_recipe(recipe)
        if not isinstance(recipe, Recipe):
            raise UserError(f"candidate {name} is {quote_argument(recipe)}; give a recipe, or the name of one")
        recipe.check(schema, None)
        found[name] = recipe
    if len({name.lower() for name in found}) < len(found):
        raise UserError("two candidates have names that differ only in capital letters; their files would be the same")
    return found


def _read(document: Any, schema: Schema, folder: Path) -> dict[str, Recipe]:
    if not isinstance(document, dict) or KEY not in document:
        raise DocumentError(f"this is not a file of candidates; its first line should be {KEY}: {FORMAT}")
    if type(document[KEY]) is not int or document[KEY] != FORMAT:
        raise DocumentError(
            f"these candidates have format {quote_argument(document[KEY])}; this DPSyn reads format {FORMAT}", (KEY,)
        )
    refuse_unknown_fields(document, [KEY, "candidates"], ())
    entries = document.get("candidates")
    if not isinstance(entries, dict) or not entries:
        raise DocumentError(
            "candidates is a mapping from names to recipes, such as a: {recipe: dpsyn}", ("candidates",)
        )

    def read(name: str, entry: Any) -> tuple[str, Recipe]:
        path = ("candidates", name)
        if not isinstance(entry, dict):
            raise DocumentError(f"candidate {name} needs recipe: one of {', '.join(RECIPES)}, or plan: FILE", path)
        candidate = convert(entry, CandidateEntry, path, f"candidate {name}: ", name)
        try:
            _check_name(candidate.name)
            return candidate.name, candidate.to_recipe(schema, folder)
        except UserError as mistake:
            raise DocumentError(f"candidate {name}: {mistake}", path) from None

    return dict(read_each(read, entries.items()))


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UserError(
            f"the name of a candidate is {quote_argument(name)}; give letters and digits, as it becomes that of a file"
        )
