"""``Plan``: what the data owner knows about a table, as a release uses it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from dpsyn.errors import PlanError, UserError
from dpsyn.inference import SYNTHESIS_METHODS, Synthesis
from dpsyn.options import find_option_object
from dpsyn.plan.entries import AnyTransform, AttributeGroup, BudgetShare, MarginalsEntry, check_share, check_weights

if TYPE_CHECKING:
    from dpsyn.plan.exploration import Exploration
    from dpsyn.plan.prediction import PredictedMarginal
    from dpsyn.schema import Schema
    from dpsyn.synopsis import Synopsis


class Plan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    r"""What to measure and how to recode it, in part or in full; selection decides the rest.

    A plan is public: it must be made without looking at the table, or from what was released about it.

    >>> Plan.from_yaml("dpsyn_plan: 1\nmarginals: [[age, income]]").marginals[0].of
    ('age', 'income')

    Attributes:
        transforms: recodings, made in this order.
        groups: attributes that are synthesized apart from each other; by default all belong together.
        marginals: the marginals to measure.
        one_way: the part of ρ for one-way marginals; by default it follows from the expected size.
        selection: whether further marginals are selected by noisy scores, or the part of ρ for that; by default they
            are if the plan names no marginals itself.
        threshold: values with a noisy count below this many standard deviations are merged, unless a transform sets
            another threshold.
        weights: how much errors in marginals with an attribute count, such as ``{income: 4}``.
        synthesis: how rows are synthesized: the name of a method, or its name and options, such as
            ``{name: gum, alpha: 0.2, decay: constant}``; by default as the recipe does.
        optional: attributes that a table may lack; entries about them are then ignored.
        description: for people.
    """

    transforms: tuple[AnyTransform, ...] = ()
    groups: tuple[AttributeGroup, ...] = ()
    marginals: tuple[MarginalsEntry, ...] = ()
    one_way: BudgetShare | None = None
    selection: bool | float | str | None = None
    threshold: float = 3.0
    weights: dict[str, float] = msgspec.field(default_factory=dict)
    synthesis: str | dict[str, Any] | None = None
    optional: tuple[str, ...] = ()
    description: str = ""

    def __post_init__(self) -> None:
        for field in ("transforms", "groups", "marginals", "optional"):
            msgspec.structs.force_setattr(self, field, tuple(getattr(self, field)))
        for field in ("one_way", "selection"):
            given = getattr(self, field)
            if not isinstance(given, bool):
                check_share(given, field)
        if not 0 <= self.threshold < math.inf:
            raise PlanError(f"threshold is {self.threshold}; give a number from 0", ("threshold",))
        check_weights(self.weights)
        self.synthesis_method()
        names = [group.name for group in self.groups]
        if len(set(names)) < len(names):
            raise PlanError("two groups have the same name", ("groups",))

    @classmethod
    def load(cls, path: str | Path, schema: Schema | None = None) -> Plan:
        """Read a plan file and, if a schema is given, check that it fits; a PlanError names the line."""
        from dpsyn.plan import yaml_io

        return yaml_io.load_plan(path, schema)

    @classmethod
    def from_yaml(cls, text: str) -> Plan:
        """Read a plan from YAML text; a PlanError names the line."""
        from dpsyn.plan import yaml_io

        return yaml_io.parse_plan(text)

    def to_yaml(self) -> str:
        """The plan as YAML text, which reads back as the same plan."""
        from dpsyn.plan import yaml_io

        return yaml_io.format_plan(self)

    def synthesis_method(self) -> Synthesis | None:
        """The synthesis method with the options that the plan gives it; None if it names none.

        >>> Plan(synthesis={"name": "gum", "alpha": 0.2, "decay": "constant"}).synthesis_method().alpha
        0.2
        """
        if self.synthesis is None:
            return None
        options = {"name": self.synthesis} if isinstance(self.synthesis, str) else self.synthesis
        if not isinstance(options, dict) or "name" not in options:
            raise PlanError(f"synthesis needs name: one of {', '.join(SYNTHESIS_METHODS)}", ("synthesis",))
        paths = dict(_option_paths({key: value for key, value in options.items() if key != "name"}))
        try:
            return find_option_object(
                options["name"], SYNTHESIS_METHODS, "synthesis method", paths, prefix="synthesis."
            )
        except UserError as error:
            raise PlanError(str(error), ("synthesis",)) from None

    def declared_public(self) -> str:
        """What a release by this plan takes as known without the data, for its certificate."""
        return f"plan {self.digest()}" + (f": {self.description}" if self.description else "")

    def digest(self) -> str:
        """A short hash that identifies this plan in certificates."""
        return hashlib.sha256(msgspec.json.encode(self, order="deterministic")).hexdigest()[:16]

    @classmethod
    def draft(cls, source: Synopsis | Exploration) -> Plan:
        """A first plan from a synopsis or an exploration of public data; it costs no budget."""
        from dpsyn.plan.draft import draft_plan
        from dpsyn.plan.exploration import Exploration

        return draft_plan(source if isinstance(source, Exploration) else Exploration.from_synopsis(source))

    def predict(
        self, schema: Schema, epsilon: float, *, delta: float | None = None, rows: int | None = None
    ) -> list[PredictedMarginal]:
        """Predict the noise of every marginal that the plan names, at one ε; nothing private is read."""
        from dpsyn.plan.prediction import predict_noise

        return predict_noise(self, schema, epsilon, delta=delta, rows=rows)

    def representative_epsilons(self) -> list[float]:
        """One ε inside every range of ε in which the plan stays the same."""
        from dpsyn.plan.prediction import representative_epsilons

        return representative_epsilons(self)

    def check(self, schema: Schema) -> None:
        """Raise a PlanError, with the path of the entry, if the plan does not fit a schema at some ε."""
        from dpsyn.plan.prediction import check_plan

        check_plan(self, schema)


def _option_paths(options: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Options by dotted path, as ``--set`` gives them; an object among them is a name, or a mapping with its name."""
    for path, value in options.items():
        if not isinstance(value, Mapping):
            yield path, tuple(value) if isinstance(value, list) else value
            continue
        if "name" in value:
            yield path, value["name"]
        for inner, part in _option_paths({key: value[key] for key in value if key != "name"}):
            yield f"{path}.{inner}", part
