"""The privacy gate: the only way from private rows to released numbers.

Every class that holds private rows for release is a ``PrivacyGate``, and all of its answers pass through one method,
``PrivacyGate._release``. That method works in this order:

1. check the size limits;
2. return the answers that the journal already stores;
3. check that the budget allows the missing ones; in a run that lost answers, leave out those that nothing is left for;
4. count exactly, by an engine, a quantity of known sensitivity, and add the noise, or make the choice, that will be
   charged;
5. charge the cost and store the answers, at the same moment (see ``journal``);
6. return them.

Exact counts exist only inside ``_count_and_randomize``, and noisy ones that were not charged are discarded: if
counting fails, or if the charge cannot be recorded, nothing was charged and nobody saw anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, NoReturn, ParamSpec, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from dpsyn.accounting import (
    Budget,
    Certificate,
    Exponential,
    Gaussian,
    Laplace,
    MeasurementRecord,
    MechanismCost,
    PartitionSelection,
    PrivacyUnit,
    Reduction,
    ReleasedAnswer,
    Run,
    hash_answer,
)
from dpsyn.accounting.certificate import RunOutcome
from dpsyn.encoding.column_types import ColumnTypes
from dpsyn.errors import BudgetError, DPSynError, InternalError
from dpsyn.private.journal import Journal, StoredAnswer, hash_question
from dpsyn.private.mechanisms import Mechanisms

if TYPE_CHECKING:
    from dpsyn.encoding import Recoding
    from dpsyn.marginals import Clique, Marginal
    from dpsyn.schema import BasketSchema, Schema

_P = ParamSpec("_P")
_T = TypeVar("_T")
CostT = TypeVar("CostT", bound=MechanismCost)

ExactAnswer = NDArray[np.int64] | Mapping[str, int]
"""An answer before noise: counts or scores, or the count of each key that occurs. It never leaves the gate."""


@dataclass(frozen=True, slots=True)
class Released(Generic[CostT]):
    """An answer that left the gate, and the mechanism that it was charged for.

    The mechanism is the one that was asked for, unless the run lost answers (see ``Session.reduction``).
    """

    answer: Any
    cost: CostT


@dataclass(frozen=True, slots=True, eq=False)
class ReleasedMarginals:
    """Marginals that left the gate: under which schema and recoding they were measured."""

    schema: Schema
    recoding: Recoding
    marginals: tuple[Marginal, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ReleasedScores:
    """Scores that left the gate: what was scored, of which attributes, and the standard deviation of their noise."""

    kind: str
    cliques: tuple[Clique, ...]
    values: NDArray[np.float64]
    std: float


class NothingLeftError(BudgetError):
    """A run that lost answers has nothing left for a measurement: it can only end with what is stored.

    Attributes:
        schema: what is public about the table that was to be measured; None for baskets.
        recoding: its attributes; None for baskets.
    """

    def __init__(self, message: str, schema: Schema | None = None, recoding: Recoding | None = None) -> None:
        super().__init__(message)
        self.schema, self.recoding = schema, recoding


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseLimits:
    """The largest request that a release accepts; larger ones are refused before anything is charged.

    Attributes:
        max_marginal_cells: cells of one marginal; a larger one would be mostly noise.
        max_noisy_values: noisy values of one release; the sampler takes about 20 µs for each.
    """

    max_marginal_cells: int = 1_000_000
    max_noisy_values: int = 2_000_000


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class Session:
    """One release in progress; all views of the same private rows (recodings, discovered schemas) share it.

    Attributes:
        run: the account of the release; every charge goes through it.
        journal: stores the answers before they are used; None if the release cannot be resumed.
        mechanisms: the source of the noise.
        limits: the largest request that is accepted.
        query: the query whose answer is the table; empty if there is none.
        column_types: the declared types of the table's columns.
        noisy_values: noisy values that were requested so far.
        reduction: by how much measurements are reduced because answers that were charged are lost.
        left_out: the purposes of measurements that nothing was left for, because answers that were charged are lost.
        marginals: the marginals that were released so far.
        scores: the scores that were released so far.
        contents_hash: the hash of what gives the released numbers their meaning, see ``PrivacyGate.bind_contents``.
    """

    run: Run
    journal: Journal | None
    mechanisms: Mechanisms
    limits: ReleaseLimits
    query: str = ""
    column_types: ColumnTypes = field(default_factory=dict)
    noisy_values: int = 0
    reduction: Reduction = Reduction()  # noqa: RUF009 -- frozen
    left_out: tuple[str, ...] = ()
    marginals: list[ReleasedMarginals] = field(default_factory=list)
    scores: list[ReleasedScores] = field(default_factory=list)
    contents_hash: str = ""

    def check_limits(self, cells: Sequence[int], noisy_values: int | None = None) -> None:
        """Refuse marginals that are too large and releases of too many noisy values; otherwise count them.

        ``cells`` are the sizes of the marginals, ``noisy_values`` how many noisy values they lead to: one for each
        cell unless another number is given.
        """
        largest, total = (
            max(cells, default=0),
            self.noisy_values + (sum(cells) if noisy_values is None else noisy_values),
        )
        if largest > self.limits.max_marginal_cells:
            raise BudgetError(
                f"a marginal would have {largest:,} cells, more than {self.limits.max_marginal_cells:,}; "
                "merge values or leave out an attribute"
            )
        if total > self.limits.max_noisy_values:
            raise BudgetError(
                f"the release would contain {total:,} noisy values, more than {self.limits.max_noisy_values:,}; "
                "measure fewer or smaller marginals"
            )
        self.noisy_values = total

    def plan(self, measurements: Sequence[MeasurementRecord]) -> Sequence[MeasurementRecord | None]:
        """The measurements with what is left of the budget for them; refused if the budget does not allow them.

        In a run that lost answers, None stands for those that nothing is left for.
        """
        planned: Sequence[MeasurementRecord | None] = measurements
        if self.lost_measurements:
            planned = self._plan_after_loss(measurements)
        self.run.check_charge([measurement for measurement in planned if measurement])
        return planned

    def _plan_after_loss(self, measurements: Sequence[MeasurementRecord]) -> list[MeasurementRecord | None]:
        planned: list[MeasurementRecord | None] = []
        account = self.run.account
        for measurement in measurements:
            try:
                reduced = replace(measurement, cost=self.reduction.apply(measurement.cost))
                account = account.require_own_step(reduced.cost).charge(reduced)
            except BudgetError:
                planned.append(None)
            else:
                planned.append(None if self.run.closed else reduced)
        return planned

    def commit(self, answers: Sequence[StoredAnswer]) -> None:
        """Charge and store answers at the same moment; only when this returns may they be used.

        Privacy: with a ledger, the answers are sealed on disk when the ledger records their charges and their keys in
        one transaction. Without one, the line of an answer in the journal is its charge.
        """
        charged = [stored.charged for stored in answers]
        if self.journal and self.run.ledger:
            keys = self.journal.store_sealed(answers, self.run.ledger_head)
            self.run.charge_all(charged, keys)
            return
        self.run.charge_all(charged)
        if self.journal:
            self.journal.store_answers(answers)

    @property
    def lost_measurements(self) -> tuple[MeasurementRecord, ...]:
        """The measurements that were charged before the run was interrupted and whose answers are lost."""
        return self.journal.lost_measurements if self.journal else ()

    @property
    def outcome(self) -> RunOutcome:
        """What is known of the run besides its measurements."""
        return RunOutcome(
            lost_answers=len(self.lost_measurements),
            left_out=self.left_out,
            contents_hash=self.contents_hash,
        )

    def close(self) -> None:
        """End the release and return the unspent budget; the journal stays."""
        if self.journal:
            self.journal.finish(self.run.ledger_head, self.outcome)
        self.run.close(self.outcome)

    def suspend(self) -> None:
        """Leave the release after a failure. With a journal it can be resumed, unless nothing was charged.

        Privacy: a release that can be resumed keeps its whole budget reserved. So nobody else can be granted the
        budget that it may still spend.
        """
        if self.journal and (self.run.account.measurements or self.journal.holds_answers):
            self.journal.release()
            return
        self.run.close()
        if self.journal:
            self.journal.discard()

    def nothing_left_error(self, schema: Schema | None = None, recoding: Recoding | None = None) -> NothingLeftError:
        """The error that ends a run which lost answers and has nothing left for what it was to measure."""
        ledger, journal = self.run.ledger, self.journal
        closing = f"close it with dpsyn ledger close {ledger.path} {self.run.name}, " if ledger else ""
        return NothingLeftError(
            f"{describe_loss(self.lost_measurements)}. Nothing is left of the budget to measure "
            f"{describe_purposes(self.left_out)}, and the answers that are stored are not enough for a release: "
            f"{closing}remove {journal.path if journal else ''}, and start a new run",
            schema,
            recoding,
        )


def describe_loss(measurements: Sequence[MeasurementRecord]) -> str:
    """What a run lost, in words: "the journal lacks the answers to … They cost ρ = 0.01, which stays spent"."""
    shown = describe_purposes([measurement.purpose for measurement in measurements])
    rho, delta = float(sum(m.cost.rho for m in measurements)), float(sum(m.cost.delta for m in measurements))
    cost = f"ρ = {rho:.6g}" + (f" and δ = {delta:.3g}" if delta else "")
    return (
        f"the journal was damaged or replaced by an older one: it lacks answers that were charged ({shown}). They cost "
        f"{cost}, which stays spent"
    )


def describe_purposes(purposes: Sequence[str]) -> str:
    """The first few purposes, and how many more there are."""
    return "; ".join(purposes[:3]) + (f"; and {len(purposes) - 3} more" if len(purposes) > 3 else "")


class PrivacyGate:
    """Private rows behind the gate. They are answered with noise only, and every answer is charged.

    Use it in a ``with`` block: leaving the block returns the unspent budget. If there is a journal, and an exception
    ends the block after something was charged, the run stays open with its whole budget reserved, and it can be
    resumed. The rows cannot be seen, counted, copied or saved through this object.

    Attributes:
        schema: what is public about the rows.
    """

    __slots__ = ("_session",)

    schema: Schema | BasketSchema

    def __init__(self, session: Session) -> None:
        self._session = session

    # ── what is public about it ──────────────────────────────────────────────────────────────────────────

    @property
    def budget(self) -> Budget:
        """The budget of this release."""
        return self._session.run.account.budget

    @property
    def privacy_unit(self) -> PrivacyUnit:
        """The privacy unit and the neighboring relation of this release."""
        return self._session.run.privacy_unit

    @property
    def limits(self) -> ReleaseLimits:
        """The largest request that this release accepts."""
        return self._session.limits

    @property
    def noisy_values_left(self) -> int:
        """The number of noisy values that this release may still request."""
        return self._session.limits.max_noisy_values - self._session.noisy_values

    @property
    def query(self) -> str:
        """The query whose answer these rows are; empty if there is none."""
        return self._session.query

    @property
    def left_out(self) -> tuple[str, ...]:
        """The purposes of measurements that nothing was left for, because answers that were charged are lost."""
        return self._session.left_out

    def certificate(self) -> Certificate:
        """The certificate of the release so far; the cost is recomputed from the recorded measurements."""
        return self._session.run.certificate(self._session.outcome)

    def bind_contents(self, contents_hash: str) -> None:
        """Record, when the release ends, a hash of what gives its numbers their meaning: schema and recodings."""
        self._session.contents_hash = contents_hash

    def close(self) -> None:
        """End the release and return the unspent budget; the journal stays."""
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        if error is None:
            self._session.close()
        else:
            self._session.suspend()

    def __reduce__(self) -> NoReturn:
        raise InternalError("private rows cannot be copied or saved")

    # ── the gate itself ──────────────────────────────────────────────────────────────────────────────────

    def _release(
        self,
        measurements: Sequence[MeasurementRecord],
        question: object,
        count: Callable[[], Sequence[ExactAnswer]],
        *,
        cells: Sequence[int] = (),
        noisy_values: int | None = None,
    ) -> list[Released[Any] | None]:
        """Release the answers to measurements: noisy arrays, selected keys, or positions of chosen candidates.

        None stands for the answer to a measurement that a run which lost answers cannot pay for any more.

        Privacy: ``count`` gives the exact answers, one for each measurement, whose sensitivities are those of the
        measurements' costs. They are randomized before anything else sees them, and the randomized answers are
        returned only once they are charged. A stored answer was charged when it was first released: returning it
        again is post-processing, and no row is touched.

        Args:
            measurements: what is measured, and the mechanism and cost of each measurement.
            question: what distinguishes these measurements from others with the same purpose and cost. It is made of
                public facts and released numbers only.
            count: counts the exact answers.
            cells: the sizes of the marginals, for the limits.
            noisy_values: how many noisy values are released, if it is not one for each cell.
        """
        session, journal = self._session, self._session.journal
        session.check_limits(cells, noisy_values)
        answers: list[StoredAnswer | None] = [None] * len(measurements)
        answers = journal.take_answers(measurements, question) if journal else answers
        missing = [position for position, stored in enumerate(answers) if stored is None]
        planned = session.plan([measurements[position] for position in missing]) if missing else []
        wanted = {position: plan for position, plan in zip(missing, planned, strict=True) if plan}
        session.left_out += tuple(measurements[position].purpose for position in missing if position not in wanted)
        if wanted:
            if journal:
                journal.require_no_more_answers(measurements[min(wanted)], answers[min(wanted) :])
            try:
                new = _measure(session, measurements, wanted, count, hash_question(question))
            except BaseException as error:  # the frames below hold answers that are not charged
                error.__cause__ = error.__context__ = None
                raise error.with_traceback(None) from None
            for position, stored in zip(wanted, new, strict=True):
                answers[position] = stored
        return [Released(stored.answer, stored.charged.cost) if stored else None for stored in answers]

    def _release_one(
        self,
        measurement: MeasurementRecord,
        question: object,
        count: Callable[[], ExactAnswer],
        *,
        cells: Sequence[int] = (),
        noisy_values: int | None = None,
    ) -> Released[Any]:
        """Release the answer to one measurement; a NothingLeftError if a run that lost answers cannot pay for it."""
        (released,) = self._release([measurement], question, lambda: [count()], cells=cells, noisy_values=noisy_values)
        if released is None:
            raise self._nothing_left_error()
        return released

    def _nothing_left_error(self) -> NothingLeftError:
        return self._session.nothing_left_error()


def _measure(
    session: Session,
    asked: Sequence[MeasurementRecord],
    planned: Mapping[int, MeasurementRecord],
    count: Callable[[], Sequence[ExactAnswer]],
    question: str,
) -> list[StoredAnswer]:
    """Count, randomize, and commit the measurements at some positions; ``question`` is a hash.

    This is a function of its own because answers that are not charged must not stay in a variable of ``_release``: the
    traceback of an error would hold them.
    """
    answers = without_leaking_errors(_count_and_randomize, count, planned, session.mechanisms)
    new = [
        StoredAnswer(asked[position], replace(charged, answer_hash=hash_answer(answer)), question, answer)
        for (position, charged), answer in zip(planned.items(), answers, strict=True)
    ]
    session.commit(new)
    return new


def _count_and_randomize(
    count: Callable[[], Sequence[ExactAnswer]], planned: Mapping[int, MeasurementRecord], mechanisms: Mechanisms
) -> Sequence[ReleasedAnswer]:
    """Count exactly, then add the noise or make the choice that will be charged, at the planned positions.

    The other answers are stored already, or nothing is left for them. This is a function of its own because exact
    answers must not stay in a variable of ``_release``: the traceback of a later error would hold them.
    """
    counted = count()
    exact = [counted[position] for position in planned]
    match [measurement.cost for measurement in planned.values()]:
        case [PartitionSelection() as cost]:
            return [tuple(mechanisms.select_partitions(cast(Mapping[str, int], exact[0]), cost))]
        case [Exponential() as cost]:
            return [mechanisms.choose_candidates(cast(NDArray[np.int64], exact[0]), cost)]
        case costs:
            answers = cast(Sequence[NDArray[np.int64]], exact)
            return mechanisms.add_noise([*zip(answers, cast(Sequence[Gaussian | Laplace], costs), strict=True)])


def without_leaking_errors(function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Call a function that sees rows; on failure raise a message that contains no data.

    Privacy: the message of another error, its context and the variables in its traceback may hold exact counts or
    cells. Hence ours is raised only after the other error is handled and gone.
    """
    failure: BaseException
    try:
        return function(*args, **kwargs)
    except (DPSynError, KeyboardInterrupt, SystemExit) as error:  # our message; the frames below may hold exact counts
        failure = error.with_traceback(None)
    except Exception as error:  # whatever an engine or a sampler raises
        failure = InternalError(f"counting rows failed ({type(error).__name__}); nothing was charged for it")
    failure.__cause__ = failure.__context__ = None
    raise failure
