"""What can be set about a fit, and why it is set as it is."""

from __future__ import annotations

from dataclasses import dataclass

from dpsyn.errors import InternalError


@dataclass(frozen=True, slots=True, kw_only=True)
class Gibbs:
    """How a fit runs. The defaults come from Adult, NLTCS and ACS at ε = 0.1, 1 and 10; around them little changes.

    Attributes:
        max_sweeps: to settle at most; records of pairs settle in four, relations of three in ten.
        min_improvement: a sweep that brings records closer to the tables by less than this share is the last to settle.
        relaxing_sweeps: further sweeps in which the pull of the tables is eased while parameters take its place.
        averaging_sweeps: further sweeps after that, over which parameters are averaged.
        polishing_sweeps: last sweeps that bind records to those marginals.
        max_tightening_sweeps: sweeps at most that bind rows of precise tables to them still closer.
        tighten_below_noise: mean distance that noise makes, below which tables are precise.
        tightening_tolerance: mean distance of rows and tables at which these sweeps end.
        sampling_sweeps: sweeps from the start to a row of the model, before polishing.
        conditional_sweeps: sweeps where rows must meet conditions.
        trust: how strongly records follow a table: λ = trust · (records per cell) / (variance of a cell). Where noise
            and the table's own deviation from what other tables tell are both normal, the best λ is s² · (records per
            cell) / variance with s the usual relative deviation of a cell.
        max_stiffness: λ approaches it as tables become exact: the model is not bent for the last few records of a cell,
            for real counts differ by more than that from any model; rows are bound to them by polishing.
        sweep_stiffness: the most that one record more than wanted lowers the logarithm of a cell's weight, for records to
            keep moving.
        polishing_stiffness: the same while polishing, when records are where they belong.
        tightening_stiffness: what ``Pull.most`` comes to while they are bound still closer; with 80, single precision ends.
        max_force: the most that all records more than wanted lower it, so that a start far off is not overshot.
        pseudocount_sigmas: records of the whole table's distribution added to each row of a table of the start, in standard
            deviations of its noise, and half a record at least: no cell is impossible, least of all where counts
            below the noise were clipped.
    """

    max_sweeps: int = 24
    min_improvement: float = 0.03
    relaxing_sweeps: int = 4
    averaging_sweeps: int = 8
    polishing_sweeps: int = 2
    max_tightening_sweeps: int = 28
    tighten_below_noise: float = 0.001
    tightening_tolerance: float = 0.004
    sampling_sweeps: int = 4
    conditional_sweeps: int = 12
    trust: float = 0.1
    max_stiffness: float = 0.1
    sweep_stiffness: float = 0.3
    polishing_stiffness: float = 1.0
    tightening_stiffness: float = 60.0
    max_force: float = 4.0
    pseudocount_sigmas: float = 0.3

    def __post_init__(self) -> None:
        if self.max_sweeps < 1 or self.averaging_sweeps < 1 or self.polishing_sweeps < 0:
            raise InternalError("a fit needs a sweep to settle and one to average")
        numbers = (
            self.trust,
            self.max_stiffness,
            self.sweep_stiffness,
            self.polishing_stiffness,
            self.max_force,
            self.pseudocount_sigmas,
            self.relaxing_sweeps,
        )
        if min(*numbers, self.min_improvement) < 0:
            raise InternalError("an option of a fit is negative")
