"""Public tables: rows that may be read, counted and shown, because they are public anyway."""

from dpsyn.public.public_table import PublicTable, open_public, refuse_private_table

__all__ = ["PublicTable", "open_public", "refuse_private_table"]
