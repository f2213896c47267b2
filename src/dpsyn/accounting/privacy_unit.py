"""Whom the guarantee protects: the neighbor relation and the unit, and what they do to sensitivities."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, get_args

from dpsyn.accounting.exact_numbers import Number, exact_fraction
from dpsyn.errors import BudgetError

NeighboringRelation = Literal["add-remove", "replace"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyUnit:
    """Two tables are neighbors if they differ in one unit: one row, or the rows of one person.

    A histogram (a marginal) over disjoint cells changes by the vector a − b, where a counts the rows that came
    and b those that went. With at most k rows per unit ‖a‖₁, ‖b‖₁ ≤ k, hence ‖a‖₂, ‖b‖₂ ≤ k (all k in one cell):

    ============  ==========================  ======  ===========
    neighbors    one table has               L1      L2 squared
    ============  ==========================  ======  ===========
    add-remove    one unit more  (b = 0)      k       k²
    replace       one unit exchanged          2k      k² + k²
    ============  ==========================  ======  ===========

    Attributes:
        neighbors: ``add-remove`` hides how many units there are; ``replace`` takes their number as public.
        id: the identifier that names a person; empty if a unit is one row.
        max_rows: the rows k of one unit that a release uses at most.
        record: what a row is, in words: a basket is one, however many lines of a file it takes.
    """

    neighbors: NeighboringRelation = "add-remove"
    id: str = ""
    max_rows: int = 1
    record: str = "row"

    def __post_init__(self) -> None:
        if self.neighbors not in get_args(NeighboringRelation):
            raise BudgetError(f"neighbors is {self.neighbors!r}; use add-remove or replace")
        if not isinstance(self.id, str) or not isinstance(self.max_rows, int) or not isinstance(self.record, str):
            raise BudgetError(f"a unit of {self.max_rows!r} rows of {self.id!r} is none; give a number and a name")
        if self.max_rows < 1:
            raise BudgetError(f"rows is {self.max_rows}; a unit has at least 1 row")
        if not self.id and self.max_rows != 1:
            raise BudgetError(f"rows is {self.max_rows} without a unit; name the identifier whose rows these are")

    @property
    def row_count_is_public(self) -> bool:
        """Whether the number of rows is public, because all neighboring tables have the same number.

        Under ``replace`` one row is replaced by another row. With an id, the rows of one person are replaced by those
        of another, who may have more or fewer of them, so the number of rows stays private.
        """
        return self.neighbors == "replace" and not self.id

    @property
    def l1_sensitivity(self) -> Fraction:
        """How much a marginal changes at most, in the sum over cells."""
        return Fraction(self.max_rows * self._changed_units)

    @property
    def l2_sensitivity_squared(self) -> Fraction:
        """How much a marginal changes at most, in the sum of squares over cells."""
        return Fraction(self.max_rows**2 * self._changed_units)

    def score_sensitivity(self, per_row: Number = 1) -> Fraction:
        """How much a score changes at most that changes by ``per_row`` when one row comes or goes."""
        return exact_fraction(per_row) * self.max_rows * self._changed_units

    @property
    def description(self) -> str:
        """The relation in words: "adding or removing one row"."""
        verb = "adding or removing" if self.neighbors == "add-remove" else "replacing"
        if not self.id:
            return f"{verb} one {self.record}"
        return f"{verb} all {self.record}s of one {self.id} (at most {self.max_rows} of them are used)"

    def to_data(self) -> dict[str, Any]:
        """Plain data for JSON."""
        record = {} if self.record == "row" else {"record": self.record}
        return {"neighbors": self.neighbors, "id": self.id, "max_rows": self.max_rows, **record}

    @property
    def _changed_units(self) -> int:
        return 1 if self.neighbors == "add-remove" else 2
