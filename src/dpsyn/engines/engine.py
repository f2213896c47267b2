"""What every engine offers, and what none does."""

from __future__ import annotations

from typing import NoReturn, Protocol

from dpsyn.encoding import ColumnCodec, Recoding
from dpsyn.encoding.counter import CliqueAxes as CliqueAxes
from dpsyn.encoding.counter import Counts as Counts
from dpsyn.schema import Schema


class Engine(Protocol):
    """Counts the rows of a private table exactly.

    The rows that count are all rows; or, where the schema has a unit, at most ``unit.rows`` of each person, chosen
    by a keyed hash of that person's rows alone (see ``bounding``), and none of those without an id. Each answer comes
    from one reading of the table: cells of two readings are never put together, because a query may give its rows in
    another order, and a row made of two persons' cells would let one person change more counts than is charged.

    Privacy: answers are exact and therefore private. Whoever calls has paid before, adds noise, and lets nothing
    else out. An engine shows nothing of its rows by itself: it has no length, no iterator, an empty repr, and it
    cannot be pickled or copied. Adding or removing one row (with a unit: one person) changes every answer by at most
    1 (with a unit: ``unit.rows``) in L1, and so in L2.
    """

    def prepare(self) -> None:
        """Read the table now, so that one that cannot be read fails before anything is paid; Spark's is not."""

    def require_rereadable(self, why: str) -> None:
        """Refuse, before anything is paid, what needs another reading of a source that has only one."""

    def count(self, cliques: CliqueAxes, recoding: Recoding) -> list[Counts]:
        """For each clique its contingency table: how many of the rows that count have each combination of codes.

        A clique names attributes of the recoding by position. Its table has their sizes as shape, in the clique's
        order, and all its cells, empty ones included. The table of the empty clique is the number of rows. The
        recoding is one of the codec of the engine's schema.
        """

    def count_texts(self, name: str) -> dict[str, int]:
        """For an open attribute, how many of the rows that count have each text.

        The text is that of the cell without spaces around it, as lists of values compare it. Nulls, blank cells and
        spellings of missing are left out.

        Privacy: which texts occur is as private as how often; only those above a noisy threshold may be named.
        """

    def count_column(self, name: str, column: ColumnCodec, size: int) -> Counts:
        """How many of the rows that count have each of the codes 0 … size−1 that ``column`` reads from an attribute.

        This is for readings other than the schema's own, such as the powers of two between which a number lies.
        With a unit, which rows of a person count may differ from those of ``count``: what is read here is part of
        what they are chosen by, so that the choice never depends on the order of the table.
        """

    def with_schema(self, schema: Schema) -> Engine:
        """The same rows under another schema, such as one where the values of an open attribute were bought.

        The whole table is read anew, under the same key. The same rows of a person count as before if nothing but
        open attributes changed.
        """


class Opaque:
    """Something that holds private rows and shows nothing of them."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: private rows>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} holds private rows and is neither saved nor copied")
