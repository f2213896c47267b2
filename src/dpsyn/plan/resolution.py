"""A plan at one ε, under one schema: which attributes there are to measure, and which marginals of them."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from dpsyn.encoding import (
    Codec,
    DifferenceCoding,
    Grouping,
    RecodedColumn,
    Recoding,
    bucketize,
    expect_equal,
    group_differences,
)
from dpsyn.errors import DocumentError, PlanError
from dpsyn.marginals import Clique
from dpsyn.plan import entries
from dpsyn.plan.entries import MarginalsEntry, PlanEntry
from dpsyn.plan.plan import Plan
from dpsyn.schema import Schema, Total
from dpsyn.suggestions import suggest_names

if TYPE_CHECKING:
    from dpsyn.schema.yaml_io import YamlPath


@dataclass(frozen=True, slots=True, eq=False)
class PlannedMarginals:
    """Marginals that one entry of a plan names, over the recoded attributes.

    Attributes:
        entry: the entry of the plan.
        cliques: the marginals.
    """

    entry: MarginalsEntry
    cliques: tuple[Clique, ...]


def merge_duplicates(planned: Iterable[PlannedMarginals]) -> tuple[PlannedMarginals, ...]:
    """Measure every set of attributes once, in one order of its attributes.

    Entries with a share keep what they name, and their shares of a marginal add up; entries without one leave out what
    another entry already has. Empty entries are dropped.
    """
    planned = list(planned)
    orders: dict[frozenset[str], Clique] = {}
    for marginals in planned:
        for clique in marginals.cliques:
            orders.setdefault(frozenset(clique), clique)
    taken = {frozenset(clique) for m in planned if m.entry.share is not None for clique in m.cliques}
    merged = []
    for marginals in planned:
        sets = dict.fromkeys(frozenset(clique) for clique in marginals.cliques)
        if marginals.entry.share is None:
            sets = dict.fromkeys(names for names in sets if names not in taken)
            taken |= sets.keys()
        if sets:
            merged.append(PlannedMarginals(marginals.entry, tuple(orders[names] for names in sets)))
    return tuple(merged)


MAX_TABLE_CELLS = 1_000_000
"""The largest number of cells of one marginal; a larger one would be mostly noise, and the gate refuses it."""


@dataclass(frozen=True, slots=True)
class RareThreshold:
    """Which codes are merged: those below a number of standard deviations or rows, and the rarest of too many."""

    threshold: float
    rows: float = 0.0
    max_codes: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ResolvedPlan:
    """What a plan comes to at one ε.

    Attributes:
        recoding: the attributes, before rare codes are merged and before mappings are learned.
        finer: fine attributes whose histograms inside the codes of the recoding are measured.
        histograms: entries whose histogram is measured with a share of its own, by the attribute.
        rare: how codes of each attribute are merged.
        joint: entries whose joint attribute is measured with a share of its own, by the attribute.
        mappings: mappings to be learned.
        unmeasured: attributes about which nothing is measured.
        marginals: the marginals that the plan names.
        groups: sets of attributes; marginals lie within one of them.
        weights: weights of attributes.
    """

    recoding: Recoding
    finer: tuple[str, ...]
    histograms: Mapping[str, entries.Bucketize]
    rare: Mapping[str, RareThreshold]
    joint: Mapping[str, entries.Recode | entries.Availability]
    mappings: tuple[entries.LearnedMapping, ...]
    unmeasured: frozenset[str]
    marginals: tuple[PlannedMarginals, ...]
    groups: tuple[frozenset[str], ...]
    weights: Mapping[str, float]

    @property
    def one_way(self) -> tuple[str, ...]:
        """The attributes whose one-way marginals are measured."""
        learned = {mapping.of for mapping in self.mappings}
        return tuple(n for n in self.recoding.names if n not in learned and n not in self.unmeasured)

    def allows(self, clique: Collection[str]) -> bool:
        """Whether attributes may be measured together."""
        return not self.groups or any(set(clique) <= group for group in self.groups)


def resolve_plan(
    plan: Plan, schema: Schema, epsilon: float, *, discovered: Collection[str] = (), max_cells: int = MAX_TABLE_CELLS
) -> ResolvedPlan:
    """Resolve a plan at an ε; a PlanError has the path of the entry that does not fit the schema.

    Open attributes whose values are not discovered yet have a single value. With ``discovered`` attributes a table may
    become larger than ``max_cells`` at a time when refusing would waste what was spent: a joint attribute then
    distinguishes fewer of their values, the others are sampled from their histogram, and a mapping is left out.
    """
    return _Resolver(plan, _close_open_attributes(schema), epsilon, frozenset(discovered), max_cells).resolve()


def _close_open_attributes(schema: Schema) -> Schema:
    """The schema as if partition selection had found nothing: open attributes have only their ``other``."""
    for attribute in schema.open_attributes:
        schema = schema.with_discovered_values(attribute.to_categorical(()))
    return schema


class _Resolver:
    """Applies the entries of a plan one after the other."""

    def __init__(self, plan: Plan, schema: Schema, epsilon: float, discovered: frozenset[str], max_cells: int) -> None:
        self.plan, self.schema, self.epsilon = plan, schema, epsilon
        self.discovered, self.max_cells = discovered, max_cells
        self.codec = Codec(schema)
        self.recoding = Recoding.coarse(self.codec)
        self.attributes = dict(zip(self.codec.names, self.codec.attributes, strict=True))
        self.lacking = {name for name in plan.optional if name not in self.attributes}
        self.rare: dict[str, RareThreshold] = {}
        self.joint: dict[str, entries.Recode | entries.Availability] = {}
        self.histograms: dict[str, entries.Bucketize] = {}
        self.mappings: list[entries.LearnedMapping] = []
        self.unmeasured: set[str] = set()
        self.plain: set[str] = set()  # attributes whose values inside codes are not measured
        self.taken: dict[str, str] = {}  # attributes that are recoded already, and by what
        self.anchors: dict[str, str] = {}  # attributes that others are coded relative to, and one of those
        self.others = RareThreshold(plan.threshold)
        self.counted = {n for rule in schema.rules if isinstance(rule, Total) for n in rule.mentions()}

    def resolve(self) -> ResolvedPlan:
        for index, entry in enumerate(self.plan.transforms):
            if entry.condition.holds(self.epsilon):
                self._apply_transform(entry, ("transforms", index))
        self._schema_groups()
        planned = [self._planned_marginals(entry, ("marginals", n)) for n, entry in enumerate(self.plan.marginals)]
        rare = {name: self.rare.get(name, self.others) for name in self.recoding.names}
        finer = self._attributes_with_histograms()
        resolved = ResolvedPlan(
            self.recoding,
            finer,
            {name: entry for name, entry in self.histograms.items() if name in finer},
            rare,
            self.joint,
            tuple(self.mappings),
            frozenset(self.unmeasured),
            merge_duplicates(marginals for marginals in planned if marginals is not None),
            self._groups(),
            self._weights(),
        )
        self._check_groups(resolved)
        return resolved

    # ── transforms ───────────────────────────────────────────────────────────────────────────────────────

    def _apply_transform(self, entry: entries.AnyTransform, path: YamlPath) -> None:
        known = self._without_missing_attributes(entry, path)
        if known is None:
            return
        try:
            match known:
                case entries.Bucketize():
                    self._bucketize(known)
                case entries.Compress():
                    self._compress(known)
                case entries.Recode():
                    self._recode(known)
                case entries.Availability():
                    self._availability(known)
                case entries.LearnedMapping():
                    self._mapping(known)
                case entries.Unmeasured():
                    self._random(known)
        except DocumentError as error:
            raise PlanError(str(error), (*path, *error.path)) from None

    def _without_missing_attributes(self, entry: entries.AnyTransform, path: YamlPath) -> entries.AnyTransform | None:
        """The entry without attributes that the table may lack; None if nothing is left of it."""
        self._require(entry, path)
        self._require_fine(entry, path)
        gone = self.lacking.intersection(entry.mentions())
        if not gone:
            return entry
        if isinstance(entry, entries.Bucketize | entries.LearnedMapping):
            return None
        if isinstance(entry, entries.Availability) and entry.anchor in gone:
            return None
        left = tuple(name for name in entry.of if name not in gone)
        least = 2 if isinstance(entry, entries.Recode) else 1
        return msgspec.structs.replace(entry, of=left) if len(left) >= least else None

    def _require(self, entry: PlanEntry, path: YamlPath) -> None:
        known = {*self.attributes, *self.recoding.names, *self.lacking}
        for name in entry.mentions():
            if name not in known:
                raise PlanError(self._explain_unknown(name), path)

    def _require_fine(self, entry: entries.AnyTransform, path: YamlPath) -> None:
        """Refuse a joint attribute where values of one attribute are needed: it has none of its own."""
        if isinstance(entry, entries.Bucketize | entries.Availability | entries.LearnedMapping):
            for name in entry.mentions():
                if name not in self.attributes and name not in self.lacking:
                    raise PlanError(f"{name!r} is made of several attributes; name one of the schema's instead", path)

    def _explain_unknown(self, name: str) -> str:
        if name in self.schema.timestamp_parts:
            return f"{name!r} is measured in parts; name {', '.join(self.schema.parts_of(name))}"
        if name in self.schema:
            return f"{name!r} is not measured: it is an identifier, or derived from another attribute"
        elsewhere = [t.to for t in self.plan.transforms if isinstance(t, entries.Recode | entries.Availability)]
        if name in elsewhere:
            here = f"{name!r} does not exist at ε = {self.epsilon:g}"
            return f"{here}; give the same when: as its transform, or name its parts"
        return f"there is no attribute {name!r}; {suggest_names(name, tuple(self.attributes))}"

    def _claim(self, names: tuple[str, ...], by: str) -> None:
        """Reserve attributes for a transform; each attribute is recoded by one transform only."""
        for name in names:
            if name in self.taken:
                raise PlanError(f"{name!r} is recoded twice: by {self.taken[name]} and by {by}")
            self.taken[name] = by

    def _column(self, name: str) -> RecodedColumn:
        return self.recoding.columns[self.recoding.index_of(name)]

    def _replace_column(self, column: RecodedColumn) -> None:
        index = self.recoding.index_of(column.name)
        columns = (*self.recoding.columns[:index], column, *self.recoding.columns[index + 1 :])
        self.recoding = replace(self.recoding, columns=columns)

    def _bucketize(self, entry: entries.Bucketize) -> None:
        if entry.of in self.taken:
            raise PlanError(f"{entry.of!r} is recoded before its bins are given; put bucketize first")
        bins = bucketize(self.attributes[entry.of], entry.starts)
        self._replace_column(replace(self._column(entry.of), tables=(bins.group_of,)))
        if not entry.fine:
            self.plain.add(entry.of)
        if entry.share is not None:
            self.histograms[entry.of] = entry

    def _compress(self, entry: entries.Compress) -> None:
        rare = self._rare_threshold(entry)
        if not entry.of:
            self.others = rare
        for name in entry.of:
            self.rare[name] = rare

    def _rare_threshold(self, entry: entries.MergingTransform) -> RareThreshold:
        threshold = self.others.threshold if entry.threshold is None else entry.threshold
        return RareThreshold(threshold, entry.rows, entry.max_codes)

    def _recode(self, entry: entries.Recode) -> None:
        self._join_attributes(entry, "recode")

    def _join_attributes(self, entry: entries.Recode | entries.Availability, kind: str) -> None:
        self._claim(entry.of, f"{kind} {entry.to}")
        if entry.to in self.attributes or entry.to in self.recoding.names:
            raise PlanError(f"there is an attribute {entry.to!r} already; give the joint one another name", ("to",))
        cells = self._fit_combinations(entry.of)
        if cells > MAX_TABLE_CELLS:
            raise PlanError(
                f"{entry.to!r} would have {cells:,} combinations to measure, more than {MAX_TABLE_CELLS:,}; "
                "give its parts bins, or leave one out"
            )
        self.recoding = self.recoding.join(entry.to, entry.of)
        self.rare[entry.to] = self._rare_threshold(entry)
        self.joint[entry.to] = entry

    def _fit_combinations(self, parts: tuple[str, ...]) -> int:
        """Count the combinations of attributes, after merging discovered values that exceed the largest table."""
        known = math.prod(self._column(name).size for name in parts if name not in self.discovered)
        discovered = [name for name in parts if name in self.discovered]
        max_values = max(1, int((self.max_cells / known) ** (1 / max(1, len(discovered)))))
        if math.prod(self._column(name).size for name in parts) > self.max_cells:
            for name in discovered:
                column = self._column(name)
                self._replace_column(replace(column, tables=(np.minimum(column.tables[0], max_values - 1),)))
        return math.prod(self._column(name).size for name in parts)

    def _availability(self, entry: entries.Availability) -> None:
        for name in entry.of:
            attribute = self.attributes[name]
            if entry.anchor is None:
                flags = np.append(np.zeros(attribute.proper_cells, np.int64), [1] * attribute.has_missing).astype(
                    np.int64
                )
                column = replace(self._column(name), tables=(flags,))
            else:
                coding = self._difference_coding(name, entry.anchor)
                grouping = group_differences(coding, attribute.cells, entry.keep)
                column = replace(self._column(name), tables=(grouping.group_of,), difference_codings=(coding,))
            self._replace_column(column)
            if not entry.fine:
                self.plain.add(name)
        self._join_attributes(entry, "availability")

    def _require_uncounted(self, name: str) -> None:
        """Refuse to code an attribute relative to another one if rows are sampled under conditions on it."""
        if name in self.counted:
            raise PlanError(f"a public total of the schema counts {name!r}, so it must be measured by its own values")

    def _set_anchor(self, name: str, anchor: str) -> None:
        """Code an attribute relative to an anchor; an anchor must be coded by its own values."""
        if name in self.anchors:
            raise PlanError(
                f"{self.anchors[name]!r} is coded relative to {name!r}, which then cannot be relative to {anchor!r}; "
                f"code both relative to {anchor!r}, or leave one as it is"
            )
        self.anchors.setdefault(anchor, name)

    def _difference_coding(self, name: str, anchor: str) -> DifferenceCoding:
        self._require_uncounted(name)
        self._set_anchor(name, anchor)
        if anchor in self.taken and self.taken[anchor].startswith(("availability", "mapping")):
            raise PlanError(
                f"{anchor!r} is itself coded relative to another attribute; take that one as the anchor", ("anchor",)
            )
        if anchor not in self.attributes:
            raise PlanError(
                f"there is no attribute {anchor!r} to be the anchor; {suggest_names(anchor, tuple(self.attributes))}",
                ("anchor",),
            )
        return expect_equal(self.attributes[name], self.attributes[anchor], self.codec.names.index(anchor))

    def _mapping(self, entry: entries.LearnedMapping) -> None:
        self._require_uncounted(entry.of)
        if entry.source not in self.recoding.names or entry.source in self.unmeasured:
            raise PlanError(
                f"{entry.source!r} is part of a joint attribute or not measured; map from an attribute by itself",
                ("from",),
            )
        if entry.source in self.taken:
            raise PlanError(f"{entry.source!r} is itself derived from another attribute; map from that one", ("from",))
        cells = self.attributes[entry.of].cells * self.attributes[entry.source].cells
        if cells > self.max_cells and self.discovered.intersection(entry.mentions()):
            return
        if cells > MAX_TABLE_CELLS:
            raise PlanError(f"{entry.source!r} × {entry.of!r} has {cells:,} cells, more than {MAX_TABLE_CELLS:,}")
        self._claim((entry.of,), f"mapping from {entry.source}")
        self._set_anchor(entry.of, entry.source)
        fine = np.arange(self.attributes[entry.of].cells)
        self._replace_column(replace(self._column(entry.of), tables=(fine,)))
        self.rare[entry.of] = self._rare_threshold(entry)
        self.mappings.append(entry)

    def _random(self, entry: entries.Unmeasured) -> None:
        self._claim(entry.of, "random")
        for name in entry.of:
            size = self._column(name).size
            self.recoding = self.recoding.merge(name, Grouping(np.zeros(size, np.int64)))
            self.unmeasured.add(name)
        if self.unmeasured.issuperset(self.recoding.names):
            raise PlanError(f"at ε = {self.epsilon:g} no attribute would be measured; leave out one of them", ("of",))

    def _schema_groups(self) -> None:
        """Join the attributes that the schema measures together, where the plan does not recode them."""
        for group in self.schema.measure_together:
            if not self.taken.keys() & set(group.attributes):
                self._join_attributes(entries.Recode(to=group.name, of=group.attributes), "recode")

    def _attributes_with_histograms(self) -> tuple[str, ...]:
        """Attributes that have more cells than codes, and whose histograms are measured."""
        learned = {mapping.of for mapping in self.mappings}
        names = []
        for column in self.recoding.columns:
            for source, table, radix in zip(column.sources, column.tables, column.radices, strict=True):
                name = self.codec.names[source]
                if radix < len(table) and name not in self.plain | self.unmeasured | learned:
                    names.append(name)
        return tuple(names)

    # ── marginals ────────────────────────────────────────────────────────────────────────────────────────

    def _planned_marginals(self, entry: entries.MarginalsEntry, path: YamlPath) -> PlannedMarginals | None:
        if not entry.condition.holds(self.epsilon):
            return None
        self._require(entry, path)
        cliques: dict[frozenset[str], Clique] = {}
        for names in entry.cliques():
            if self.lacking.intersection(names):
                continue
            clique = tuple(dict.fromkeys(self._column_holding(name) for name in names))
            if not self.unmeasured.intersection(clique) and (len(clique) > 1 or len(names) == 1):
                cliques.setdefault(frozenset(clique), clique)
        return PlannedMarginals(entry, tuple(cliques.values()))

    def _column_holding(self, name: str) -> str:
        """The attribute of the recoding that contains a fine attribute."""
        if name in self.recoding.names:
            return name
        index = self.codec.names.index(name)
        return next(column.name for column in self.recoding.columns if index in column.sources)

    def _groups(self) -> tuple[frozenset[str], ...]:
        groups = []
        for group in self.plan.groups:
            path = ("groups", group.name)
            for name in group.attributes:
                if name not in {*self.attributes, *self.recoding.names, *self.lacking}:
                    raise PlanError(self._explain_unknown(name), path)
            groups.append(frozenset(self._column_holding(n) for n in group.attributes if n not in self.lacking))
        rest = set(self.recoding.names).difference(*groups)
        return tuple(group for group in (*groups, frozenset(rest)) if group) if groups else ()

    def _check_groups(self, resolved: ResolvedPlan) -> None:
        seen: set[str] = set()
        for group, members in zip(self.plan.groups, resolved.groups, strict=False):
            shared = seen & members
            joined = group.join != "rows" and group.join not in self.lacking
            allowed = {self._column_holding(group.join)} if joined else set()
            if shared - allowed:
                raise PlanError(
                    f"{min(shared - allowed)!r} is in group {group.name!r} and in one before it; give join: "
                    f"{min(shared - allowed)}, or leave it out of one",
                    ("groups", group.name),
                )
            if allowed and seen and not shared:
                message = f"the group {group.name!r} is joined on {group.join!r}, which no group before it has"
                raise PlanError(message, ("groups", group.name, "join"))
            seen |= members
        for planned in resolved.marginals:
            for clique in planned.cliques:
                if not resolved.allows(clique):
                    path = ("marginals", self.plan.marginals.index(planned.entry))
                    raise PlanError(
                        f"{', '.join(clique)} are not in one group, so they cannot be measured together", path
                    )

    def _weights(self) -> dict[str, float]:
        weights: dict[str, float] = {}
        for name, weight in self.plan.weights.items():
            if name in self.lacking:
                continue
            if name not in {*self.attributes, *self.recoding.names}:
                raise PlanError(self._explain_unknown(name), ("weights", name))
            holder = self._column_holding(name)
            weights[holder] = max(weight, weights.get(holder, weight))
        return weights
