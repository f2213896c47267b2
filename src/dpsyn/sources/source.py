"""The protocol of all readers of private tables, and how their failures are reported without quoting rows."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar, get_args

import pyarrow as pa

from dpsyn.encoding import Codec, Codes, check_structure
from dpsyn.errors import DPSynError, SourceError, quote_argument

BATCH_ROWS = 1 << 16
"""Rows of a batch, if the reader can choose: a few megabytes for twenty columns."""

_T = TypeVar("_T")


class Source(Protocol):
    """A private table that is read as batches; it may be larger than memory.

    Privacy: a source returns rows. Only ``engines`` (behind the gate), ``diagnose`` and ``evaluation`` (whose output is
    for the data owner) may hold one. Its errors name the structure of the table and never quote an entry.

    Attributes:
        label: the name of the table in messages.
        schema: the names and types of its columns.
        rereadable: whether it can be read more than once.
        byte_size: its size on disk if it is a file or a folder, otherwise None. It may decide how the table is read;
            the number of rows may not, because it is private.
    """

    label: str
    schema: pa.Schema
    rereadable: bool
    byte_size: int | None

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows, as batches of the named columns."""


# ── what a table is, besides its rows ────────────────────────────────────────────────────────────────────────


Protect = Literal["base rows", "query rows"]
"""What a guarantee is about if a query stands between: the rows of the base table, or the rows of the answer."""


PROTECT_ANSWER = (
    "protect the rows of the answer instead of the rows of the table: --protect-query-rows, or protect='query rows'"
)
"""The advice about a query that is not accepted for base rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryAnswer:
    """How the answer of a query follows from the rows of a base table.

    Attributes:
        text: the query.
        protect: whose rows are protected. For ``base rows`` the query is row-wise, see ``row_wise``.
        keeps_all_rows: whether the answer has exactly as many rows as the base table.
        unchanged: the columns that pass a base column on unchanged.
    """

    text: str
    protect: Protect
    keeps_all_rows: bool = False
    unchanged: frozenset[str] = frozenset()


def check_protect(protect: Protect, query: str | None) -> None:
    """Refuse an unknown word, and the protection of an answer without a query."""
    if not isinstance(protect, str) or protect not in get_args(Protect):
        raise SourceError(f"protect is {quote_argument(protect)}; use {' or '.join(map(repr, get_args(Protect)))}")
    if protect == "query rows" and query is None:
        raise SourceError("there is no query whose rows could be protected; give a query, or leave out protect")


def query_answer(source: Source) -> QueryAnswer | None:
    """How a source follows from a base table by a query; None if there is no query."""
    return getattr(source, "answer", None)


def find_assumptions(source: Source) -> tuple[str, ...]:
    """What a source takes for granted about its files, for the certificate."""
    assumption: str = getattr(source, "assumption", "")
    return (assumption,) if assumption else ()


def require_unchanged(source: Source, columns: Sequence[str]) -> None:
    """Refuse a query that computes one of these columns, by which the rows of a privacy unit are recognized.

    Privacy: two units whose ids became equal would be bounded as one, so each would change which rows of the other
    count.
    """
    answer = query_answer(source)
    if answer is None or answer.protect == "query rows":
        return
    for name in columns:
        if name in source.schema.names and name not in answer.unchanged:
            raise SourceError(
                f"{source.label} computes the column {name!r}, by which the rows of a privacy unit are recognized; "
                "select it as it is in the table"
            )


def source_identity(source: Source) -> dict[str, Any]:
    """What tells a table from another one without reading its rows, for the journal of a run.

    That is the name, size and time of change of each file, which may be moved to another folder; or else the names and
    types of the columns, and the address of a database.

    Privacy: for the data owner alone. It is never published.
    """
    paths: Sequence[Path] = getattr(source, "paths", ())
    if paths:
        states = attempt(lambda: [path.stat() for path in paths], source.label, "a file may have been removed")
        pairs = zip(paths, states, strict=True)
        return {"files": [[path.name, state.st_size, state.st_mtime_ns] for path, state in pairs]}
    address: str = getattr(source, "address", "")
    columns = [[field.name, str(field.type)] for field in source.schema]
    return {"columns": columns, **({"address": address} if address else {})}


# ── failures ─────────────────────────────────────────────────────────────────────────────────────────────────


def attempt(action: Callable[[], _T], label: str, advice: str) -> _T:
    """Run an action on a table; if it fails, raise a SourceError whose message contains no data.

    Privacy: the error of a reader may quote entries, so nobody may see it, not even as the context of our error. Our
    error is therefore raised after the ``except`` block, when the reader's error is gone.
    """
    try:
        return action()
    except DPSynError:
        raise
    except Exception as error:  # whatever a reader, a stream or a cell's own method raises
        reason = _reason(error)
    raise SourceError(f"{label} cannot be read{reason}; {advice}")


def guard_batches(batches: Callable[[], Iterable[pa.RecordBatch]], label: str, advice: str) -> Iterator[pa.RecordBatch]:
    """The batches of a reader; its failures are reported as ``attempt`` reports them."""
    iterator = attempt(lambda: iter(batches()), label, advice)
    while True:
        batch = attempt(lambda: next(iterator, None), label, advice)
        if batch is None:
            return
        yield batch


def _reason(error: Exception) -> str:
    """The operating system's description of the error; it depends on the file, never on its entries."""
    if isinstance(error, OSError) and error.errno and error.strerror and len(error.strerror) < 60:
        return f": {error.strerror.lower()}"
    return ""


# ── batches of codes, encoded in parallel ────────────────────────────────────────────────────────────────────


Batch = TypeVar("Batch")
Result = TypeVar("Result")


def map_in_threads(
    work: Callable[[Batch], Result], batches: Iterable[Batch], threads: int | None = None
) -> Iterator[Result]:
    """Apply ``work`` to every batch and yield the results in order; threads work ahead on the next batches.

    Memory is bounded by a few batches, whatever the size of the table. A single batch needs no threads.
    """
    workers = threads or os.cpu_count() or 1
    iterator = iter(batches)
    ahead = list(islice(iterator, 2))
    if len(ahead) < 2:
        yield from map(work, ahead)
        return
    pending: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(workers) as pool:
        for batch in chain(ahead, iterator):
            pending.append(pool.submit(work, batch))
            if len(pending) > workers:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()


def encode_batches(source: Source, codec: Codec, threads: int | None = None) -> Iterator[Codes]:
    """The fine codes of every batch, in order; the structure is checked before the first row is read."""
    check_structure(codec.schema, source.schema, source.label)
    yield from map_in_threads(codec.encode, source.batches(codec.columns), threads)
