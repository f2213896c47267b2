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
from dpsyn.encoding import Codec, Recoding
from dpsyn.encoding.dataframes import convert_table
from dpsyn.errors import SourceError, UserError
from dpsyn.inference.fit import fit_model
from dpsyn.inference.measurements import Model, Release
from dpsyn.progress import Progress, ignore_progress
from dpsyn.sampling.sampler import RowSampler
from dpsyn.schema import Schema, format_conditions, select_cells

if TYPE_CHECKING:
    from dpsyn.query import Answer, ReconstructionMethod
    from dpsyn.synopsis.comparison import ReleaseComparison

MAX_ARROW_ROWS = 2**31 - 1
"""Rows that one table in memory may have."""

MAX_SAMPLED_ROWS = 10**12
"""Rows that may be drawn at all; more are asked for by mistake."""

AttributeConditions = Mapping[str, Any]
"""Conditions by attribute."""

OutputFormat = Literal["arrow", "pandas", "polars"]


@dataclass(frozen=True, slots=True, eq=False)
class Synopsis:
    """Everything that was released about a table. Whatever is computed from it costs no privacy.

    Attributes:
        schema: what was public, with the values that were bought.
        releases: what was measured, by whom, and what it cost; several if a synopsis was extended.
        model: what rows are drawn from.
        output_format: the kind of table that ``generate`` gives; that of the table it was measured from.
    """

    schema: Schema
    releases: tuple[Release, ...]
    model: Model
    output_format: OutputFormat = "arrow"

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
        output_format: OutputFormat | None = None,
        progress: Progress = ignore_progress,
    ) -> Any:
        """Synthetic rows as a table of the schema's types.

        Args:
            rows: how many; by default the estimated number of rows of the private table.
            seed: makes the rows reproducible, whatever the number of threads. It has nothing to do with the noise.
            where: conditions that every row meets, such as ``{"sex": "F", "age": (30, 39), "job": ["nurse", "cook"]}``:
                a value, a pair that is a range, or a list. Rows are drawn under the conditions and none are thrown
                away, so a rare condition takes no longer than a common one.
            output_format: ``arrow``, ``pandas`` or ``polars``; by default the kind of table that was measured.
            progress: is told how far it is.
        """
        return convert_table(
            self.generate_arrow(rows, seed=seed, where=where, progress=progress), output_format or self.output_format
        )

    def generate_arrow(
        self,
        rows: int | None = None,
        *,
        seed: int | None = None,
        where: Mapping[str, Any] | None = None,
        progress: Progress = ignore_progress,
    ) -> pa.Table:
        """Synthetic rows as an Arrow table; the rest is as in ``generate``."""
        from dpsyn.sampling.parallel import sample_batches

        drawing = self.sampler(rows, seed=seed, where=where)
        if drawing.rows > MAX_ARROW_ROWS:
            raise UserError(f"{drawing.rows:,} rows do not fit into one table; write them to a file or a folder")
        found = list(sample_batches(drawing, progress))
        progress("writing values", 0.0)
        return pa.concat_tables(found).combine_chunks()

    def sampler(
        self, rows: int | None = None, *, seed: int | None = None, where: AttributeConditions | None = None
    ) -> RowSampler:
        """Synthetic rows that are yet to be drawn, in chunks; the arguments are as in ``generate``."""
        wanted = self.rows if rows is None else rows
        if not isinstance(wanted, int | np.integer) or isinstance(wanted, bool):
            raise UserError(f"{rows!r} rows were asked for; give a whole number")
        if not 0 <= wanted <= MAX_SAMPLED_ROWS:
            raise UserError(f"{wanted:,} rows were asked for; give a number from 0 to {MAX_SAMPLED_ROWS:,}")
        if seed is not None and seed < 0:
            raise UserError(f"the seed is {seed}; give a whole number from 0")
        allowed = select_cells(self.schema, where or {})
        own = int(np.random.SeedSequence().generate_state(1, np.uint64)[0]) if seed is None else int(seed)
        return RowSampler(self.schema, self.model, int(wanted), allowed, seed=own)

    def marginal(
        self,
        *names: str,
        where: Mapping[str, object] | None = None,
        cells: bool = False,
        method: ReconstructionMethod = "maximum entropy",
    ) -> Answer:
        """How many rows have each combination of values of some attributes, with standard errors; costs no privacy.

        Args:
            names: the attributes, one axis each.
            where: conditions, by attribute: a value, a text such as ``30..39`` or ``missing``, a pair ``(30, 39)``, or
                a list of values. Only rows that meet all of them are counted.
            cells: list numbers and dates by their finest cells, not by their bins.
            method: how to reconstruct what no released table holds; the others are for comparison.
        """
        from dpsyn.query import answer_query

        return answer_query(self, names, where or {}, cells=cells, method=method)

    def count(self, **where: object) -> Answer:
        """How many rows meet all conditions, given as in ``marginal``: one number with its standard error."""
        from dpsyn.query import answer_query

        return answer_query(self, (), where)

    def replicates(
        self,
        number: int,
        rows: int | None = None,
        *,
        seed: int | None = None,
        where: Mapping[str, Any] | None = None,
        output_format: OutputFormat | None = None,
        progress: Progress = ignore_progress,
    ) -> Iterator[Any]:
        """Several tables of synthetic rows, drawn independently of each other.

        What an analysis gives on each of them shows how it varies by sampling rows. It does not show how it varies by
        the privacy noise, which is the same in all of them.
        """
        if not isinstance(number, int | np.integer) or isinstance(number, bool) or number < 1:
            raise UserError(f"{number!r} replicates were asked for; give a whole number from 1")
        for own in np.random.SeedSequence(seed).spawn(number):
            own_seed = int(own.generate_state(1, np.uint64)[0])
            yield self.generate(rows, seed=own_seed, where=where, output_format=output_format, progress=progress)

    def compare_rows(self, table: pa.Table) -> ReleaseComparison:
        """How close synthetic rows, as an Arrow table, are to what was released; costs nothing."""
        from dpsyn.synopsis.comparison import compare_rows

        found = compare_rows(self, table)
        if not found.synthetic_rows:
            raise SourceError("the synthetic table has no rows; there is nothing to compare")
        return found

    def with_output_format(self, output_format: OutputFormat) -> Synopsis:
        """The same synopsis, generating another kind of table."""
        return replace(self, output_format=output_format)

    @classmethod
    def from_marginals(
        cls,
        schema: Schema,
        marginals: Mapping[Any, ArrayLike],
        *,
        std: float | Mapping[Any, float],
        source: str,
    ) -> Synopsis:
        """A synopsis of noisy marginals that were measured in another system; its guarantee is not verified here.

        Args:
            schema: what is public about the table.
            marginals: noisy counts by attribute or tuple of attributes, one axis each, in the order of the bins; those
                of a single attribute may be over its cells instead. Every attribute must be in one of them.
            std: the standard deviation of the noise in a cell: one number, or one for each marginal.
            source: who measured them and how, for whoever reads the synopsis.
        """
        from dpsyn.synopsis import imported_marginals

        release = imported_marginals.import_marginals(schema, marginals, std=std, source=source)
        return cls(schema, (release,), fit_model(schema, Recoding.coarse(Codec(schema)), [release]))

    def save(self, path: str | Path) -> None:
        """Write the synopsis as one file, by convention called ``.dpsyn``."""
        from dpsyn.synopsis.serialization import synopsis_file

        synopsis_file.save_synopsis(self, path)

    @classmethod
    def load(cls, path: str | Path, *, recompute: bool = False) -> Synopsis:
        """Read a synopsis file; one that is damaged or something else is a SynopsisError.

        ``recompute`` proves the cost of every release anew by privacy loss distributions, which takes a second each.
        """
        from dpsyn.synopsis.serialization import synopsis_file

        return synopsis_file.load_synopsis(path, recompute=recompute)

    def write(
        self,
        target: str | Path,
        rows: int | None = None,
        *,
        seed: int | None = None,
        where: AttributeConditions | None = None,
        workers: Literal["threads", "processes"] = "threads",
        progress: Progress = ignore_progress,
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
        from dpsyn.sampling import parallel
        from dpsyn.synopsis import release_folder

        drawing = self.sampler(rows, seed=seed, where=where)
        if not release_folder.is_release_folder(target):
            release_folder.sample_file(target, drawing, progress)
        elif parallel.count_parts(drawing) > 1:
            release_folder.sample_partitioned_release(target, self, drawing, where or {}, workers, progress)
        else:
            release_folder.sample_release(target, self, drawing, where or {}, progress)

    def spark_frame(
        self,
        session: Any,
        rows: int | None = None,
        *,
        seed: int | None = None,
        where: AttributeConditions | None = None,
    ) -> Any:
        """Synthetic rows as a Spark DataFrame, drawn by its tasks; ``session`` is a SparkSession.

        ``frame.write.parquet(address)`` writes them wherever Spark can. The rows are those of ``write`` with the same
        seed.
        """
        from dpsyn.sampling.parallel import spark_frame

        return spark_frame(self, session, rows, seed=seed, where=where)

    def write_release(self, folder: str | Path, table: pa.Table, *, where: AttributeConditions | None = None) -> None:
        """Write a new folder with a synthetic table, this synopsis, its certificates and a description of columns.

        ``where`` are the conditions that rows were drawn under; the folder then tells them.
        """
        from dpsyn.synopsis import release_folder as folders

        folders.write_release(folder, table, self, conditions=format_conditions(self.schema, where or {}))
