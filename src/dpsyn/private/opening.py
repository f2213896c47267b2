"""Opening the gate: promise and reserve first, then touch the rows."""

from __future__ import annotations

import secrets
from typing import Any, Literal

from dpsyn.accounting import Budget, Ledger, Protection, Run
from dpsyn.engines import open_engine
from dpsyn.private.mechanisms import Mechanisms, SystemNoise
from dpsyn.private.table import Limits, PrivateTable, initial_recoding
from dpsyn.records import check_structure
from dpsyn.schema import Schema
from dpsyn.sources import open_source


def open_private(
    data: Any,
    schema: Schema,
    budget: Budget,
    ledger: Ledger | None = None,
    *,
    query: str | None = None,
    engine: Literal["auto", "memory", "stream"] = "auto",
    mechanisms: Mechanisms | None = None,
    limits: Limits | None = None,
) -> PrivateTable:
    """A private table behind the gate.

    Privacy: before a row is read, the schema must be public throughout, the worst case of the budget is certified, and
    its whole promise is reserved in the ledger. If the rows then cannot be read, nothing was drawn, and the promise is
    given back. Which of a person's rows are used is decided by a key that is drawn now and never leaves.

    Args:
        data: a path, a frame, an Arrow table, a DuckDB relation.
        schema: what is public about it.
        budget: what the release may spend.
        ledger: where it is recorded; without one it counts for this run only.
        query: a SELECT, or the name of a table, if the data is a DuckDB database.
        engine: how rows are counted; ``auto`` decides by the size of the file, never by the number of rows.
        mechanisms: only for tests; whatever is made with it is stamped not private.
        limits: how large a marginal may be, and how much may be drawn.
    """
    schema.require_public()
    source = open_source(data, query=query)
    check_structure(schema, source.schema, source.where)
    noise = mechanisms or SystemNoise()  # a run with any other, even one derived from it, is stamped
    run = Run.open(
        budget,
        protection_of(schema),
        dataset=schema.dataset,
        ledger=ledger,
        noise_is_private=type(noise) is SystemNoise,
    )
    try:
        counting = open_engine(source, schema, kind=engine, key=secrets.token_bytes(16))
        counting.prepare()
    except BaseException:
        run.close()
        raise
    return PrivateTable(
        schema=schema,
        recoding=initial_recoding(schema),
        engine=counting,
        run=run,
        mechanisms=noise,
        limits=limits or Limits(),
        drawn=[0],
    )


def protection_of(schema: Schema) -> Protection:
    """Whom a release under this schema protects."""
    if schema.unit is None:
        return Protection(neighbours=schema.neighbours)
    return Protection(neighbours=schema.neighbours, unit=schema.unit.id, rows=schema.unit.rows)
