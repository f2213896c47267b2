"""What a recipe is: a whole algorithm that spends the budget of a private table, as an object with its options."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Set
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, Self

from dpsyn.accounting import Budget
from dpsyn.encoding import Recoding
from dpsyn.errors import UserError
from dpsyn.inference import MCF, Gibbs, MeasurementRound, PreviousReleases, PublicTables, Scores, Synthesis
from dpsyn.marginals import Estimate
from dpsyn.options import check_options, options_to_data, refuse_unknown_arguments
from dpsyn.private import PrivateTable
from dpsyn.progress import MEASURE_MARGINALS, Progress, Step, ignore_progress
from dpsyn.schema import Schema, Total


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Measurements:
    """What a recipe measured, and what a model of it needs to know.

    Attributes:
        schema: the public schema, with the values that were discovered privately.
        recoding: the attributes to model.
        rounds: the marginals, in the order in which they were measured.
        scores: the noisy scores by which marginals were selected.
        zeroed_attributes: attributes of the recoding whose last code counts as empty.
        row_count: the number of rows, where it is public.
        tables: tables over the recoding that the recipe estimated itself; if there are any, the model follows them
            alone.
        public: what public rows answer to the same questions, if they were given as a prior.
    """

    schema: Schema
    recoding: Recoding
    rounds: tuple[MeasurementRound, ...]
    scores: tuple[Scores, ...] = ()
    zeroed_attributes: Set[str] = frozenset()
    row_count: int | None = None
    tables: tuple[Estimate, ...] = ()
    public: PublicTables | None = None


Noise = Literal["gaussian", "laplace"]
"""The kinds of noise that a marginal can have."""


@dataclass(frozen=True, slots=True)
class NoiseChoice:
    """The noise of a release, and why; made from public facts before the first measurement.

    Attributes:
        kind: ``laplace`` is pure ε, so the guarantee has δ = 0 then.
        reason: why, in words; empty if the recipe knows only one kind.
    """

    kind: Noise
    reason: str = ""

    def to_data(self) -> dict[str, Any]:
        """Plain data for the certificate: the kind and the reason; nothing if there was no choice."""
        return {"noise_choice": f"{self.kind}: {self.reason}"} if self.reason else {}


@dataclass(frozen=True, kw_only=True)
class Recipe(ABC):
    """A whole algorithm: which marginals of a private table are measured, and how rows are synthesized from them.

    A recipe is a frozen object whose fields are its options; pass it to ``dpsyn.measure``. A new recipe is one module
    with a subclass, and a line in ``recipes/registry.py``.

    Privacy: a recipe sees only the gate's noisy answers, so whatever it does is within the budget. It is a
    deterministic function of these answers: an interrupted run repeats its questions and gets the stored answers.

    Attributes:
        synthesis: how rows are synthesized from the measured marginals. It costs no budget and can be chosen again
            whenever rows are generated.
    """

    def __new__(cls, *_: object, **options: object) -> Self:
        """Refuse an option that the recipe does not have; its values are checked when they are set."""
        refuse_unknown_arguments(cls.__name__, [field.name for field in fields(cls) if field.init], options)
        return super().__new__(cls)

    name: ClassVar[str]
    """What the recipe is called on the command line."""

    summary: ClassVar[str]
    """One sentence: what it does, and where it comes from."""

    is_baseline: ClassVar[bool] = False
    """Whether it is a point of comparison for other recipes rather than a way to release a table."""

    steps: ClassVar[tuple[Step, ...]] = (MEASURE_MARGINALS,)
    """The steps that ``measure`` may take, in order, for displays of progress."""

    synthesis: Synthesis = Gibbs()  # noqa: RUF009 -- frozen

    def __post_init__(self) -> None:
        check_options(self)

    @abstractmethod
    def measure(
        self, table: PrivateTable, *, previous: PreviousReleases | None = None, progress: Progress = ignore_progress
    ) -> Measurements:
        """Spend the budget of a table; ``previous`` holds earlier releases of it, whose numbers are combined."""

    @abstractmethod
    def max_passes(self, schema: Schema) -> int:
        """How often the table is read at most; a test compares it with what happens."""

    def max_reopenings(self, schema: Schema) -> int:
        """How often at most the table is encoded again in other cells, besides for open attributes."""
        return 0

    def check(self, schema: Schema, previous: PreviousReleases | None) -> None:
        """Refuse options that do not fit the schema, before anything is spent or read."""
        if isinstance(self.synthesis, MCF) and any(isinstance(rule, Total) and rule.where for rule in schema.rules):
            raise UserError("mcf cannot meet the public totals of the schema that have a condition; use gibbs or gum")

    def choose_noise(self, schema: Schema, epsilon: float, delta: float, *, in_ledger: bool = False) -> NoiseChoice:
        """The noise of its marginals: Gaussian, unless a recipe can do with pure ε."""
        return NoiseChoice("gaussian")

    def plan_budget(self, schema: Schema, epsilon: float, delta: float) -> Budget:
        """The privacy budget for a guarantee of (ε, δ), divided as this recipe needs it."""
        return Budget.for_guarantee(epsilon, delta, thresholds=bool(schema.open_attributes))

    def declared_public(self) -> tuple[str, ...]:
        """What this recipe takes as known without the data, for the certificate."""
        return ()

    def to_data(self) -> dict[str, Any]:
        """The recipe as plain data: its name and all options. It identifies a run in journal and certificate."""
        return options_to_data(self)


def refuse_to_extend(previous: PreviousReleases | None, recipe: str) -> None:
    """Refuse to extend a synopsis by a recipe whose model takes no part of earlier releases."""
    if previous is not None:
        raise UserError(f"recipe {recipe!r} cannot extend a synopsis; use another recipe, such as 'dpsyn'")
