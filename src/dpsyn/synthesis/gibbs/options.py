"""What can be set about a fit, and why it is set as it is."""

from __future__ import annotations

from dataclasses import dataclass

from dpsyn.errors import InternalError


@dataclass(frozen=True, slots=True, kw_only=True)
class GibbsOptions:
    """How a fit runs. The defaults come from Adult, NLTCS and ACS at ε = 0.1, 1 and 10; around them little changes.

    Attributes:
        most_sweeps: to settle at most; records of pairs settle in four, relations of three in ten.
        progress: a sweep that brings records closer to the tables by less than this share is the last to settle.
        eased: further sweeps in which the pull of the tables is eased while parameters take its place.
        averaged: further sweeps after that, over which parameters are averaged.
        polished: last sweeps that bind records to those marginals.
        pressed: sweeps at most that bind rows of precise tables to them still closer.
        precise: mean distance that noise makes, below which tables are precise.
        close: mean distance of rows and tables at which these sweeps end.
        drawn: sweeps from the start to a row of the model, before polishing.
        conditioned: sweeps where rows must meet conditions.
        trust: how strongly records follow a table: λ = trust · (records per cell) / (variance of a cell). Where noise
            and the table's own deviation from what other tables tell are both normal, the best λ is s² · (records per
            cell) / variance with s the usual relative deviation of a cell.
        most_trust: λ approaches it as tables become exact: the model is not bent for the last few records of a cell,
            for real counts differ by more than that from any model; rows are bound to them by polishing.
        stiffest: the most that one record more than wanted lowers the logarithm of a cell's weight, for records to
            keep moving.
        polish: the same while polishing, when records are where they belong.
        press: what ``Pull.most`` comes to while they are bound still closer; with 80, single precision ends.
        reach: the most that all records more than wanted lower it, so that a start far off is not overshot.
        doubt: records of the whole table's distribution added to each row of a table of the start, in standard
            deviations of its noise, and half a record at least: no cell is impossible, least of all where counts
            below the noise were clipped.
    """

    most_sweeps: int = 24
    progress: float = 0.03
    eased: int = 4
    averaged: int = 8
    polished: int = 2
    pressed: int = 28
    precise: float = 0.001
    close: float = 0.004
    drawn: int = 4
    conditioned: int = 12
    trust: float = 0.1
    most_trust: float = 0.1
    stiffest: float = 0.3
    polish: float = 1.0
    press: float = 60.0
    reach: float = 4.0
    doubt: float = 0.3

    def __post_init__(self) -> None:
        if self.most_sweeps < 1 or self.averaged < 1 or self.polished < 0:
            raise InternalError("a fit needs a sweep to settle and one to average")
        numbers = (self.trust, self.most_trust, self.stiffest, self.polish, self.reach, self.doubt, self.eased)
        if min(*numbers, self.progress) < 0:
            raise InternalError("an option of a fit is negative")
