"""The released artifact: noisy marginals, what they cost, and the model that rows and answers come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from dpsyn import notebook
from dpsyn.accounting import Certificate
from dpsyn.analysis.direct_answers import DirectAnswers
from dpsyn.encoding import Codec, Recoding
from dpsyn.encoding.column_types import ColumnTypes, restore_types
from dpsyn.encoding.dataframes import AnyTable, OutputFormat, convert_rows
from dpsyn.errors import OutputError, SourceError, UserError, quote_argument
from dpsyn.inference.fit import fit_model
from dpsyn.inference.measurements import Model, Release, parse_synthesis
from dpsyn.inference.methods import Gibbs, Synthesis
from dpsyn.options import check_row_count, check_seed, suggest_arguments
from dpsyn.progress import Progress, ignore_progress
from dpsyn.sampling.sampler import RowSampler, select_synthesis
from dpsyn.schema import AttributeConditions, Schema, format_conditions, select_cells

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from dpsyn.inference.redraw import Uncertainty
    from dpsyn.query import Answer, ReconstructionMethod
    from dpsyn.sampling.parallel import WorkerKind
    from dpsyn.signatures import SigningKey
    from dpsyn.synopsis.comparison import ReleaseComparison
    from dpsyn.synopsis.replicates import Replicates


@dataclass(frozen=True, slots=True, eq=False)
class Synopsis(DirectAnswers):
    """Everything that was released about a table. Whatever is computed from it costs no privacy.

    Attributes:
        schema: what was public, with the values that were discovered privately.
        releases: what was measured, by which recipe, and what it cost; several if a synopsis was extended.
        model: the model that rows are sampled from.
        output_format: the kind of table that ``generate`` returns; that of the table that was measured.
        column_types: the declared types of the measured table's columns, which synthetic rows get.
    """

    schema: Schema
    releases: tuple[Release, ...]
    model: Model
    output_format: OutputFormat = "arrow"
    column_types: ColumnTypes = field(default_factory=dict)

    def __repr__(self) -> str:
        names = ", ".join(self.model.recoding.names)
        releases = "1 release" if len(self.releases) == 1 else f"{len(self.releases)} releases"
        return f"Synopsis(about {self.rows:,} rows; {releases}; {names})"

    def _repr_html_(self) -> str:
        releases = [
            (
                number,
                len([marginal for each in release.rounds for marginal in each.marginals]),
                "not verified here: imported" if release.certificate is None else repr(release.certificate),
            )
            for number, release in enumerate(self.releases, 1)
        ]
        attributes = ", ".join(self.schema.names)
        free = "Free of cost: .generate(), .marginal(...), .count(...), .mean(...), .regress(...), .plot(...)"
        notes = (f"Columns: {attributes}", free)
        title = f"Synopsis of {self.schema.dataset or 'a table'} with about {self.rows:,} rows"
        return notebook.html_table(title, ("release", "marginals", "guarantee"), releases, notes=notes)

    def plot(self, *names: str | Sequence[str], axes: notebook.Axes | None = None) -> notebook.Axes:
        """Draw the marginal of one or two attributes; the names are those of ``marginal``. Needs matplotlib."""
        return self.marginal(*names).plot(axes)

    @property
    def certificates(self) -> tuple[Certificate | None, ...]:
        """The cost of each release; None for imported numbers, whose guarantee is not verified here."""
        return tuple(release.certificate for release in self.releases)

    @property
    def rows(self) -> int:
        """The estimated number of rows of the private table; by default as many rows are generated."""
        return round(self.model.total)

    # ── rows ─────────────────────────────────────────────────────────────────────────────────────────────────

    @overload
    def generate(
        self,
        rows: int | None = None,
        *,
        seed: int | None = None,
        where: AttributeConditions | None = None,
        synthesis: Synthesis | str | None = None,
        output_format: Literal["arrow"],
        progress: Progress = ...,
    ) -> pa.Table: ...

    @overload
    def generate(
        self,
        rows: int | None = None,
        *,
        seed: int | None = None,
        where: AttributeConditions | None = None,
        synthesis: Synthesis | str | None = None,
        output_format: Literal["pandas"],
        progress: Progress = ...,
    ) -> pd.DataFrame: ...

    @overload
    def generate(
        self,
        rows: int | None = None,
        *,
        seed: int | None = None,
        where: AttributeConditions | None = None,
        synthesis: Synthesis | str | None = None,
        output_format: Literal["polars"],
        progress: Progress = ...,
    ) -> pl.DataFrame: ...

    @overload
    def generate(
        self,
        rows: int | None = None,
        *,
        seed: int | None = None,
        where: AttributeConditions | None = None,
        synthesis: Synthesis | str | None = None,
        output_format: OutputFormat,
        progress: Progress = ...,
    ) -> AnyTable: ...

    @overload
    def generate(
        self,
        rows: int | None = None,
        *,
        seed: int | None = None,
        where: AttributeConditions | None = None,
        synthesis: Synthesis | str | None = None,
        output_format: None = None,
        progress: Progress = ...,
    ) -> Any: ...

    @suggest_arguments
    @notebook.show_progress
    def generate(
        self,
        rows: int | None = None,
        *,
        seed: int | None = None,
        where: AttributeConditions | None = None,
        synthesis: Synthesis | str | None = None,
        output_format: OutputFormat | None = None,
        progress: Progress = ignore_progress,
    ) -> AnyTable:
        """Synthetic rows as a table like the one that was measured, with the declared types of its columns.

        Args:
            rows: the number of rows; by default the estimated number of rows of the private table.
            seed: makes the rows reproducible, whatever the number of threads. It is unrelated to the privacy noise.
            where: conditions that every row meets, such as ``{"sex": "F", "age": (30, 39), "job": ["nurse", "cook"]}``:
                a value, a pair that is a range, or a list. Conditional rows are sampled directly rather than by
                rejection, so a rare condition is as fast as a common one.
            synthesis: how rows are synthesized from the model: ``Gibbs()``, ``GUM()`` or ``MCF()`` with their options,
                or the name of one with its defaults. By default the method that the model was made for.
            output_format: ``arrow``, ``pandas``, ``polars`` or ``duckdb``; by default the kind of table that was
                measured, which a type checker cannot know, and ``arrow`` for a synopsis that was read from a file.
            progress: called with the current phase and the fraction done.
        """
        table = self.generate_arrow(rows, seed=seed, where=where, synthesis=synthesis, progress=progress)
        return self._convert(table, output_format)

    def _convert(self, table: pa.Table, output_format: OutputFormat | None) -> AnyTable:
        return convert_rows(table, self.schema, self.column_types, output_format or self.output_format)

    def generate_arrow(
        self,
        rows: int | None = None,
        *,
        seed: int | None = None,
        where: AttributeConditions | None = None,
        synthesis: Synthesis | str | None = None,
        progress: Progress = ignore_progress,
    ) -> pa.Table:
        """Synthetic rows as an Arrow table of the schema's types; the arguments are those of ``generate``."""
        from dpsyn.sampling.parallel import sample_table

        return sample_table(
            self.sampler(rows, seed=seed, where=where, synthesis=synthesis, progress=progress), progress
        )

    def restore_types(self, table: pa.Table) -> pa.Table:
        """Rows of ``generate_arrow`` with the types of the measured table's columns: ``docs/reference/types.md``."""
        return restore_types(table, self.schema, self.column_types)

    def sampler(
        self,
        rows: int | None = None,
        *,
        seed: int | None = None,
        where: AttributeConditions | None = None,
        synthesis: Synthesis | str | None = None,
        progress: Progress = ignore_progress,
    ) -> RowSampler:
        """A sampler of synthetic rows, which gives them in chunks; the arguments are those of ``generate``."""
        count = self.rows if rows is None else rows
        check_row_count(count)
        if seed is not None:
            check_seed(seed)
        allowed = select_cells(self.schema, where or {})
        self._check_synthesis(synthesis, where)
        if seed is None:
            seed = int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
        model = self._with_synthesis(synthesis, progress).model
        return RowSampler(self.schema, model, int(count), allowed, seed=int(seed))

    def _check_synthesis(self, synthesis: Synthesis | str | None, where: AttributeConditions | None) -> None:
        if where and synthesis is not None and not isinstance(parse_synthesis(synthesis), Gibbs):
            raise UserError(
                f"{parse_synthesis(synthesis).name} cannot sample rows under conditions; use gibbs, or leave the "
                "conditions or the method out"
            )

    def _with_synthesis(self, synthesis: Synthesis | str | None, progress: Progress) -> Synopsis:
        if synthesis is None:
            return self
        return replace(self, model=select_synthesis(self.schema, self.model, parse_synthesis(synthesis), progress))

    @overload
    def replicates(
        self,
        count: int,
        rows: int | None = None,
        *,
        seed: int | None = None,
        uncertainty: Uncertainty = "all",
        where: AttributeConditions | None = None,
        synthesis: Synthesis | str | None = None,
        output_format: Literal["arrow"],
        progress: Progress = ...,
    ) -> Replicates[pa.Table]: ...

    @overload
    def replicates(
        self,
        count: int,
        rows: int | None = None,
        *,
        seed: int | None = None,
        uncertainty: Uncertainty = "all",
        where: AttributeConditions | None = None,
        synthesis: Synthesis | str | None = None,
        output_format: Literal["pandas"],
        progress: Progress = ...,
    ) -> Replicates[pd.DataFrame]: ...

    @overload
    def replicates(
        self,
        count: int,
        rows: int | None = None,
        *,
        seed: int | None = None,
        uncertainty: Uncertainty = "all",
        where: AttributeConditions | None = None,
        synthesis: Synthesis | str | None = None,
        output_format: Literal["polars"],
        progress: Progress = ...,
    ) -> Replicates[pl.DataFrame]: ...

    @overload
    def replicates(
        self,
        count: int,
        rows: int | None = None,
        *,
        seed: int | None = None,
        uncertainty: Uncertainty = "all",
        where: AttributeConditions | None = None,
        synthesis: Synthesis | str | None = None,
        output_format: OutputFormat,
        progress: Progress = ...,
    ) -> Replicates[AnyTable]: ...

    @overload
    def replicates(
        self,
        count: int,
        rows: int | None = None,
        *,
        seed: int | None = None,
        uncertainty: Uncertainty = "all",
        where: AttributeConditions | None = None,
        synthesis: Synthesis | str | None = None,
        output_format: None = None,
        progress: Progress = ...,
    ) -> Replicates[Any]: ...

    def replicates(
        self,
        count: int,
        rows: int | None = None,
        *,
        seed: int | None = None,
        uncertainty: Uncertainty = "all",
        where: AttributeConditions | None = None,
        synthesis: Synthesis | str | None = None,
        output_format: OutputFormat | None = None,
        progress: Progress = ignore_progress,
    ) -> Replicates[AnyTable]:
        """Several synthetic tables, whose differences show how uncertain a result is (``dpsyn.pool``).

        Each table is from its own draw of the model: the released numbers with the recorded noise drawn again, and with
        it the sampling of the private table from a population; then the model is fitted anew.

        Args:
            count: the number of tables; 10 to 20 are usual.
            rows: the number of rows of each; by default the estimated number of rows of the private table.
            seed: makes all tables reproducible.
            uncertainty: what differs between the tables. ``all``: conclusions are about a population, of which the
                private table is a sample. ``noise``: they are about the rows of the private table. ``rows``: only rows
                are sampled again from one model, so that the privacy noise is the same in all of them; intervals from
                such tables are too short.
            where: conditions as in ``generate``.
            synthesis: as in ``generate``.
            output_format: as in ``generate``.
            progress: called with the current phase and the fraction done, for each table.
        """
        from dpsyn.inference.redraw import parse_uncertainty, require_redrawable
        from dpsyn.synopsis.replicates import Replicates

        if not isinstance(count, int | np.integer) or isinstance(count, bool) or count < 1:
            raise UserError(f"the number of replicates is {quote_argument(count)}; give a whole number from 1")
        kind = parse_uncertainty(uncertainty)
        if kind != "rows":
            require_redrawable(self.releases)
        self._check_synthesis(synthesis, where)
        synopsis = self._with_synthesis(synthesis, progress)
        sampler = synopsis.sampler(rows, seed=seed, where=where, progress=progress)
        return Replicates(
            synopsis=synopsis,
            count=int(count),
            rows=sampler.rows,
            seed=sampler.seed,
            uncertainty=kind,
            where=where,
            output_format=output_format or self.output_format,
            progress=progress,
        )

    def write(
        self,
        target: str | Path,
        rows: int | None = None,
        *,
        seed: int | None = None,
        where: AttributeConditions | None = None,
        synthesis: Synthesis | str | None = None,
        workers: WorkerKind = "threads",
        escape_formulas: bool = False,
        card: bool = False,
        with_verifier: bool = False,
        sign: SigningKey | None = None,
        progress: Progress = ignore_progress,
    ) -> None:
        """Sample rows straight into a file, or into a release folder if the name ends in a slash or is a folder.

        Memory stays the same whatever the number of rows. The rows are those of ``generate`` with the same seed. A
        folder of many rows holds them as Parquet files of a million rows each, sampled in parallel.

        Args:
            target: the file, by its suffix CSV, Parquet or Arrow; ``-`` is standard output; or the folder.
            rows: the number of rows; by default the estimated number of rows of the private table.
            seed: makes the rows reproducible, whatever the number of workers.
            where: conditions as in ``generate``.
            synthesis: as in ``generate``.
            workers: ``threads`` or ``processes``, which sample the files of a folder.
            escape_formulas: for CSV: put an apostrophe before texts that a spreadsheet would take for a formula; as in
                ``write_table``. A folder of Parquet files is not changed.
            card: for a release folder: also write a deployment card and Croissant metadata.
            with_verifier: for a release folder: also write the stand-alone verifier, which needs Python alone.
            sign: for a release folder: the private key that signs all of it.
            progress: called with the current phase and the fraction done.
        """
        from dpsyn.sampling import parallel
        from dpsyn.synopsis import release_folder

        extras = release_folder.ReleaseExtras(card=card, verifier=with_verifier, key=sign)
        if extras != release_folder.ReleaseExtras() and not release_folder.is_release_folder(target):
            raise OutputError(
                f"card, with_verifier and sign are for a release folder; {target} is a file: end its name in a slash"
            )
        sampler = self.sampler(rows, seed=seed, where=where, synthesis=synthesis, progress=progress)
        if not release_folder.is_release_folder(target):
            release_folder.sample_file(target, self, sampler, progress, escape_formulas=escape_formulas)
        elif parallel.count_parts(sampler) > 1:
            release_folder.sample_partitioned_release(
                target, self, sampler, where or {}, workers, progress, extras=extras
            )
        else:
            release_folder.sample_release(
                target, self, sampler, where or {}, progress, escape_formulas=escape_formulas, extras=extras
            )

    def spark_frame(
        self,
        session: Any,
        rows: int | None = None,
        *,
        seed: int | None = None,
        where: AttributeConditions | None = None,
        synthesis: Synthesis | str | None = None,
    ) -> Any:
        """Synthetic rows as a Spark DataFrame, sampled by its tasks; ``session`` is a SparkSession.

        ``frame.write.parquet(address)`` writes them to any storage that Spark supports. The rows are those of ``write``
        with the same seed.
        """
        from dpsyn.sampling.parallel import spark_frame

        return spark_frame(self.sampler(rows, seed=seed, where=where, synthesis=synthesis), session)

    def write_release(
        self,
        folder: str | Path,
        table: pa.Table,
        *,
        where: AttributeConditions | None = None,
        escape_formulas: bool = False,
        card: bool = False,
        with_verifier: bool = False,
        sign: SigningKey | None = None,
    ) -> None:
        """Write a new folder with a synthetic table, this synopsis, its certificates and a description of columns.

        ``where`` are the conditions that the rows were sampled under; the folder then names them. The other options are
        those of ``write``.
        """
        from dpsyn.synopsis import release_folder

        conditions = format_conditions(self.schema, where or {})
        extras = release_folder.ReleaseExtras(card=card, verifier=with_verifier, key=sign)
        release_folder.write_release(
            folder, table, self, conditions=conditions, escape_formulas=escape_formulas, extras=extras
        )

    # ── queries ──────────────────────────────────────────────────────────────────────────────────────────────

    def marginal(
        self,
        *names: str | Sequence[str],
        where: AttributeConditions | None = None,
        cells: bool = False,
        method: ReconstructionMethod = "maximum entropy",
    ) -> Answer:
        """The number of rows with each combination of values of some attributes, with standard errors.

        >>> from dpsyn.demo import people, people_schema
        >>> from dpsyn.recipes import measure
        >>> synopsis = measure(people(rows=500), people_schema(), epsilon=1.0, recipe="independent")
        >>> synopsis.marginal("sex", "employed").counts.shape
        (3, 2)
        >>> synopsis.marginal(["sex"], where={"age": (30, 39)}).to_arrow().column_names
        ['sex', 'count', 'standard_error', 'model_error', 'low', 'high']

        Args:
            names: the attributes, one axis each; as several arguments, or as one list.
            where: conditions by attribute: a value, a text such as ``30..39`` or ``missing``, a pair ``(30, 39)``, or
                a list of values. Only rows that meet all of them are counted.
            cells: list numbers and dates by their finest cells, not by their bins.
            method: how to reconstruct a table that no released marginal covers; the others are for comparison.
        """
        from dpsyn.query import answer_query

        listed = names[0] if len(names) == 1 and isinstance(names[0], list | tuple) else names
        return answer_query(self, listed, where or {}, cells=cells, method=method)  # type: ignore[arg-type]

    def count(self, **where: object) -> Answer:
        """The number of rows that meet all conditions, given as in ``marginal``, with its standard error."""
        from dpsyn.query import answer_query

        return answer_query(self, (), where)

    def compare_rows(self, table: pa.Table, *, by: Sequence[str] | None = None) -> ReleaseComparison:
        """How close synthetic rows, as an Arrow table, are to the released marginals; ``by`` names groups of rows.

        By default these are the groups that the schema declares.
        """
        from dpsyn.synopsis.comparison import compare_rows

        comparison = compare_rows(self, table, by=by)
        if not comparison.synthetic_rows:
            raise SourceError("the synthetic table has no rows; there is nothing to compare")
        return comparison

    # ── other formats and files ──────────────────────────────────────────────────────────────────────────────

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
                of one attribute may be over its cells instead. Every attribute must be in at least one of them.
            std: the standard deviation of the noise in a cell: one number, or one for each marginal.
            source: who measured them and how, for the readers of the synopsis.
        """
        from dpsyn.synopsis.imported_marginals import import_marginals

        release = import_marginals(schema, marginals, std=std, source=source)
        return cls(schema, (release,), fit_model(schema, Recoding.coarse(Codec(schema)), [release]))

    def save(self, path: str | Path, *, sign: SigningKey | None = None) -> None:
        """Write the synopsis as one file, by convention with the suffix ``.dpsyn``.

        Args:
            path: the file.
            sign: a private key, whose signature is written beside the file, as ``PATH.signatures.json``.
        """
        from dpsyn.synopsis.serialization import synopsis_file

        synopsis_file.save_synopsis(self, path)
        if sign is not None:
            from dpsyn.signatures import sign_release, signatures_path

            signatures_path(path).unlink(missing_ok=True)  # of the file that was overwritten
            sign_release(path, sign)

    @classmethod
    def load(cls, path: str | Path, *, recompute: bool = False) -> Synopsis:
        """Read a synopsis file; a damaged file, or one that is no synopsis, raises SynopsisError.

        A release folder stands for the synopsis in it.

        ``recompute`` computes the cost of every release again by privacy loss distributions, about a second each.
        """
        from dpsyn.synopsis.serialization import synopsis_file

        return synopsis_file.load_synopsis(path, recompute=recompute)
