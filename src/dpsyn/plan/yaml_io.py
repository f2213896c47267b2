"""Plan files: YAML ⇄ Plan. A file has the fields of a Plan, with the names of groups as keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import msgspec

from dpsyn.errors import PlanError, quote_argument
from dpsyn.plan.entries import AnyTransform, AttributeGroup, MarginalsEntry, Transform
from dpsyn.plan.plan import Plan
from dpsyn.schema import Schema, yaml_documents, yaml_io
from dpsyn.schema.files import read_text
from dpsyn.schema.yaml_documents import convert, read_each, refuse_unknown_fields, require_tag

FORMAT = 1
"""The version of the file format."""

KEY = "dpsyn_plan"
"""The first key of a plan file; its value is the format."""

TRANSFORMS: dict[str, type[Transform]] = {str(t.__struct_config__.tag): t for t in get_args(AnyTransform)}

_PLAIN: dict[str, Any] = {
    "one_way": float | str,
    "selection": bool | float | str,
    "threshold": float,
    "weights": dict[str, float],
    "synthesis": str | dict[str, Any],
    "optional": list[str],
    "description": str,
}


def load_plan(path: str | Path, schema: Schema | None = None) -> Plan:
    """Read a plan file and check that it fits a schema; a PlanError names the file and the line."""
    text = read_text(path, error=PlanError)
    return yaml_documents.load_document(path, text, lambda text: parse_plan(text, schema), PlanError)


def parse_plan(text: str, schema: Schema | None = None) -> Plan:
    """Read a plan from YAML text and check that it fits a schema; a PlanError names the line."""

    def read(document: Any) -> Plan:
        plan = _read_plan(document)
        if schema is not None:
            plan.check(schema)
        return plan

    return yaml_documents.parse_document(text, read, PlanError)


def format_plan(plan: Plan) -> str:
    """YAML text that reads back as the same plan."""
    fields = msgspec.to_builtins(plan)
    document: dict[str, Any] = {KEY: FORMAT}
    order = ("description", "optional", "threshold", "one_way", "transforms", "groups", "marginals", "selection")
    for key in (*order, "weights", "synthesis"):
        if key in fields:
            document[key] = fields[key]
    if "groups" in document:
        document["groups"] = {group.pop("name"): group for group in document["groups"]}
    return yaml_io.write_yaml(document)


def _read_plan(document: Any) -> Plan:
    if not isinstance(document, dict) or KEY not in document:
        raise PlanError(f"this is not a DPSyn plan; its first line should be {KEY}: {FORMAT}")
    if type(document[KEY]) is not int or document[KEY] != FORMAT:
        raise PlanError(
            f"this plan has format {quote_argument(document[KEY])}; this DPSyn reads format {FORMAT}", (KEY,)
        )
    refuse_unknown_fields(document, [KEY, *Plan.__struct_fields__], ())
    given = {key: value for key, value in document.items() if value is not None}
    plain = {key: convert(given[key], kind, (key,), f"{key}: ") for key, kind in _PLAIN.items() if key in given}
    groups = given.get("groups", {})
    if not isinstance(groups, dict):
        raise PlanError("groups is a mapping from names to {attributes: [...], join: ...}", ("groups",))
    return Plan(
        transforms=read_each(_read_transform, enumerate(_read_list(given, "transforms"))),
        groups=read_each(_read_group, groups.items()),
        marginals=read_each(_read_marginals, enumerate(_read_list(given, "marginals"))),
        **plain,
    )


def _read_list(given: dict[str, Any], key: str) -> list[Any]:
    entries = given.get(key, [])
    if not isinstance(entries, list):
        raise PlanError(f"{key} is a list; begin each entry with a dash", (key,))
    return entries


def _read_transform(index: int, entry: Any) -> AnyTransform:
    path = ("transforms", index)
    fields = require_tag(entry, "transform", TRANSFORMS, path, "a transform")
    what = f"{fields['transform']} (transform {index + 1}): "
    return convert(fields, TRANSFORMS[fields["transform"]], path, what)  # type: ignore[return-value]


def _read_group(name: str, entry: Any) -> AttributeGroup:
    fields = {"attributes": entry} if isinstance(entry, list) else entry
    if not isinstance(fields, dict):
        raise PlanError(f"the group {name!r} needs its attributes: [...]", ("groups", name))
    return convert(fields, AttributeGroup, ("groups", name), f"group {name!r}: ", name)


def _read_marginals(index: int, entry: Any) -> MarginalsEntry:
    fields = {"of": entry} if isinstance(entry, list) else entry
    if not isinstance(fields, dict):
        raise PlanError(f"marginal {index + 1} needs of: [...] or pairs: [...]", ("marginals", index))
    return convert(fields, MarginalsEntry, ("marginals", index), f"marginal {index + 1}: ")
