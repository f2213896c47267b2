"""The privacy gate: the only way from private rows to released numbers.

Every class that holds private rows for release is a ``PrivacyGate``, and all of its answers pass through one method,
``PrivacyGate._release``. That method works in this order:

1. check the size limits;
2. return the answers that the journal already stores;
3. charge the cost of the missing ones: it is in the ledger (or the journal) before the method goes on;
4. count exactly, by an engine, a quantity of known sensitivity;
5. add the noise, or make the choice, that was charged;
6. store the released answers in the journal, if there is one, and return them.

If counting fails, the charge stands. Exact counts exist only inside ``_count_and_randomize``.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from dpsyn.accounting import (
    Budget,
    Certificate,
    Exponential,
    Gaussian,
    Laplace,
    MeasurementRecord,
    PartitionSelection,
    PrivacyUnit,
    Run,
)
from dpsyn.errors import BudgetError, DPSynError, InternalError
from dpsyn.private.journal import Journal, ReleasedAnswer
from dpsyn.private.mechanisms import Mechanisms

if TYPE_CHECKING:
    from dpsyn.schema import BasketSchema, Schema

_P = ParamSpec("_P")
_T = TypeVar("_T")

ExactAnswer = NDArray[np.int64] | Mapping[str, int]
"""An answer before noise: counts or scores, or the count of each key that occurs. It never leaves the gate."""


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
        noisy_values: noisy values that were requested so far.
    """

    run: Run
    journal: Journal | None
    mechanisms: Mechanisms
    limits: ReleaseLimits
    declared_public: tuple[str, ...] = ()
    noisy_values: int = 0

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

    def charge(self, measurements: Sequence[MeasurementRecord]) -> None:
        """Charge measurements, in the ledger or else in the journal; only when this returns may they happen."""
        try:
            self.run.charge_all(measurements)
        except BudgetError as error:
            if self.journal and self.journal.lost_measurements and not self.run.closed:
                raise self._lost_answers_error(str(error), self.journal) from None
            raise
        if self.journal and not self.run.ledger:
            self.journal.record_charges(measurements)

    def require_all_answers(self) -> None:
        """Refuse to resume a run that lost answers, for recipes that spend the whole budget (see ``PrivacyGate``)."""
        if self.journal and self.journal.lost_measurements:
            raise self._lost_answers_error("all of the budget is needed for other answers", self.journal)

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
        if self.journal and self.run.account.measurements:
            self.journal.release()
            return
        self.run.close()
        if self.journal:
            self.journal.discard()

    def _lost_answers_error(self, reason: str, journal: Journal) -> BudgetError:
        lost = journal.lost_measurements
        shown = "; ".join(m.purpose for m in lost[:3]) + (f"; and {len(lost) - 3} more" if len(lost) > 3 else "")
        rho, delta = float(sum(m.cost.rho for m in lost)), float(sum(m.cost.delta for m in lost))
        cost = f"ρ = {rho:.6g}" + (f" and δ = {delta:.3g}" if delta else "")
        ledger = self.run.ledger
        closing = f"close it with dpsyn ledger close {ledger.path} {self.run.name}, " if ledger else ""
        return BudgetError(
            f"the run was interrupted after these measurements were charged and before they were stored, so their "
            f"answers were lost: {shown}. Measuring them again costs {cost}, which the budget does not allow "
            f"({reason}). The run cannot be resumed: {closing}remove {journal.path}, and start a new run"
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

    def require_all_answers(self) -> None:
        """Refuse to resume a run that lost answers when it was interrupted.

        For recipes that spend the whole budget: measuring the lost answers again costs budget that the recipe needs
        for its other answers, so such a run can never be completed. Without this check it would fail only at its last
        measurement, after spending the rest of the budget for nothing.
        """
        self._session.require_all_answers()

    def certificate(self) -> Certificate:
        """The certificate of the release so far; the cost is recomputed from the recorded measurements."""
        return self._session.run.certificate((*self.schema.declared_public(), *self._session.declared_public))

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
    ) -> list[Any]:
        """Release the answers to measurements: noisy arrays, selected keys, or positions of chosen candidates.

        Privacy: ``count`` gives the exact answers, one for each measurement, whose sensitivities are those of the
        measurements' costs. It is called after the charge, and its answers are randomized before anything else sees
        them. A stored answer was charged when it was first released: returning it again is post-processing, and no
        row is touched.

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
        if not missing:
            return stored
        with defer_interrupts() if journal else contextlib.nullcontext():
            session.charge(missing)
            new = without_leaking_errors(_count_and_randomize, count, len(stored), missing, session.mechanisms)
            if journal:
                journal.store_answers(missing, question, new)
        return [*stored, *new]


def _count_and_randomize(
    count: Callable[[], Sequence[ExactAnswer]],
    skip: int,
    measurements: Sequence[MeasurementRecord],
    mechanisms: Mechanisms,
) -> Sequence[ReleasedAnswer]:
    """Count exactly, then add the noise or make the choice that was charged.

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
    cells. Hence ours is raised only after the other error is handled and gone. The charge stands.
    """
    failure: DPSynError
    try:
        return function(*args, **kwargs)
    except DPSynError as error:  # its message is ours; the frames below it may hold exact counts
        failure = error.with_traceback(None)
    except Exception as error:  # whatever an engine or a sampler raises
        failure = InternalError(f"counting rows failed ({type(error).__name__}); what was charged for it stays spent")
    failure.__cause__ = failure.__context__ = None
    raise failure


# ── interrupts ───────────────────────────────────────────────────────────────────────────────────────────────


_DEFERRED_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def defer_interrupts() -> Iterator[None]:
    """Finish the block before Ctrl-C or a request to terminate takes effect; a second one takes effect at once.

    So an answer that was charged is also stored. Only the main thread can defer signals; in other threads the block
    runs without it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []
    previous = {number: signal.getsignal(number) for number in _DEFERRED_SIGNALS}

    def restore() -> None:
        for number, handler in previous.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def defer(number: int, frame: FrameType | None) -> None:
        received.append(number)
        restore()

    for number in _DEFERRED_SIGNALS:
        signal.signal(number, defer)
    try:
        yield
    finally:
        restore()
        if received:
            signal.raise_signal(received[0])
