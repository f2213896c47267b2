"""Plans are read, written, and refused with the line of what is wrong."""

from __future__ import annotations

import math
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsyn.errors import PlanError
from dpsyn.inference import GUM, MCF, ConstantDecay, LinearDecay, StepDecay
from dpsyn.plan import Plan, representative_epsilons, yaml_io
from dpsyn.plan.entries import parse_budget_condition
from dpsyn.schema import Total
from tests.plan.schemas import CALLS, EVERYTHING

# ── conditions on the budget ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("", [1e-9, 1e9], []),
        ("epsilon < 0.3", [0.1, 0.2999], [0.3, 1]),
        ("epsilon <= 0.3", [0.3], [0.31]),
        ("epsilon > 2", [2.1], [2, 1]),
        ("epsilon>=2", [2], [1.99]),
        ("0.2 < epsilon <= 1e0", [0.21, 1], [0.2, 1.1]),
        ("0.2 <= epsilon", [0.2], [0.1]),
    ],
)
def test_a_condition_holds_where_it_says(text: str, inside: list[float], outside: list[float]) -> None:
    when = parse_budget_condition(text)

    assert all(when.holds(epsilon) for epsilon in inside)
    assert not any(when.holds(epsilon) for epsilon in outside)


@pytest.mark.parametrize(
    "text", ["epsilon", "delta < 1", "epsilon < x", "2 < epsilon < 1", "epsilon < 1 or 2", "1 < 2"]
)
def test_what_is_no_condition_is_refused(text: str) -> None:
    with pytest.raises(PlanError):
        parse_budget_condition(text)


@given(st.lists(st.floats(0.01, 50), min_size=1, max_size=5))
def test_budgets_that_are_checked_lie_in_every_range(edges: list[float]) -> None:
    written = "\n".join(f"  - {{of: [a], when: epsilon < {edge!r}}}" for edge in edges)

    plan = Plan.from_yaml(f"dpsyn_plan: 1\nmarginals:\n{written}\n")

    found = representative_epsilons(plan)
    bounds = [0.0, *sorted(set(edges)), math.inf]
    for low, high in pairwise(bounds):
        assert any(low <= epsilon <= high for epsilon in found)


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_plan_that_says_everything_reads_back_as_it_was_written() -> None:
    plan = Plan.from_yaml(EVERYTHING)

    assert Plan.from_yaml(plan.to_yaml()) == plan
    assert {type(entry).__struct_config__.tag for entry in plan.transforms} == set(yaml_io.TRANSFORMS)
    plan.check(CALLS)


@pytest.mark.parametrize(
    ("text", "method"),
    [
        ("mcf", MCF()),
        ("{name: gum, alpha: 0.2, decay: constant}", GUM(alpha=0.2, decay=ConstantDecay())),
        (
            "{name: gum, decay: {name: linear, rate: 0.1}, duplicate_shares: [0.5, 1]}",
            GUM(decay=LinearDecay(rate=0.1), duplicate_shares=(0.5, 1)),
        ),
        ("{name: gum, decay: {every: 5}}", GUM(decay=StepDecay(every=5))),
    ],
)
def test_a_plan_names_the_synthesis_method_and_its_options(text: str, method: object) -> None:
    plan = Plan.from_yaml(f"dpsyn_plan: 1\nsynthesis: {text}\n")

    assert plan.synthesis_method() == method
    assert Plan.from_yaml(plan.to_yaml()) == plan
    assert Plan().synthesis_method() is None


def test_a_plan_holds_the_synthesis_as_it_is_written() -> None:
    with pytest.raises(PlanError, match="synthesis needs name: one of gibbs, gum, mcf"):
        Plan(synthesis=GUM())  # type: ignore[arg-type]


def test_plans_that_differ_have_other_digests() -> None:
    plan = Plan.from_yaml(EVERYTHING)

    assert plan.digest() == Plan.from_yaml(EVERYTHING).digest()
    assert plan.digest() != Plan.from_yaml(EVERYTHING.replace("threshold: 2.5", "threshold: 2.6")).digest()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("transform: [1]", "line 2: there is no field 'transform'; did you mean transforms?"),
        ("transforms: 3", "line 2: transforms is a list"),
        ("optional:\n  - box\n  - {}", "line 4: optional: a mapping is not text"),
        ("weights:\n  age: 2\n  sex: much", "line 4: weights: sex: 'much' is not a number"),
        ("transforms:\n  - {transform: recoed, of: [a]}", "line 3: a transform: there is no transform 'recoed'"),
        ("transforms:\n  - {of: [a]}", "line 3: a transform needs transform: one of bucketize"),
        ("transforms:\n  - {transform: recode, of: [a, b]}", "line 3: recode (transform 1): to is not given"),
        ("transforms:\n  - {transform: recode, to: x, of: [a]}", "at least 2 different attributes"),
        ("transforms:\n  - transform: compress\n    max_codes: 0", "line 4: compress (transform 1): max_codes is 0"),
        ("transforms:\n  - transform: compress\n    threshold: -1", "line 4: compress (transform 1): threshold is -1"),
        ("transforms:\n  - {transform: mapping, of: a, from: a}", "cannot follow from itself"),
        ("transforms:\n  - {transform: availability, to: t, of: [a], anchor: a}", "its own anchor"),
        ("transforms:\n  - {transform: bucketize, of: a, starts: []}", "no starts"),
        ("transforms:\n  - {transform: bucketize, of: a, starts: [1], share: 2}", "share is 2.0; give a part"),
        ("transforms:\n  - {transform: bucketize, of: a, starts: [1], fine: false, share: 0.1}", "leave one out"),
        ("marginals:\n  - {of: [a], when: epsilon is small}", "line 3: marginal 1: 'epsilon is small' is not a cond"),
        ("marginals:\n  - {of: [a], share: 1.5}", "share is 1.5; give a part"),
        ("marginals:\n  - {of: [a], share: lots}", "'lots' is not a number"),
        ("marginals:\n  - {of: [a], mechanism: laplace}", "Laplace noise needs a share"),
        ("marginals:\n  - {of: [a], mechanism: cauchy, share: 0.1}", "there is no 'cauchy'; use gaussian, laplace"),
        ("marginals:\n  - {of: [a, a]}", "names an attribute twice"),
        ("marginals:\n  - {of: [a], pairs: [b, c]}", "either of: [...]"),
        ("marginals:\n  - {pairs: [b]}", "at least two attributes"),
        ("marginals:\n  - {of: [b], with: [c]}", "with: belongs to pairs:"),
        ("marginals:\n  - 7", "line 3: marginal 1 needs of:"),
        ("groups: [a]", "line 2: groups is a mapping"),
        ("groups:\n  g: 3", "line 3: the group 'g' needs its attributes"),
        ("groups:\n  g: {attributes: [a], join: b}", "line 3: group 'g': the group 'g' is joined on 'b'"),
        ("one_way: 2", "line 2: one_way is 2"),
        ("selection: 0", "line 2: selection is 0"),
        ("weights: {a: -1}", "line 2: the weight of 'a' is -1"),
        ("weights: {a: 1e-200}", "line 2: the weight of 'a' is 1e-200; give a number from 1e-06"),
        ("threshold: high", "line 2: threshold: 'high' is not a number"),
        ("synthesis: magic", "line 2: there is no synthesis method 'magic'; there are gibbs, gum, mcf"),
        ("synthesis: {alpha: 0.2}", "line 2: synthesis needs name: one of gibbs, gum, mcf"),
        ("synthesis: {name: gum, alfa: 0.2}", "synthesis is gum, which has no option 'synthesis.alfa'; did you mean"),
        (
            "synthesis: {name: gum, alpha: -1}",
            "option synthesis.alpha is -1: alpha of GUM is -1; give a number above 0",
        ),
        ("synthesis: {name: gum, decay: root}", "it takes: step|exponential|linear|square-root|constant"),
        ("synthesis: {name: gum, decay: {name: step, rate: 1}}", "synthesis.decay is step, which has no option"),
        ("synthesis: [gum]", "line 2: synthesis: "),
    ],
)
def test_a_mistake_is_told_with_its_line(line: str, words: str) -> None:
    with pytest.raises(PlanError) as error:
        Plan.from_yaml(f"dpsyn_plan: 1\n{line}\n")

    assert words in str(error.value)
    assert "line " in str(error.value)


@pytest.mark.parametrize("text", ["", "[]", "attributes: 1", "dpsyn_plan: 2", "dpsyn_plan: one", "dpsyn_schema: 1"])
def test_what_is_no_plan_is_refused(text: str) -> None:
    with pytest.raises(PlanError, match=r"dpsyn_plan: 1|reads format 1"):
        Plan.from_yaml(text)


def test_several_mistakes_are_told_at_once() -> None:
    text = "dpsyn_plan: 1\nmarginals:\n  - {of: [a], share: 2}\n  - {pairs: [b]}\n"

    with pytest.raises(PlanError, match=r"2 mistakes\n  line 3: .*\n  line 4: "):
        Plan.from_yaml(text)


# ── against a schema ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("marginals: [[received, sender]]", "there is no attribute 'sender'"),
        ("transforms:\n  - {transform: recode, to: unit, of: [unit, kind]}", "there is an attribute 'unit' already"),
        (
            "transforms:\n  - {transform: recode, to: x, of: [unit, kind]}\n"
            "  - {transform: recode, to: y, of: [month, kind]}",
            "line 4: 'kind' is recoded twice: by recode x and by recode y",
        ),
        ("transforms:\n  - {transform: recode, to: x, of: [address, wage, kind, month, unit]}", "combinations to meas"),
        ("transforms:\n  - {transform: mapping, of: address, from: wage}", "cells, more than 1,000,000"),
        (
            "transforms:\n  - transform: random\n    when: epsilon < 1\n"
            "    of: [received, entered, arrived, unit, kind, month, address, wage]",
            "line 5: at ε = 0.5 no attribute would be measured",
        ),
        (
            "transforms:\n  - {transform: availability, to: t, of: [month], anchor: kind}",
            "their difference is not defined",
        ),
        (
            "transforms:\n  - {transform: availability, to: t, of: [arrived], anchor: received}\n"
            "  - {transform: availability, to: u, of: [entered], anchor: arrived}",
            "line 4: 'arrived' is itself coded relative to another attribute",
        ),
        (
            "transforms:\n  - {transform: availability, to: u, of: [entered], anchor: arrived}\n"
            "  - {transform: availability, to: t, of: [arrived], anchor: received}",
            "line 4: 'entered' is coded relative to 'arrived', which then cannot be relative to 'received'",
        ),
        (
            "transforms:\n  - {transform: mapping, of: kind, from: unit}\n"
            "  - {transform: mapping, of: unit, from: month}",
            "line 4: 'kind' is coded relative to 'unit', which then cannot be relative to 'month'",
        ),
        (
            "transforms:\n  - {transform: recode, to: x, of: [received, unit]}\n"
            "  - {transform: mapping, of: month, from: received}",
            "line 4: 'received' is part of a joint attribute or not measured",
        ),
        *(
            (
                "transforms:\n  - {transform: recode, to: x, of: [unit, kind]}\n  - " + entry,
                "line 4: 'x' is made of several attributes",
            )
            for entry in (
                "{transform: bucketize, of: x, starts: [0]}",
                "{transform: availability, to: t, of: [arrived, x]}",
                "{transform: availability, to: t, of: [arrived], anchor: x}",
                "{transform: mapping, of: x, from: month}",
                "{transform: mapping, of: month, from: x}",
            )
        ),
        (
            "transforms:\n  - {transform: bucketize, of: wage, starts: [0, 7777]}",
            "line 3: a bin of 'wage' cannot start",
        ),
        ("marginals:\n  - {of: [unit], share: 0.7}\n  - {of: [kind], share: 0.7}", "add up to 1.4 of ρ"),
        ("marginals:\n  - {of: [unit], share: 1}", "line 2: the shares of the plan add up to 1 of ρ"),
        ("one_way: 0.5\nmarginals:\n  - {of: [unit], share: 0.5}\n  - [kind]", "nothing is left for marginals without"),
        ("marginals:\n  - {of: [unit], share: 1, mechanism: laplace}", "line 2: the marginals with Laplace noise take"),
        ("groups:\n  g: [unit]\n  h: [unit, kind]", "line 4: 'unit' is in group 'h' and in one before it"),
        (
            "groups:\n  g: [unit]\n  h: {attributes: [kind, month], join: kind}",
            "line 4: the group 'h' is joined on 'kind', which no group before it has",
        ),
        ("groups:\n  g: [unit]\n  h: [kind]\nmarginals:\n  - [unit, kind]", "line 6: unit, kind are not in one group"),
        ("groups:\n  g: [sender]", "line 3: there is no attribute 'sender'"),
        ("weights: {sender: 2}", "line 2: there is no attribute 'sender'"),
        (
            "transforms:\n  - {transform: recode, to: x, of: [unit, kind], when: epsilon < 1}\n"
            "marginals:\n  - [x, month]",
            "'x' does not exist at ε = 1",
        ),
    ],
)
def test_a_plan_that_does_not_fit_is_refused_with_the_line(text: str, words: str) -> None:
    with pytest.raises(PlanError) as error:
        yaml_io.parse_plan(f"dpsyn_plan: 1\n{text}\n", CALLS)

    assert words in str(error.value)
    assert "line " in str(error.value)


@pytest.mark.parametrize(
    "entry",
    ["{transform: mapping, of: month, from: received}", "{transform: availability, to: t, of: [month], anchor: kind}"],
)
def test_what_a_public_total_counts_is_not_told_by_another_attribute(entry: str) -> None:
    counted = msgspec.structs.replace(CALLS, rules=(Total(where=(("month", 3),), count=100),))

    with pytest.raises(PlanError, match="line 3: a public total of the schema counts 'month'"):
        yaml_io.parse_plan(f"dpsyn_plan: 1\ntransforms:\n  - {entry}\n", counted)


def test_what_a_plan_says_of_optional_columns_is_left_out_where_they_lack() -> None:
    text = """
dpsyn_plan: 1
optional: [box, sent]
transforms:
  - {transform: recode, to: x, of: [unit, kind, box]}
  - {transform: mapping, of: box, from: received}
  - {transform: availability, to: t, of: [entered, sent], anchor: received}
  - {transform: availability, to: u, of: [arrived], anchor: sent}
  - {transform: random, of: [box]}
marginals: [[box, unit], [x, t]]
groups: {g: [unit, kind, box, t]}
weights: {box: 2}
"""
    plan = Plan.from_yaml(text)

    plan.check(CALLS)

    with pytest.raises(PlanError, match="there is no attribute 'box'"):
        Plan.from_yaml(text.replace("optional: [box, sent]\n", "optional: [sent]\n")).check(CALLS)
