"""Schemas from existing metadata: domain files, SDV metadata, Frictionless table schemas."""

from dpsyn.schema.importers.metadata import import_schema

__all__ = ["import_schema"]
