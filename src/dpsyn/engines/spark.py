"""The engine for tables that Spark holds or reads: workers count, Spark adds up, and only sums reach the driver.

Each worker runs a function of ``spark_tasks`` on its part of the table, by ``mapInArrow``. Spark groups the partial
counts by key and adds them. With a privacy unit, rows are shuffled by the keyed hash of their unit and sorted by their
keys, and the first k rows of each unit are counted. Codes and keyed hashes are shuffled, never ids. If Spark runs a
task again, or twice at the same time, its sums contain one result. The gate samples the noise on the driver, after the
sums are complete.
"""

from __future__ import annotations

import os
import re
import secrets
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self, TypeVar

import numpy as np
import pyarrow as pa

from dpsyn.encoding import ColumnCodec, Recoding
from dpsyn.engines import spark_tasks
from dpsyn.engines.bounded_rows import BoundedRows
from dpsyn.engines.counting_queries import ColumnCodesQuery, CountingQuery, MarginalsQuery, TextsQuery
from dpsyn.engines.engine import CliqueAxes, Counts, Opaque
from dpsyn.engines.stream import open_attribute, require_origin
from dpsyn.errors import DPSynError, MissingExtraError, SourceError
from dpsyn.schema import Schema
from dpsyn.sources import Source, redact_address
from dpsyn.sources.files import serialize_pieces

A = TypeVar("A")

_FAILED = "a Spark job failed, more often than Spark is set to retry"


class SparkSource:
    """A ``Source`` for Spark: a DataFrame of rows, or of indices of pieces of files, which the workers open."""

    rereadable = True

    def __init__(
        self,
        frame: Any,
        label: str,
        schema: pa.Schema,
        *,
        pieces: tuple[str, ...] | None = None,
        size: int | None = None,
    ) -> None:
        self.frame, self.label, self.schema = frame, label, schema
        self.pieces, self.byte_size = pieces, size

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Refused: the rows stay with the workers."""
        raise SourceError(f"{self.label} is counted by Spark; set the engine to auto or spark")


def is_spark_frame(data: Any) -> bool:
    """Whether an object is a Spark DataFrame."""
    return type(data).__module__.partition(".")[0] == "pyspark" and hasattr(data, "mapInArrow")


def open_spark_source(data: Any) -> SparkSource:
    """Open a Spark DataFrame; or, by its name, a table of Spark's catalog, or Parquet files at an address.

    An address is one of any file system that Spark reads, such as ``s3a://bucket/folder``. Files at a path are not read
    by Spark but in pieces by DPSyn's own readers, see ``divide_into_pieces``.
    """
    if is_spark_frame(data):
        return _frame_source(data, "the given DataFrame")
    name, spark = str(data), get_session()
    if "://" in name:
        return _parquet_source(spark, name, redact_address(name))
    table = _attempt(lambda: spark.table(name), name, "Spark has no such table, and there is no such file")
    return _frame_source(table, f"the table {name}")


def divide_into_pieces(source: Source) -> SparkSource:
    """Divide the files of a source into pieces, one partition for each; workers open them by the same paths."""
    pieces = require_pieces(source)
    frame = get_session().range(0, len(pieces), 1, numPartitions=max(1, len(pieces)))
    return SparkSource(frame, source.label, source.schema, pieces=tuple(pieces), size=source.byte_size)


def require_pieces(source: Source) -> list[str]:
    """The pieces of a source, not yet read; a source that does not consist of files is refused."""
    pieces = serialize_pieces(source)
    if pieces is None:
        raise SourceError(
            f"{source.label} cannot be counted by Spark, which counts files, Spark tables and Spark DataFrames; "
            "set the engine to auto"
        )
    return pieces


def get_session() -> Any:
    """The active Spark session, or a new one: configured by spark-submit, otherwise on all cores of this machine.

    Privacy: a new session logs nothing, because Spark's log quotes the errors of workers. It has no web interface,
    because that shows everyone who reaches this machine how many rows were read and shuffled.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Spark warns about versions of libraries that are not used here
            from pyspark.sql import SparkSession
    except ImportError:
        raise MissingExtraError("pyspark", "spark", "counting with Spark") from None
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    quiet = {"spark.log.level": "OFF", "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    builder = SparkSession.builder.appName("dpsyn").config(map=quiet)
    return _attempt(
        builder.getOrCreate, "Spark", "it could not be started: it needs a Java runtime, version 17 or newer"
    )


def _frame_source(frame: Any, label: str) -> SparkSource:
    structure = _attempt(lambda: frame.limit(0).toArrow().schema, label, "Spark cannot read its columns")
    return SparkSource(frame, label, structure)


def _parquet_source(spark: Any, address: str, label: str) -> SparkSource:
    """Parquet files that Spark reads; all need the same columns, because Spark fills a missing column with nulls."""
    advice = "Spark finds no Parquet files there, or has no permission to read them"
    frame = _attempt(lambda: spark.read.parquet(address), label, advice)
    kinds = {
        frozenset((field.name, field.dataType.simpleString()) for field in part.schema)
        for part in (
            _attempt(lambda file=file: spark.read.parquet(file), label, advice)  # type: ignore[misc]
            for file in _attempt(frame.inputFiles, label, advice)
        )
    }
    if len(kinds) > 1:
        names = sorted(frozenset.union(*kinds) - frozenset.intersection(*kinds))
        raise SourceError(
            f"{label}: column {names[0][0]!r} differs between files; give all files the same columns and types"
        )
    return _frame_source(frame, label)


class SparkEngine(Opaque):
    """An ``Engine`` that counts with Spark, one job for each query.

    Privacy: see ``Engine``. Rows stay with the workers, and the driver gets sums. With a privacy unit, codes and keyed
    hashes are shuffled, and also texts if a query counts texts; they are in Spark's temporary files meanwhile.
    """

    def __init__(self, table: SparkSource, schema: Schema, key: bytes, text_attributes: Sequence[str] = ()) -> None:
        self._table, self._schema = table, schema
        self._rows = BoundedRows(table, schema, key, text_attributes)  # checks the structure; reads nothing
        self._mark = secrets.token_hex(16)
        self._reader = spark_tasks.PartitionReader(
            table.label, table.schema, table.pieces, schema, key, self._rows.text_attributes
        )

    def prepare(self) -> None:
        """Do nothing: rows are read for each query."""

    @property
    def rereadable(self) -> bool:
        """Always: Spark can read a table many times."""
        return True

    def require_rereadable(self, why: str) -> None:
        """Accept: Spark can read a table many times."""

    def count(self, cliques: CliqueAxes, recoding: Recoding) -> list[Counts]:
        """The contingency table of each clique, over the rows that count."""
        require_origin(recoding, self._rows.codec)
        return self._answer_query(MarginalsQuery.of(cliques, recoding))

    def count_texts(self, name: str) -> dict[str, int]:
        """The number of counted rows with each text of an open attribute."""
        return self._answer_query(TextsQuery(open_attribute(self._schema, name)))

    def count_column(self, name: str, column: ColumnCodec, size: int) -> Counts:
        """The number of counted rows with each code that another column codec reads from an attribute."""
        return self._answer_query(ColumnCodesQuery(name, column, size))

    def with_schema(self, schema: Schema) -> Self:
        """The same rows under another schema."""
        self._rows.with_schema(schema)  # refuses another privacy unit
        return type(self)(self._table, schema, self._reader.key, self._rows.text_attributes)

    def _answer_query(self, query: CountingQuery[A]) -> A:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Spark warns about versions of libraries that are not used here
            sums = _attempt(lambda: self._sum_by_key(query).toArrow(), self._table.label, _FAILED, self._mark)
        sums = sums.combine_chunks()
        counts = np.asarray(sums.column(spark_tasks.COUNT_COLUMN).to_numpy(), np.int64)
        keys = sums.column(spark_tasks.KEY_COLUMN).cast(query.key_type).combine_chunks()
        return query.answer((keys if isinstance(keys, pa.Array) else pa.concat_arrays(keys.chunks), counts))

    def _sum_by_key(self, query: CountingQuery[Any]) -> Any:
        """The counts by key, as a Spark DataFrame."""
        kind = "long" if query.key_type == pa.int64() else "string"
        counts_schema = f"{spark_tasks.KEY_COLUMN} {kind}, {spark_tasks.COUNT_COLUMN} long"
        reader, mark = self._reader, self._mark
        frame = self._table.frame
        if self._table.pieces is None:
            frame = frame.select(*(_quote(name) for name in self._columns_to_read(query)))
        if self._schema.privacy_unit is None:
            parts = frame.mapInArrow(
                lambda batches: spark_tasks.mark_errors(mark, spark_tasks.count_partition(reader, query, batches)),
                counts_schema,
            )
        else:
            max_rows, label = self._rows.max_rows_per_unit, reader.label
            key_columns = ", ".join(f"{name} long" for name in spark_tasks.ROW_KEY_COLUMNS)
            rows = frame.mapInArrow(
                lambda batches: spark_tasks.mark_errors(mark, spark_tasks.key_partition(reader, query, batches)),
                f"{key_columns}, {spark_tasks.PACKED_COLUMN} binary",
            )
            by_unit = rows.repartition(*spark_tasks.ROW_KEY_COLUMNS[:2]).sortWithinPartitions(
                *spark_tasks.ROW_KEY_COLUMNS
            )
            parts = by_unit.mapInArrow(
                lambda batches: spark_tasks.mark_errors(
                    mark, spark_tasks.count_sorted(query, max_rows, label, batches)
                ),
                counts_schema,
            )
        return (
            parts.groupBy(spark_tasks.KEY_COLUMN)
            .sum(spark_tasks.COUNT_COLUMN)
            .withColumnRenamed(f"sum({spark_tasks.COUNT_COLUMN})", spark_tasks.COUNT_COLUMN)
        )

    def _columns_to_read(self, query: CountingQuery[Any]) -> Sequence[str]:
        """The columns that are read: all of the schema if there is a privacy unit, whose rows are chosen by them."""
        needed = query.columns if self._schema.privacy_unit is None else None
        return self._schema.columns if needed is None else needed


def _quote(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _attempt(action: Callable[[], A], label: str, advice: str, mark: str | None = None) -> A:
    """Run an action of Spark; if it fails, raise a SourceError with DPSyn's message from a worker, or with the advice.

    Privacy: an error of Spark may quote entries, so nobody sees it, not even as the context of our error. DPSyn's
    message is recognized by a random mark, which no entry can contain.
    """
    try:
        return action()
    except DPSynError:
        raise
    except Exception as error:  # whatever Spark, its gateway to Java or a worker raises
        match = re.search(rf"{mark} ([^\n]+)", str(error)) if mark else None
        message = match[1].strip() if match else f"{label} cannot be read; {advice}"
    raise SourceError(message)
