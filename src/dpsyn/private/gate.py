"""The doorway: the only way from private rows to released numbers.

Whatever holds private rows for release is a ``Doorway``, and all its answers go through one method,
``Doorway._answered``. It does four things in this order: it pays (``Run.record_all`` writes the spend to the ledger
before it returns), it looks at the rows (an exact answer of known sensitivity, from an engine), it adds the noise or
makes the choice that was paid for, and it stores the released answer in the journal, if there is one. If counting
fails, the spend stands.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any, NoReturn, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpsyn.accounting import Budget, Certificate, Gaussian, Laplace, MeasurementRecord, PrivacyUnit, Run
from dpsyn.errors import BudgetError, DPSynError, InternalError
from dpsyn.private.journal import Journal, ReleasedAnswer
from dpsyn.private.mechanisms import Mechanisms

_T = TypeVar("_T")
_AnswerT = TypeVar("_AnswerT", bound=ReleasedAnswer)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseLimits:
    """What a release may ask for before it is refused, without paying.

    Attributes:
        max_marginal_cells: cells of one marginal; a larger one would be mostly noise.
        max_noisy_values: noisy numbers of one release. A sampler takes about 20 µs for each.
    """

    max_marginal_cells: int = 1_000_000
    max_noisy_values: int = 2_000_000


class PrivacyGate:
    """Private rows behind the gate; they answer with noise, and only for a price.

    Use it in a ``with`` block: leaving the block gives the unspent part of the budget back. If there is a journal, and
    the block is left by an exception once something was paid for, the run stays open, with its whole promise reserved,
    so that it can be resumed. The rows cannot be seen, counted, copied or saved through it.
    """

    __slots__ = ("_counter", "_journal", "_limits", "_mechanisms", "_run")

    def __init__(
        self, *, run: Run, journal: Journal | None, mechanisms: Mechanisms, limits: ReleaseLimits, counter: list[int]
    ) -> None:
        self._run = run
        self._journal = journal
        self._mechanisms = mechanisms
        self._limits = limits
        self._counter = counter  # how many noisy numbers so far; one list for all views of the same rows

    # ── what is public about it ──────────────────────────────────────────────────────────────────────────

    @property
    def budget(self) -> Budget:
        """What this release may spend."""
        return self._run.account.budget

    @property
    def privacy_unit(self) -> PrivacyUnit:
        """Whom this release protects."""
        return self._run.privacy_unit

    @property
    def limits(self) -> ReleaseLimits:
        """What this release may ask for."""
        return self._limits

    @property
    def noisy_values_left(self) -> int:
        """How many noisy numbers this release may still draw."""
        return self._limits.max_noisy_values - self._counter[0]

    def require_all_answers(self) -> None:
        """Refuse to go on with a run that lost answers when it was interrupted, for recipes that spend all there is.

        Such a run could never be completed: what it lost has to be paid for again, and everything else, too. Without
        this it would be found out at the last payment, when the rest of the budget is spent in vain.
        """
        if self._journal and self._journal.lost_measurements:
            raise _lost_answers_error("all of the budget is needed for other answers", self._run, self._journal)

    def certificate(self) -> Certificate:
        """What the draws so far cost, recomputed from the record of them."""
        return self._run.certificate(self._declared_public())

    def close(self) -> None:
        """End the release and give back what it did not spend; a journal stays."""
        if self._journal:
            self._journal.finish(self._run.ledger_head)
        self._run.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        if error is None:
            self.close()
        else:
            suspend_run(self._run, self._journal)

    def __reduce__(self) -> NoReturn:
        raise InternalError("private rows cannot be copied or saved")

    def _declared_public(self) -> tuple[str, ...]:
        """What this release takes as known without the rows, for its certificate."""
        raise NotImplementedError

    # ── how it answers ───────────────────────────────────────────────────────────────────────────────────

    def _release(
        self, measurements: Sequence[MeasurementRecord], question: object, compute: Callable[[int], list[_AnswerT]]
    ) -> list[_AnswerT]:
        """The doorway: answers that the journal holds, then new ones, which are paid for, drawn and stored.

        Privacy: ``compute`` looks at the rows and adds noise, for all draws from a position on. They are paid for before
        it is called, and what it gives is on disk before anybody sees it. A stored answer was paid for when it was
        compute: to give it again is post-processing, and no row is touched. ``question`` is all that tells these draws
        apart from others with the same purpose and spend, and made of public facts and released numbers.
        """
        stored: list[Any] = self._journal.take_answers(measurements, question) if self._journal else []
        lacking = measurements[len(stored) :]
        if not lacking:
            return stored
        with defer_interrupts() if self._journal else contextlib.nullcontext():
            self._charge(lacking)
            new: list[_AnswerT] = without_leaking_errors(lambda: compute(len(stored)))
            if self._journal:
                self._journal.store_answers(lacking, question, new)
        return [*stored, *new]

    def _charge(self, measurements: Sequence[MeasurementRecord]) -> None:
        """Pay for draws, in the ledger or else in the journal; only then may they happen."""
        try:
            self._run.charge_all(measurements)
        except BudgetError as error:
            if self._journal and self._journal.lost_measurements and not self._run.closed:
                raise _lost_answers_error(str(error), self._run, self._journal) from None
            raise
        if self._journal and not self._run.ledger:
            self._journal.record_charges(measurements)

    def _release_with_noise(
        self,
        purposes: Sequence[str],
        costs: Sequence[Gaussian | Laplace],
        question: object,
        count: Callable[[], Sequence[NDArray[np.int64]]],
    ) -> list[NDArray[np.int64]]:
        """Exact answers with noise on every number, zeros included."""
        draws = [MeasurementRecord(purpose=purpose, cost=spend) for purpose, spend in zip(purposes, costs, strict=True)]
        return self._release(
            draws, question, lambda first: self._mechanisms.add_noise([*zip(count(), costs, strict=True)][first:])
        )

    def _check_limits(self, cells: Sequence[int], noisy_values: int | None = None) -> None:
        """Refuse, before paying, marginals that are too large and releases that draw too much."""
        if max(cells) > self._limits.max_marginal_cells:
            raise BudgetError(
                f"a marginal would have {max(cells):,} cells, more than {self._limits.max_marginal_cells:,}; "
                "merge values or leave out an attribute"
            )
        wanted = sum(cells) if noisy_values is None else noisy_values
        if self._counter[0] + wanted > self._limits.max_noisy_values:
            raise BudgetError(
                f"the release would draw {self._counter[0] + wanted:,} noisy numbers, more than {self._limits.max_noisy_values:,}; "
                "measure fewer or smaller marginals"
            )
        self._counter[0] += wanted


def without_leaking_errors(answer: Callable[[], _T]) -> _T:
    """An answer from rows; if it fails, nothing but that is told.

    Privacy: another error's words, its context and the variables in its traceback may hold exact counts or cells. Hence
    ours is raised when the other one is over and forgotten. The spend stands.
    """
    try:
        return answer()
    except DPSynError:
        raise
    except Exception as error:  # whatever an engine or a sampler raises
        kind = type(error).__name__
    raise InternalError(f"counting rows failed ({kind}); what was paid for it stays spent")


def suspend_run(run: Run, journal: Journal | None) -> None:
    """Leave a run after a failure: with a journal it can be resumed, unless it paid for nothing.

    Privacy: what can be resumed keeps its whole promise reserved, so that nothing it may still draw is promised to
    others meanwhile.
    """
    if journal and run.account.measurements:
        journal.release()
        return
    run.close()
    if journal:
        journal.discard()


def _lost_answers_error(reason: str, run: Run, journal: Journal) -> BudgetError:
    """What to say if the budget has no room for what an interrupted run lost."""
    lost = journal.lost_measurements
    shown = "; ".join(draw.purpose for draw in lost[:3]) + (f"; and {len(lost) - 3} more" if len(lost) > 3 else "")
    rho, delta = (float(sum(getattr(draw.cost, cost) for draw in lost)) for cost in ("rho", "delta"))
    price = f"ρ = {rho:.6g}" + (f" and δ = {delta:.3g}" if delta else "")
    closing = f"close it with dpsyn ledger close {run.ledger.path} {run.name}, " if run.ledger else ""
    return BudgetError(
        f"when the run was interrupted, answers were lost that it had paid for: {shown}. To draw them again costs "
        f"{price}, for which there is no room ({reason}). The run cannot go on: {closing}remove {journal.path}, and "
        "start anew"
    )


# ── Interrupts wait until what was paid for is stored ──


_DEFERRED_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def defer_interrupts() -> Iterator[None]:
    """Let the block end before Ctrl-C or a request to terminate has its effect; a second one has it at once.

    Only the main thread can do that; in others the block runs as it is.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting: list[int] = []
    before = {number: signal.getsignal(number) for number in _DEFERRED_SIGNALS}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def wait(number: int, frame: FrameType | None) -> None:
        waiting.append(number)
        restore()

    for number in _DEFERRED_SIGNALS:
        signal.signal(number, wait)
    try:
        yield
    finally:
        restore()
        if waiting:
            signal.raise_signal(waiting[0])
