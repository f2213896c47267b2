"""What is public about several attributes together: the privacy unit, derived and joint attributes, rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from dpsyn.errors import SchemaError
from dpsyn.schema.attributes import Provenance, Value, canonical_text, check_provenance, freeze

Condition = Value | tuple[Value, ...]
"""A condition on one attribute: a value, several values, a range ``30..39``, or ``missing``."""

RowConditions = tuple[tuple[str, Condition], ...]
"""Conditions on several attributes, all of which must hold."""


class UnitDeclaration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The privacy unit: all rows of one person, who is named by an identifier.

    Attributes:
        id: the identifier attribute that names the person.
        max_rows: how many rows of one person a release uses at most; further rows are left out (contribution
            bounding).
    """

    id: str
    max_rows: int = 1

    def __post_init__(self) -> None:
        if self.max_rows < 1:
            raise SchemaError(f"max_rows is {self.max_rows}; give at least 1", ("max_rows",))


class Statement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A statement about the table, and why it is public.

    Attributes:
        provenance: ``public`` if the statement is known without the data; ``data`` if it was taken from the data, in
            which case a release refuses it; ``approved`` if it was drafted from the data and then declared public,
            which the certificate states.
        because: why it is public; printed in the certificate.
        remark: a question of the draft that a person has to answer; correct the entry and remove the remark.
        drafted: a digest of the entry as it was drafted; ``unchanged`` if it was approved as it was drafted.
    """

    provenance: Provenance = "public"
    because: str = ""
    remark: str = ""
    drafted: str = ""

    def __post_init__(self) -> None:
        freeze(self)
        check_provenance(self)


class Derive(Statement, frozen=True, kw_only=True, rename={"source": "from"}):
    """An attribute that is computed from another one, such as a general code from a detailed one.

    It is not measured but filled in after synthesis.

    Attributes:
        name: the derived attribute.
        source: the attribute it is computed from.
        mapping: pairs of a value (or a range) of the source, as text, and the value derived from it.
        otherwise: the value for everything that ``mapping`` does not list; if left out, it must list everything.
    """

    name: str
    source: str
    mapping: tuple[tuple[Value, Value], ...]
    otherwise: Value | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        with_text_keys = tuple((canonical_text(value), derived) for value, derived in self.mapping)
        msgspec.structs.force_setattr(self, "mapping", with_text_keys)
        twice = _first_duplicate([str(value) for value, _ in self.mapping])
        if twice is not None:
            raise SchemaError(f"the value {twice!r} is mapped twice", ("mapping", twice))


MAX_JOINT_VALUES = 1_000_000
"""Combinations of values of a joint attribute: noise is added to the count of each of them."""

MAX_PUBLIC_TOTAL = 10**10
"""Rows that a total may count; a larger number is most likely a mistake."""


class JointAttribute(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Attributes that are measured as one, because they nearly determine each other.

    Attributes:
        name: the name of the joint attribute.
        attributes: its parts.
    """

    name: str
    attributes: tuple[str, ...]

    def __post_init__(self) -> None:
        freeze(self)


class Rule(Statement, frozen=True, kw_only=True, tag_field="rule"):
    """A constraint on every row, or on the whole table."""

    def __post_init__(self) -> None:
        super().__post_init__()
        twice = _first_duplicate([name for name, _ in getattr(self, "where", ())])
        if twice is not None:
            message = f"there are two conditions on {twice!r}; combine them into one"
            raise SchemaError(message, ("where", twice))

    def mentions(self) -> Sequence[str]:
        """The attributes that the rule is about."""
        return ()


class Impossible(Rule, frozen=True, kw_only=True, tag="impossible"):
    """A combination of values that no row has (a structural zero).

    Attributes:
        where: a condition for each attribute of the combination.
    """

    where: RowConditions

    def mentions(self) -> Sequence[str]:
        """The attributes with a condition."""
        return [name for name, _ in self.where]


class Order(Rule, frozen=True, kw_only=True, tag="order"):
    """Attributes whose values ascend from left to right in every row, such as start and end.

    Attributes:
        attributes: at least two, lowest first.
        strict: whether equal values are excluded.
    """

    attributes: tuple[str, ...]
    strict: bool = False

    def mentions(self) -> Sequence[str]:
        """The ordered attributes."""
        return self.attributes


class Sum(Rule, frozen=True, kw_only=True, tag="sum"):
    """An attribute that is the sum of others in every row.

    Attributes:
        total: the sum.
        parts: the attributes that add up to it.
    """

    total: str
    parts: tuple[str, ...]

    def mentions(self) -> Sequence[str]:
        """The total and its parts."""
        return (self.total, *self.parts)


class Total(Rule, frozen=True, kw_only=True, tag="total"):
    """A number of rows that is public, such as a published population count.

    Attributes:
        where: conditions on the rows that are counted; if left out, all rows are.
        count: how many there are.
    """

    count: int
    where: RowConditions = ()

    def mentions(self) -> Sequence[str]:
        """The attributes with a condition."""
        return [name for name, _ in self.where]


def _first_duplicate(names: Sequence[str]) -> str | None:
    """The first name that occurred before, or None."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


AnyRule = Impossible | Order | Sum | Total
NeighboringRelation = Literal["add-remove", "replace"]
