"""Public tables: rows that may be read, counted and shown, because they are public anyway."""

from dpsyn.public.public_table import PublicTable, open_public

__all__ = ["PublicTable", "open_public"]
