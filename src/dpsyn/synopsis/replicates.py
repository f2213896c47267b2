"""Replicates: several synthetic tables whose differences show how uncertain a result is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec
import numpy as np
import pyarrow as pa

from dpsyn.analysis import METADATA_KEY, Pooled, ReplicatesRecord, pool
from dpsyn.encoding import Codec
from dpsyn.encoding.dataframes import OutputFormat, convert_rows
from dpsyn.errors import SourceError, UserError, describe_os_error, quote_argument
from dpsyn.inference.redraw import REESTIMATED, ModelDraws, Uncertainty
from dpsyn.progress import Progress
from dpsyn.release_files import find_synopsis
from dpsyn.sampling.parallel import sample_table
from dpsyn.sampling.sampler import RowSampler
from dpsyn.schema import AttributeConditions, format_conditions

if TYPE_CHECKING:
    from dpsyn.synopsis.synopsis import Synopsis

AnyReplicate = TypeVar("AnyReplicate", covariant=True)

MIN_POPULATION, MAX_POPULATION = 10_000, 50_000
"""The limits of the number of rows that stand for the population, and from which fits start."""


def how_to_use_replicates(synopsis: Synopsis, name: str = "synopsis.dpsyn") -> tuple[str, ...]:
    """Five lines for users of published data: how to draw conclusions that include the privacy noise.

    ``name`` is the file of the synopsis. There are no lines if its replicates cannot carry the noise.
    """
    if any(release.recipe.get("name") in REESTIMATED for release in synopsis.releases):
        return ()
    return (
        "Conclusions need replicates: an interval from one synthetic table knows nothing of the privacy noise.",
        f"1. dpsyn generate {name} --replicates 20 -o rows.csv    writes 20 tables, each with its own noise",
        "2. analyze each of them alike; write replicate, term, estimate and std.error to results.csv, a row for each",
        "3. dpsyn pool results.csv --replicates rows-replicates.json    in Python: synopsis.replicates(20).analyze(…)",
        f'Or directly, with intervals: dpsyn query {name} --mean NAME --by NAME, or --regress "Y ~ A + B".',
    )


@dataclass(frozen=True, eq=False)
class Replicates(Generic[AnyReplicate]):
    """Synthetic tables, each from its own draw of the model. They are made one by one, when they are asked for.

    Attributes:
        synopsis: what was released.
        count: the number of tables.
        rows: the number of rows of each.
        seed: the seed; the same one gives the same tables.
        uncertainty: what differs between them: ``all``, ``noise`` or ``rows``.
        where: the conditions that all rows meet.
        output_format: the kind of table.
        progress: called with the current phase and the fraction done, for each table.
    """

    synopsis: Synopsis
    count: int
    rows: int
    seed: int
    uncertainty: Uncertainty
    where: AttributeConditions | None
    output_format: OutputFormat
    progress: Progress

    def __repr__(self) -> str:
        return f"Replicates({self.count} tables of {self.rows:,} rows; uncertainty {self.uncertainty})"

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[AnyReplicate]:
        synopsis = self.synopsis
        for number, table in enumerate(self.iterate_arrow(), 1):
            converted: Any = convert_rows(table, synopsis.schema, synopsis.column_types, self.output_format)
            if self.output_format == "pandas":
                converted.attrs[METADATA_KEY] = self.describe(number)
            elif self.output_format == "arrow":
                about = {METADATA_KEY: json.dumps(self.describe(number))}
                converted = converted.replace_schema_metadata({**(converted.schema.metadata or {}), **about})
            yield converted

    def describe(self, number: int) -> dict[str, Any]:
        """What a table says about itself: which replicate it is, and what differs between them."""
        known = msgspec.structs.asdict(self.record)
        about = {name: known[name] for name in ("rows", "uncertainty", "private_rows", "rows_per_unit")}
        return {"number": number, "of": self.count, **about}

    @cached_property
    def record(self) -> ReplicatesRecord:
        """What the replicates are, for ``pool`` and for the file beside tables on disk."""
        where, certificates = self.where or {}, self.synopsis.certificates
        known = self.synopsis.model.total if not where else float(self.synopsis.count(**where))
        return ReplicatesRecord(
            count=self.count,
            rows=self.rows,
            uncertainty=self.uncertainty,
            private_rows=max(float(known), 0.0),
            rows_per_unit=max((each.privacy_unit.max_rows for each in certificates if each), default=1),
            seed=self.seed,
            conditions=format_conditions(self.synopsis.schema, where),
        )

    def analyze(self, function: Callable[[Any], Any], *, level: float = 0.95) -> Pooled:
        """Apply an analysis to every table and pool the results, as ``dpsyn.pool`` does.

        >>> from dpsyn.demo import people, people_schema
        >>> from dpsyn.recipes import measure
        >>> synopsis = measure(people(rows=500), people_schema(), epsilon=1.0, recipe="independent")
        >>> replicates = synopsis.replicates(3, seed=1, output_format="pandas")
        >>> replicates.analyze(lambda table: table["income"].median()).replicates
        3

        Args:
            function: takes a table and returns an estimate: what ``dpsyn.pool`` takes for one replicate.
            level: the level of the intervals.
        """
        if not callable(function):
            raise UserError(f"the analysis is {quote_argument(function)}; give a function that takes a table")
        self.record.require_noise()
        return pool((function(table) for table in self), replicates=self, level=level)

    def save_record(self, path: str | Path, synopsis: str | Path, tables: Sequence[str | Path]) -> None:
        """Write the file that describes tables on disk, which ``dpsyn pool`` reads.

        Args:
            path: the file, by convention ``…-replicates.json``.
            synopsis: the file of the synopsis, or its release folder; its SHA-256 is recorded.
            tables: the files of the tables.
        """
        try:
            with find_synopsis(synopsis).open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise SourceError(f"{synopsis} cannot be read: {describe_os_error(error)}") from None
        names = tuple(Path(table).name for table in tables)
        msgspec.structs.replace(self.record, synopsis=digest, tables=names).save(path)

    def iterate_arrow(self) -> Iterator[pa.Table]:
        """The tables as Arrow tables of the schema's types."""
        draws = None if self.uncertainty == "rows" else self._model_draws()
        for child in np.random.SeedSequence(self.seed).spawn(self.count):
            yield self._sample(child, draws)

    def _sample(self, child: np.random.SeedSequence, draws: ModelDraws | None) -> pa.Table:
        seed, synopsis = int(child.generate_state(1, np.uint64)[0]), self.synopsis
        if draws is not None:
            model = draws.draw(np.random.default_rng(child.spawn(1)[0]), self.progress)
            synopsis = replace(synopsis, model=model)
            records = None if model.distribution is None else model.distribution.records
            if records is not None and records.shape[1] == self.rows and not self.where:  # they are rows of the model
                sampler = RowSampler(synopsis.schema, model, self.rows, {}, seed=seed, codes=records.T)
                return sample_table(sampler, self.progress)
        return synopsis.generate_arrow(self.rows, seed=seed, where=self.where, progress=self.progress)

    def _model_draws(self) -> ModelDraws:
        """The draws of the model; the rows that stand for the population are as many as wanted, if a fit can do so."""
        rows = int(np.clip(self.rows, MIN_POPULATION, MAX_POPULATION))
        population = Codec(self.synopsis.schema).encode(self.synopsis.generate_arrow(rows, seed=self.seed))
        return ModelDraws(
            self.synopsis.schema,
            self.synopsis.model,
            self.synopsis.releases,
            population,
            sampling=self.uncertainty == "all",
        )
