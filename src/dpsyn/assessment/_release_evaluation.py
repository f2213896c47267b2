"""``release_evaluation``: how close a synthetic table is to the private one, measured through the gate."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np

from dpsyn import notebook
from dpsyn.accounting import Budget, Ledger, check_large_epsilon, default_delta, delta_warning, split_exactly
from dpsyn.assessment.criteria import Criteria, coerce_criteria
from dpsyn.assessment.evaluation_plan import SHARES, EvaluationPlan, plan_evaluation
from dpsyn.assessment.figures import EvaluationAnswers, describe_answers
from dpsyn.assessment.results import ReleasedEvaluation
from dpsyn.assessment.synthetic_table import read_synthetic_tables
from dpsyn.errors import UserError
from dpsyn.marginals import Clique, Marginal
from dpsyn.marginals.comparison import choose_groups
from dpsyn.options import suggest_arguments
from dpsyn.private import NoisyScores, PrivateTable, Protect, open_private
from dpsyn.progress import Progress, ignore_progress
from dpsyn.schema import Schema, SchemaDraft
from dpsyn.sources import is_same_table

RECIPE_NAME = "released evaluation"
"""What the ledger and the certificate call such a run."""


@suggest_arguments
@notebook.show_progress
def release_evaluation(
    real: Any,
    synthetic: Any,
    schema: Schema | SchemaDraft | str | Path,
    epsilon: float,
    *,
    delta: float | None = None,
    allow_large_epsilon: bool = False,
    by: Sequence[str] | None = None,
    criteria: Criteria | str | Path | None = None,
    attributes: bool = True,
    ledger: Ledger | str | Path | None = None,
    dataset: str | None = None,
    query: str | None = None,
    protect: Protect = "base rows",
    engine: Literal["auto", "memory", "stream", "spark"] = "auto",
    journal: str | Path | None = None,
    resume: bool = False,
    progress: Progress = ignore_progress,
) -> ReleasedEvaluation:
    """Measure how close a synthetic table is to the private one; the result may be published.

    Distances are released as such, not computed from noisy tables, so they have no bias from noise in empty cells. All
    are over the schema's bins, as those of ``evaluate``.

    >>> import dpsyn
    >>> from dpsyn.demo import people, people_schema
    >>> table, schema = people(rows=2_000), people_schema()
    >>> rows = dpsyn.measure(table, schema, epsilon=1.0, recipe="independent").generate(seed=1)
    >>> released = dpsyn.release_evaluation(table, rows, schema, epsilon=1.0)
    >>> released.two_way.low <= released.two_way.value <= released.two_way.high
    True

    Privacy: (ε, δ)-differential privacy for the privacy unit and the neighboring relation that the schema declares, in
    addition to the guarantee of the release itself; all rows are read through the gate. The synthetic table is taken as
    public. The number of synthetic tables, the criteria and the groups must be decided without looking at the rows.

    Args:
        real: the private table, as for ``measure``.
        synthetic: the synthetic table: a path, a release folder, a frame, an Arrow table.
        schema: what is public about the private table, or the path of its file.
        epsilon: the ε of the guarantee; 0.05 suffices for the overall figures of tens of thousands of rows.
        delta: its δ; by default min(1e-9, 1/expected_size²).
        allow_large_epsilon: allow an ε above 20, which is no meaningful guarantee.
        by: attributes whose values divide the rows into groups; each group gets a distance of its own. By default
            those that the schema declares as ``groups``.
        criteria: declared acceptance criteria, or the path of their file.
        attributes: whether each attribute gets a distance of its own; they share a part of the budget.
        ledger: where the guarantee and every measurement is recorded; without one, this release is accounted alone.
        dataset: its name in the ledger, if not that of the schema.
        query: as for ``measure``.
        protect: as for ``measure``.
        engine: as for ``measure``.
        journal: a file that keeps every answer until the work is done, so that it can be resumed.
        resume: continue the run whose journal this is.
        progress: called with what is going on.
    """
    schema = Schema.coerce(schema).with_dataset(dataset)
    schema.require_public()
    if is_same_table(real, synthetic):
        raise UserError(
            "the synthetic table is the private table itself, or a part of it, but it is taken as public, and the "
            "certificate states its SHA-256; give the synthetic table"
        )
    declared, groups = coerce_criteria(criteria, schema), choose_groups(by, schema)
    check_large_epsilon(epsilon, allowed=allow_large_epsilon)
    budget = Budget.for_guarantee(epsilon, _choose_delta(schema, delta))
    book = Ledger(Path(ledger)) if isinstance(ledger, str | Path) else ledger
    progress("reading the synthetic table", 0.0)
    schema, (table,) = read_synthetic_tables([synthetic], schema)
    plan = plan_evaluation(schema, table, groups, declared, attributes=attributes)
    if book is not None and not resume:
        book.check_room(schema.dataset, budget)
    recipe = {
        "name": RECIPE_NAME,
        "synthetic_hash": table.digest,
        "by": list(groups),
        "criteria": declared.to_data(),
        "attributes": attributes,
    }
    progress("reading the table", 0.0)
    with open_private(
        real,
        schema,
        budget,
        book,
        query=query,
        protect=protect,
        engine=engine,
        journal=None if journal is None else Path(journal),
        resume=resume,
        recipe=recipe,
        declared_public=(f"the evaluated synthetic table, SHA-256 {table.digest}",),
    ) as private:
        progress("measuring distances", 0.0)
        answers = measure_plan(private, plan)
        private.bind_contents(hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest())
    return describe_answers(plan, answers, private.certificate())


def measure_plan(private: PrivateTable, plan: EvaluationPlan) -> EvaluationAnswers:
    """Measure everything that a plan names.

    Privacy: spends the whole ρ of the budget, in the shares of the plan.
    """
    known = private.privacy_unit.row_count_is_public
    rhos = iter(split_exactly(private.budget.rho, [*([] if known else [Fraction(SHARES["rows"])]), *plan.shares]))
    view = private.recode(plan.recoding)
    rows = float(view.public_row_count() or 0), 0.0
    if not known:
        ones = np.ones(plan.recoding.sizes[0], np.int64)
        (count,) = view.measure_sums([(plan.recoding.names[0],)], [ones], [next(rhos)], ["number of rows"])
        rows = float(count.values[0]), count.std
    queries = [planned.query for planned in plan.distances]
    distances = view.measure_distances(queries, [next(rhos) for _ in queries])
    groups: list[Marginal] = []
    if plan.groups:
        cliques: list[Clique] = [(name,) for name in plan.groups]
        groups = view.measure(cliques, [next(rhos) for _ in cliques], purpose="sizes of groups")
    sums: list[NoisyScores] = []
    if needed := plan.sums:
        cliques, weights = [each.clique for each in needed], [each.weights for each in needed]
        purposes = [each.purpose for each in needed]
        sums = private.recode(plan.sum_recoding).measure_sums(cliques, weights, list(rhos), purposes)
    return EvaluationAnswers(rows, distances, groups, sums)


def _choose_delta(schema: Schema, delta: float | None) -> float:
    """The δ of a release: as given, with a warning if it is large, or by default that for the expected rows."""
    if delta is None:
        return default_delta(schema.expected_size)
    if message := delta_warning(delta, schema.expected_size):
        warnings.warn(message, UserWarning, stacklevel=5)
    return delta
