"""The privacy gate: the only way from private rows to released numbers.

Every class that holds private rows for release is a ``PrivacyGate``, and all of its answers pass through one method,
``PrivacyGate._release``. That method works in this order:

1. check the size limits;
2. return the answers that the journal already stores;
3. check that the budget allows the missing ones;
4. count exactly, by an engine, a quantity of known sensitivity, and add the noise, or make the choice, that will be
   charged;
5. charge the cost and store the answers, at the same moment (see ``journal``);
6. return them.

Exact counts exist only inside ``_count_and_randomize``, and noisy ones that were not charged are discarded: if
counting fails, or if the charge cannot be recorded, nothing was charged and nobody saw anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
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
from dpsyn.accounting.certificate import describe_query
from dpsyn.errors import BudgetError, DPSynError, InternalError
from dpsyn.private.journal import Journal, StoredAnswer, hash_question
from dpsyn.private.mechanisms import Mechanisms

if TYPE_CHECKING:
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
        declared_public: facts that are taken as public besides the schema, for the certificate.
        query: the query whose answer is the table; empty if there is none.
        noisy_values: noisy values that were requested so far.
        reduction: by how much measurements are reduced because answers that were charged are lost.
    """

    run: Run
    journal: Journal | None
    mechanisms: Mechanisms
    limits: ReleaseLimits
    declared_public: tuple[str, ...] = ()
    query: str = ""
    noisy_values: int = 0
    reduction: Reduction = Reduction()  # noqa: RUF009 -- frozen

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

    def plan(self, measurements: Sequence[MeasurementRecord]) -> list[MeasurementRecord]:
        """The measurements with what is left of the budget for them; refused if the budget does not allow them."""
        try:
            planned = [replace(m, cost=self.reduction.apply(m.cost)) for m in measurements]
            self.run.check_charge(planned)
        except BudgetError as error:
            if self.lost_measurements and not self.run.closed:
                raise self._lost_answers_error(str(error)) from None
            raise
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

    def close(self) -> None:
        """End the release and return the unspent budget; the journal stays."""
        if self.journal:
            self.journal.finish(self.run.ledger_head)
        self.run.close()

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

    def _lost_answers_error(self, reason: str) -> BudgetError:
        ledger, journal = self.run.ledger, self.journal
        closing = f"close it with dpsyn ledger close {ledger.path} {self.run.name}, " if ledger else ""
        return BudgetError(
            f"{describe_loss(self.lost_measurements)}. {reason[0].upper()}{reason[1:]}, so the run cannot be "
            f"completed: {closing}remove {journal.path if journal else ''}, and start a new run"
        )


def describe_loss(measurements: Sequence[MeasurementRecord]) -> str:
    """What a run lost, in words: "the journal lacks the answers to … They cost ρ = 0.01, which stays spent"."""
    shown = "; ".join(m.purpose for m in measurements[:3])
    shown += f"; and {len(measurements) - 3} more" if len(measurements) > 3 else ""
    rho, delta = float(sum(m.cost.rho for m in measurements)), float(sum(m.cost.delta for m in measurements))
    cost = f"ρ = {rho:.6g}" + (f" and δ = {delta:.3g}" if delta else "")
    return (
        f"the journal was damaged or replaced by an older one: it lacks answers that were charged ({shown}). They cost "
        f"{cost}, which stays spent"
    )


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

    def certificate(self) -> Certificate:
        """The certificate of the release so far; the cost is recomputed from the recorded measurements."""
        query = (describe_query(self.query),) if self.query else ()
        declared_public = (*self.schema.declared_public(), *self._session.declared_public, *query)
        return self._session.run.certificate(declared_public, len(self._session.lost_measurements))

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
    ) -> list[Released[Any]]:
        """Release the answers to measurements: noisy arrays, selected keys, or positions of chosen candidates.

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
        stored = journal.take_answers(measurements, question) if journal else []
        missing = measurements[len(stored) :]
        if missing:
            try:
                stored += _measure(session, missing, count, len(stored), hash_question(question))
            except BaseException as error:  # the frames below hold answers that are not charged
                error.__cause__ = error.__context__ = None
                raise error.with_traceback(None) from None
        return [Released(each.answer, each.charged.cost) for each in stored]


def _measure(
    session: Session,
    asked: Sequence[MeasurementRecord],
    count: Callable[[], Sequence[ExactAnswer]],
    skip: int,
    question: str,
) -> list[StoredAnswer]:
    """Count, randomize, and commit; ``question`` is a hash.

    This is a function of its own because answers that are not charged must not stay in a variable of ``_release``: the
    traceback of an error would hold them.
    """
    planned = session.plan(asked)
    answers = without_leaking_errors(_count_and_randomize, count, skip, planned, session.mechanisms)
    new = [
        StoredAnswer(measurement, replace(charged, answer_hash=hash_answer(answer)), question, answer)
        for measurement, charged, answer in zip(asked, planned, answers, strict=True)
    ]
    session.commit(new)
    return new


def _count_and_randomize(
    count: Callable[[], Sequence[ExactAnswer]],
    skip: int,
    measurements: Sequence[MeasurementRecord],
    mechanisms: Mechanisms,
) -> Sequence[ReleasedAnswer]:
    """Count exactly, then add the noise or make the choice that will be charged.

    The first ``skip`` answers are stored already. This is a function of its own because exact answers must not stay in
    a variable of ``_release``: the traceback of a later error would hold them.
    """
    exact = count()[skip:]
    match [measurement.cost for measurement in measurements]:
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
