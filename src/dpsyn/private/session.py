"""Opening the gate: promise and reserve first, then touch the rows."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from dpsyn.accounting import Budget, Ledger, PrivacyUnit, Run
from dpsyn.accounting.budget import replay
from dpsyn.encoding import check_structure
from dpsyn.engines import Engine, open_engine, open_table
from dpsyn.engines.baskets import BasketEngine
from dpsyn.errors import JournalError, LedgerError
from dpsyn.private.baskets import PrivateBaskets
from dpsyn.private.gate import ReleaseLimits, suspend_run, without_leaking_errors
from dpsyn.private.journal import Journal, JournalHeader, refuse_existing_journal
from dpsyn.private.mechanisms import Mechanisms, SystemNoise
from dpsyn.private.table import PrivateTable, initial_recoding
from dpsyn.schema import BasketSchema, Schema
from dpsyn.sources import open_basket_source

_EngineT = TypeVar("_EngineT", Engine, BasketEngine)


def open_private(
    data: Any,
    schema: Schema,
    budget: Budget,
    ledger: Ledger | None = None,
    *,
    query: str | None = None,
    engine: Literal["auto", "memory", "stream", "spark"] = "auto",
    mechanisms: Mechanisms | None = None,
    limits: ReleaseLimits | None = None,
    journal: Path | None = None,
    resume: bool = False,
    recipe: str = "",
    declared_public: tuple[str, ...] = (),
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
        recipe: a text that stands for the recipe and its options.
        declared_public: what is taken as public besides the schema, for the certificate.
    """
    schema.require_public()
    source = open_table(data, query=query, kind=engine)
    check_structure(schema, source.schema, source.label)
    noise = mechanisms or SystemNoise()  # a run with any other, even one derived from it, is stamped
    facts = _journal_header(schema, budget, noise, recipe=recipe, ledger=ledger is not None)
    run, book = (_resume_run if resume else _start_run)(journal, facts, ledger)
    counting = _prepare_engine(lambda: open_engine(source, schema, kind=engine, key=secrets.token_bytes(16)), run, book)
    return PrivateTable(
        schema=schema,
        recoding=initial_recoding(schema),
        engine=counting,
        run=run,
        journal=book,
        mechanisms=noise,
        limits=limits or ReleaseLimits(),
        counter=[0],
        declared_public=declared_public,
    )


def open_baskets(
    data: Any,
    schema: BasketSchema,
    budget: Budget,
    ledger: Ledger | None = None,
    *,
    query: str | None = None,
    mechanisms: Mechanisms | None = None,
    limits: ReleaseLimits | None = None,
    journal: Path | None = None,
    resume: bool = False,
    recipe: str = "",
) -> PrivateBaskets:
    """Private baskets behind the gate; as ``open_private``, for a file of baskets instead of a table.

    Privacy: as ``open_private``. Which of a person's baskets are used, and which items of a long basket are counted
    where items are bought, is decided by a key that is drawn now and never leaves.
    """
    source = open_basket_source(data, query=query)
    noise = mechanisms or SystemNoise()
    facts = _journal_header(schema, budget, noise, recipe=recipe, ledger=ledger is not None)
    counting = BasketEngine(source, schema, secrets.token_bytes(16))  # checks the columns; reads nothing yet
    run, book = (_resume_run if resume else _start_run)(journal, facts, ledger)
    return PrivateBaskets(
        schema=schema,
        engine=_prepare_engine(lambda: counting, run, book),
        run=run,
        journal=book,
        mechanisms=noise,
        limits=limits or ReleaseLimits(),
        counter=[0],
    )


def _journal_header(
    schema: Schema | BasketSchema, budget: Budget, noise: Mechanisms, *, recipe: str, ledger: bool
) -> JournalHeader:
    """What a run is, and what must be the same when it is resumed."""
    return JournalHeader(
        run="",
        dataset=schema.dataset,
        schema=hashlib.sha256(msgspec.json.encode(schema, order="deterministic")).hexdigest(),
        recipe=recipe,
        budget=budget.to_data(),
        privacy_unit=privacy_unit_of(schema).to_data(),
        ledger=ledger,
        uses_real_noise=type(noise) is SystemNoise,
    )


def _prepare_engine(make_engine: Callable[[], _EngineT], run: Run, journal: Journal | None) -> _EngineT:
    """An engine that has read its rows, now that their promise is reserved; if it cannot, the run is left."""
    try:
        engine = make_engine()
        if not run.closed:
            without_leaking_errors(engine.prepare)
    except BaseException:
        suspend_run(run, journal)
        raise
    return engine


def _start_run(path: Path | None, header: JournalHeader, ledger: Ledger | None) -> tuple[Run, Journal | None]:
    """A new run, whose promise is reserved, and its journal."""
    if path:
        refuse_existing_journal(path)
    run = Run.open(
        Budget.from_data(header.budget),
        PrivacyUnit(**header.privacy_unit),
        dataset=header.dataset,
        ledger=ledger,
        uses_real_noise=header.uses_real_noise,
    )
    try:
        return run, Journal.create(path, msgspec.structs.replace(header, run=run.name)) if path else None
    except BaseException:
        run.close()
        raise


def _resume_run(path: Path | None, header: JournalHeader, ledger: Ledger | None) -> tuple[Run, Journal | None]:
    """The run that left a journal: what it paid is spent, what it stored need not be paid again."""
    if path is None:
        raise JournalError("a run is resumed from its journal; say where that is")
    journal = Journal.resume(path, header)
    try:
        run = _run_from_ledger(ledger, journal) if ledger else _run_from_journal(journal)
        run.uses_real_noise &= journal.uses_real_noise
        journal.reconcile(run.account.measurements)
    except BaseException:
        journal.release()
        raise
    return run, journal


def _run_from_ledger(ledger: Ledger, journal: Journal) -> Run:
    """The run as the ledger knows it; one that had ended, and could not close there any more, is closed now."""
    header = journal.header
    if journal.ended and not ledger.find_run(header.run)[1].closed:
        ledger.close(header.run)
    run = Run.resume(ledger, header.run, last_head=journal.ledger_head)
    known = (run.dataset, run.privacy_unit.to_data(), run.account.budget.to_data())
    if known != (header.dataset, header.privacy_unit, header.budget):
        raise LedgerError(f"the ledger {ledger.path} knows run {header.run} as another one than {journal.path} does")
    return run


def _run_from_journal(journal: Journal) -> Run:
    """The run of a journal without a ledger."""
    header = journal.header
    return Run(
        name=header.run,
        dataset=header.dataset,
        privacy_unit=PrivacyUnit(**header.privacy_unit),
        account=replay(Budget.from_data(header.budget), journal.charged_measurements),
        ledger=None,
        closed=journal.ended,
    )


def privacy_unit_of(schema: Schema | BasketSchema) -> PrivacyUnit:
    """Whom a release under this schema protects."""
    record = "basket" if isinstance(schema, BasketSchema) else "row"
    if schema.privacy_unit is None:
        return PrivacyUnit(neighbors=schema.neighbors, record=record)
    return PrivacyUnit(
        neighbors=schema.neighbors, id=schema.privacy_unit.id, max_rows=schema.privacy_unit.max_rows, record=record
    )
