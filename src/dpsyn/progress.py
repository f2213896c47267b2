"""Progress callbacks: the name of a phase and the fraction done, never anything about rows; and the steps of a run."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Progress = Callable[[str, float], None]
"""Called with the name of the current phase and the fraction of it that is done, from 0 to 1.

Privacy: names of phases contain only public facts and released numbers; they never contain a number of rows.
"""


def ignore_progress(phase: str, done: float) -> None:
    """No-op progress callback."""


@dataclass(frozen=True, slots=True)
class Step:
    """A step that a run may take.

    Attributes:
        phase: how the name of its phase begins.
        duration: how long it usually takes, compared with other steps; 0 if that cannot be compared, as for reading a
            file from wherever it lies.

    Privacy: a recipe's steps are fixed, so neither their number nor their durations depend on rows.
    """

    phase: str
    duration: float = 1.0


READ_TABLE = Step("reading the table", 0)
MEASURE_ONE_WAY = Step("measuring every attribute", 4)
SCORE_PAIRS = Step("scoring how pairs depend", 5)
SCORE_AGAIN = Step("scoring pairs", 10)
MEASURE_MARGINALS = Step("measuring", 3)
MAKE_CONSISTENT = Step("making tables agree", 1)
FIT_RECORDS = Step("fitting records", 12)
SAMPLE_ROWS = Step("sampling rows", 10)
DRAW_REPLICATES = Step("drawing replicates", 100)
WRITE_VALUES = Step("writing values", 1)
MAKE_REPORT = Step("making the report", 4)
"""Durations are about those of the seconds that the demo's table takes with 200 000 rows at ε = 1."""

FIT_MODEL = (MAKE_CONSISTENT, FIT_RECORDS)
"""What follows the measurements of a release."""

_MIN_SECONDS, _MIN_SHARE = 3.0, 0.05
"""What must have passed, in time and of the work, before the time left is estimated: earlier it would be a guess."""


class StepTracker:
    """Which of the planned steps a run is at, and how much time is left, from the phases that it reports.

    A run may leave steps out, such as a second round of scores; the number of steps stays, and the tracker moves on to
    the next step whose phase begins so. A phase that no step begins with belongs to the current step.

    Privacy: everything follows from the phases and from the clock, as anyone with a watch could see it.
    """

    def __init__(self, steps: Sequence[Step], clock: Callable[[], float] = time.monotonic) -> None:
        self.steps, self._clock = tuple(steps), clock
        self._index, self._phase, self._done = -1, "", 0.0
        self._finished = 0.0  # durations of the steps that are done
        self._uncounted_until = clock()  # before it, no step with a duration had begun
        self._end: float | None = None  # when everything will probably be done

    def update(self, phase: str, done: float) -> bool:
        """Take note of a phase; whether a new one began."""
        is_new = phase != self._phase
        if is_new:
            later = range(self._index + 1, len(self.steps))
            found = next((index for index in later if phase.startswith(self.steps[index].phase)), None)
            if found is not None:
                self._finished += self._current_duration
                self._index = found
            if not self._finished:
                self._uncounted_until = self._clock()
            self._phase = phase
        self._done = done
        left = self._estimate_left()
        self._end = None if left is None else self._clock() + left
        return is_new

    @property
    def label(self) -> str:
        """Which step this is, as "step 3 of 8"; empty if that is not known, or there is only one."""
        return f"step {self._index + 1} of {len(self.steps)}" if self._index >= 0 and len(self.steps) > 1 else ""

    @property
    def position(self) -> int | None:
        """The index of the current step; None before the first one."""
        return self._index if self._index >= 0 else None

    @property
    def share_done(self) -> float:
        """How much of the work is done, from 0 to 1."""
        done, left = self._work()
        return done / (done + left) if done + left else 0.0

    @property
    def seconds_left(self) -> float | None:
        """The time left by the last estimate; None if there is nothing to base one on, or if it is over."""
        left = 0.0 if self._end is None else self._end - self._clock()
        return left if left > 0 else None

    def _estimate_left(self) -> float | None:
        """Steps take as long, compared with what they usually take, as those before.

        What was before the first step with a duration, such as reading a file, is left out.
        """
        done, left = self._work()
        passed = self._clock() - self._uncounted_until
        if not done or done < _MIN_SHARE * (done + left) or passed < _MIN_SECONDS:
            return None
        return passed * left / done

    def _work(self) -> tuple[float, float]:
        """The durations of what is done and of what is left; steps that were left out are neither."""
        done = self._finished + self._done * self._current_duration
        left = (1 - self._done) * self._current_duration
        return done, left + sum(step.duration for step in self.steps[self._index + 1 :])

    @property
    def _current_duration(self) -> float:
        return self.steps[self._index].duration if self._index >= 0 else 0.0


def format_duration(seconds: float) -> str:
    """A time in words of few digits.

    >>> format_duration(0.3), format_duration(42.4), format_duration(200), format_duration(9_000)
    ('less than a second', '42 s', '3 min', '2 h 30 min')
    """
    if seconds < 1:
        return "less than a second"
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"
