"""Opening the gate: promise and reserve first, then touch the rows."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from dpsyn.accounting import Budget, Ledger, Protection, Run
from dpsyn.accounting.account import replay
from dpsyn.engines import Engine, open_engine, open_table
from dpsyn.engines.transactions import BasketEngine
from dpsyn.errors import JournalError, LedgerError
from dpsyn.private.baskets import PrivateBaskets
from dpsyn.private.doorway import Limits, interrupt, sealed
from dpsyn.private.journal import Header, Journal, refuse_left_behind
from dpsyn.private.mechanisms import Mechanisms, SystemNoise
from dpsyn.private.table import PrivateTable, initial_recoding
from dpsyn.records import check_structure
from dpsyn.schema import BasketSchema, Schema
from dpsyn.sources import open_transactions

_E = TypeVar("_E", Engine, BasketEngine)


def open_private(
    data: Any,
    schema: Schema,
    budget: Budget,
    ledger: Ledger | None = None,
    *,
    query: str | None = None,
    engine: Literal["auto", "memory", "stream", "spark"] = "auto",
    mechanisms: Mechanisms | None = None,
    limits: Limits | None = None,
    journal: Path | None = None,
    resume: bool = False,
    plan: str = "",
    declared: tuple[str, ...] = (),
) -> PrivateTable:
    """A private table behind the gate.

    Privacy: before a row is read, the schema must be public throughout, the worst case of the budget is certified, its
    whole promise is reserved in the ledger, and the journal is begun. If the rows then cannot be read, nothing was
    drawn, and the promise is given back. Which of a person's rows are used is decided by a key that is drawn now and
    never leaves.

    With a journal every answer is on disk before it is used. A run that was interrupted, by a crash or by an exception
    in its ``with`` block, keeps its promise reserved; with ``resume`` it goes on where it was, and its certificate
    covers all that was drawn before and after. That the table is the same one is the word of the caller. The file stays
    when the run ends, so that nothing is paid twice if what follows fails; ``discard_journal`` removes it.

    Args:
        data: a path, a frame, an Arrow table, a DuckDB relation, a Spark DataFrame.
        schema: what is public about it.
        budget: what the release may spend.
        ledger: where it is recorded; without one it counts for this run only.
        query: a SELECT, or the name of a table, of a database; or a SELECT on files, called ``data``.
        engine: how rows are counted; ``auto`` decides by the size of the file, never by the number of rows.
        mechanisms: only for tests; whatever is made with it is stamped not private.
        limits: how large a marginal may be, and how much may be drawn.
        journal: where answers are stored before they are used; without one an interrupted run cannot be resumed.
        resume: go on with the run that left the journal; schema, plan, budget and all else must be what they were.
        plan: a text that stands for the recipe and its options.
        declared: what is taken as public besides the schema, for the certificate.
    """
    schema.require_public()
    source = open_table(data, query=query, kind=engine)
    check_structure(schema, source.schema, source.where)
    noise = mechanisms or SystemNoise()  # a run with any other, even one derived from it, is stamped
    facts = _facts(schema, budget, noise, plan=plan, ledger=ledger is not None)
    run, book = (_resumed if resume else _started)(journal, facts, ledger)
    counting = _prepared(lambda: open_engine(source, schema, kind=engine, key=secrets.token_bytes(16)), run, book)
    return PrivateTable(
        schema=schema,
        recoding=initial_recoding(schema),
        engine=counting,
        run=run,
        journal=book,
        mechanisms=noise,
        limits=limits or Limits(),
        drawn=[0],
        declared=declared,
    )


def open_baskets(
    data: Any,
    schema: BasketSchema,
    budget: Budget,
    ledger: Ledger | None = None,
    *,
    query: str | None = None,
    mechanisms: Mechanisms | None = None,
    limits: Limits | None = None,
    journal: Path | None = None,
    resume: bool = False,
    plan: str = "",
) -> PrivateBaskets:
    """Private baskets behind the gate; as ``open_private``, for a file of baskets instead of a table.

    Privacy: as ``open_private``. Which of a person's baskets are used, and which items of a long basket are counted
    where items are bought, is decided by a key that is drawn now and never leaves.
    """
    source = open_transactions(data, query=query)
    noise = mechanisms or SystemNoise()
    facts = _facts(schema, budget, noise, plan=plan, ledger=ledger is not None)
    counting = BasketEngine(source, schema, secrets.token_bytes(16))  # checks the columns; reads nothing yet
    run, book = (_resumed if resume else _started)(journal, facts, ledger)
    return PrivateBaskets(
        schema=schema,
        engine=_prepared(lambda: counting, run, book),
        run=run,
        journal=book,
        mechanisms=noise,
        limits=limits or Limits(),
        drawn=[0],
    )


def _facts(schema: Schema | BasketSchema, budget: Budget, noise: Mechanisms, *, plan: str, ledger: bool) -> Header:
    """What a run is, and what must be the same when it is resumed."""
    return Header(
        run="",
        dataset=schema.dataset,
        schema=hashlib.sha256(msgspec.json.encode(schema, order="deterministic")).hexdigest(),
        plan=plan,
        budget=budget.to_data(),
        protection=protection_of(schema).to_data(),
        ledger=ledger,
        private=type(noise) is SystemNoise,
    )


def _prepared(opened: Callable[[], _E], run: Run, book: Journal | None) -> _E:
    """An engine that has read its rows, now that their promise is reserved; if it cannot, the run is left."""
    try:
        engine = opened()
        if not run.closed:
            sealed(engine.prepare)
    except BaseException:
        interrupt(run, book)
        raise
    return engine


def _started(path: Path | None, facts: Header, ledger: Ledger | None) -> tuple[Run, Journal | None]:
    """A new run, whose promise is reserved, and its journal."""
    if path:
        refuse_left_behind(path)
    run = Run.open(
        Budget.from_data(facts.budget),
        Protection(**facts.protection),
        dataset=facts.dataset,
        ledger=ledger,
        noise_is_private=facts.private,
    )
    try:
        return run, Journal.create(path, msgspec.structs.replace(facts, run=run.name)) if path else None
    except BaseException:
        run.close()
        raise


def _resumed(path: Path | None, facts: Header, ledger: Ledger | None) -> tuple[Run, Journal | None]:
    """The run that left a journal: what it paid is spent, what it stored need not be paid again."""
    if path is None:
        raise JournalError("a run is resumed from its journal; say where that is")
    journal = Journal.resume(path, facts)
    try:
        run = _recorded_in(ledger, journal) if ledger else _recorded_by(journal)
        run.noise_is_private &= journal.noise_is_private
        journal.reconcile(run.account.draws)
    except BaseException:
        journal.release()
        raise
    return run, journal


def _recorded_in(ledger: Ledger, journal: Journal) -> Run:
    """The run as the ledger knows it; one that had ended, and could not close there any more, is closed now."""
    header = journal.header
    if journal.ended and not ledger.run(header.run)[1].closed:
        ledger.close(header.run)
    run = Run.resume(ledger, header.run, last=journal.head)
    known = (run.dataset, run.protection.to_data(), run.account.budget.to_data())
    if known != (header.dataset, header.protection, header.budget):
        raise LedgerError(f"the ledger {ledger.path} knows run {header.run} as another one than {journal.path} does")
    return run


def _recorded_by(journal: Journal) -> Run:
    """The run of a journal without a ledger."""
    header = journal.header
    return Run(
        name=header.run,
        dataset=header.dataset,
        protection=Protection(**header.protection),
        account=replay(Budget.from_data(header.budget), journal.paid),
        ledger=None,
        closed=journal.ended,
    )


def protection_of(schema: Schema | BasketSchema) -> Protection:
    """Whom a release under this schema protects."""
    record = "basket" if isinstance(schema, BasketSchema) else "row"
    if schema.unit is None:
        return Protection(neighbours=schema.neighbours, record=record)
    return Protection(neighbours=schema.neighbours, unit=schema.unit.id, rows=schema.unit.rows, record=record)
