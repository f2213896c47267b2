"""The artefact of a release: noisy tables, what they cost, and rows drawn from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from dpsyn.accounting import Certificate
from dpsyn.errors import SourceError, UserError
from dpsyn.progress import Progress, silent
from dpsyn.records import Codec
from dpsyn.rules import require_kept
from dpsyn.schema import Schema, select_cells
from dpsyn.synopsis.drawing import draw_kept
from dpsyn.synopsis.frames import as_kind
from dpsyn.synopsis.modelling import fit_model
from dpsyn.synopsis.parts import Model, Release
from dpsyn.transforms import Recoding

if TYPE_CHECKING:
    import pyarrow as pa

    from dpsyn.synopsis.answering import Answer, Method
    from dpsyn.synopsis.closeness import Closeness

MOST_ROWS = 2**31 - 1
"""Rows that one table may have."""

Kind = Literal["arrow", "pandas", "polars"]


@dataclass(frozen=True, slots=True, eq=False)
class Synopsis:
    """Everything that was released about a table. Whatever is computed from it costs no privacy.

    Attributes:
        schema: what was public, with the values that were bought.
        releases: what was measured, by whom, and what it cost; several if a synopsis was extended.
        model: what rows are drawn from.
        kind: the kind of table that ``generate`` gives; that of the table it was measured from.
    """

    schema: Schema
    releases: tuple[Release, ...]
    model: Model
    kind: Kind = "arrow"

    def __repr__(self) -> str:
        names = ", ".join(self.model.recoding.names)
        return f"Synopsis(about {self.rows:,} rows; {len(self.releases)} releases; {names})"

    @property
    def certificates(self) -> tuple[Certificate | None, ...]:
        """What each release cost; None where numbers were imported, so that the guarantee is not verified here."""
        return tuple(release.certificate for release in self.releases)

    @property
    def rows(self) -> int:
        """The estimated number of rows of the table: how many rows are generated unless asked otherwise."""
        return round(self.model.total)

    def generate(
        self,
        rows: int | None = None,
        *,
        seed: int | None = None,
        where: Mapping[str, Any] | None = None,
        kind: Kind | None = None,
        progress: Progress = silent,
    ) -> Any:
        """Synthetic rows as a table of the schema's types.

        Args:
            rows: how many; by default the estimated number of rows of the private table.
            seed: makes the rows reproducible, whatever the number of threads. It has nothing to do with the noise.
            where: conditions that every row meets, such as ``{"sex": "F", "age": (30, 39), "job": ["nurse", "cook"]}``:
                a value, a pair that is a range, or a list. Rows are drawn under the conditions and none are thrown
                away, so a rare condition takes no longer than a common one.
            kind: ``arrow``, ``pandas`` or ``polars``; by default the kind of table that was measured.
            progress: is told how far it is.
        """
        return as_kind(self.generate_arrow(rows, seed=seed, where=where, progress=progress), kind or self.kind)

    def generate_arrow(
        self,
        rows: int | None = None,
        *,
        seed: int | None = None,
        where: Mapping[str, Any] | None = None,
        progress: Progress = silent,
    ) -> pa.Table:
        """Synthetic rows as an Arrow table; the rest is as in ``generate``."""
        wanted = self.rows if rows is None else rows
        if not isinstance(wanted, int | np.integer) or isinstance(wanted, bool):
            raise UserError(f"{rows!r} rows were asked for; give a whole number")
        if not 0 <= wanted <= MOST_ROWS:
            raise UserError(f"{wanted:,} rows were asked for; give a number from 0 to {MOST_ROWS:,}")
        if seed is not None and seed < 0:
            raise UserError(f"the seed is {seed}; give a whole number from 0")
        allowed = select_cells(self.schema, where or {})
        parts, codec = np.random.SeedSequence(seed).spawn(2), Codec(self.schema)
        fine_seed, rng = int(parts[0].generate_state(1, np.uint64)[0]), np.random.default_rng(parts[1])
        fine, steps = draw_kept(
            self.schema, self.model, int(wanted), allowed, seed=fine_seed, rng=rng, progress=progress
        )
        progress("writing values", 0.0)
        table = codec.decode(fine, rng, steps=steps)
        require_kept(self.schema, table)
        return table

    def marginal(
        self,
        *names: str,
        where: Mapping[str, object] | None = None,
        cells: bool = False,
        method: Method = "maximum entropy",
    ) -> Answer:
        """How many rows have each combination of values of some attributes, with standard errors; costs no privacy.

        Args:
            names: the attributes, one axis each.
            where: conditions, by attribute: a value, a text such as ``30..39`` or ``missing``, a pair ``(30, 39)``, or
                a list of values. Only rows that meet all of them are counted.
            cells: list numbers and dates by their finest cells, not by their bins.
            method: how to reconstruct what no released table holds; the others are for comparison.
        """
        from dpsyn.synopsis.answering import ask

        return ask(self, names, where or {}, cells=cells, method=method)

    def count(self, **where: object) -> Answer:
        """How many rows meet all conditions, given as in ``marginal``: one number with its standard error."""
        from dpsyn.synopsis.answering import ask

        return ask(self, (), where)

    def replicates(
        self,
        number: int,
        rows: int | None = None,
        *,
        seed: int | None = None,
        where: Mapping[str, Any] | None = None,
        kind: Kind | None = None,
        progress: Progress = silent,
    ) -> Iterator[Any]:
        """Several tables of synthetic rows, drawn independently of each other.

        What an analysis gives on each of them shows how it varies by sampling rows. It does not show how it varies by
        the privacy noise, which is the same in all of them.
        """
        if number < 1:
            raise UserError(f"{number} replicates were asked for; give 1 or more")
        for own in np.random.SeedSequence(seed).spawn(number):
            own_seed = int(own.generate_state(1, np.uint64)[0])
            yield self.generate(rows, seed=own_seed, where=where, kind=kind, progress=progress)

    def compare(self, table: pa.Table) -> Closeness:
        """How close synthetic rows, as an Arrow table, are to what was released; costs nothing."""
        from dpsyn.synopsis.comparing import compare_rows

        found = compare_rows(self, table)
        if not found.rows:
            raise SourceError("the synthetic table has no rows; there is nothing to compare")
        return found

    def of_kind(self, kind: Kind) -> Synopsis:
        """The same synopsis, generating another kind of table."""
        return replace(self, kind=kind)

    @classmethod
    def from_marginals(
        cls,
        schema: Schema,
        marginals: Mapping[Any, ArrayLike],
        *,
        deviation: float | Mapping[Any, float],
        source: str,
    ) -> Synopsis:
        """A synopsis of noisy marginals that were measured in another system; its guarantee is not verified here.

        Args:
            schema: what is public about the table.
            marginals: noisy counts by attribute or tuple of attributes, one axis each, in the order of the bins; those
                of a single attribute may be over its cells instead. Every attribute must be in one of them.
            deviation: the standard deviation of the noise in a cell: one number, or one for each marginal.
            source: who measured them and how, for whoever reads the synopsis.
        """
        from dpsyn.synopsis import imports

        release = imports.from_marginals(schema, marginals, deviation=deviation, source=source)
        return cls(schema, (release,), fit_model(schema, Recoding.coarse(Codec(schema)), [release]))

    def save(self, path: str | Path) -> None:
        """Write the synopsis as one file, by convention called ``.dpsyn``."""
        from dpsyn.synopsis import files

        files.save(self, path)

    @classmethod
    def load(cls, path: str | Path, *, recompute: bool = False) -> Synopsis:
        """Read a synopsis file; one that is damaged or something else is a SynopsisError.

        ``recompute`` proves the cost of every release anew by privacy loss distributions, which takes a second each.
        """
        from dpsyn.synopsis import files

        return files.load(path, recompute=recompute)

    def write_release(self, folder: str | Path, table: pa.Table) -> None:
        """Write a new folder with a synthetic table, this synopsis, its certificates and a description of columns."""
        from dpsyn.synopsis import folder as folders

        folders.write_release(folder, table, self)
