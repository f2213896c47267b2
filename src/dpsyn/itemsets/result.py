"""Frequent itemsets as they are published: the list, the rules in it, and the bases that they come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpsyn.accounting import Certificate
from dpsyn.encoding import Codec, Recoding
from dpsyn.encoding.dataframes import convert_table
from dpsyn.errors import UserError
from dpsyn.inference.fit import fit_model
from dpsyn.inference.measurements import MeasurementRound, Release
from dpsyn.itemsets.association_rules import AssociationRule, find_association_rules
from dpsyn.itemsets.counts import ItemsetCounts
from dpsyn.marginals import Estimate, Marginal, average_estimates
from dpsyn.schema import Boolean, NeighboringRelation, Schema
from dpsyn.synopsis.synopsis import OutputFormat, Synopsis

if TYPE_CHECKING:
    import pyarrow as pa

PRIVBASIS_RECIPE = "privbasis"
"""The recipe of a release whose marginals are bases."""

ITEM_SEPARATOR = "|"
"""Between items where they are one text, as in CSV files; in other tables they are lists."""


@dataclass(frozen=True, slots=True)
class Itemset:
    """A frequent itemset.

    Attributes:
        items: the items, in the order of the universe.
        count: how many baskets hold all of them, with noise; not a whole number in general.
        std: the standard error of the count: that of the noise in it.
        frequency: the count as a part of the baskets, whose number has noise too unless it is public.
    """

    items: tuple[str, ...]
    count: float
    std: float
    frequency: float


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class FrequentItemsets:
    """The most frequent itemsets of a file of baskets, and everything that was released to find them.

    Attributes:
        itemsets: the itemsets, the most frequent first.
        baskets: the number of baskets; estimated from noisy counts unless it is public.
        bases: sets of items with noisy counts of every combination of them; all else follows from these.
        items: the items of the bases, in the order of the universe.
        certificate: what they cost.
        dataset: the name of the dataset; may be empty.
        neighbors: the neighbor relation of the guarantee.
    """

    itemsets: tuple[Itemset, ...]
    baskets: float
    bases: tuple[Marginal, ...]
    items: tuple[str, ...]
    certificate: Certificate
    dataset: str = ""
    neighbors: NeighboringRelation = "add-remove"

    @classmethod
    def from_bases(
        cls,
        bases: Sequence[Marginal],
        universe: Sequence[str],
        certificate: Certificate,
        *,
        top: int | None = None,
        min_support: float | None = None,
        baskets: int | None = None,
        dataset: str = "",
        neighbors: NeighboringRelation = "add-remove",
    ) -> FrequentItemsets:
        """What bases tell: the ``top`` itemsets, or all in at least ``min_support`` of the baskets, or both.

        ``baskets`` is the number of baskets if it is public.
        """
        used = {item for basis in bases for item in basis.clique}
        items = tuple(item for item in universe if item in used)
        counts = ItemsetCounts(bases, items)
        total = float(baskets) if baskets is not None else max(counts.count(()), 0.0) if bases else 0.0
        ranked = [
            Itemset(items, count, error, count / max(total, 1.0)) for items, count, error in counts.rank_itemsets()
        ]
        if min_support is not None:
            ranked = [itemset for itemset in ranked if itemset.frequency >= min_support]
        return cls(
            itemsets=tuple(ranked[:top]),
            baskets=total,
            bases=tuple(bases),
            items=items,
            certificate=certificate,
            dataset=dataset,
            neighbors=neighbors,
        )

    def __repr__(self) -> str:
        bases = "1 basis" if len(self.bases) == 1 else f"{len(self.bases)} bases"
        return f"Itemsets({len(self.itemsets)} from {bases}; about {self.baskets:,.0f} baskets)"

    def count(self, *items: str) -> Itemset:
        """The count of any itemset within a basis, whether it is listed or not; without items, of all baskets."""
        counts = self._counts()
        if items not in counts:
            raise self._unknown_itemset_error(items)
        count = counts.count(items)
        return Itemset(items, count, counts.std(items), count / max(self.baskets, 1.0))

    def marginal(self, *items: str) -> Estimate:
        """How many baskets hold just these of some items within a basis, for every combination.

        Index 1 on an item's axis means that it is in the basket; ``variance`` is that of the noise in a cell. Several
        bases that hold the items are combined by inverse variance.
        """
        told = [
            Estimate(items, Estimate.of(basis).project(items), basis.std**2 * 2 ** (len(basis.clique) - len(items)))
            for basis in self.bases
            if {*items} <= {*basis.clique}
        ]
        if not told or not items:
            raise self._unknown_itemset_error(items)
        return average_estimates(told)[0]

    def association_rules(self, min_confidence: float = 0.5) -> tuple[AssociationRule, ...]:
        """Association rules within the listed itemsets, of at least this confidence; they cost nothing."""
        return find_association_rules(self._counts(), [itemset.items for itemset in self.itemsets], min_confidence)

    def table(self, output_format: OutputFormat = "arrow", *, as_text: bool = False) -> Any:
        """The itemsets as a table; items are lists, or with ``as_text`` texts with bars between them."""
        import pyarrow as pa

        columns = {
            "items": _items_column([itemset.items for itemset in self.itemsets], as_text),
            "count": pa.array([itemset.count for itemset in self.itemsets], pa.float64()),
            "standard_error": pa.array([itemset.std for itemset in self.itemsets], pa.float64()),
            "frequency": pa.array([itemset.frequency for itemset in self.itemsets], pa.float64()),
        }
        return convert_table(pa.table(columns), output_format)

    def association_rules_table(
        self, min_confidence: float = 0.5, output_format: OutputFormat = "arrow", *, as_text: bool = False
    ) -> Any:
        """The rules as a table, as ``table`` gives itemsets."""
        import pyarrow as pa

        rules = self.association_rules(min_confidence)
        columns = {
            "given": _items_column([rule.antecedent for rule in rules], as_text),
            "then": _items_column([rule.consequent for rule in rules], as_text),
            **{
                name: pa.array([getattr(rule, name) for rule in rules], pa.float64())
                for name in ("count", "confidence", "standard_error", "lift")
            },
        }
        return convert_table(pa.table(columns), output_format)

    def to_synopsis(self) -> Synopsis:
        """The bases as a synopsis: every item is a boolean attribute, every basis a marginal.

        It is saved, inspected and queried like any other, and rows drawn from it are baskets of these items.
        """
        if not self.bases:
            raise UserError("no item was found frequent enough, so there is nothing to keep")
        attributes = tuple(Boolean(name=item) for item in self.items)
        schema = Schema(attributes=attributes, dataset=self.dataset, neighbors=self.neighbors)
        recoding = Recoding.coarse(Codec(schema))
        release = Release(PRIVBASIS_RECIPE, (MeasurementRound(recoding, self.bases),), certificate=self.certificate)
        return Synopsis(schema, (release,), fit_model(schema, recoding, [release], total=self.baskets))

    @classmethod
    def from_synopsis(
        cls, synopsis: Synopsis, *, top: int | None = None, min_support: float | None = None
    ) -> FrequentItemsets:
        """Itemsets of a synopsis that was kept, more or fewer than before; that costs nothing."""
        release = synopsis.releases[-1]
        if release.recipe != PRIVBASIS_RECIPE or release.certificate is None:
            raise UserError("this synopsis is not of baskets; give one that dpsyn itemsets has kept")
        protection = release.certificate.privacy_unit
        return cls.from_bases(
            [marginal for stage in release.rounds for marginal in stage.marginals],
            synopsis.schema.names,
            release.certificate,
            top=top,
            min_support=min_support,
            baskets=synopsis.rows if protection.row_count_is_public else None,
            dataset=synopsis.schema.dataset,
            neighbors=synopsis.schema.neighbors,
        )

    def _unknown_itemset_error(self, items: Sequence[str]) -> UserError:
        return UserError(f"no basis holds {', '.join(items) or 'nothing'} together, so nothing is known about it")

    def _counts(self) -> ItemsetCounts:
        return ItemsetCounts(self.bases, self.items)

    def to_data(self, min_confidence: float | None = None) -> dict[str, Any]:
        """Plain data for JSON; with rules of at least some confidence if it is given."""
        rules = [] if min_confidence is None else self.association_rules(min_confidence)
        return {
            "baskets": self.baskets,
            "itemsets": [
                {
                    "items": list(itemset.items),
                    "count": itemset.count,
                    "standard_error": itemset.std,
                    "frequency": itemset.frequency,
                }
                for itemset in self.itemsets
            ],
            "rules": [rule.to_data() for rule in rules],
            "bases": [list(basis.clique) for basis in self.bases],
            "certificate": self.certificate.to_data(),
        }


def _items_column(itemsets: Sequence[tuple[str, ...]], as_text: bool) -> pa.Array:
    import pyarrow as pa

    if as_text:
        return pa.array([ITEM_SEPARATOR.join(items) for items in itemsets], pa.string())
    return pa.array([list(items) for items in itemsets], pa.list_(pa.string()))
