"""The protocol of all engines, and the base class of objects that hold private rows."""

from __future__ import annotations

from typing import NoReturn, Protocol

from dpsyn.encoding import ColumnCodec, Recoding
from dpsyn.encoding.counter import CliqueAxes as CliqueAxes
from dpsyn.encoding.counter import Counts as Counts
from dpsyn.schema import Schema


class Engine(Protocol):
    """Counts the rows of a private table exactly.

    All rows count. If the schema has a privacy unit, at most ``privacy_unit.max_rows`` rows of each unit count, chosen
    by a keyed hash of the unit's own rows (see ``contribution_bounding``), and rows without an id do not count. Each
    answer comes from one reading of the table. Entries of two readings are never combined into one row: a query may
    return its rows in another order, and a row made of the entries of two units would let one unit change more counts
    than is charged.

    Privacy: answers are exact and therefore private. The caller charges the budget first, adds noise, and releases
    nothing else. An engine reveals nothing of its rows by itself: it has no length, no iterator, an empty repr, and it
    cannot be pickled or copied. Adding or removing one row (with a privacy unit: one unit) changes every answer by at
    most 1 (with a privacy unit: ``max_rows``) in L1, and so in L2.
    """

    def prepare(self) -> None:
        """Read the table now, so that an unreadable one fails before anything is charged; Spark does nothing here."""

    @property
    def rereadable(self) -> bool:
        """Whether the table can be read more than once: a public fact about its source."""

    def require_rereadable(self, why: str) -> None:
        """Refuse a source that can be read only once, before any charge; ``why`` names what needs another reading."""

    def count(self, cliques: CliqueAxes, recoding: Recoding) -> list[Counts]:
        """The contingency table of each clique: the number of counted rows with each combination of codes.

        A clique names attributes of the recoding by position. Its table has their sizes as shape, in the order of the
        clique, and includes empty cells. The table of the empty clique is the number of rows. The recoding must have
        been made for the codec of the engine's schema.
        """

    def count_texts(self, name: str) -> dict[str, int]:
        """The number of counted rows with each text of an open attribute.

        Texts are without surrounding spaces, in the spelling that listed values are compared with. Nulls, blank entries
        and spellings of missing are left out.

        Privacy: which texts occur is as private as how often. Only texts above a noisy threshold may be released
        (partition selection).
        """

    def count_column(self, name: str, column: ColumnCodec, size: int) -> Counts:
        """The number of counted rows with each of the codes 0 … size−1 that ``column`` reads from an attribute.

        Use this for another encoding of an attribute than the schema's, such as the powers of two between which a
        number lies. With a privacy unit, the rows that count may differ from those of ``count``: the codes that are
        read here are part of the priorities, so the choice of rows never depends on the order of the table.
        """

    def with_schema(self, schema: Schema) -> Engine:
        """The same rows under another schema, such as one with the discovered values of an open attribute.

        The whole table is read again, under the same key. The same rows count as before if only open attributes
        changed.
        """


class Opaque:
    """An object that holds private rows and reveals nothing of them."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: private rows>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} holds private rows; it cannot be saved or copied")
