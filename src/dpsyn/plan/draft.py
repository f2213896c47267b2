"""A draft of a plan from an exploration, for the data owner to finish.

What the exploration shows is proposed only for the ε at which the plan's own noise predictions support it. It proposes
what the contest entry did by hand: dates of one event as one attribute, mappings, joint attributes, long lists sampled
uniformly at low ε, rare values merged, and groups that do not depend on each other. Which marginals to measure is left
to selection, which knows the budget; on the fire calls, a draft that named the strongest pairs scored lower.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import msgspec

from dpsyn.errors import DocumentError
from dpsyn.plan.entries import (
    AnyTransform,
    AttributeGroup,
    Availability,
    Compress,
    LearnedMapping,
    Recode,
    Unmeasured,
)
from dpsyn.plan.exploration import VISIBLE_SIGMAS, Exploration, connect
from dpsyn.plan.plan import Plan
from dpsyn.plan.prediction import PredictedKind, PredictedMarginal, predict_noise
from dpsyn.schema import Attribute, Ranged

DRAFT_EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
"""The ε at which noise is predicted: those of the contest, 0.1 to 10."""

CLOSE_AGREEMENT, PERFECT_AGREEMENT = 0.8, 0.95
"""Attributes are of one event if Cohen's κ of their values reaches the first; from the second on, differences are so
rare that no histogram of them is measured."""

LONG_LIST = 32
"""Attributes with more values may be sampled uniformly, or have their rare values merged."""

RARE_SIGMAS, RARE_SHARE = 4.5, 800 / 305_119
"""θ = max(4.5σ, 800 rows) of the contest entry, whose table had 305 119 rows; values below it are merged."""

WEAK_DEPENDENCE = 0.05
"""Groups are drafted if no pair across them can depend by more than this, in InDif as a fraction of the rows."""


def draft_plan(exploration: Exploration) -> Plan:
    """Draft the transforms and groups that the exploration suggests, for the data owner to finish.

    An attribute is recoded once. Groups are named after their attributes. Attributes that the schema measures together
    are written as their parts, and are not mapped. Without a schema, no noise is predicted, and only mappings, joint
    attributes and groups are drafted.
    """
    transforms = _draft_events(exploration)
    transforms += _draft_joint_attributes(exploration, transforms)
    transforms += _draft_mappings(exploration, transforms)
    transforms = _keep_predictable(exploration, transforms)
    transforms += _draft_long_lists(exploration, transforms)
    groups = _draft_groups(exploration, [_covers(transform) for transform in transforms])
    plan = Plan(transforms=tuple(transforms), groups=groups, selection=True)
    return plan if _fits(plan, exploration) else msgspec.structs.replace(plan, groups=())


def _fits(plan: Plan, exploration: Exploration) -> bool:
    """Whether the schema allows a plan: not where a public total counts an attribute, or a table would be too large."""
    if exploration.schema is None:
        return True
    try:
        plan.check(exploration.schema)
    except DocumentError:
        return False
    return True


def _list_recoded_attributes(transforms: Iterable[AnyTransform]) -> set[str]:
    """Attributes that are recoded by a transform, or that others are coded relative to."""
    return {name for transform in transforms for name in transform.mentions()}


def _covers(transform: AnyTransform) -> tuple[str, ...]:
    """Attributes whose dependence a transform takes care of."""
    return () if isinstance(transform, Compress | Unmeasured) else transform.mentions()


# ── what belongs together ────────────────────────────────────────────────────────────────────────────────────


def _draft_events(exploration: Exploration) -> list[AnyTransform]:
    """Numbers, dates or long lists that nearly always agree, such as dates of one event: as one attribute.

    It encodes which are missing, and which differ from an anchor. The tables of strong pairs show which agree. The
    anchor is an attribute that is never missing, the one that agrees with most others.
    """
    if exploration.schema is None:
        return []
    attributes = {attribute.name: attribute for attribute in exploration.schema.modeled_attributes}
    agreements = {
        table.clique: table.agreement
        for table in exploration.tables
        if table.agreement is not None and all(_has_many_values(exploration, attributes[name]) for name in table.clique)
    }
    order = list(exploration.sizes)
    transforms: list[AnyTransform] = []
    for members in connect(pair for pair, kappa in agreements.items() if kappa >= CLOSE_AGREEMENT):
        names = sorted(members, key=order.index)
        degrees = Counter(name for pair in agreements if members.issuperset(pair) for name in pair)
        anchor = min(names, key=lambda name: (attributes[name].has_missing, -degrees[name]))
        parts = tuple(name for name in names if name != anchor)
        weakest = min(kappa for pair, kappa in agreements.items() if members.issuperset(pair))
        event = Availability(to=f"{anchor} and others", of=parts, anchor=anchor, fine=weakest < PERFECT_AGREEMENT)
        if _fits(Plan(transforms=(*transforms, event)), exploration):
            transforms.append(event)
    return transforms


def _has_many_values(exploration: Exploration, attribute: Attribute) -> bool:
    return isinstance(attribute, Ranged) or exploration.count_values(attribute.name) > LONG_LIST


def _draft_mappings(exploration: Exploration, before: Sequence[AnyTransform]) -> list[AnyTransform]:
    """Attributes that follow from another one, from the strongest candidate, in the order of strength."""
    transforms: list[AnyTransform] = []
    anchors = {t.anchor for t in before if isinstance(t, Availability) and t.anchor}
    taken = _list_recoded_attributes(before) - anchors
    for name, source, _ in exploration.mappings():
        joint = name in exploration.parts or source in exploration.parts
        mapping = LearnedMapping(of=name, source=source)
        if joint or name in taken | anchors or source in taken:
            continue
        if _fits(Plan(transforms=(*before, *transforms, mapping)), exploration):
            transforms.append(mapping)
            taken.add(name)
            anchors.add(source)
    return transforms


def _draft_joint_attributes(exploration: Exploration, before: Sequence[AnyTransform]) -> list[AnyTransform]:
    """Groups of attributes that depend closely on each other."""
    transforms: list[AnyTransform] = []
    taken = _list_recoded_attributes(before)
    for group in exploration.groups():
        left = tuple(name for name in group if name not in taken)
        parts = tuple(part for name in left for part in exploration.parts.get(name, (name,)))
        if len(left) > 1 and _fits(Plan(transforms=(recode := Recode(to="+".join(left), of=parts),)), exploration):
            transforms.append(recode)
            taken.update(left)
    return transforms


# ── what noise allows ────────────────────────────────────────────────────────────────────────────────────────


def _keep_predictable(exploration: Exploration, transforms: Sequence[AnyTransform]) -> list[AnyTransform]:
    """The transforms whose predicted noise allows them, each for the ε at which it does."""
    if exploration.schema is None:
        return list(transforms)
    predictions = _predict_each(exploration, transforms)
    kept: list[AnyTransform] = []
    for transform in transforms:
        epsilon = _lowest_epsilon(predictions, lambda e: _is_supported(exploration, e), *_measured_for(transform))
        if epsilon is not None:
            lowest = epsilon == DRAFT_EPSILONS[0]
            when = "" if lowest else f"epsilon >= {epsilon:g}"
            kept.append(msgspec.structs.replace(transform, when=when))
    return kept


def _predict_each(exploration: Exploration, transforms: Sequence[AnyTransform]) -> dict[float, list[PredictedMarginal]]:
    assert exploration.schema is not None
    plan, rows = Plan(transforms=tuple(transforms), selection=True), max(1, round(exploration.rows))
    return {epsilon: predict_noise(plan, exploration.schema, epsilon, rows=rows) for epsilon in DRAFT_EPSILONS}


def _measured_for(transform: AnyTransform) -> tuple[PredictedKind, tuple[str, ...]]:
    """The marginal that a transform is read off."""
    if isinstance(transform, LearnedMapping):
        return "mapping", (transform.source, transform.of)
    assert isinstance(transform, Recode | Availability)
    return "recoding", (transform.to,)


def _lowest_epsilon(
    predictions: dict[float, list[PredictedMarginal]],
    accepts: Callable[[PredictedMarginal], bool],
    kind: PredictedKind,
    clique: tuple[str, ...],
) -> float | None:
    """The lowest ε from which on the predicted noise of a marginal is acceptable; None if it never is."""
    lowest = None
    for epsilon in sorted(predictions, reverse=True):
        if not all(accepts(entry) for entry in predictions[epsilon] if (entry.kind, entry.clique) == (kind, clique)):
            break
        lowest = epsilon
    return lowest


def _is_supported(exploration: Exploration, entry: PredictedMarginal) -> bool:
    """Whether the average count stands out: that of a joint code, or of a value that others are mapped from.

    A mapping takes the largest of c noisy counts, and the largest of c noises is about √(2 ln c) standard deviations.
    """
    if entry.kind != "mapping":
        return not entry.is_mostly_noise
    targets = exploration.count_values(entry.clique[1])
    return entry.std * math.sqrt(2 * math.log(max(targets, 2))) <= entry.rows


def _draft_long_lists(exploration: Exploration, before: Sequence[AnyTransform]) -> list[AnyTransform]:
    """Long lists whose average value noise would hide, by the rows that have a visible value.

    If these are few, values are sampled uniformly; if most, the others are merged by θ of the contest entry. Numbers
    and dates have bins, so they are left alone.
    """
    if exploration.schema is None:
        return []
    numbers = {attribute.name for attribute in exploration.schema.modeled_attributes if isinstance(attribute, Ranged)}
    taken = _list_recoded_attributes(before)
    names = [
        name
        for name, table in exploration.one_way.items()
        if name not in taken | numbers and name not in exploration.parts and table.counts.size > LONG_LIST
    ]
    predictions = _predict_each(exploration, before)
    rows = int(float(f"{RARE_SHARE * exploration.rows:.1g}"))  # one digit
    transforms: list[AnyTransform] = []
    for name in names:
        visible = _lowest_epsilon(predictions, lambda e: not e.is_mostly_noise, "one-way", (name,))
        useful = _lowest_epsilon(predictions, lambda e: _shows_most_rows(exploration, e), "one-way", (name,))
        if useful != DRAFT_EPSILONS[0]:
            transforms.append(Unmeasured(of=(name,), when="" if useful is None else f"epsilon < {useful:g}"))
        if useful is not None and useful != visible and rows >= 1:
            low = "" if useful == DRAFT_EPSILONS[0] else f"{useful:g} <= "
            when = f"{low}epsilon < {visible:g}" if visible else low and f"epsilon >= {useful:g}"
            transforms.append(Compress(of=(name,), threshold=RARE_SIGMAS, rows=rows, when=when))
    return transforms


def _shows_most_rows(exploration: Exploration, entry: PredictedMarginal) -> bool:
    """Whether most rows have a value that would stand out from the noise, or an average one would.

    Where neither holds, a one-way marginal is mostly noise, and uniform values are no worse.
    """
    table = exploration.one_way[entry.clique[0]]
    visible = table.counts >= VISIBLE_SIGMAS * max(entry.std, table.std)
    return not entry.is_mostly_noise or float(table.counts[visible].sum()) > 0.5 * exploration.rows


# ── what to measure apart ─────────────────────────────────────────────────────────────────────────────────────


def _draft_groups(exploration: Exploration, covered: Sequence[tuple[str, ...]]) -> tuple[AttributeGroup, ...]:
    """Sets of attributes between which no pair can depend by more than a little, even if noise hid it.

    An exploration with much noise connects everything, and pairs without a score count as dependent.
    """
    parts = exploration.parts
    weak = {d.pair for d in exploration.dependences if d.indif + 2 * d.std <= WEAK_DEPENDENCE}
    names = list(exploration.sizes)
    dependent = [
        (one, other)
        for position, one in enumerate(names)
        for other in names[position + 1 :]
        if (one, other) not in weak and (other, one) not in weak
    ]
    expanded = [tuple(part for name in pair for part in parts.get(name, (name,))) for pair in dependent]
    order = [part for name in names for part in parts.get(name, (name,))]
    large = [sorted(members, key=order.index) for members in connect([*expanded, *filter(None, covered)])]
    if len(large) < 2:
        return ()
    large.sort(key=lambda members: order.index(members[0]))
    return tuple(AttributeGroup(name=f"with {members[0]}", attributes=tuple(members)) for members in large)
