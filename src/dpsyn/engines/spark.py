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

from dpsyn.engines import tasks
from dpsyn.engines.engine import Cliques, Counts, Opaque
from dpsyn.engines.questions import Marginals, Question, Readings, Texts
from dpsyn.engines.reading import open_attribute, require_fitting, require_origin
from dpsyn.engines.rows import Rows
from dpsyn.errors import DPSynError, MissingExtraError, SourceError
from dpsyn.records import Column
from dpsyn.schema import Schema
from dpsyn.sources import Source
from dpsyn.sources.pieces import pieces_of
from dpsyn.transforms import Recoding

A = TypeVar("A")

_OWN_WORDS = re.compile(r"dpsyn\.errors\.\w+Error: ([^\n]+)")
"""How an error of ours stands in what Spark tells of a worker."""

_FAILED = "a job of Spark failed, more often than Spark may try again"


class SparkTable:
    """A Spark DataFrame of rows, or of numbers of pieces of files, which workers open: a ``Source`` for Spark alone."""

    again = True

    def __init__(
        self,
        frame: Any,
        where: str,
        schema: pa.Schema,
        *,
        pieces: tuple[str, ...] | None = None,
        size: int | None = None,
    ) -> None:
        self.frame, self.where, self.schema = frame, where, schema
        self.pieces, self.bytes = pieces, size

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Refused: rows stay where they are."""
        raise SourceError(f"{self.where} is counted by Spark; leave the engine at auto, or say spark")


def is_frame(data: Any) -> bool:
    """Whether something is a Spark DataFrame."""
    return type(data).__module__.partition(".")[0] == "pyspark" and hasattr(data, "mapInArrow")


def open_frame(data: Any) -> SparkTable:
    """A Spark DataFrame; or, by its name, a table that Spark knows, or Parquet files at an address.

    An address is one of any file system that Spark reads, such as ``s3a://bucket/folder``. Files at a path are not
    read by Spark but in pieces by DPSyn's own readers, see ``divided``.
    """
    if is_frame(data):
        return _of_frame(data, "the given DataFrame")
    name, spark = str(data), session()
    if "://" in name:
        return _at_address(spark, name)
    table = _attempt(lambda: spark.table(name), name, "Spark knows no such table, and there is no such file")
    return _of_frame(table, f"the table {name}")


def divided(source: Source) -> SparkTable:
    """The files of a source in pieces, which workers open by the same paths: one partition for each."""
    pieces = require_pieces(source)
    frame = session().range(0, len(pieces), 1, numPartitions=max(1, len(pieces)))
    return SparkTable(frame, source.where, source.schema, pieces=tuple(pieces), size=source.bytes)


def require_pieces(source: Source) -> list[str]:
    """The pieces of a source, which are read by nobody yet; a source that does not consist of files is refused."""
    pieces = pieces_of(source)
    if pieces is None:
        raise SourceError(
            f"{source.where} cannot be counted by Spark, which counts files, Spark tables and Spark DataFrames; "
            "leave the engine at auto"
        )
    return pieces


def session() -> Any:
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


def _of_frame(frame: Any, where: str) -> SparkTable:
    structure = _attempt(lambda: frame.limit(0).toArrow().schema, where, "Spark cannot tell its columns")
    return SparkTable(frame, where, structure)


def _at_address(spark: Any, address: str) -> SparkTable:
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
    return _of_frame(frame, address)


class SparkEngine(Opaque):
    """Counts by Spark, each question in one job: an ``Engine``.

    Privacy: see ``Engine``. Rows stay with the workers: codes and keyed hashes are shuffled where there is a unit, with
    texts where those are counted, and lie in Spark's own files meanwhile. The driver gets sums.
    """

    def __init__(self, table: SparkTable, schema: Schema, key: bytes, spelled: Sequence[str] = ()) -> None:
        self._table, self._schema = table, schema
        self._rows = Rows(table, schema, key, spelled)  # checks the structure; reads nothing
        self._reader = tasks.Reader(table.where, table.schema, table.pieces, schema, key, self._rows.spelled)

    def prepare(self) -> None:
        """Nothing to do: rows are read for each question."""

    def require_again(self, why: str) -> None:
        """Spark reads a table as often as it is asked."""

    def count(self, cliques: Cliques, recoding: Recoding) -> list[Counts]:
        """For each clique the table of counts of the rows that count."""
        require_origin(recoding, self._rows.codec)
        return self._asked(Marginals.of(cliques, recoding))

    def count_texts(self, name: str) -> dict[str, int]:
        """How many of the rows that count have each text of an open attribute."""
        return self._asked(Texts(open_attribute(self._schema, name)))

    def count_column(self, name: str, column: Column, size: int) -> Counts:
        """How many of the rows that count have each code that another column reads from an attribute."""
        require_fitting(column, name, self._table.schema)
        return self._asked(Readings(name, column, size))

    def reopened(self, schema: Schema) -> Self:
        """The same rows under another schema."""
        self._rows.under(schema)  # refuses another unit
        return type(self)(self._table, schema, self._reader.key, self._rows.spelled)

    def _asked(self, question: Question[A]) -> A:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Spark's own, about versions of libraries that are not used here
            sums = _attempt(lambda: self._summed(question).toArrow(), self._table.where, _FAILED)
        found = sums.combine_chunks()
        counts = np.asarray(found.column(tasks.COUNT).to_numpy(), np.int64)
        keys = found.column(tasks.KEY).cast(question.keys).combine_chunks()
        return question.answer((keys if isinstance(keys, pa.Array) else pa.concat_arrays(keys.chunks), counts))

    def _summed(self, question: Question[Any]) -> Any:
        """The counts by key, as a Spark DataFrame."""
        kind = "long" if question.keys == pa.int64() else "string"
        sums, reader = f"{tasks.KEY} {kind}, {tasks.COUNT} long", self._reader
        frame = self._table.frame
        if self._table.pieces is None:
            frame = frame.select(*(_quoted(name) for name in self._columns(question)))
        if self._schema.unit is None:
            parts = frame.mapInArrow(lambda batches: tasks.count_part(reader, question, batches), sums)
        else:
            most, where = self._rows.most, reader.where
            keyed = ", ".join([*(f"{name} long" for name in tasks.KEYS), f"{tasks.PACKED} binary"])
            rows = frame.mapInArrow(lambda batches: tasks.keyed_part(reader, question, batches), keyed)
            together = rows.repartition(*tasks.KEYS[:2]).sortWithinPartitions(*tasks.KEYS)
            parts = together.mapInArrow(lambda batches: tasks.count_ordered(question, most, where, batches), sums)
        return parts.groupBy(tasks.KEY).sum(tasks.COUNT).withColumnRenamed(f"sum({tasks.COUNT})", tasks.COUNT)

    def _columns(self, question: Question[Any]) -> Sequence[str]:
        """The columns that are read: all of the schema where rows are chosen by them."""
        needed = question.columns if self._schema.unit is None else None
        return self._schema.columns if needed is None else needed


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _attempt(action: Callable[[], A], where: str, why: str) -> A:
    """Do something with Spark; if it fails, say so in words of ours: those of a worker if it had any.

    Privacy: Spark's own errors may quote cells, so they are not seen, not even as the context of ours.
    """
    try:
        return action()
    except DPSynError:
        raise
    except Exception as error:  # whatever Spark, its gateway to Java or a worker raises
        said = _OWN_WORDS.search(str(error))
        words = said[1].strip() if said else f"{where} cannot be read; {why}"
    raise SourceError(words)
