"""The privacy unit and the neighboring relation, and the sensitivities that follow from them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpsyn.accounting.exact_numbers import Number, exact_fraction
from dpsyn.errors import BudgetError, quote_argument

CHANGED_UNITS = {"add-remove": 1, "replace": 2}
"""The neighboring relations, and the number of units by whose rows two neighboring tables differ: one is added or
removed, or one is removed and another added."""

OF_QUERY = " of the query's answer"
"""What follows the word for a record if rows of a query's answer are protected, rather than rows of a base table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyUnit:
    """Two tables are neighbors if they differ in one unit: one row, or all rows of one person.

    A histogram (a marginal) over disjoint cells changes by the vector a − b, where a counts the rows that are added
    and b those that are removed. With at most k rows per unit ‖a‖₁, ‖b‖₁ ≤ k, hence ‖a‖₂, ‖b‖₂ ≤ k (all k in one cell):

    ============  ==========================  ======  ===========
    neighbors     one table has               L1      L2 squared
    ============  ==========================  ======  ===========
    add-remove    one more unit  (b = 0)      k       k²
    replace       one unit replaced           2k      k² + k²
    ============  ==========================  ======  ===========

    Attributes:
        neighbors: the neighboring relation. ``add-remove`` hides the number of units; ``replace`` makes it public.
        id: the identifier attribute whose values are the units; empty if each row is a unit.
        max_rows: k, the largest number of rows of one unit that a release uses.
        record: what a row is called: a basket is one record, however many lines of a file it takes. It ends with
            ``OF_QUERY`` if a query may combine rows of the base table.
        filtered: whether a query leaves out rows. If one row of the base table is replaced, the number of rows that
            remain may change.
    """

    neighbors: str = "add-remove"
    id: str = ""
    max_rows: int = 1
    record: str = "row"
    filtered: bool = False

    def __post_init__(self) -> None:
        if self.neighbors not in tuple(CHANGED_UNITS):
            raise BudgetError(f"neighbors is {quote_argument(self.neighbors)}; use {' or '.join(CHANGED_UNITS)}")
        kinds = ((self.id, str), (self.max_rows, int), (self.record, str), (self.filtered, bool))
        if not all(isinstance(value, kind) for value, kind in kinds) or isinstance(self.max_rows, bool):
            raise BudgetError(
                f"a privacy unit with id {quote_argument(self.id)} and max_rows "
                f"{quote_argument(self.max_rows)} is not valid; id is the name of an "
                "attribute, max_rows a whole number"
            )
        if self.max_rows < 1:
            raise BudgetError(f"max_rows is {self.max_rows}; a release uses at least 1 row of each unit")
        if not self.id and self.max_rows != 1:
            raise BudgetError(
                f"max_rows is {self.max_rows}, but no id is given; give the identifier attribute of the privacy unit"
            )

    @property
    def row_count_is_public(self) -> bool:
        """Whether the number of rows is public, because all neighboring tables have the same number.

        Under ``replace`` one row is replaced by another row. With an id, the rows of one person are replaced by those
        of another, who may have more or fewer of them, so the number of rows stays private. So does the number of rows
        that a query selects.
        """
        return self.neighbors == "replace" and not self.id and not self.filtered

    @property
    def l1_sensitivity(self) -> Fraction:
        """The largest change of a marginal in L1: summed over cells."""
        return Fraction(self.max_rows * self._changed_units)

    @property
    def l2_sensitivity_squared(self) -> Fraction:
        """The square of the largest change of a marginal in L2: squares summed over cells."""
        return Fraction(self.max_rows**2 * self._changed_units)

    def score_sensitivity(self, per_row: Number = 1) -> Fraction:
        """The largest change of a score that changes by at most ``per_row`` when one row is added or removed."""
        return exact_fraction(per_row) * self.max_rows * self._changed_units

    @property
    def description(self) -> str:
        """The neighboring relation in words: "adding or removing one row"."""
        verb = "adding or removing" if self.neighbors == "add-remove" else "replacing"
        if not self.id:
            return f"{verb} one {self.record}"
        return f"{verb} all {self._records} of one {self.id} (at most {self.max_rows} of them are used)"

    @property
    def protected(self) -> str:
        """Whom the guarantee is for: "every single row", or "all rows with the same person (…)"."""
        return f"every single {self.record}" if not self.id else self._unit

    @property
    def compared_table(self) -> str:
        """The table that a release is compared with, as seen by one unit: "without this row"."""
        rows = f"this {self.record}" if not self.id else f"the {self._records} of one {self.id}"
        return f"without {rows}" if self.neighbors == "add-remove" else f"with others in place of {rows}"

    @property
    def caveats(self) -> tuple[str, ...]:
        """What the privacy unit does not protect, as sentences."""
        base = "Rows of the base table are not protected: one of them may change many rows of the answer."
        public = f"The exact number of {self._records} is published."
        return ((base,) if self.record.endswith(OF_QUERY) else ()) + ((public,) if self.row_count_is_public else ())

    @property
    def statement(self) -> str:
        """The privacy unit and the neighboring tables, as a certificate states them."""
        verb = "adding or removing" if self.neighbors == "add-remove" else "replacing"
        changed = f"one {self.id or self.record}"
        if self.id and self.neighbors == "replace":
            changed = f"the {self._records} of one {self.id}"
        return f"Privacy unit: {self._unit}.\nNeighboring tables differ by {verb} {changed}."

    @property
    def _unit(self) -> str:
        if not self.id:
            return f"one {self.record}"
        used, are = (f"1 {self.record}", "is") if self.max_rows == 1 else (f"{self.max_rows} {self._records}", "are")
        return f"all {self._records} with the same {self.id} (at most {used} per {self.id} {are} used)"

    def to_data(self) -> dict[str, Any]:
        """Plain data for JSON."""
        record = {} if self.record == "row" else {"record": self.record}
        filtered = {"filtered": True} if self.filtered else {}
        return {"neighbors": self.neighbors, "id": self.id, "max_rows": self.max_rows, **record, **filtered}

    @property
    def _records(self) -> str:
        """The plural of the record."""
        word, space, rest = self.record.partition(" ")
        return f"{word}s{space}{rest}"

    @property
    def _changed_units(self) -> int:
        return CHANGED_UNITS[self.neighbors]
