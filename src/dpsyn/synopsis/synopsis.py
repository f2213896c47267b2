"""The artefact of a release: noisy tables, what they cost, and rows drawn from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from dpsyn.accounting import Certificate
from dpsyn.errors import SourceError, UserError
from dpsyn.progress import Progress, silent
from dpsyn.records import Codec
from dpsyn.schema import Schema, select_cells, where_in_words
from dpsyn.synopsis.drawing import Drawing
from dpsyn.synopsis.frames import as_kind
from dpsyn.synopsis.modelling import fit_model
from dpsyn.synopsis.parts import Model, Release
from dpsyn.transforms import Recoding

if TYPE_CHECKING:
    from dpsyn.synopsis.answering import Answer, Method
    from dpsyn.synopsis.closeness import Closeness

MOST_ROWS = 2**31 - 1
"""Rows that one table in memory may have."""

MOST_DRAWN = 10**12
"""Rows that may be drawn at all; more are asked for by mistake."""

Where = Mapping[str, Any]
"""Conditions by attribute."""

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
        from dpsyn.synopsis.sharding import batches

        drawing = self.drawing(rows, seed=seed, where=where)
        if drawing.rows > MOST_ROWS:
            raise UserError(f"{drawing.rows:,} rows do not fit into one table; write them to a file or a folder")
        found = list(batches(drawing, progress))
        progress("writing values", 0.0)
        return pa.concat_tables(found).combine_chunks()

    def drawing(self, rows: int | None = None, *, seed: int | None = None, where: Where | None = None) -> Drawing:
        """Synthetic rows that are yet to be drawn, in chunks; the arguments are as in ``generate``."""
        wanted = self.rows if rows is None else rows
        if not isinstance(wanted, int | np.integer) or isinstance(wanted, bool):
            raise UserError(f"{rows!r} rows were asked for; give a whole number")
        if not 0 <= wanted <= MOST_DRAWN:
            raise UserError(f"{wanted:,} rows were asked for; give a number from 0 to {MOST_DRAWN:,}")
        if seed is not None and seed < 0:
            raise UserError(f"the seed is {seed}; give a whole number from 0")
        allowed = select_cells(self.schema, where or {})
        own = int(np.random.SeedSequence().generate_state(1, np.uint64)[0]) if seed is None else int(seed)
        return Drawing(self.schema, self.model, int(wanted), allowed, seed=own)

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
        if not isinstance(number, int | np.integer) or isinstance(number, bool) or number < 1:
            raise UserError(f"{number!r} replicates were asked for; give a whole number from 1")
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

    def write(
        self,
        target: str | Path,
        rows: int | None = None,
        *,
        seed: int | None = None,
        where: Where | None = None,
        workers: Literal["threads", "processes"] = "threads",
        progress: Progress = silent,
    ) -> None:
        """Draw rows straight into a file, or into a release folder if the name ends in a slash or a folder is there.

        Memory stays the same whatever the number of rows, which are those of ``generate`` with the same seed. A folder
        of many rows holds them as Parquet files of a million rows each, drawn in parallel.

        Args:
            target: the file, by its suffix CSV, Parquet or Arrow; ``-`` is standard output; or the folder.
            rows: how many; by default the estimated number of rows of the private table.
            seed: makes the rows reproducible, whatever the number of workers.
            where: conditions as in ``generate``.
            workers: who draws the files of a folder.
            progress: is told how far it is.
        """
        from dpsyn.synopsis import sharding, writing

        drawing = self.drawing(rows, seed=seed, where=where)
        if not writing.is_folder(target):
            writing.write_file(target, drawing, progress)
        elif sharding.parts_of(drawing) > 1:
            writing.write_parted(target, self, drawing, where or {}, workers, progress)
        else:
            writing.write_whole(target, self, drawing, where or {}, progress)

    def spark_frame(
        self, session: Any, rows: int | None = None, *, seed: int | None = None, where: Where | None = None
    ) -> Any:
        """Synthetic rows as a Spark DataFrame, drawn by its tasks; ``session`` is a SparkSession.

        ``frame.write.parquet(address)`` writes them wherever Spark can. The rows are those of ``write`` with the same
        seed.
        """
        from dpsyn.synopsis.sharding import spark_frame

        return spark_frame(self, session, rows, seed=seed, where=where)

    def write_release(self, folder: str | Path, table: pa.Table, *, where: Where | None = None) -> None:
        """Write a new folder with a synthetic table, this synopsis, its certificates and a description of columns.

        ``where`` are the conditions that rows were drawn under; the folder then tells them.
        """
        from dpsyn.synopsis import folder as folders

        folders.write_release(folder, table, self, conditions=where_in_words(self.schema, where or {}))
