"""The published result of frequent itemsets: the list, its association rules, and the bases they are computed from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, overload

from dpsyn.accounting import Certificate
from dpsyn.encoding import Codec, Recoding
from dpsyn.encoding.dataframes import AnyTable, OutputFormat, convert_table
from dpsyn.errors import UserError
from dpsyn.inference.fit import fit_model
from dpsyn.inference.measurements import MeasurementRound, Release
from dpsyn.itemsets.association_rules import AssociationRule, find_association_rules
from dpsyn.itemsets.counts import ItemsetCounts, ItemsetEstimate, SingleCounts
from dpsyn.itemsets.noisy_counts import NoisyCounts
from dpsyn.itemsets.privbasis import MinedBaskets, PrivBasis
from dpsyn.marginals import Estimate, Marginal, average_estimates
from dpsyn.schema import Boolean, NeighboringRelation, Schema
from dpsyn.synopsis.synopsis import Synopsis

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

ITEM_SEPARATOR = "|"
"""Separates items where they are one text, as in CSV files; in other tables they are lists."""


@dataclass(frozen=True, slots=True)
class Itemset:
    """A frequent itemset.

    Attributes:
        items: the items, in the order of the universe.
        count: the noisy number of baskets that hold all of them; not a whole number in general.
        std: the standard error of the count, due to the noise.
        frequency: the count divided by the number of baskets, which is noisy too unless it is public.
    """

    items: tuple[str, ...]
    count: float
    std: float
    frequency: float


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class FrequentItemsets:
    """The most frequent itemsets of a file of baskets, and everything that was released for them.

    Attributes:
        itemsets: the itemsets, the most frequent first.
        baskets: the number of baskets; estimated from noisy counts unless it is public.
        bases: sets of items with noisy counts of every combination; everything else is computed from these. None if
            items and pairs were counted by themselves.
        items: the items of the bases, in the order of the universe.
        certificate: the cost of the release.
        dataset: the name of the dataset; may be empty.
        neighbors: the neighboring relation of the guarantee.
    """

    itemsets: tuple[Itemset, ...]
    baskets: float
    bases: tuple[Marginal, ...]
    items: tuple[str, ...]
    certificate: Certificate
    dataset: str = ""
    neighbors: NeighboringRelation = "add-remove"
    estimates: tuple[ItemsetEstimate, ...] = ()
    """Where there are no bases: every item and pair that was counted, its count, and the std of its noise."""

    @classmethod
    def from_bases(
        cls,
        bases: MinedBaskets,
        universe: Sequence[str],
        certificate: Certificate,
        *,
        top: int | None = None,
        min_support: float | None = None,
        baskets: int | None = None,
        dataset: str = "",
        neighbors: NeighboringRelation = "add-remove",
    ) -> FrequentItemsets:
        """The ``top`` itemsets of some bases, or all in at least ``min_support`` of the baskets, or both.

        ``baskets`` is the number of baskets if it is public. Noisy counts of items and pairs may be given for bases.
        """
        estimates = bases.estimates if isinstance(bases, NoisyCounts) else ()
        used = {item for items, _, _ in estimates for item in items}
        counts: ItemsetCounts | SingleCounts
        if isinstance(bases, NoisyCounts):
            counts, bases = SingleCounts(estimates, bases.baskets), ()
        else:
            used = {item for basis in bases for item in basis.clique}
            counts = ItemsetCounts(bases, tuple(item for item in universe if item in used))
        items = tuple(item for item in universe if item in used)
        total = float(baskets) if baskets is not None else max(counts.count(()), 0.0) if used else 0.0
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
            estimates=estimates,
        )

    def __repr__(self) -> str:
        bases = "1 basis" if len(self.bases) == 1 else f"{len(self.bases)} bases"
        bases = "counts of items and pairs" if self.estimates else bases
        return f"FrequentItemsets({len(self.itemsets)} from {bases}; about {self.baskets:,.0f} baskets)"

    def count(self, *items: str) -> Itemset:
        """The count of any itemset within a basis, listed or not; without items, the number of baskets."""
        counts = self._counts()
        if items not in counts:
            raise self._unknown_itemset_error(items)
        count = counts.count(items)
        return Itemset(items, count, counts.std(items), count / max(self.baskets, 1.0))

    def marginal(self, *items: str) -> Estimate:
        """The number of baskets with each combination of some items that lie within a basis.

        Index 1 on an item's axis means that it is in the basket; ``variance`` is that of the noise in a cell. If
        several bases hold the items, they are combined by inverse variance.
        """
        estimates = [
            Estimate(items, Estimate.of(basis).project(items), basis.std**2 * 2 ** (len(basis.clique) - len(items)))
            for basis in self.bases
            if {*items} <= {*basis.clique}
        ]
        if not estimates or not items:
            raise self._unknown_itemset_error(items)
        return average_estimates(estimates)[0]

    def association_rules(self, min_confidence: float = 0.5) -> tuple[AssociationRule, ...]:
        """Association rules within the listed itemsets, with at least this confidence; they cost no privacy."""
        return find_association_rules(self._counts(), [itemset.items for itemset in self.itemsets], min_confidence)

    @overload
    def table(self, output_format: Literal["arrow"] = "arrow", *, as_text: bool = False) -> pa.Table: ...

    @overload
    def table(self, output_format: Literal["pandas"], *, as_text: bool = False) -> pd.DataFrame: ...

    @overload
    def table(self, output_format: Literal["polars"], *, as_text: bool = False) -> pl.DataFrame: ...

    @overload
    def table(self, output_format: OutputFormat, *, as_text: bool = False) -> AnyTable: ...

    def table(self, output_format: OutputFormat = "arrow", *, as_text: bool = False) -> AnyTable:
        """The itemsets as a table; items are lists, or with ``as_text`` one text, separated by ``|``."""
        import pyarrow as pa

        columns = {
            "items": _items_column([itemset.items for itemset in self.itemsets], as_text),
            "count": pa.array([itemset.count for itemset in self.itemsets], pa.float64()),
            "standard_error": pa.array([itemset.std for itemset in self.itemsets], pa.float64()),
            "frequency": pa.array([itemset.frequency for itemset in self.itemsets], pa.float64()),
        }
        return convert_table(pa.table(columns), output_format)

    @overload
    def association_rules_table(
        self, min_confidence: float = 0.5, output_format: Literal["arrow"] = "arrow", *, as_text: bool = False
    ) -> pa.Table: ...

    @overload
    def association_rules_table(
        self, min_confidence: float = 0.5, *, output_format: Literal["pandas"], as_text: bool = False
    ) -> pd.DataFrame: ...

    @overload
    def association_rules_table(
        self, min_confidence: float = 0.5, *, output_format: Literal["polars"], as_text: bool = False
    ) -> pl.DataFrame: ...

    @overload
    def association_rules_table(
        self, min_confidence: float = 0.5, output_format: OutputFormat = "arrow", *, as_text: bool = False
    ) -> AnyTable: ...

    def association_rules_table(
        self, min_confidence: float = 0.5, output_format: OutputFormat = "arrow", *, as_text: bool = False
    ) -> AnyTable:
        """The association rules as a table, in the same form as ``table``."""
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

        It is saved, inspected and queried like any other; rows sampled from it are baskets of these items.
        """
        if self.estimates:
            raise UserError(
                "items and pairs were counted by themselves, so there are no bases to save; use method='bases', or "
                "--method bases, if a synopsis is needed"
            )
        if not self.bases:
            raise UserError("no item is frequent enough, so there is no synopsis to save")
        attributes = tuple(Boolean(name=item) for item in self.items)
        schema = Schema(attributes=attributes, dataset=self.dataset, neighbors=self.neighbors)
        recoding = Recoding.coarse(Codec(schema))
        release = Release((MeasurementRound(recoding, self.bases),), certificate=self.certificate)
        return Synopsis(schema, (release,), fit_model(schema, recoding, [release], total=self.baskets))

    @classmethod
    def from_synopsis(
        cls, synopsis: Synopsis, *, top: int | None = None, min_support: float | None = None
    ) -> FrequentItemsets:
        """The itemsets of a saved synopsis, more or fewer than before; this costs no privacy."""
        release = synopsis.releases[-1]
        certificate, items = release.certificate, [a for a in synopsis.schema.attributes if isinstance(a, Boolean)]
        of_baskets = release.recipe.get("name", PrivBasis.name) == PrivBasis.name
        if certificate is None or not of_baskets or len(items) < len(synopsis.schema.attributes):
            raise UserError("this synopsis is not of baskets; give one that dpsyn itemsets has saved")
        unit = certificate.privacy_unit
        return cls.from_bases(
            [marginal for each in release.rounds for marginal in each.marginals],
            synopsis.schema.names,
            certificate,
            top=top,
            min_support=min_support,
            baskets=synopsis.rows if unit.row_count_is_public else None,
            dataset=synopsis.schema.dataset,
            neighbors=synopsis.schema.neighbors,
        )

    def _unknown_itemset_error(self, items: Sequence[str]) -> UserError:
        return UserError(f"no basis holds {', '.join(items) or 'nothing'} together, so its count is not known")

    def _counts(self) -> ItemsetCounts | SingleCounts:
        return SingleCounts(self.estimates, self.baskets) if self.estimates else ItemsetCounts(self.bases, self.items)

    def to_data(self, min_confidence: float | None = None) -> dict[str, Any]:
        """Plain data for JSON; with association rules if ``min_confidence`` is given."""
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
