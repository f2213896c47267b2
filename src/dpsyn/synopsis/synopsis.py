"""The released artefact as one value."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dpsyn.schema import Schema
from dpsyn.synopsis.parts import Model, Release


@dataclass(frozen=True, slots=True, eq=False)
class Synopsis:
    """Everything that was released about a table, and the model that rows are drawn from.

    Attributes:
        schema: what is public about the table, with what was bought.
        releases: every measurement; several if a synopsis was extended.
        model: what rows are drawn from.
        kind: which kind of frame rows come as; it is not saved.
    """

    schema: Schema
    releases: tuple[Release, ...]
    model: Model
    kind: str = "arrow"

    def save(self, path: str | Path) -> None:
        """Write a synopsis file, by convention called ``.dpsyn``."""
        from dpsyn.synopsis import files

        files.save(self, path)

    @classmethod
    def load(cls, path: str | Path) -> Synopsis:
        """Read a synopsis file; everything in it is checked."""
        from dpsyn.synopsis import files

        return files.load(path)
