"""The embedded example: a made-up table of people and its public schema."""

from __future__ import annotations

from importlib import resources

from dpsyn.demo.table import people
from dpsyn.schema import Schema

__all__ = ["people", "people_schema"]


def people_schema() -> Schema:
    """The public schema of the table that ``people`` makes."""
    return Schema.from_yaml(resources.files(__package__).joinpath("schema.yaml").read_text("utf-8"))
