"""Schemas from metadata that people already have: domain files, SDV metadata, Frictionless table schemas."""

from dpsyn.schema.importers.metadata import import_schema

__all__ = ["import_schema"]
