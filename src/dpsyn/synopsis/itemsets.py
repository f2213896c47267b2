"""Frequent itemsets as they are published: the list, the rules in it, and the bases that they come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpsyn.accounting import Certificate
from dpsyn.consistency import averaged
from dpsyn.errors import UserError
from dpsyn.marginals import Estimate, ItemsetCounts, Marginal
from dpsyn.records import Codec
from dpsyn.schema import Boolean, Neighbours, Schema
from dpsyn.synopsis.frames import as_kind
from dpsyn.synopsis.modelling import fit_model
from dpsyn.synopsis.parts import Release, Stage
from dpsyn.synopsis.rules import Rule, association_rules
from dpsyn.synopsis.synopsis import Kind, Synopsis
from dpsyn.transforms import Recoding

if TYPE_CHECKING:
    import pyarrow as pa

RECIPE = "privbasis"
"""The recipe of a release whose marginals are bases."""

SEPARATOR = "|"
"""Between items where they are one text, as in CSV files; in other tables they are lists."""


@dataclass(frozen=True, slots=True)
class Itemset:
    """A frequent itemset.

    Attributes:
        items: the items, in the order of the universe.
        count: how many baskets hold all of them, with noise; not a whole number in general.
        deviation: the standard error of the count: that of the noise in it.
        frequency: the count as a part of the baskets, whose number has noise too unless it is public.
    """

    items: tuple[str, ...]
    count: float
    deviation: float
    frequency: float


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Itemsets:
    """The most frequent itemsets of a file of baskets, and everything that was released to find them.

    Attributes:
        listed: the itemsets, the most frequent first.
        baskets: the number of baskets; estimated from noisy counts unless it is public.
        bases: sets of items with noisy counts of every combination of them; all else follows from these.
        items: the items of the bases, in the order of the universe.
        certificate: what they cost.
        dataset: the name of the dataset; may be empty.
        neighbours: the neighbour relation of the guarantee.
    """

    listed: tuple[Itemset, ...]
    baskets: float
    bases: tuple[Marginal, ...]
    items: tuple[str, ...]
    certificate: Certificate
    dataset: str = ""
    neighbours: Neighbours = "add-remove"

    @classmethod
    def of(
        cls,
        bases: Sequence[Marginal],
        universe: Sequence[str],
        certificate: Certificate,
        *,
        top: int | None = None,
        min_support: float | None = None,
        baskets: int | None = None,
        dataset: str = "",
        neighbours: Neighbours = "add-remove",
    ) -> Itemsets:
        """What bases tell: the ``top`` itemsets, or all in at least ``min_support`` of the baskets, or both.

        ``baskets`` is the number of baskets if it is public.
        """
        used = {item for basis in bases for item in basis.clique}
        items = tuple(item for item in universe if item in used)
        counts = ItemsetCounts(bases, items)
        total = float(baskets) if baskets is not None else max(counts.count(()), 0.0) if bases else 0.0
        ranked = [Itemset(items, count, error, count / max(total, 1.0)) for items, count, error in counts.ranked()]
        if min_support is not None:
            ranked = [itemset for itemset in ranked if itemset.frequency >= min_support]
        return cls(
            listed=tuple(ranked[:top]),
            baskets=total,
            bases=tuple(bases),
            items=items,
            certificate=certificate,
            dataset=dataset,
            neighbours=neighbours,
        )

    def __repr__(self) -> str:
        bases = "1 basis" if len(self.bases) == 1 else f"{len(self.bases)} bases"
        return f"Itemsets({len(self.listed)} from {bases}; about {self.baskets:,.0f} baskets)"

    def count(self, *items: str) -> Itemset:
        """The count of any itemset within a basis, whether it is listed or not; without items, of all baskets."""
        counts = self._counts()
        if items not in counts:
            raise self._unknown(items)
        count = counts.count(items)
        return Itemset(items, count, counts.deviation(items), count / max(self.baskets, 1.0))

    def marginal(self, *items: str) -> Estimate:
        """How many baskets hold just these of some items within a basis, for every combination.

        Index 1 on an item's axis means that it is in the basket; ``variance`` is that of the noise in a cell. Several
        bases that hold the items are combined by inverse variance.
        """
        told = [
            Estimate(items, Estimate.of(basis).onto(items), basis.deviation**2 * 2 ** (len(basis.clique) - len(items)))
            for basis in self.bases
            if {*items} <= {*basis.clique}
        ]
        if not told or not items:
            raise self._unknown(items)
        return averaged(told)[0]

    def rules(self, confidence: float = 0.5) -> tuple[Rule, ...]:
        """Association rules within the listed itemsets, of at least this confidence; they cost nothing."""
        return association_rules(self._counts(), [itemset.items for itemset in self.listed], confidence)

    def table(self, kind: Kind = "arrow", *, as_text: bool = False) -> Any:
        """The itemsets as a table; items are lists, or with ``as_text`` texts with bars between them."""
        import pyarrow as pa

        columns = {
            "items": _items([itemset.items for itemset in self.listed], as_text),
            "count": pa.array([itemset.count for itemset in self.listed], pa.float64()),
            "standard_error": pa.array([itemset.deviation for itemset in self.listed], pa.float64()),
            "frequency": pa.array([itemset.frequency for itemset in self.listed], pa.float64()),
        }
        return as_kind(pa.table(columns), kind)

    def rules_table(self, confidence: float = 0.5, kind: Kind = "arrow", *, as_text: bool = False) -> Any:
        """The rules as a table, as ``table`` gives itemsets."""
        import pyarrow as pa

        rules = self.rules(confidence)
        columns = {
            "given": _items([rule.given for rule in rules], as_text),
            "then": _items([rule.then for rule in rules], as_text),
            **{
                name: pa.array([getattr(rule, name) for rule in rules], pa.float64())
                for name in ("count", "confidence", "standard_error", "lift")
            },
        }
        return as_kind(pa.table(columns), kind)

    def synopsis(self) -> Synopsis:
        """The bases as a synopsis: every item is a boolean attribute, every basis a marginal.

        It is saved, inspected and queried like any other, and rows drawn from it are baskets of these items.
        """
        if not self.bases:
            raise UserError("no item was found frequent enough, so there is nothing to keep")
        attributes = tuple(Boolean(name=item) for item in self.items)
        schema = Schema(attributes=attributes, dataset=self.dataset, neighbours=self.neighbours)
        recoding = Recoding.coarse(Codec(schema))
        release = Release(RECIPE, (Stage(recoding, self.bases),), certificate=self.certificate)
        return Synopsis(schema, (release,), fit_model(schema, recoding, [release], total=self.baskets))

    @classmethod
    def from_synopsis(cls, synopsis: Synopsis, *, top: int | None = None, min_support: float | None = None) -> Itemsets:
        """Itemsets of a synopsis that was kept, more or fewer than before; that costs nothing."""
        release = synopsis.releases[-1]
        if release.recipe != RECIPE or release.certificate is None:
            raise UserError("this synopsis is not of baskets; give one that dpsyn itemsets has kept")
        protection = release.certificate.protection
        return cls.of(
            [marginal for stage in release.stages for marginal in stage.marginals],
            synopsis.schema.names,
            release.certificate,
            top=top,
            min_support=min_support,
            baskets=synopsis.rows if protection.neighbours == "replace" and not protection.unit else None,
            dataset=synopsis.schema.dataset,
            neighbours=synopsis.schema.neighbours,
        )

    def _unknown(self, items: Sequence[str]) -> UserError:
        return UserError(f"no basis holds {', '.join(items) or 'nothing'} together, so nothing is known about it")

    def _counts(self) -> ItemsetCounts:
        return ItemsetCounts(self.bases, self.items)

    def to_data(self, confidence: float | None = None) -> dict[str, Any]:
        """Plain data for JSON; with rules of at least some confidence if it is given."""
        rules = [] if confidence is None else self.rules(confidence)
        return {
            "baskets": self.baskets,
            "itemsets": [
                {
                    "items": list(itemset.items),
                    "count": itemset.count,
                    "standard_error": itemset.deviation,
                    "frequency": itemset.frequency,
                }
                for itemset in self.listed
            ],
            "rules": [rule.to_data() for rule in rules],
            "bases": [list(basis.clique) for basis in self.bases],
            "certificate": self.certificate.to_data(),
        }


def _items(itemsets: Sequence[tuple[str, ...]], as_text: bool) -> pa.Array:
    import pyarrow as pa

    if as_text:
        return pa.array([SEPARATOR.join(items) for items in itemsets], pa.string())
    return pa.array([list(items) for items in itemsets], pa.list_(pa.string()))
