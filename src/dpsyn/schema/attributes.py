"""Attribute kinds: what is public about one column.

Each kind is a frozen value that is checked when it is built. It defines its **codes** at two resolutions: *cells*,
the finest distinction that DPSyn makes, and *bins*, the unions of cells that marginals over several attributes use.
For listed values, cells and bins are the same.

Encoding is **total**: every cell of a table gets a code. A null becomes ``missing`` if that is declared. A value that
cannot be read, or is not in the list, becomes ``other``. A number or date out of range becomes the nearest bound. By
default ``other`` is ``missing``, or the first value of the domain if ``missing`` is not declared.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from dpsyn.errors import SchemaError, quote_argument
from dpsyn.suggestions import format_names

Value = str | int | float | bool
Provenance = Literal["public", "data", "approved"]

NULL_SPELLINGS = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "None", "<NA>")
"""The texts that count as empty in a text file if an attribute declares ``missing: true``."""

MISSING = "missing"
"""The name of an empty cell in conditions and labels."""

MAX_LISTED_VALUES = 1_000_000
"""Values that one attribute may list: a guard against typing errors such as ``codes: 10000000``."""


class Attribute(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="kind",
):
    """The base class of all kinds.

    Attributes:
        name: the name of the column.
        missing: whether empty cells are a value of their own; or the texts that mean empty in a text file.
        provenance: ``public`` if everything in this entry is known without the data; ``data`` if it was taken from
            the data, in which case a release refuses it; ``approved`` if it was drafted from the data and then declared
            public, which the certificate states.
        because: why this entry is public; printed in the certificate.
        description: a note for readers of the schema.
        remark: a question of the draft that a person has to answer; correct the entry and remove the remark.
        drafted: a digest of the entry as it was drafted, by which an approval sees whether a person has changed it;
            ``unchanged`` if it was approved as it was drafted, which the certificate states.
    """

    coded: ClassVar[bool] = True

    name: str
    missing: bool | str | tuple[str, ...] = False
    provenance: Provenance = "public"
    because: str = ""
    description: str = ""
    remark: str = ""
    drafted: str = ""

    def __post_init__(self) -> None:
        freeze(self)
        if not self.name:
            raise SchemaError("an attribute has an empty name; give it the name of its column")
        check_provenance(self)
        self._check()

    def _check(self) -> None:
        """Refuse fields that contradict each other; each kind adds its own checks."""

    def _check_missing(self, texts: set[str]) -> None:
        """Refuse values that could not be distinguished from an empty cell."""
        overlap = texts.intersection(self.null_spellings) if self.missing is not True else ()
        if overlap:
            raise SchemaError(f"{min(overlap)!r} is both a value and a spelling of missing", ("missing",))
        if self.has_missing and "" in texts:
            message = "'' is a value, but in a text file it looks like an empty cell; remove it, or remove missing"
            raise SchemaError(message, ("missing",))
        if self.has_missing and MISSING in texts:
            message = f"{MISSING!r} is the name of empty cells; remove it from the values and write missing: [missing]"
            raise SchemaError(message, ("missing",))

    @property
    def kind(self) -> str:
        """The name of the kind in schema files."""
        return str(self.__struct_config__.tag)

    @property
    def has_missing(self) -> bool:
        """Whether empty cells have their own code."""
        return self.missing is not False and self.missing != ()

    @property
    def null_spellings(self) -> tuple[str, ...]:
        """The texts that count as empty; none if ``missing`` is not declared."""
        if isinstance(self.missing, str):
            return (self.missing,)
        if isinstance(self.missing, tuple):
            return self.missing
        return NULL_SPELLINGS if self.missing else ()

    @property
    def proper_cells(self) -> int:
        """The number of cells without ``missing``."""
        raise NotCodedError(self)

    @property
    def cells(self) -> int:
        """The number of fine codes; the last one is ``missing`` if that is declared."""
        return self.proper_cells + self.has_missing

    @property
    def size(self) -> int:
        """The number of coarse codes, used by marginals over several attributes."""
        return int(self.bin_of_cell()[-1]) + 1

    def bin_of_cell(self) -> NDArray[np.int64]:
        """The coarse code of every fine code."""
        return np.arange(self.cells)

    @property
    def other_cell(self) -> int:
        """The fine code of values that cannot be read or are not in the domain."""
        declared = self._declared_other()
        if declared is not None:
            return declared
        return self.proper_cells if self.has_missing else 0

    @property
    def null_cell(self) -> int:
        """The fine code of an empty cell."""
        return self.proper_cells if self.has_missing else self.other_cell

    def _declared_other(self) -> int | None:
        return None

    def labels(self) -> tuple[str, ...]:
        """A short text for every coarse code."""
        return (*self._proper_labels(), *([MISSING] if self.has_missing else []))

    def _proper_labels(self) -> Sequence[str]:
        raise NotCodedError(self)

    def select(self, condition: Value | Sequence[Value]) -> NDArray[np.bool_]:
        """Which fine codes meet a condition: a value, several values, a range ``30..39``, or ``missing``."""
        selected = np.zeros(self.cells, dtype=np.bool_)
        parts = condition if isinstance(condition, tuple | list) else (condition,)
        for given in parts:
            part = given.item() if isinstance(given, np.number) else given
            if not isinstance(part, str | int | float):
                raise SchemaError(
                    f"{quote_argument(part)} is not a value of {self.name!r}; give text, a number or several of them"
                )
            if part == MISSING and self.has_missing:
                selected[self.proper_cells] = True
            else:
                selected[self._select_one(part)] = True
        if not selected.any():
            raise SchemaError(
                f"the condition {quote_argument(condition)} on {self.name!r} matches no value of its domain"
            )
        return selected

    def _select_one(self, part: Value) -> NDArray[np.int64]:
        raise NotCodedError(self)


class NotCodedError(SchemaError):
    """The codes of an attribute were requested, but its kind has none."""

    def __init__(self, attribute: Attribute) -> None:
        super().__init__(
            f"attribute {attribute.name!r} is {attribute.kind} and has no codes"
            + ("; its values must be discovered first" if isinstance(attribute, Open) else "")
        )


class Categorical(Attribute, frozen=True, kw_only=True, dict=True, tag="categorical"):
    """A list of values.

    Attributes:
        values: the values, as they appear in the table; integers stay integers.
        codes: instead of ``values``, if the table holds the codes 0 … codes−1.
        other: the value that replaces every unlisted value: one of ``values``, or a new name that is added to them.
    """

    values: tuple[Value, ...] = ()
    codes: int | None = None
    other: Value | None = None

    def _check(self) -> None:
        if (self.codes is None) == (not self.values):
            raise SchemaError("give either values: [...] or codes: n, the number of codes 0 … n−1", ("values",))
        if self.codes is not None and not 1 <= self.codes <= MAX_LISTED_VALUES:
            raise SchemaError(f"codes is {self.codes}; it must be 1 … {MAX_LISTED_VALUES:,}", ("codes",))
        if len(self.values) > MAX_LISTED_VALUES:
            raise SchemaError(
                f"{len(self.values):,} values are too many; list at most {MAX_LISTED_VALUES:,}", ("values",)
            )
        for index, value in enumerate(self.values):
            _require_category(value, ("values", index))
        if self.other is not None:
            _require_category(self.other, ("other",))
        seen: set[str] = set()
        for index, text in enumerate(canonical_text(value) for value in self.values):
            if text in seen:
                raise SchemaError(f"the value {quote_argument(text)} is listed twice", ("values", index))
            seen.add(text)
        self._check_missing(seen if self.other is None else seen | {canonical_text(self.other)})

    def all_values(self) -> tuple[Value, ...]:
        """The value of every cell except ``missing``; includes an ``other`` that is not among the listed values."""
        values: tuple[Value, ...] = self.values if self.codes is None else tuple(range(self.codes))
        if self.other is not None and self._index_of(self.other) is None:
            return (*values, self.other)
        return values

    @functools.cached_property
    def _index_by_text(self) -> dict[str, int]:
        """The index of every listed value, by its text; cached, because long conditions look up thousands of values."""
        return {canonical_text(value): index for index, value in enumerate(self.values)}

    def _index_of(self, value: Value) -> int | None:
        text = canonical_text(value)
        if self.codes is None:
            return self._index_by_text.get(text)
        plain = text.isascii() and text.isdecimal() and (text == "0" or text[0] != "0")
        return int(text) if plain and len(text) <= len(str(self.codes)) and int(text) < self.codes else None

    def _cell_of(self, value: Value) -> int | None:
        """The cell of a value; includes an ``other`` that is not among the listed values."""
        index = self._index_of(value)
        if index is None and self.other is not None and canonical_text(value) == canonical_text(self.other):
            return self.proper_cells - 1
        return index

    @property
    def proper_cells(self) -> int:
        """The number of values."""
        appended = self.other is not None and self._index_of(self.other) is None
        return (len(self.values) if self.codes is None else self.codes) + appended

    def _declared_other(self) -> int | None:
        return None if self.other is None else self._cell_of(self.other)

    def _proper_labels(self) -> Sequence[str]:
        return [canonical_text(value) for value in self.all_values()]

    def _select_one(self, part: Value) -> NDArray[np.int64]:
        cell = self._cell_of(part)
        if cell is None:
            labels = self._proper_labels()
            raise SchemaError(
                f"{quote_argument(canonical_text(part))} is not a value of {self.name!r}; it has {format_names(labels)}"
            )
        return np.array([cell])


class Ordinal(Categorical, frozen=True, kw_only=True, dict=True, tag="ordinal"):
    """A list of values whose order means something, lowest first."""

    def _select_one(self, part: Value) -> NDArray[np.int64]:
        ends = split_range(part)
        if ends is None or self._cell_of(part) is not None:
            return super()._select_one(part)
        first, last = (int(Categorical._select_one(self, end)[0]) for end in ends)
        return np.arange(first, last + 1)


class Boolean(Attribute, frozen=True, kw_only=True, tag="boolean"):
    """True or false; yes/no, t/f, y/n and 1/0 are read as well.

    Attributes:
        other: the value that replaces everything else.
    """

    other: bool | None = None

    @property
    def proper_cells(self) -> int:
        """Two."""
        return 2

    def _declared_other(self) -> int | None:
        return None if self.other is None else int(self.other)

    def _proper_labels(self) -> Sequence[str]:
        return ["false", "true"]

    def _select_one(self, part: Value) -> NDArray[np.int64]:
        text = canonical_text(part)
        if text.lower() not in ("true", "false"):
            raise SchemaError(
                f"{self.name!r} is boolean; a condition on it is true or false, not {quote_argument(text)}"
            )
        return np.array([int(text.lower() == "true")])


class Open(Attribute, frozen=True, kw_only=True, tag="open"):
    """Text whose values are not public; a release discovers the frequent ones privately (partition selection).

    Attributes:
        other: the name that replaces all values that were not discovered.
    """

    other: str = "other"
    coded: ClassVar[bool] = False

    def _check(self) -> None:
        self._check_missing({self.other})

    def to_categorical(self, values: Sequence[str]) -> Categorical:
        """The categorical attribute that results from these discovered values.

        A discovered value that equals ``other``, or the name of an empty cell, is dropped and counts as ``other``. It
        is not an error, because a release must not fail because of the content of a table.
        """
        reserved = {self.other, *(self.null_spellings if self.missing is not True else ())}
        reserved |= {MISSING, ""} if self.has_missing else set()
        return Categorical(
            name=self.name,
            values=tuple(value for value in values if value not in reserved) or (self.other,),
            other=self.other,
            missing=self.missing,
            provenance=self.provenance,
            because=self.because,
            description=self.description,
            remark=self.remark,
            drafted=self.drafted,
        )


class Identifier(Attribute, frozen=True, kw_only=True, tag="identifier"):
    """A key such as the name or number of a person: never measured.

    Attributes:
        output: ``drop`` leaves it out of synthetic tables; ``fresh`` gives each synthetic row a new number.
    """

    output: Literal["drop", "fresh"] = "drop"
    coded: ClassVar[bool] = False


UNCHANGED = "unchanged"
"""The value of ``drafted`` in an entry that was approved as it was drafted from the data."""


def check_provenance(entry: Any) -> None:
    """Refuse an entry that was approved without a reason, or is public and still carries marks of its draft.

    Privacy: a remark describes rows, and a digest confirms a guess of the drafted values. A schema is published, so
    only entries that no release accepts may have them.
    """
    if entry.provenance == "approved" and not entry.because:
        raise SchemaError("provenance: approved needs a reason; state in because: why it is public", ("because",))
    if entry.remark and entry.provenance != "data":
        message = "a remark is a question about rows, and this entry is public; answer it, then remove the remark"
        raise SchemaError(message, ("remark",))
    if entry.drafted and entry.provenance != "data" and (entry.provenance, entry.drafted) != ("approved", UNCHANGED):
        message = "drafted holds a digest of what was read off the data, and this entry is public; remove it"
        raise SchemaError(message, ("drafted",))


_Entry = TypeVar("_Entry", bound=msgspec.Struct)


def without_provenance(entry: _Entry) -> _Entry:
    """The same entry as if it had been written from public knowledge: for comparisons, and for simulated rows."""
    return msgspec.structs.replace(entry, provenance="public", because="", remark="", drafted="")


def freeze(value: msgspec.Struct) -> None:
    """Turn the lists in the fields of a new value into tuples, so that the value cannot change later."""
    for field in value.__struct_fields__:
        given = getattr(value, field)
        if isinstance(given, list | tuple):
            msgspec.structs.force_setattr(value, field, _as_tuple(given))


def _as_tuple(entries: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(_as_tuple(entry) if isinstance(entry, list | tuple) else entry for entry in entries)


def _require_category(value: Value, path: tuple[str | int, ...]) -> None:
    if isinstance(value, bool):
        raise SchemaError("true and false are not categories; use kind: boolean, or put them in quotes", path)
    if isinstance(value, float) and not math.isfinite(value):
        raise SchemaError(f"{value} is not a category; remove it, or put it in quotes", path)


def canonical_text(value: Value) -> str:
    """The text of a value that is compared with the cells of a table."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def split_range(value: Value) -> tuple[str, str] | None:
    """The ends of ``low..high``, or None if the value is not written as a range."""
    if not isinstance(value, str) or value.count("..") != 1:
        return None
    low, high = (end.strip() for end in value.split(".."))
    return (low, high) if low and high else None
