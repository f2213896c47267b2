"""No message shows an argument that could be a private table, whatever argument of whatever public function it is.

Every public function, constructor and method is called with a private table in the position of each of its arguments in
turn, while the others are valid. Whatever error follows, the table's cells must not be in it.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpsyn
from dpsyn.demo import people, people_schema
from dpsyn.errors import MAX_MESSAGE_LENGTH, UserError, quote_argument, shorten

SECRET = "S3CRET"

COLUMN = [f"{SECRET}-{number}" for number in range(20)]


def private_values() -> dict[str, Any]:
    """What a private table looks like in the hands of a caller."""
    frame = pd.DataFrame({"age": COLUMN, "sex": COLUMN})
    return {
        "pandas": frame,
        "series": frame["age"],
        "polars": pl.DataFrame({"age": COLUMN}),
        "arrow": pa.table({"age": COLUMN}),
        "array": np.array(COLUMN, dtype=object),
        "records": frame.to_dict("records"),
        "list of frames": [frame],
        "record": {"age": COLUMN[0]},
        "frame by name": {"age": frame},
        "frame as key": {1: (frame, frame)},
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("arguments")


@pytest.fixture(scope="module")
def objects(folder: Path) -> dict[str, Any]:
    """An object of every public class, by the name of the class."""
    schema, rows = people_schema(), people(rows=300)
    baskets = [["a", "b"], ["a"], ["b", "c"], ["a", "b", "c"]] * 5
    ledger = dpsyn.Ledger.create(folder / "ledger.db")
    synopsis = dpsyn.measure(rows, schema, 1.0, recipe="independent", ledger=ledger)
    synopsis.save(folder / "synopsis.dpsyn")
    schema.save(folder / "schema.yaml")
    account = ledger.datasets()[0]
    exploration = dpsyn.explore_public_data(rows, schema)
    plan = dpsyn.Plan.draft(exploration)
    (folder / "plan.yaml").write_text(plan.to_yaml(), encoding="utf-8")
    check = dpsyn.check_table(schema, rows)
    itemsets = dpsyn.frequent_itemsets(baskets, ["a", "b", "c"], 10.0, top=3)
    forecast = dpsyn.forecast(schema, 1.0, rows=20, recipe="independent")
    contest = dpsyn.make_contest(schema, folder / "contest", rows=100, epsilons=(1.0,), seed=1)
    ranking = dpsyn.score_submissions(folder / "contest", {"mine": {1.0: rows}}, draws=1)
    drafted = dpsyn.draft_schema(rows).entries()[0]
    released = dpsyn.release_evaluation(rows, rows.slice(0), schema, 1.0, by=["sex"])
    audit = dpsyn.audit(20, replays=1, only=["discover_items"])
    known: list[Any] = [
        released,
        released.rows,
        released.one_way,
        released.groups[0],
        dpsyn.Criteria(),
        dpsyn.CriterionResult(criterion="c", error=released.rows, bound=1.0, synthetic=None, verdict="met"),
        dpsyn.choose(rows, schema, {"a": "independent", "b": "independent"}, epsilon=1.0),
        schema,
        dpsyn.draft_schema(rows),
        forecast,
        forecast.budgets[0],
        forecast.budgets[0].moderate,
        forecast.budgets[0].attributes[0],
        ledger,
        synopsis,
        account,
        account.runs[0],
        account.runs[0].head,
        account.runs[0].budget,
        dpsyn.Cap.for_guarantee(1.0, 1e-9),
        synopsis.certificates[0],
        dpsyn.RunOutcome(),
        ledger.verify(),
        dpsyn.read_ledger_checkpoint(folder / "synopsis.dpsyn"),
        dpsyn.compare_noise_mechanisms(1.0, 1e-9, 10)[0],
        dpsyn.PrivacyUnit(),
        check,
        check.attributes[0],
        check.unit,
        dpsyn.check_table(dpsyn.Schema(attributes=(dpsyn.Open(name="district"),)), rows).open[0],
        drafted,
        dpsyn.Approval(("age",), (drafted,)),
        dpsyn.evaluate(rows, rows, schema),
        dpsyn.IncomeColumns(region="region", sex="sex", income="income"),
        contest,
        ranking,
        ranking.submissions[0],
        ranking.submissions[0].tables[0],
        itemsets,
        itemsets.itemsets[0],
        dpsyn.AssociationRule(("a",), ("b",), 1.0, 0.5, 0.1, 1.0),
        dpsyn.Estimate.of(synopsis.releases[0].rounds[0].marginals[0]),
        dpsyn.list_options(dpsyn.DPSyn)[0],
        exploration,
        plan,
        plan.predict(schema, 1.0)[0],
        synopsis.marginal("sex"),
        synopsis.replicates(2, 20),
        synopsis.replicates(2, 20).record,
        dpsyn.pool([1.0, 2.0]),
        audit,
        audit.replays[0],
        audit.noise[0],
        audit.bounds[0],
        dpsyn.estimate_resources(rows, schema),
        dpsyn.Synthesizer(schema).fit(rows),
        synopsis.compare_rows(synopsis.generate(rows=50)),
        dpsyn.Planned(plan=plan),
        dpsyn.AllViews(ways=2),
        dpsyn.CoveringViews(strength=2, attributes=8),
        dpsyn.RandomViews(count=2, attributes=8),
        dpsyn.Boolean(name="b"),
        dpsyn.Categorical(name="c", values=("x", "y")),
        dpsyn.Ordinal(name="o", values=("x", "y")),
        dpsyn.Integer(name="i", low=0, high=9),
        dpsyn.Real(name="r", low=0.0, high=1.0),
        dpsyn.Datetime(name="d", start="2020-01-01", end="2020-12-31"),
        dpsyn.Time(name="t"),
        dpsyn.Open(name="p"),
        dpsyn.Identifier(name="q"),
        dpsyn.FileSyntax(),
        dpsyn.SigningKey.generate(),
        dpsyn.SigningKey.generate().public_key,
        dpsyn.verify(folder / "synopsis.dpsyn"),
        dpsyn.verify(folder / "synopsis.dpsyn").checks[0],
    ]
    return {type(each).__name__: each for each in known} | {name: getattr(dpsyn, name)() for name in OPTION_CLASSES}


OPTION_CLASSES = [
    *("GUM", "MCF", "Gibbs", "ConstantDecay", "ExponentialDecay", "LinearDecay", "SquareRootDecay", "StepDecay"),
    *("AdaptiveSelection", "DPSyn", "Direct", "Explore", "Fourier", "Independent", "MWEM", "PriView", "PrivSyn"),
]

WITHOUT_ARGUMENTS = {
    "__version__": "a text",
    "RECIPES": "a dictionary",
    "PRIVATE_NOTICE": "a text",
    "Conclusion": "abstract; the methods are tested with pooled results",
    "verifier_source": "no argument",
    "Recipe": "abstract; the methods are tested with every recipe",
    **{name: "an error" for name in dpsyn.__all__ if name.endswith("Error")},
}


@pytest.fixture(scope="module")
def valid(folder: Path, objects: dict[str, Any]) -> dict[str, Any]:
    """A valid argument for every parameter that has no default, by its name."""
    synopsis, rows = objects["Synopsis"], people(rows=50)
    return {
        "against": objects["Certificate"],
        "account": objects["Certificate"].account,
        "attribute": objects["Schema"].attributes[0],
        "attributes": ["sex"],
        "batches": pa.table({"age": [1]}),
        "because": "code book",
        "_private": objects["SigningKey"]._private,
        "key": objects["SigningKey"],
        "message": b"text",
        "release": folder / "synopsis.dpsyn",
        "signature": bytes(64),
        "budget": objects["Budget"],
        "candidates": {"a": "independent", "b": "independent"},
        "cap": objects["Cap"],
        "change": lambda draft: draft,
        "earlier": objects["SchemaDraft"],
        "min_rows": 3,
        "condition": "x",
        "counts": {},
        "data": rows,
        "dataset": "people",
        "delta": 1e-9,
        "epsilon": 1.0,
        "estimates": [1.0, 2.0],
        "first": "age",
        "formula": "income ~ age",
        "function": len,
        "folder": folder / "release",
        "heads": [],
        "indifs": {},
        "items": ["a", "b"],
        "marginal": synopsis.releases[0].rounds[0].marginals[0],
        "marginals": 10,
        "measurements": [],
        "name": "gum",
        "number": 1,
        "names": ["sex"],
        "pairs": {},
        "part": "1",
        "path": folder / "synopsis.dpsyn",
        "pieces": 2,
        "position": 0,
        "previous": None,
        "privacy_unit": dpsyn.PrivacyUnit(),
        "real": rows,
        "results": folder / "results.csv",
        "round_number": 1,
        "rows": 20,
        "run": "some run",
        "schema": objects["Schema"],
        "second": "income",
        "session": None,
        "source": objects["Exploration"],
        "start": 0,
        "std": 1.0,
        "stop": 1,
        "step": 0,
        "steps": np.arange(2),
        "synopsis": synopsis,
        "synthetic": True,
        "tables": ["rows-1.csv"],
        "terms": (),
        "table": synopsis.generate_arrow(rows=20),
        "target": folder / "rows.csv",
        "text": "schema: 1",
        "texts": ["age=1"],
        "value": 1,
        "values": ("x", "y"),
        "weights": [1, 2],
        "where": None,
        "X": rows,
        "bases": objects["FrequentItemsets"].bases,
        "universe": ("a", "b", "c"),
        "certificate": objects["Certificate"],
        "count": 2,
        "output_format": "pandas",
    }


SMALL_SCHEMA = dpsyn.Schema(attributes=(dpsyn.Integer(name="age", low=0, high=104), dpsyn.Boolean(name="employed")))
SMALL_TABLE = people(rows=50).select(["age", "employed"])

QUICK: dict[str, dict[str, Any]] = {
    "forecast": {"schema": SMALL_SCHEMA, "epsilon": 1.0, "rows": 20},
    "choose": {"schema": SMALL_SCHEMA, "data": SMALL_TABLE},
}
"""Arguments with which a function that releases something takes less time."""


TEXTS = {
    "parse_conditions(texts": "every text is a condition, as on the command line",
    "frequent_itemsets(items": "the public universe of items",
    "Budget.for_guarantee(pure_epsilons": "numbers, which may be written as texts",
    "Budget.for_pure_steps(weights": "numbers, which may be written as texts",
    "Budget.split_rho(weights": "numbers, which may be written as texts",
}
"""Parameters that take any iterable of texts, and may show one of them: a column of texts is what they ask for."""


CONDITION = ("where", "record")
"""A dictionary of texts is what conditions are, and a message may show one of them."""


def calls(name: str, objects: dict[str, Any]) -> Iterator[tuple[str, Callable[..., Any], Any]]:
    """Every function behind a public name, as ``(title, function, the object whose fields are its arguments)``."""
    value = getattr(dpsyn, name)
    if inspect.isfunction(value):
        yield name, value, None
        return
    instance = objects[name]
    yield name, value, instance
    for attribute in dir(value):
        member = inspect.getattr_static(value, attribute)
        if not attribute.startswith("_") and (inspect.isfunction(member) or isinstance(member, classmethod)):
            yield f"{name}.{attribute}", getattr(instance, attribute), None


def messages(error: BaseException) -> Iterator[str]:
    """The texts of an error and of those behind it, as a traceback shows them."""
    while error:
        yield from (str(error), repr(error), *getattr(error, "__notes__", ()))
        error = error.__cause__ or error.__context__  # type: ignore[assignment]


@pytest.mark.parametrize("name", sorted(set(dpsyn.__all__) - set(WITHOUT_ARGUMENTS)))
def test_no_message_shows_a_private_table(name: str, objects: dict[str, Any], valid: dict[str, Any]) -> None:
    leaks = []
    for title, function, instance in calls(name, objects):
        parameters = inspect.signature(function).parameters
        for changed in parameters:
            for kind, private in private_values().items():
                if (f"{title}({changed}" in TEXTS and kind in ("series", "array")) or (changed, kind) == CONDITION:
                    continue
                arguments = {
                    each.name: getattr(instance, each.name) if hasattr(instance, each.name) else valid[each.name]
                    for each in parameters.values()
                    if each.default is each.empty and each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)
                }
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("error")
                        result = function(**{**arguments, **QUICK.get(title, {}), changed: private})
                        if inspect.isgenerator(result):
                            next(result)
                except Exception as error:
                    leaks += [f"{title}({changed}={kind}): {text}" for text in messages(error) if SECRET in text][:1]

    assert leaks == []


@pytest.mark.parametrize("name", [name for name in OPTION_CLASSES if name != "ConstantDecay"])  # it has no options
def test_an_option_of_the_wrong_type_is_named_with_the_type_that_was_given(name: str) -> None:
    """The test above would pass if nothing were refused."""
    cls = getattr(dpsyn, name)
    field = next(iter(inspect.signature(cls).parameters))

    with pytest.raises(UserError, match=rf"{field} of {name} is a DataFrame; give "):
        cls(**{field: pd.DataFrame({"age": COLUMN})})


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("text", "'text'"),
        (True, "True"),
        (2.5, "2.5"),
        (None, "None"),
        (np.int64(3), "3"),
        ([1, "a"], "[1, 'a']"),
        ((1,), "(1,)"),
        ({"age": 30, "sex": None}, "{'age': …, 'sex': …}"),
        (Path("a.csv"), "'a.csv'"),
        (pd.DataFrame({"age": COLUMN}), "a DataFrame"),
        (np.array(COLUMN), "a ndarray"),
        (COLUMN, "a list"),
        ([COLUMN], "[a list]"),
        ([[[[1]]]], "[[[a list]]]"),
        (object(), "an object"),
        (int, "the class int"),
        (10**200, "a whole number of more than 77 digits"),
        ("x" * 101, repr("x" * 99 + "…")),
    ],
)
def test_an_argument_is_quoted_if_it_is_plain_and_small_and_otherwise_named_by_its_type(value: Any, shown: str) -> None:
    assert quote_argument(value) == shown


def test_a_list_of_itself_can_be_quoted() -> None:
    endless: list[Any] = []
    endless.append(endless)

    assert quote_argument(endless) == "[[[a list]]]"


def test_a_long_message_keeps_its_beginning_and_its_end() -> None:
    message = str(UserError("wrong: " + "x" * 10_000 + "; do that"))

    assert len(message) <= MAX_MESSAGE_LENGTH
    assert message.startswith("wrong: x")
    assert message.endswith("x; do that")


def test_a_text_is_shortened_to_a_length() -> None:
    assert shorten("abcd", 4) == "abcd"
    assert shorten("abcde", 4) == "abc…"
