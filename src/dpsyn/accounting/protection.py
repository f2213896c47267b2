"""Whom the guarantee protects: the neighbour relation and the unit, and what they do to sensitivities."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, get_args

from dpsyn.accounting.exact import Number, exact
from dpsyn.errors import BudgetError

Neighbours = Literal["add-remove", "replace"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Protection:
    """Two tables are neighbours if they differ in one unit: one row, or the rows of one person.

    A histogram (a marginal) over disjoint cells changes by the vector a − b, where a counts the rows that came
    and b those that went. With at most k rows per unit ‖a‖₁, ‖b‖₁ ≤ k, hence ‖a‖₂, ‖b‖₂ ≤ k (all k in one cell):

    ============  ==========================  ======  ===========
    neighbours    one table has               L1      L2 squared
    ============  ==========================  ======  ===========
    add-remove    one unit more  (b = 0)      k       k²
    replace       one unit exchanged          2k      k² + k²
    ============  ==========================  ======  ===========

    Attributes:
        neighbours: ``add-remove`` hides how many units there are; ``replace`` takes their number as public.
        unit: the identifier that names a person; empty if a unit is one row.
        rows: the rows k of one unit that a release uses at most.
        record: what a row is, in words: a basket is one, however many lines of a file it takes.
    """

    neighbours: Neighbours = "add-remove"
    unit: str = ""
    rows: int = 1
    record: str = "row"

    def __post_init__(self) -> None:
        if self.neighbours not in get_args(Neighbours):
            raise BudgetError(f"neighbours is {self.neighbours!r}; use add-remove or replace")
        if not isinstance(self.unit, str) or not isinstance(self.rows, int) or not isinstance(self.record, str):
            raise BudgetError(f"a unit of {self.rows!r} rows of {self.unit!r} is none; give a number and a name")
        if self.rows < 1:
            raise BudgetError(f"rows is {self.rows}; a unit has at least 1 row")
        if not self.unit and self.rows != 1:
            raise BudgetError(f"rows is {self.rows} without a unit; name the identifier whose rows these are")

    @property
    def l1(self) -> Fraction:
        """How much a marginal changes at most, in the sum over cells."""
        return Fraction(self.rows * self._changes)

    @property
    def l2_squared(self) -> Fraction:
        """How much a marginal changes at most, in the sum of squares over cells."""
        return Fraction(self.rows**2 * self._changes)

    def score(self, per_row: Number = 1) -> Fraction:
        """How much a score changes at most that changes by ``per_row`` when one row comes or goes."""
        return exact(per_row) * self.rows * self._changes

    @property
    def words(self) -> str:
        """The relation in words: "adding or removing one row"."""
        verb = "adding or removing" if self.neighbours == "add-remove" else "replacing"
        if not self.unit:
            return f"{verb} one {self.record}"
        return f"{verb} all {self.record}s of one {self.unit} (at most {self.rows} of them are used)"

    def to_data(self) -> dict[str, Any]:
        """Plain data for JSON."""
        record = {} if self.record == "row" else {"record": self.record}
        return {"neighbours": self.neighbours, "unit": self.unit, "rows": self.rows, **record}

    @property
    def _changes(self) -> int:
        return 1 if self.neighbours == "add-remove" else 2
