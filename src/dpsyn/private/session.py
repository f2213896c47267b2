"""Opening a private session: reserve the budget first, then read the rows.

``open_private`` and ``open_baskets`` check all public facts, reserve the whole budget in the ledger, begin the journal
(or resume from it), and only then read rows.
"""

from __future__ import annotations

import hashlib
import secrets
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from dpsyn.accounting import Budget, Ledger, PrivacyUnit, Reduction, Run
from dpsyn.accounting.budget import replay
from dpsyn.accounting.certificate import describe_query, plain_recipe
from dpsyn.accounting.privacy_unit import OF_QUERY
from dpsyn.encoding import check_structure
from dpsyn.encoding.column_types import record_types
from dpsyn.encoding.dataframes import detect_output_format
from dpsyn.engines import Engine, open_engine, open_table
from dpsyn.engines.baskets import BasketEngine
from dpsyn.errors import JournalError, LedgerError
from dpsyn.private.baskets import PrivateBaskets
from dpsyn.private.gate import ReleaseLimits, Session, describe_loss, without_leaking_errors
from dpsyn.private.journal import Journal, JournalHeader, refuse_existing_journal
from dpsyn.private.mechanisms import Mechanisms, SystemNoise
from dpsyn.private.table import PrivateTable, initial_recoding
from dpsyn.schema import BasketSchema, Schema
from dpsyn.sources import (
    Protect,
    QueryAnswer,
    Source,
    find_assumptions,
    open_basket_source,
    query_answer,
    require_unchanged,
    source_identity,
)

_EngineT = TypeVar("_EngineT", Engine, BasketEngine)


def open_private(
    data: Any,
    schema: Schema,
    budget: Budget,
    ledger: Ledger | None = None,
    *,
    query: str | None = None,
    protect: Protect = "base rows",
    engine: Literal["auto", "memory", "stream", "spark"] = "auto",
    mechanisms: Mechanisms | None = None,
    limits: ReleaseLimits | None = None,
    journal: Path | None = None,
    resume: bool = False,
    recipe: Mapping[str, Any] = {},
    declared_public: tuple[str, ...] = (),
) -> PrivateTable:
    """Open a private table behind the gate.

    Privacy: before a row is read, the schema must be public throughout, the worst case of the budget is certified, the
    whole budget is reserved in the ledger, and the journal is begun. If the rows then cannot be read, nothing was
    measured, and the budget is returned. Which rows of a privacy unit are used depends on a random key that is
    generated now and never leaves the session.

    With a journal every answer is on disk before it is used. A run that was interrupted, by a crash or by an exception
    in its ``with`` block, keeps its budget reserved. With ``resume`` it continues where it stopped, and its certificate
    covers all measurements before and after. Another query, or a table whose files changed, is refused. The journal
    stays when the run ends, so nothing is charged twice if a later step fails; ``discard_journal`` removes it.

    Args:
        data: a path, a data frame, an Arrow table, a DuckDB relation, or a Spark DataFrame.
        schema: what is public about the table.
        budget: the privacy budget of the release.
        ledger: where the release is recorded; without one only this run is accounted for.
        query: a SELECT, or the name of a table, of a database; or a SELECT on files, which it calls ``data``.
        protect: whose rows are protected if there is a query: those of the base table, or those of the answer.
        engine: how rows are counted; ``auto`` decides by the size of the file, never by the number of rows.
        mechanisms: another source of noise, for tests only; the certificate of such a run is marked NOT PRIVATE.
        limits: the largest marginal, and the largest number of noisy values.
        journal: the file that stores answers before they are used; without one an interrupted run cannot be resumed.
        resume: continue the run of this journal; schema, recipe, budget and ledger must be the same as before.
        recipe: what identifies the recipe, as plain JSON data, such as ``{"name": "privsyn", "ways": 2}``. It is
            recorded in the journal, the ledger and the certificate.
        declared_public: facts that are taken as public besides the schema, for the certificate.
    """
    schema.require_public()
    source = open_table(data, query=query, protect=protect, kind=engine, syntax=schema.syntax)
    check_structure(schema, source.schema, source.label)
    require_unchanged(source, [schema.privacy_unit.id] if schema.privacy_unit else [])
    noise = mechanisms or SystemNoise()
    terms = _run_terms(schema, source, budget, ledger, noise, recipe, declared_public)
    run, answers = _open_run(terms, journal, resume=resume)
    session = _open_session(run, answers, noise, limits, source)
    session.column_types = record_types(schema, source.schema, detect_output_format(data))
    counting = _prepare_engine(session, lambda: open_engine(source, schema, kind=engine, key=secrets.token_bytes(16)))
    return PrivateTable(session, counting, schema, initial_recoding(schema))


def open_baskets(
    data: Any,
    schema: BasketSchema,
    budget: Budget,
    ledger: Ledger | None = None,
    *,
    query: str | None = None,
    protect: Protect = "base rows",
    mechanisms: Mechanisms | None = None,
    limits: ReleaseLimits | None = None,
    journal: Path | None = None,
    resume: bool = False,
    recipe: Mapping[str, Any] = {},
) -> PrivateBaskets:
    """Open private baskets behind the gate; like ``open_private``, for a file of baskets instead of a table.

    Privacy: as ``open_private``. Which baskets of a privacy unit are used, and which items of a long basket are counted
    when items are discovered, depends on a random key that is generated now and never leaves the session.
    """
    source = open_basket_source(data, query=query, protect=protect)
    require_unchanged(source, [schema.basket, *([schema.privacy_unit.id] if schema.privacy_unit else [])])
    noise = mechanisms or SystemNoise()
    counting = BasketEngine(source, schema, secrets.token_bytes(16))  # checks the columns; reads nothing yet
    run, answers = _open_run(_run_terms(schema, source, budget, ledger, noise, recipe), journal, resume=resume)
    session = _open_session(run, answers, noise, limits, source)
    return PrivateBaskets(session, _prepare_engine(session, lambda: counting), schema)


def _open_session(
    run: Run,
    journal: Journal | None,
    noise: Mechanisms,
    limits: ReleaseLimits | None,
    source: Source,
) -> Session:
    """The session of a run. If the journal lacks answers that were charged, the measurements to come are reduced."""
    session = Session(
        run=run,
        journal=journal,
        mechanisms=noise,
        limits=limits or ReleaseLimits(),
        query=_query_text(source),
    )
    if journal and journal.lost_measurements:
        session.reduction = Reduction.after_loss(run.account, journal.planned_costs)
        warnings.warn(
            f"{describe_loss(journal.lost_measurements)}. What is left of the budget is divided among the measurements "
            "to come, in proportion to what was planned for them",
            UserWarning,
            stacklevel=4,
        )
    return session


def _query_text(source: Source) -> str:
    answer = query_answer(source)
    return answer.text if answer else ""


def _prepare_engine(session: Session, make_engine: Callable[[], _EngineT]) -> _EngineT:
    """Let an engine read its rows, now that the budget is reserved; if it cannot, suspend the session.

    A run that is closed returns stored answers only, so its rows are not read.
    """
    try:
        engine = make_engine()
        if not session.run.closed:
            without_leaking_errors(engine.prepare)
    except BaseException:
        session.suspend()
        raise
    return engine


# ── starting and resuming a run ──────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class _RunTerms:
    """The terms of a run: what it is opened with, and what must be the same when it is resumed.

    Attributes:
        dataset: the name of the dataset.
        schema_hash: the SHA-256 of the schema.
        recipe: what identifies the recipe, as plain JSON data.
        budget: the privacy budget.
        privacy_unit: the privacy unit and the neighboring relation.
        ledger: where the run is recorded.
        uses_real_noise: whether the noise comes from the operating system.
        query: the query whose answer is the table; empty if there is none.
        source: what tells the table from another one.
        declared_public: facts that are taken as public, for the ledger and the certificate.
    """

    dataset: str
    schema_hash: str
    recipe: dict[str, Any]
    budget: Budget
    privacy_unit: PrivacyUnit
    ledger: Ledger | None
    uses_real_noise: bool
    query: str
    source: dict[str, Any]
    declared_public: tuple[str, ...]

    def header(self, run: str = "") -> JournalHeader:
        """The terms as the first line of a journal."""
        return JournalHeader(
            run=run,
            dataset=self.dataset,
            schema=self.schema_hash,
            recipe=self.recipe,
            budget=self.budget.to_data(),
            privacy_unit=self.privacy_unit.to_data(),
            ledger=self.ledger is not None,
            uses_real_noise=self.uses_real_noise,
            query=self.query,
            source=self.source,
        )


def _run_terms(
    schema: Schema | BasketSchema,
    source: Source,
    budget: Budget,
    ledger: Ledger | None,
    noise: Mechanisms,
    recipe: Mapping[str, Any],
    declared_public: Sequence[str] = (),
) -> _RunTerms:
    query = _query_text(source)
    return _RunTerms(
        dataset=schema.dataset,
        schema_hash=hashlib.sha256(msgspec.json.encode(schema, order="deterministic")).hexdigest(),
        recipe=plain_recipe(recipe),
        budget=budget,
        privacy_unit=privacy_unit_of(schema, query_answer(source)),
        ledger=ledger,
        uses_real_noise=type(noise) is SystemNoise,  # a subclass might change the noise
        query=query,
        source=source_identity(source),
        declared_public=(
            *schema.declared_public(),
            *declared_public,
            *find_assumptions(source),
            *((describe_query(query),) if query else ()),
        ),
    )


def _open_run(terms: _RunTerms, path: Path | None, *, resume: bool) -> tuple[Run, Journal | None]:
    """The run and its journal, new or resumed."""
    if not resume:
        return _start_run(terms, path)
    if path is None:
        raise JournalError("a run is resumed from its journal; give the path of the journal")
    return _resume_run(terms, path)


def _start_run(terms: _RunTerms, path: Path | None) -> tuple[Run, Journal | None]:
    """A new run, whose budget is reserved, and its journal."""
    if path:
        refuse_existing_journal(path)
    run = Run.open(
        terms.budget,
        terms.privacy_unit,
        dataset=terms.dataset,
        ledger=terms.ledger,
        uses_real_noise=terms.uses_real_noise,
        recipe=terms.recipe,
        declared_public=terms.declared_public,
    )
    try:
        return run, Journal.create(path, terms.header(run.name)) if path else None
    except BaseException:
        run.close()
        raise


def _resume_run(terms: _RunTerms, path: Path) -> tuple[Run, Journal]:
    """The run of a journal: its charges are spent, and its stored answers are not charged again."""
    journal = Journal.resume(path, terms.header())
    try:
        run = _run_from_ledger(terms, terms.ledger, journal) if terms.ledger else _run_from_journal(terms, journal)
        run.uses_real_noise &= journal.uses_real_noise
    except BaseException:
        journal.release()
        raise
    return run, journal


def _run_from_ledger(terms: _RunTerms, ledger: Ledger, journal: Journal) -> Run:
    """The run as the ledger recorded it. If it had ended but could not be closed in the ledger, it is closed now."""
    name = journal.header.run
    if journal.ended and not ledger.find_run(name)[1].closed:
        ledger.close(name, journal.outcome)
    ledger.require_heads(journal.ledger_heads)
    run = Run.resume(ledger, name, last_head=journal.ledger_head)
    recorded = (run.dataset, run.privacy_unit, run.account.budget, run.recipe, run.declared_public)
    if recorded != (terms.dataset, terms.privacy_unit, terms.budget, terms.recipe, terms.declared_public):
        raise LedgerError(f"run {name} differs between the ledger {ledger.path} and the journal {journal.path}")
    journal.unseal(run.account.measurements, ledger.find_run(name)[1].journal_keys)
    return run


def _run_from_journal(terms: _RunTerms, journal: Journal) -> Run:
    """The run of a journal without a ledger."""
    return Run(
        name=journal.header.run,
        dataset=terms.dataset,
        privacy_unit=terms.privacy_unit,
        account=replay(terms.budget, journal.charged_measurements),
        ledger=None,
        recipe=terms.recipe,
        declared_public=terms.declared_public,
        closed=journal.ended,
    )


def privacy_unit_of(schema: Schema | BasketSchema, answer: QueryAnswer | None = None) -> PrivacyUnit:
    """The privacy unit and the neighboring relation that a schema declares, for the answer of a query if there is one.

    Privacy: if a row of the base table is replaced, a row-wise query may select the old row and not the new one, or
    the other way around. So the number of rows that a query selects is never public.
    """
    record = "basket" if isinstance(schema, BasketSchema) else "row"
    unit = schema.privacy_unit
    return PrivacyUnit(
        neighbors=schema.neighbors,
        id=unit.id if unit else "",
        max_rows=unit.max_rows if unit else 1,
        record=record + (OF_QUERY if answer and answer.protect == "query rows" else ""),
        filtered=answer is not None and not answer.keeps_all_rows,
    )
