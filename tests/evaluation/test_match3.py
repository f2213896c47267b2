"""The scorer of the contest's third match, against its formulas written anew for rows of plain whole numbers."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpsyn
from dpsyn.errors import SchemaError, UserError
from dpsyn.evaluation.enumerations import (
    Enumerations,
    load_max_codes,
    mark_codes,
    read_enumerations,
    sample_until_repeat,
)
from dpsyn.evaluation.nist_contest import (
    MATCH3,
    RangeQuery,
    sample_set_queries,
    score_density,
    score_range_queries,
    set_condition,
)
from dpsyn.evaluation.reader import open_tables
from dpsyn.schema import Boolean, Categorical, Datetime, Derive, Identifier, Integer, Open, Real, Schema
from tests.evaluation.small_tables import table_of

EXAMPLE = Path(__file__).parents[2] / "examples" / "colorado"

SCHEMA = Schema(
    attributes=(
        Identifier(name="id"),
        Categorical(name="city", values=(0, 450, 811), other=0),
        Integer(name="wage", low=10, high=9_000),
        Categorical(name="race", values=(10, 11, 20)),
        Categorical(name="group", values=(1, 2)),  # derived
        Categorical(name="sex", codes=3),
        Integer(name="age", low=0, high=108),
    ),
    derive=(Derive(name="group", source="race", mapping=(("10", 1), ("11", 1), ("20", 2))),),
)
NAMES = SCHEMA.names[1:]
MAXVAL = {"city": 9999, "wage": 9_000, "race": 620, "group": 6, "sex": 2, "age": 108}

Columns = dict[str, list[int]]


def make_columns(rows: int, seed: int) -> Columns:
    rng = random.Random(seed)
    races = [rng.choice((10, 10, 11, 20)) for _ in range(rows)]
    return {
        "city": [rng.choice((0, 0, 450, 811)) for _ in range(rows)],
        "wage": [10 + 50 * min(rng.randrange(1, 12), seed + 5) for _ in range(rows)],
        "race": races,
        "group": [race // 10 for race in races],
        "sex": [rng.randrange(3) for _ in range(rows)],
        "age": [rng.randrange(20, 40 + seed) for _ in range(rows)],
    }


def read_columns(real: Columns, synthetic: Columns, schema: Schema = SCHEMA) -> Enumerations:
    one, two = (pa.table({"id": list(range(len(c["sex"]))), **c}) for c in (real, synthetic))
    sources = open_tables(one, two, schema, reread=True)
    return read_enumerations(sources, schema, {name: MAXVAL[name] for name in schema.names if name in MAXVAL})


# ── the scorer's formulas, written anew ──────────────────────────────────────────────────────────────────────


def judge_density(real: Columns, synthetic: Columns, triples: list[tuple[int, ...]]) -> float:
    penalties = []
    for triple in triples:
        one, two = (Counter(zip(*(t[NAMES[i]] for i in triple), strict=True)) for t in (real, synthetic))
        sizes = one.total(), two.total()
        penalties.append(sum(abs(one[cell] / sizes[0] - two[cell] / sizes[1]) for cell in one | two))
    return 1e6 * (1 - sum(penalties) / len(penalties) / 2)


def judge_ranges(real: Columns, synthetic: Columns, queries: list[dict[str, set[int]]]) -> float:
    squares = []
    for query in queries:
        shares = []
        for table in (real, synthetic):
            rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
            shares.append(sum(all(row[name] in codes for name, codes in query.items()) for row in rows) / len(rows))
        squares.append(math.log(max(shares[1], 1e-6) / shares[0]) ** 2)
    return 1e6 * max(0.0, 1 - math.sqrt(sum(squares) / len(squares)) / math.log(1e3))


def judge_queries(real: Columns, rng: random.Random) -> list[dict[str, set[int]]]:
    """Around real rows; a set begins with the row's code and grows by codes 0 … maxval until one repeats."""
    queries = []
    for row in {rng.randrange(len(real["sex"])) for _ in range(300)}:
        query: dict[str, set[int]] = {}
        for name in NAMES:
            if rng.random() < 0.3:
                query[name] = {real[name][row]}
                while (code := rng.randint(0, MAXVAL[name])) not in query[name]:
                    query[name].add(code)
        queries.append(query)
    return queries


def to_conditions(enumerations: Enumerations, query: dict[str, set[int]]) -> RangeQuery:
    """All columns of the schema are whole numbers from 0 on, so the step of a code is the code."""
    domains = enumerations.tables.domains
    return tuple(
        set_condition(NAMES.index(name), mark_codes(domains[NAMES.index(name)], sorted(codes)))
        for name, codes in query.items()
    )


@pytest.mark.parametrize("seed", range(3))
def test_scores_are_those_of_the_official_scorer_on_the_same_draws(seed: int) -> None:
    real, synthetic, rng = make_columns(200, 1), make_columns(170, 3), random.Random(seed)
    enumerations = read_columns(real, synthetic)
    triples = [tuple(rng.sample(range(len(NAMES) - 1), 3)) for _ in range(100)]
    queries = judge_queries(real, rng)

    density = score_density(enumerations.tables.exact, triples)
    ranges = score_range_queries(enumerations.tables.exact, [to_conditions(enumerations, query) for query in queries])

    assert density.synthetic == pytest.approx(judge_density(real, synthetic, triples), rel=1e-12)
    assert ranges.synthetic == pytest.approx(judge_ranges(real, synthetic, queries), rel=1e-12)
    assert {} in queries  # a query without a condition is answered by all rows
    assert 0 < ranges.synthetic < 1e6


# ── columns and codes ────────────────────────────────────────────────────────────────────────────────────────


def test_every_column_but_identifiers_is_compared_in_exact_codes() -> None:
    real = make_columns(200, 1)

    enumerations = read_columns(real, {**real, "city": [9] * 200})

    domains = enumerations.tables.domains
    assert tuple(domain.name for domain in domains) == NAMES
    assert [count - 1 for count in enumerations.code_counts] == [MAXVAL[name] for name in NAMES]
    assert domains[1].labels()[:-1] == tuple(str(wage) for wage in sorted(set(real["wage"])))
    assert "9" in domains[0].labels()  # an unlisted code is a code, not ``other``


def test_without_published_maxima_codes_end_with_the_largest_value_of_the_schema() -> None:
    table = pa.table({"id": [0] * 50, **make_columns(50, 1)})
    sources = open_tables(table, table, SCHEMA, reread=True)

    enumerations = read_enumerations(sources, SCHEMA, {})

    assert enumerations.code_counts == (812, 9_001, 21, 3, 3, 109)


def test_a_derived_column_that_a_table_lacks_is_not_compared() -> None:
    real = make_columns(50, 1)
    without = {name: column for name, column in real.items() if name != "group"}
    sources = open_tables(pa.table({"id": [0] * 50, **real}), pa.table({"id": [0] * 50, **without}), SCHEMA)

    enumerations = read_enumerations(sources, SCHEMA, {})

    assert [domain.name for domain in enumerations.tables.domains] == [name for name in NAMES if name != "group"]


def test_columns_that_are_no_whole_numbers_are_enumerations_too() -> None:
    schema = Schema(
        attributes=(
            Categorical(name="word", values=("a", "b"), missing=True),
            Boolean(name="flag"),
            Integer(name="below", low=-5, high=4, missing=True),
            Real(name="real", low=0.0, high=1.0, decimals=1),
            Datetime(name="day", start="2020-01-01", end="2020-12-31", resolution="day"),
            Categorical(name="rating", values=(1, 2, 3), missing="0"),
            Open(name="free"),
        )
    )
    rows = [("a", True, -5, 0.3, "2020-03-01", 1, "x"), (None, False, None, 1.0, "2020-03-02", None, "y")] * 5
    sources = open_tables(table_of(schema, rows), table_of(schema, rows[:4]), schema)

    enumerations = read_enumerations(sources, schema, {})
    queries = sample_set_queries(enumerations, MATCH3, np.random.default_rng(0))

    assert enumerations.code_counts == (2, 2, 10, 11, 366, 3, 3)  # of the free text: x, y and other
    assert score_range_queries(enumerations.tables.exact, queries).synthetic == 1_000_000


def test_a_set_holds_codes_until_one_repeats() -> None:
    rng = np.random.default_rng(7)

    sets = [sample_until_repeat(0, 0, 3, rng) for _ in range(2_700)]

    sizes = np.bincount([len(codes) - 1 for codes in sets], minlength=3)
    # the first draw repeats with 1/3, else the second with 2/3, else the third: 1/3, 4/9, 2/9 of all
    expected = np.array([900, 1200, 600])
    assert ((sizes - expected) ** 2 / expected).sum() < 18.4  # 2 degrees of freedom, once in 10 000 times
    assert all(codes[0] == 0 and len({*codes.tolist()}) == len(codes) for codes in sets)
    singles = np.bincount([codes[1] for codes in sets if len(codes) > 1], minlength=3)
    assert singles[0] == 0
    assert abs(singles[1] - singles[2]) < 4.5 * math.sqrt(1800)


def test_a_set_of_a_long_range_has_as_many_codes_as_the_birthday_problem_says() -> None:
    rng = np.random.default_rng(1)

    sizes = [len(sample_until_repeat(10**9, 0, 10_000, rng)) - 1 for _ in range(400)]

    # the mean is √(π·n/2) − 1/3 = 125.0 with a standard deviation of √((2 − π/2)·n) = 65.5: 4.5 standard errors
    assert abs(np.mean(sizes) - 125.0) < 4.5 * 65.5 / 20


def test_queries_are_around_real_rows_with_a_tenth_of_the_columns() -> None:
    schema = Schema(attributes=tuple(Categorical(name=f"c{n}", codes=2) for n in range(100)))
    rows = [tuple((n + m) % 2 for m in range(100)) for n in range(5_000)]
    sources = open_tables(table_of(schema, rows), table_of(schema, rows[:1]), schema)

    queries = sample_set_queries(read_enumerations(sources, schema, {}), MATCH3, np.random.default_rng(1))

    # 300 draws out of 5 000 rows: 291.2 different ones, with a standard deviation of 2.9
    assert 278 <= len(queries) <= 300
    number = 100 * len(queries)
    assert abs(sum(map(len, queries)) - number / 10) < 4.5 * math.sqrt(number * 0.09)
    assert {condition.axis for query in queries for condition in query} == set(range(100))


# ── the file of specifications ───────────────────────────────────────────────────────────────────────────────


def test_the_example_states_the_largest_code_of_all_98_columns() -> None:
    schema = Schema.load(EXAMPLE / "schema.yaml")

    codes = load_max_codes(EXAMPLE / "specs.json", schema)

    assert tuple(codes) == schema.names
    assert (len(codes), codes["CITY"], codes["INCWAGE"]) == (98, 9999, 999_998)


def test_evaluate_takes_the_file_and_compares_derived_columns(tmp_path: Path) -> None:
    specs = tmp_path / "specs.json"
    specs.write_text(json.dumps({name: {"type": "enum", "maxval": code} for name, code in MAXVAL.items()}))
    real, other = (pa.table({"id": [0] * 100, **make_columns(100, seed)}) for seed in (1, 3))

    result = dpsyn.evaluate(real, other, SCHEMA, preset="match3", max_codes=specs)
    again = dpsyn.evaluate(real, other, SCHEMA, preset="match3", max_codes=MAXVAL)
    narrow = dpsyn.evaluate(real, other, SCHEMA, preset="match3")

    assert result.contest.columns == 6
    assert result.contest == again.contest
    assert result.contest.density == narrow.contest.density
    assert result.contest.range_queries != narrow.contest.range_queries


@pytest.mark.parametrize(
    ("codes", "error", "complaint"),
    [
        ({"town": 5}, SchemaError, "there is no attribute 'town'"),
        ({"sex": -1}, UserError, "maxval of column 'sex' is -1; give a whole number from 0 to 4,503"),
        ({"sex": 2**63}, UserError, "is 9223372036854775808; give a whole number from 0 to 4,503"),
        ({"sex": True}, UserError, "maxval of column 'sex' is True"),
        ({"id": 5}, UserError, "'id' is identifier without whole numbers; leave out its maxval"),
    ],
)
def test_codes_that_do_not_fit_are_refused(codes: Any, error: type[Exception], complaint: str) -> None:
    with pytest.raises(error, match=complaint):
        load_max_codes(codes, SCHEMA)


@pytest.mark.parametrize("text", ["", "[1]", "{}", '{"sex": {"low": 1}}', '{"sex": 3}', '{"sex": {"maxval": "many"}}'])
def test_another_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "specs.json"
    path.write_text(text)

    with pytest.raises(UserError, match="does not state the largest codes of columns; give JSON such as"):
        load_max_codes(path, SCHEMA)


def test_largest_codes_are_refused_for_the_paper() -> None:
    table = pa.table({"id": [0] * 10, **make_columns(10, 1)})

    with pytest.raises(UserError, match="are for preset match3; preset paper does not use them"):
        dpsyn.evaluate(table, table, SCHEMA, max_codes=MAXVAL)
