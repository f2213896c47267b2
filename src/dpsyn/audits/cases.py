"""What is audited: every recipe and every method of the gate, each on a table that is a worst case for it.

A worst case puts all rows of one unit, the *canary*, into a cell of its own, so that exact answers differ by as much as
is charged. For choices, one score rises and all others fall. The guarantee is ε = 1 with the largest δ that a budget
may have: then the noise is smallest, and the same number of runs shows most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpsyn.accounting import Budget
from dpsyn.encoding import Grouping
from dpsyn.inference import hash_contents
from dpsyn.itemsets.privbasis import mine_itemsets, privbasis
from dpsyn.plan import Plan
from dpsyn.private import PrivateBaskets, PrivateTable, TableKind
from dpsyn.private.distances import DistanceQuery
from dpsyn.recipes import MWEM, RECIPES, Fourier, Measurements, Planned, Recipe
from dpsyn.schema import BasketSchema, NeighboringRelation, Schema

EPSILON = 1.0
DELTA = 1e-3

AnySchema = Schema | BasketSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditCase:
    """A program and the tables on which it is audited.

    Attributes:
        name: what is audited: a recipe, or a method of the gate.
        kind: the kind of tables.
        neighbors: the neighboring relation.
        max_rows: rows of a person that are used; None if each row is a unit.
        budget: the privacy budget for the schema of the tables.
        program: what is run on the private table.
        share: the part of the runs that this case gets; slow recipes get less.
        adaptive: whether its questions may depend on earlier answers.
    """

    name: str
    kind: TableKind
    budget: Callable[[Any], Budget]
    program: Callable[[Any], Any]
    neighbors: NeighboringRelation = "add-remove"
    max_rows: int | None = None
    share: float = 1.0
    adaptive: bool = False

    @property
    def title(self) -> str:
        """The name, and what is special: the relation, and how many rows a unit has."""
        parts = [self.name, *([self.neighbors] if self.neighbors != "add-remove" else [])]
        return ", ".join([*parts, *([f"{self.max_rows} rows of a person"] if self.max_rows else [])])


# ── budgets ──────────────────────────────────────────────────────────────────────────────────────────────────


def _gaussian(_: AnySchema) -> Budget:
    return Budget.for_guarantee(EPSILON, DELTA)


def _pure(_: AnySchema) -> Budget:
    return Budget.for_guarantee(EPSILON, 0, pure_epsilons=[EPSILON])


def _thresholds(_: AnySchema) -> Budget:
    return Budget.for_guarantee(EPSILON, DELTA, thresholds=True)


def _everything(_: AnySchema) -> Budget:
    return Budget.for_guarantee(2 * EPSILON, DELTA, pure_epsilons=[EPSILON / 4], thresholds=True)


# ── methods of the gate, on tables of three binary attributes with 20 rows of zeros and a canary of ones ─────


def _measure(table: PrivateTable) -> None:
    table.measure([("a", "b")], [table.budget.amount])


def _measure_recodings(table: PrivateTable) -> None:
    joint = table.recoding.join("ab", ["a", "b"])
    half = table.budget.rho / 2
    table.measure_recodings([(table.recoding, {("a", "c"): half}), (joint, {("ab",): half})])


def _measure_laplace(table: PrivateTable) -> None:
    table.measure_laplace([("a", "b")], [table.budget.pure_epsilons[0]])


def _measure_fine_histogram(table: PrivateTable) -> None:
    table.measure_fine_histogram("age", table.budget.rho)


_PAIRS = [("a", "b"), ("a", "c"), ("b", "c")]


def _score_predictions(table: PrivateTable) -> None:
    """Many rows are predicted where the others are, and none at the canary: it adds to every distance."""
    prediction = np.zeros((2, 2))
    prediction[0, 0] = 100
    table.score_predictions(_PAIRS, [prediction] * 3, table.budget.rho)


def _score_indif(table: PrivateTable) -> None:
    table.score_indif(_PAIRS, table.budget.rho)


def _choose_worst_prediction(table: PrivateTable) -> None:
    """Distances of 100: the canary adds 1 to the first and takes 1 from all others."""
    cliques = [("a",), ("b",), ("c",), *_PAIRS, ("a", "b", "c")]
    predictions = []
    for clique in cliques:
        prediction = np.zeros((2,) * len(clique))
        prediction.flat[0], prediction.flat[-1] = (120, 0) if clique == ("a",) else (20, 100)
        predictions.append(prediction)
    table.choose_worst_prediction(cliques, predictions, table.budget.pure_epsilons[0])


def _choose_among_unequal(table: PrivateTable) -> None:
    """Distances of 100, 98, … , 88: how often each is chosen shows the scale of choices."""
    cliques = [("a",), ("b",), ("c",), *_PAIRS, ("a", "b", "c")]
    predictions = []
    for number, clique in enumerate(cliques):
        prediction = np.zeros((2,) * len(clique))
        prediction.flat[0] = 120 - 2 * number
        predictions.append(prediction)
    table.choose_worst_prediction(cliques, predictions, table.budget.pure_epsilons[0])


def _measure_distances(table: PrivateTable) -> None:
    """The public table has all rows where the others are: the canary adds 2 to the distance."""
    target = np.array([[7, 0], [0, 0]], np.int64)
    table.measure_distances([DistanceQuery("distance", (("a", "b"),), (target,))], [table.budget.rho])


def _choose_nearest(table: PrivateTable) -> None:
    """The canary takes the rows away from the first public table, and towards all others."""
    far, near = np.array([[7, 0], [0, 0]], np.int64), np.array([[18, 0], [0, 2]], np.int64)
    table.choose_nearest([("a", "b")], [[far], *[[near]] * 6], table.budget.pure_epsilons[0])


def _measure_sums(table: PrivateTable) -> None:
    table.measure_sums([("a",)], [np.array([0, 5], np.int64)], [table.budget.rho], ["sum"])


def _measure_fourier(table: PrivateTable) -> None:
    table.measure_fourier(2, table.budget.amount)


def _discover_values(table: PrivateTable) -> None:
    table.discover_values("city", table.budget.rho, table.budget.threshold_delta)


def _discover_range(table: PrivateTable) -> None:
    table.discover_range("age", table.budget.rho)


def _recode_and_refine(table: PrivateTable) -> None:
    """Marginals of recodings and of cells that are divided further."""
    finer = table.refine_cells({"age": [10, 500, 4000]})
    half = table.budget.rho / 2
    finer.measure_fine_histogram("age", half)
    size = finer.recoding.sizes[0]
    merged = finer.recode(finer.recoding.merge("age", Grouping(np.arange(size) // 2)))
    merged.measure([("age",)], [half])


# ── methods of the gate for baskets ──────────────────────────────────────────────────────────────────────────


def _epsilon(baskets: PrivateBaskets) -> Fraction:
    return baskets.budget.pure_epsilons[0]


_ALL_ITEMS = list(range(8))

_BASKET_METHODS: dict[str, tuple[TableKind, Callable[[PrivateBaskets], Any]]] = {
    "measure_bases": ("baskets", lambda baskets: baskets.measure_bases([[0, 1, 2]], [_epsilon(baskets)])),
    "measure_support": ("baskets", lambda baskets: baskets.measure_support(3, _epsilon(baskets))),
    "measure_lengths": ("baskets", lambda baskets: baskets.measure_lengths(None, [0, 1, 3], _epsilon(baskets))),
    "measure_items": ("baskets", lambda baskets: baskets.measure_items(8, _epsilon(baskets))),
    "measure_pairs": ("baskets", lambda baskets: baskets.measure_pairs(_ALL_ITEMS, 8, _epsilon(baskets))),
    "choose_item_rank": (
        "small baskets",
        lambda baskets: baskets.choose_item_rank(Fraction(1, 20), 8, _epsilon(baskets)),
    ),
    "choose_pair_rank": (
        "baskets",
        lambda baskets: baskets.choose_pair_rank(_ALL_ITEMS, Fraction(1, 20), 20, _epsilon(baskets)),
    ),
    "choose_frequent_items": ("small baskets", lambda baskets: baskets.choose_frequent_items(2, _epsilon(baskets))),
    "choose_frequent_pairs": (
        "baskets",
        lambda baskets: baskets.choose_frequent_pairs(_ALL_ITEMS, 2, _epsilon(baskets)),
    ),
}

METHODS: tuple[AuditCase, ...] = (
    AuditCase(name="measure", kind="canary", budget=_gaussian, program=_measure),
    AuditCase(name="measure", kind="canary", budget=_gaussian, program=_measure, neighbors="replace"),
    AuditCase(name="measure", kind="canary", budget=_gaussian, program=_measure, max_rows=2),
    AuditCase(name="measure with δ = 0", kind="canary", budget=_pure, program=_measure),
    AuditCase(name="measure_recodings", kind="canary", budget=_gaussian, program=_measure_recodings),
    AuditCase(name="measure_laplace", kind="canary", budget=_pure, program=_measure_laplace),
    AuditCase(
        name="measure_laplace", kind="canary", budget=_pure, program=_measure_laplace, neighbors="replace", max_rows=2
    ),
    AuditCase(name="measure_fine_histogram", kind="numbers", budget=_gaussian, program=_measure_fine_histogram),
    AuditCase(name="score_predictions", kind="canary", budget=_gaussian, program=_score_predictions),
    AuditCase(
        name="score_predictions", kind="canary", budget=_gaussian, program=_score_predictions, neighbors="replace"
    ),
    AuditCase(name="score_predictions", kind="canary", budget=_gaussian, program=_score_predictions, max_rows=2),
    AuditCase(name="score_indif", kind="canary", budget=_gaussian, program=_score_indif),
    AuditCase(name="choose_worst_prediction", kind="canary", budget=_pure, program=_choose_worst_prediction),
    AuditCase(
        name="choose_worst_prediction with unequal distances",
        kind="canary",
        budget=_pure,
        program=_choose_among_unequal,
    ),
    AuditCase(name="measure_distances", kind="canary", budget=_gaussian, program=_measure_distances),
    AuditCase(name="choose_nearest", kind="canary", budget=_pure, program=_choose_nearest),
    AuditCase(name="measure_sums", kind="canary", budget=_gaussian, program=_measure_sums),
    AuditCase(name="measure_fourier", kind="canary", budget=_gaussian, program=_measure_fourier),
    AuditCase(name="measure_fourier with δ = 0", kind="canary", budget=_pure, program=_measure_fourier),
    AuditCase(name="discover_values", kind="texts", budget=_thresholds, program=_discover_values),
    AuditCase(name="discover_range", kind="numbers", budget=_gaussian, program=_discover_range),
    AuditCase(name="refine_cells and recode", kind="numbers", budget=_gaussian, program=_recode_and_refine, share=0.5),
    AuditCase(
        name="discover_items",
        kind="open baskets",
        budget=_thresholds,
        program=lambda baskets: baskets.discover_items(baskets.budget.rho, baskets.budget.threshold_delta, 2),
    ),
    *(
        AuditCase(name=name, kind=kind, budget=_pure, program=program)
        for name, (kind, program) in _BASKET_METHODS.items()
    ),
)
"""The methods of the gate."""


# ── recipes ──────────────────────────────────────────────────────────────────────────────────────────────────

_PLAN = Plan.from_yaml("""
dpsyn_plan: 1
marginals: [{of: [a, b], share: 1/4, mechanism: laplace}, [b, c]]
""")

_MIXED_PLAN = Plan.from_yaml("""
dpsyn_plan: 1
transforms:
  - {transform: bucketize, of: weight, starts: [0, 50, 150]}
  - {transform: recode, to: job_ok, of: [job, ok]}
  - {transform: availability, to: times, of: [seen]}
  - {transform: compress, rows: 2}
marginals:
  - {of: [age, job_ok], share: 1/20, mechanism: laplace}
  - {of: [weight, times, job]}
""")

_SHARES = {"dpsyn": 0.1, "privsyn": 0.3, "explore": 0.3, "mwem": 0.2, "fourier": 0.5, "planned": 0.5, "priview": 0.5}
"""The part of the runs of slow recipes."""

_CAN_BE_PURE = ("independent", "direct", "priview", "mwem", "fourier")


def _make_recipe(name: str, *, mixed: bool = False) -> Recipe:
    if name == "planned":
        return Planned(plan=_MIXED_PLAN if mixed else _PLAN)
    return MWEM(rounds=3) if name == "mwem" else Fourier(ways=2) if name == "fourier" else RECIPES[name]()


def _recipe_case(name: str, *, delta: float = DELTA, mixed: bool = False, **options: Any) -> AuditCase:
    recipe = _make_recipe(name, mixed=mixed)
    return AuditCase(
        name=f"recipe {name}" + (" with δ = 0" if delta == 0 else ""),
        budget=lambda schema: recipe.plan_budget(schema, EPSILON, delta),
        program=recipe.measure,
        share=_SHARES.get(name, 1.0),
        adaptive=True,
        **options,
    )


def _itemsets(baskets: PrivateBaskets) -> Any:
    return mine_itemsets(baskets, top=5)


_ITEMSETS = AuditCase(
    name="frequent itemsets", kind="baskets", budget=_pure, program=_itemsets, share=0.5, adaptive=True
)

RECIPE_CASES: tuple[AuditCase, ...] = (
    *(_recipe_case(name, kind="canary") for name in RECIPES),
    *(_recipe_case(name, kind="canary", delta=0) for name in _CAN_BE_PURE),
    _recipe_case("independent", kind="canary", neighbors="replace"),
    _recipe_case("direct", kind="canary", neighbors="replace", max_rows=2),
    _ITEMSETS,
)
"""The recipes."""

CANARY_CASES = (*METHODS, *RECIPE_CASES)
"""What canaries are looked for in; also the source of the noise that is tested."""


# ── programs that are replayed on mixed tables ───────────────────────────────────────────────────────────────


def _ask_everything(table: PrivateTable) -> list[Any]:
    """Every question that the gate answers, and questions that depend on earlier answers; all that was returned."""
    rho, pure = table.budget.rho / 8, table.budget.pure_epsilons[0]
    table = table.discover_range("age", rho)
    table = table.discover_values("city", rho, table.budget.threshold_delta)
    table = table.refine_cells({"weight": [3, 7]})
    fine = table.measure_fine_histogram("age", rho)
    size = table.recoding.sizes[table.recoding.index_of("job")]
    joint = table.recode(table.recoding.join("both", ["job", "ok"]))
    both = joint.measure([("both",)], [rho / 2])
    merged = table.recode(table.recoding.merge("job", Grouping(np.arange(size) // 2)))
    pairs = [("age", "ok"), ("job", "city"), ("weight", "seen")]
    measured = merged.measure([pairs[0], ("job",)], [rho, rho])
    laplace = table.measure_laplace([("ok", "job")], [pure / 2])
    shapes = [tuple(merged.recoding.sizes[merged.recoding.index_of(name)] for name in pair) for pair in pairs]
    predictions = [measured[0].counts, *(np.full(shape, 0.6) for shape in shapes[1:])]
    scores = merged.score_predictions(pairs, predictions, rho)
    dependence = merged.score_indif(pairs, rho)
    chosen = merged.choose_worst_prediction(pairs, predictions, pure / 2)
    last = merged.measure([pairs[int(np.argmax(scores.values))]], [rho / 2 if fine.counts.any() else rho / 4])
    counts = [marginal.counts.tolist() for marginal in (fine, *both, *measured, *laplace, *last)]
    return [table.schema, counts, scores.values.tolist(), dependence.values.tolist(), chosen]


def _ask_about_distances(table: PrivateTable) -> list[Any]:
    """Distances from public tables, of groups too, a choice among them, and sums; all that was returned."""
    rho, cliques = table.budget.rho / 4, (("job", "ok"), ("job", "seen"))
    shapes = [tuple(table.recoding.sizes[table.recoding.index_of(name)] for name in clique) for clique in cliques]
    targets = tuple((np.arange(np.prod(shape)).reshape(shape) % 3).astype(np.int64) for shape in shapes)
    queries = [
        DistanceQuery("mean distance", cliques, targets),
        DistanceQuery("largest distance", cliques, targets, summary="max"),
        DistanceQuery("distances of groups", cliques, targets, grouped=True),
    ]
    distances = table.measure_distances(queries, [rho] * 3)
    turned = [target[::-1].copy() for target in targets]
    nearest = table.choose_nearest(cliques, [targets, turned], table.budget.pure_epsilons[0])
    sums = table.measure_sums([("job",)], [np.arange(shapes[0][0], dtype=np.int64) - 2], [rho], ["sum"])
    return [*(each.values.tolist() for each in (*distances, *sums)), nearest]


def _ask_all_about_baskets(baskets: PrivateBaskets) -> list[Any]:
    """Every question about baskets; all that was returned."""
    part = _epsilon(baskets) / 10
    rank = baskets.choose_item_rank(5, 8, part)
    chosen = baskets.choose_frequent_items(max(2, min(rank, 4)), part)
    return [
        (rank, chosen),
        baskets.choose_pair_rank(chosen, Fraction(1, 5), 6, part),
        baskets.choose_frequent_pairs(chosen, 1, part),
        [basis.counts.tolist() for basis in baskets.measure_bases([list(chosen), [0, 5]], [part / 2, part / 2])],
        baskets.measure_support(rank, part),
        baskets.measure_lengths(chosen, [0, 1, 2], part),
        baskets.measure_lengths(None, [0, 2, 4], part),
        baskets.measure_items(2, part),
        baskets.measure_pairs([0, 2, 3, 7], 3, part),
    ]


def _privbasis(baskets: PrivateBaskets) -> Any:
    return privbasis(baskets, top=6)


_RELATIONS: tuple[NeighboringRelation, ...] = ("add-remove", "replace")


def replay_cases(units: Sequence[int | None] = (None, 2)) -> Iterator[AuditCase]:
    """Every recipe, and programs that ask every question, under both relations and for several units."""
    for max_rows in units:
        for neighbors in _RELATIONS:
            terms: dict[str, Any] = {"neighbors": neighbors, "max_rows": max_rows}
            yield AuditCase(
                name="all questions", kind="mixed texts", budget=_everything, program=_ask_everything, **terms
            )
            yield AuditCase(
                name="distances and sums", kind="mixed", budget=_everything, program=_ask_about_distances, **terms
            )
            for name in RECIPES:
                binary = name == "fourier"
                yield _recipe_case(name, kind="canary" if binary else "mixed", mixed=not binary, **terms)
            for name in ("independent", "mwem"):
                yield _recipe_case(name, kind="mixed", delta=0, **terms)
            yield _recipe_case("fourier", kind="canary", delta=0, **terms)
            yield _recipe_case("dpsyn", kind="mixed texts", mixed=True, **terms)
            discover = METHODS[[case.name for case in METHODS].index("discover_items")]
            for case in (discover,):
                yield AuditCase(name=case.name, kind=case.kind, budget=case.budget, program=case.program, **terms)
            for title, program in (
                ("all questions about baskets", _ask_all_about_baskets),
                ("frequent itemsets", _itemsets),
                ("frequent itemsets by bases", _privbasis),
            ):
                yield AuditCase(name=title, kind="mixed baskets", budget=_pure, program=program, **terms)


def describe_outcome(outcome: Any) -> Any:
    """What a program returned, in a form that can be compared: everything that a release would keep."""
    if not isinstance(outcome, Measurements):
        return repr(outcome)
    marginals = [
        (marginal.clique, marginal.std, marginal.lattice, marginal.raw.tolist())
        for stage in outcome.rounds
        for marginal in stage.marginals
    ]
    scores = [(score.kind, score.cliques, score.values.tolist(), score.std) for score in outcome.scores]
    contents = hash_contents(outcome.schema, outcome.rounds, outcome.scores)
    tables = [(table.clique, table.values.tolist()) for table in outcome.tables]
    return contents, marginals, scores, sorted(outcome.zeroed_attributes), outcome.row_count, tables
