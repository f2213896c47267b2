"""The built-in example: an invented table of people and its public schema."""

from __future__ import annotations

from importlib import resources

from dpsyn.demo.people_table import people
from dpsyn.schema import Schema

__all__ = ["people", "people_schema", "people_schema_text"]


def people_schema_text() -> str:
    """The public schema of the table of ``people``, as the text of a schema file with comments."""
    return resources.files(__package__).joinpath("schema.yaml").read_text("utf-8")


def people_schema() -> Schema:
    """The public schema of the table of ``people``."""
    return Schema.from_yaml(people_schema_text())
