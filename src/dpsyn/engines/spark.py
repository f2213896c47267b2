"""Counts of a table that Spark holds or reads: tasks count, Spark adds up, only sums reach the driver.

Each worker runs the kernels of ``tasks`` on its part by ``mapInArrow``. Partial sums are grouped by key and added by
Spark. With a unit, rows are shuffled by the keyed hash of their person, sorted by their keys, and the first k of each
person are counted; what is shuffled are codes and keyed hashes, never ids. A task that is run again, or twice at once,
has one result in Spark's sums, and noise is drawn by the gate, on the driver, after they are complete.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self, TypeVar

import numpy as np
import pyarrow as pa

from dpsyn.encoding import ColumnCodec, Recoding
from dpsyn.engines import tasks
from dpsyn.engines.bounded_rows import BoundedRows
from dpsyn.engines.counting_queries import ColumnCodesQuery, CountingQuery, MarginalsQuery, TextsQuery
from dpsyn.engines.engine import CliqueAxes, Counts, Opaque
from dpsyn.engines.stream import open_attribute, require_fitting, require_origin
from dpsyn.errors import DPSynError, MissingExtraError, SourceError
from dpsyn.schema import Schema
from dpsyn.sources import Source
from dpsyn.sources.files import serialize_pieces

A = TypeVar("A")

_DPSYN_ERROR = re.compile(r"dpsyn\.errors\.\w+Error: ([^\n]+)")
"""How an error of ours stands in what Spark tells of a worker."""

_FAILED = "a job of Spark failed, more often than Spark may try again"


class SparkSource:
    """A Spark DataFrame of rows, or of numbers of pieces of files, which workers open: a ``Source`` for Spark alone."""

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
        """Refused: rows stay where they are."""
        raise SourceError(f"{self.label} is counted by Spark; leave the engine at auto, or say spark")


def is_spark_frame(data: Any) -> bool:
    """Whether something is a Spark DataFrame."""
    return type(data).__module__.partition(".")[0] == "pyspark" and hasattr(data, "mapInArrow")


def open_spark_source(data: Any) -> SparkSource:
    """A Spark DataFrame; or, by its name, a table that Spark knows, or Parquet files at an address.

    An address is one of any file system that Spark reads, such as ``s3a://bucket/folder``. Files at a path are not
    read by Spark but in pieces by DPSyn's own readers, see ``divided``.
    """
    if is_spark_frame(data):
        return _frame_source(data, "the given DataFrame")
    name, spark = str(data), get_session()
    if "://" in name:
        return _parquet_source(spark, name)
    table = _attempt(lambda: spark.table(name), name, "Spark knows no such table, and there is no such file")
    return _frame_source(table, f"the table {name}")


def divide_into_pieces(source: Source) -> SparkSource:
    """The files of a source in pieces, which workers open by the same paths: one partition for each."""
    pieces = require_pieces(source)
    frame = get_session().range(0, len(pieces), 1, numPartitions=max(1, len(pieces)))
    return SparkSource(frame, source.label, source.schema, pieces=tuple(pieces), size=source.byte_size)


def require_pieces(source: Source) -> list[str]:
    """The pieces of a source, which are read by nobody yet; a source that does not consist of files is refused."""
    pieces = serialize_pieces(source)
    if pieces is None:
        raise SourceError(
            f"{source.label} cannot be counted by Spark, which counts files, Spark tables and Spark DataFrames; "
            "leave the engine at auto"
        )
    return pieces


def get_session() -> Any:
    """The Spark session that is there, or a new one: as spark-submit says, else on all cores of this machine.

    Privacy: a new one logs nothing, because Spark quotes what workers say, and has no web pages, because they tell all
    who reach this machine how many rows were read and shuffled.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Spark's own, about versions of libraries that are not used here
            from pyspark.sql import SparkSession
    except ImportError:
        raise MissingExtraError("pyspark", "spark", "counting with Spark") from None
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    quiet = {"spark.log.level": "OFF", "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    builder = SparkSession.builder.appName("dpsyn").config(map=quiet)
    return _attempt(builder.getOrCreate, "Spark", "it could not be started: it needs a Java runtime, 17 or newer")


def _frame_source(frame: Any, label: str) -> SparkSource:
    structure = _attempt(lambda: frame.limit(0).toArrow().schema, label, "Spark cannot tell its columns")
    return SparkSource(frame, label, structure)


def _parquet_source(spark: Any, address: str) -> SparkSource:
    """Parquet files as Spark reads them, if all have the same columns: Spark would fill what one lacks with nulls."""
    why = "Spark finds no Parquet files there, or may not read them"
    frame = _attempt(lambda: spark.read.parquet(address), address, why)
    kinds = {
        frozenset((field.name, field.dataType.simpleString()) for field in part.schema)
        for part in (
            _attempt(lambda file=file: spark.read.parquet(file), address, why)  # type: ignore[misc]
            for file in _attempt(frame.inputFiles, address, why)
        )
    }
    if len(kinds) > 1:
        names = sorted(frozenset.union(*kinds) - frozenset.intersection(*kinds))
        raise SourceError(
            f"{address}: column {names[0][0]!r} differs between files; all need the same columns and types"
        )
    return _frame_source(frame, address)


class SparkEngine(Opaque):
    """Counts by Spark, each question in one job: an ``Engine``.

    Privacy: see ``Engine``. Rows stay with the workers: codes and keyed hashes are shuffled where there is a unit, with
    texts where those are counted, and lie in Spark's own files meanwhile. The driver gets sums.
    """

    def __init__(self, table: SparkSource, schema: Schema, key: bytes, text_attributes: Sequence[str] = ()) -> None:
        self._table, self._schema = table, schema
        self._rows = BoundedRows(table, schema, key, text_attributes)  # checks the structure; reads nothing
        self._reader = tasks.PartitionReader(
            table.label, table.schema, table.pieces, schema, key, self._rows.text_attributes
        )

    def prepare(self) -> None:
        """Nothing to do: rows are read for each question."""

    def require_rereadable(self, why: str) -> None:
        """Spark reads a table as often as it is asked."""

    def count(self, cliques: CliqueAxes, recoding: Recoding) -> list[Counts]:
        """For each clique the table of counts of the rows that count."""
        require_origin(recoding, self._rows.codec)
        return self._answer_query(MarginalsQuery.of(cliques, recoding))

    def count_texts(self, name: str) -> dict[str, int]:
        """How many of the rows that count have each text of an open attribute."""
        return self._answer_query(TextsQuery(open_attribute(self._schema, name)))

    def count_column(self, name: str, column: ColumnCodec, size: int) -> Counts:
        """How many of the rows that count have each code that another column reads from an attribute."""
        require_fitting(column, name, self._table.schema)
        return self._answer_query(ColumnCodesQuery(name, column, size))

    def with_schema(self, schema: Schema) -> Self:
        """The same rows under another schema."""
        self._rows.with_schema(schema)  # refuses another unit
        return type(self)(self._table, schema, self._reader.key, self._rows.text_attributes)

    def _answer_query(self, query: CountingQuery[A]) -> A:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Spark's own, about versions of libraries that are not used here
            sums = _attempt(lambda: self._sum_by_key(query).toArrow(), self._table.label, _FAILED)
        found = sums.combine_chunks()
        counts = np.asarray(found.column(tasks.COUNT_COLUMN).to_numpy(), np.int64)
        keys = found.column(tasks.KEY_COLUMN).cast(query.key_type).combine_chunks()
        return query.answer((keys if isinstance(keys, pa.Array) else pa.concat_arrays(keys.chunks), counts))

    def _sum_by_key(self, query: CountingQuery[Any]) -> Any:
        """The counts by key, as a Spark DataFrame."""
        kind = "long" if query.key_type == pa.int64() else "string"
        sums, reader = f"{tasks.KEY_COLUMN} {kind}, {tasks.COUNT_COLUMN} long", self._reader
        frame = self._table.frame
        if self._table.pieces is None:
            frame = frame.select(*(_quote(name) for name in self._columns_to_read(query)))
        if self._schema.privacy_unit is None:
            parts = frame.mapInArrow(lambda batches: tasks.count_partition(reader, query, batches), sums)
        else:
            most, where = self._rows.max_rows_per_person, reader.label
            keyed = ", ".join([*(f"{name} long" for name in tasks.ROW_KEY_COLUMNS), f"{tasks.PACKED_COLUMN} binary"])
            rows = frame.mapInArrow(lambda batches: tasks.key_partition(reader, query, batches), keyed)
            together = rows.repartition(*tasks.ROW_KEY_COLUMNS[:2]).sortWithinPartitions(*tasks.ROW_KEY_COLUMNS)
            parts = together.mapInArrow(lambda batches: tasks.count_sorted(query, most, where, batches), sums)
        return (
            parts.groupBy(tasks.KEY_COLUMN)
            .sum(tasks.COUNT_COLUMN)
            .withColumnRenamed(f"sum({tasks.COUNT_COLUMN})", tasks.COUNT_COLUMN)
        )

    def _columns_to_read(self, query: CountingQuery[Any]) -> Sequence[str]:
        """The columns that are read: all of the schema where rows are chosen by them."""
        needed = query.columns if self._schema.privacy_unit is None else None
        return self._schema.columns if needed is None else needed


def _quote(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _attempt(action: Callable[[], A], label: str, advice: str) -> A:
    """Do something with Spark; if it fails, say so in words of ours: those of a worker if it had any.

    Privacy: Spark's own errors may quote cells, so they are not seen, not even as the context of ours.
    """
    try:
        return action()
    except DPSynError:
        raise
    except Exception as error:  # whatever Spark, its gateway to Java or a worker raises
        said = _DPSYN_ERROR.search(str(error))
        words = said[1].strip() if said else f"{label} cannot be read; {advice}"
    raise SourceError(words)
