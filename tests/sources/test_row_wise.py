"""Row-wise queries: what is accepted, what is refused, and that an accepted query keeps the guarantee of base rows."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as papq
import pytest

from dpsyn.errors import SourceError
from dpsyn.sources import Source, open_source, query_answer

ACCEPTED = [
    "people",
    "main.people",
    "house.main.people",
    '"people"',
    "PEOPLE",
    "adults",
    "renamed",
    "nested",
    "other.visitors",
    "other.guests",
    "SELECT * FROM people",
    "SELECT * FROM people;",
    "FROM people",
    "FROM people SELECT age",
    "(SELECT age FROM people)",
    "SELECT AGE, Sex FROM People",
    "SELECT people.age, p.sex FROM people AS p".replace("people.age", "p.age"),
    "SELECT p.* FROM people p",
    "SELECT * EXCLUDE (town) FROM people",
    "SELECT age AS years, age FROM people",
    "SELECT age FROM people ORDER BY random(), (SELECT 1)",
    "SELECT age /* count(*) */ FROM people -- LIMIT 3",
    "SELECT age FROM people WHERE TRUE",
    "SELECT age FROM people WHERE age > 17 AND NOT (sex = 'F' OR sex IS NULL)",
    "SELECT age FROM people WHERE age BETWEEN 18 AND 65",
    "SELECT age FROM people WHERE town IN ('Ur', 'Uruk', 'it''s; DROP TABLE people; --')",
    "SELECT age FROM people WHERE town NOT IN ('Ur')",
    "SELECT age FROM people WHERE town LIKE 'U%' AND town NOT LIKE '%k' AND town ILIKE 'u_'",
    "SELECT age FROM people WHERE town LIKE '50!%' ESCAPE '!'",
    "SELECT age FROM people WHERE town LIKE '50!!' ESCAPE '!' OR town LIKE sex",
    "SELECT age FROM people WHERE sex IS DISTINCT FROM 'F' AND sex IS NOT DISTINCT FROM 'M'",
    "SELECT age FROM people WHERE (age > 17) IS TRUE",
    "SELECT age FROM people WHERE born > DATE '2000-02-29'",
    "SELECT CAST(town AS INT) FROM people",
    "SELECT town::DATE AS born, town::TIMESTAMP AS at, town::BOOLEAN AS b, town::DOUBLE AS x FROM people",
    "SELECT town::DECIMAL(5, 2) AS d, age::VARCHAR AS v, age::TINYINT AS t, age::UINTEGER AS u FROM people",
    "SELECT TRY_CAST(town AS BIGINT) AS town FROM people",
    "SELECT age + 1 AS a, age - 1 AS b, age * age AS c, age / age AS d, age // age AS e, age % age AS f FROM people",
    "SELECT -age AS a, abs(age) AS b, sign(age) AS c FROM people",
    "SELECT CASE WHEN age > 100 THEN age // 0 ELSE 2 END AS a FROM people WHERE 1 BETWEEN 0 AND pay",
    "SELECT pay * 1e308 AS a, round(pay, 1) AS b, floor(pay) AS c, ceil(pay) AS d FROM people",
    "SELECT town || sex AS a, concat(town, '-', sex) AS b FROM people",
    "SELECT lower(town) AS a, upper(town) AS b, length(town) AS c, trim(town) AS d, ltrim(town, 'U') AS e FROM people",
    "SELECT left(town, 2) AS a, right(town, 2) AS b, substring(town, -3, 2) AS c FROM people",
    "SELECT replace(town, ',', '.') AS a, contains(town, 'r') AS b, starts_with(town, 'U') AS c FROM people",
    "SELECT CASE WHEN age > 17 THEN 'adult' ELSE 'minor' END AS a, CASE sex WHEN 'F' THEN 1 END AS b FROM people",
    "SELECT if(age > 17, 1, 0) AS a, coalesce(town, sex, '?') AS b, nullif(town, '') AS c FROM people",
    "SELECT greatest(age, 18) AS a, least(age, 65) AS b FROM people",
    "SELECT year(born) AS a, month(born) AS b, day(born) AS c, quarter(born) AS d FROM people",
    "SELECT extract(dow FROM born) AS a, date_part('week', born) AS b FROM people",
    "SELECT date_trunc('month', born)::DATE AS month FROM people",
    "SELECT date_diff('year', born, DATE '2024-01-01') AS years FROM people",
    "SELECT 1 AS one, 'x' AS x, NULL AS n, TRUE AS t, 1.5e-3 AS f FROM people",
    "SELECT a FROM (SELECT age AS a FROM people WHERE age > 1) WHERE a < 90",
    "WITH p AS (SELECT age AS a, sex FROM people), q AS (SELECT a FROM p WHERE sex = 'F') SELECT a FROM q",
    "WITH unused AS (SELECT count(*) FROM people) SELECT age FROM people",
    "WITH people AS (SELECT age AS a FROM people) SELECT a FROM people",
    "WITH p AS MATERIALIZED (SELECT age FROM people) SELECT * FROM p",
]
"""Queries on the database below that make each row from one row of a table."""

REFUSED = {
    "SELECT max(age) OVER () > 5 AS flag FROM people": "a window function",
    "SELECT row_number() OVER (ORDER BY age) AS n FROM people": "a window function",
    "SELECT lag(age) OVER (ORDER BY age) AS n FROM people": "a window function",
    "SELECT count(*) AS n FROM people": "the function count",
    "SELECT sum(age) AS n FROM people": "the function sum",
    "SELECT avg(age) FILTER (WHERE age > 1) AS n FROM people": "FILTER|avg",
    "SELECT first(age) AS n FROM people": "the function first",
    "SELECT list(age) AS n FROM people": "the function",
    "SELECT string_agg(sex, ',') AS n FROM people": "the function",
    "SELECT approx_quantile(age, 0.5) AS n FROM people": "the function",
    "SELECT mode(sex) AS n FROM people": "the function mode",
    "SELECT age FROM people GROUP BY age": "GROUP BY",
    "SELECT age FROM people GROUP BY ALL": "GROUP BY",
    "SELECT age FROM people HAVING age > 1": "HAVING",
    "SELECT age FROM people QUALIFY row_number() OVER (ORDER BY age) < 3": "QUALIFY",
    "SELECT age FROM people WINDOW w AS (ORDER BY age)": "a window",
    "SELECT DISTINCT age FROM people": "DISTINCT",
    "SELECT DISTINCT ON (sex) age FROM people": "DISTINCT",
    "SELECT age FROM people LIMIT 3": "LIMIT",
    "SELECT age FROM people ORDER BY age LIMIT 50%": "LIMIT|parsed",
    "SELECT age FROM people OFFSET 1": "OFFSET",
    "SELECT age FROM people FETCH FIRST 3 ROWS ONLY": "LIMIT",
    "SELECT age FROM people TABLESAMPLE 10%": "a sample of rows",
    "SELECT age FROM people USING SAMPLE 3": "a sample of rows",
    "SELECT (SELECT max(age) FROM people) AS m FROM people": "a subquery",
    "SELECT age FROM people WHERE age = (SELECT max(age) FROM people)": "a subquery",
    "SELECT age FROM people WHERE age IN (SELECT age FROM people)": "a subquery",
    "SELECT age FROM people WHERE EXISTS (SELECT 1 FROM people)": "a subquery",
    "SELECT age FROM people WHERE age > ALL (SELECT age FROM people)": "a subquery|All",
    "SELECT age FROM people WHERE age = ANY ([1, 2])": "Any",
    "SELECT p.age FROM people p JOIN people q ON p.age = q.age": "a join",
    "SELECT p.age FROM people p, people q": "a join",
    "SELECT p.age FROM people p LEFT JOIN people q USING (age)": "a join",
    "SELECT p.age FROM people p NATURAL JOIN people q": "a join",
    "SELECT p.age FROM people p POSITIONAL JOIN people q": "a join",
    "SELECT p.age FROM people p ASOF JOIN people q ON p.age >= q.age": "a join",
    "SELECT p.age FROM people p SEMI JOIN people q ON p.age = q.age": "a join",
    "SELECT p.age FROM people p CROSS JOIN LATERAL (SELECT 1) q": "a join|LATERAL",
    "SELECT age FROM people UNION ALL SELECT age FROM people": "UNION",
    "SELECT age FROM people UNION SELECT age FROM people": "UNION",
    "SELECT age FROM people EXCEPT SELECT 1": "EXCEPT",
    "SELECT age FROM people INTERSECT SELECT 1": "INTERSECT",
    "SELECT unnest([1, 2]) AS a FROM people": "the function unnest",
    "SELECT a FROM people, unnest([1, 2]) AS t(a)": "a join",
    "SELECT generate_series(1, age) AS a FROM people": "the function",
    "SELECT * FROM range(10)": "a table function",
    "SELECT * FROM unnest([1, 2])": "unnest|table function",
    "SELECT * FROM read_csv('people.csv')": "a table function",
    "SELECT * FROM read_parquet('x.parquet')": "a table function",
    "SELECT * FROM glob('*')": "a table function",
    "SELECT * FROM 'people.csv'": "no table or view",
    "SELECT * FROM query_table('people')": "a table function",
    "SELECT * FROM (VALUES (1), (2)) AS t(a)": "VALUES",
    "VALUES (1)": "VALUES|not one SELECT",
    "PIVOT people ON sex USING count(*)": "not one SELECT",
    "SELECT random() AS r FROM people": "the function",
    "SELECT age FROM people WHERE random() < 0.5": "the function",
    "SELECT uuid() AS u FROM people": "the function",
    "SELECT gen_random_uuid() AS u FROM people": "the function",
    "SELECT now() AS t FROM people": "the function",
    "SELECT current_date AS t FROM people": "the function",
    "SELECT nextval('s') AS n FROM people": "the function",
    "SELECT hash(age) AS h FROM people": "the function hash",
    "SELECT error(town) AS e FROM people": "the function error",
    "SELECT sqrt(age) AS s FROM people": "the function sqrt",
    "SELECT repeat(town, 1000000000) AS s FROM people": "the function repeat",
    "SELECT rpad(town, 1000000000, 'x') AS s FROM people": "the function",
    "SELECT replace(town, 'x', 'xxxxxxxxxx') AS s FROM people": "replace by a longer text",
    "SELECT replace(town, sex, 'x') AS s FROM people": "replace",
    "SELECT getvariable('v') AS s FROM people": "the function getvariable",
    "SELECT current_setting('threads') AS s FROM people": "the function",
    "SELECT doubled(age) AS s FROM people": "the function doubled",
    "SELECT [age] AS s FROM people": "array|Array",
    "SELECT {'a': age} AS s FROM people": "struct|Struct",
    "SELECT town[1] AS s FROM people": "Bracket",
    "SELECT list_transform([1], x -> x + age) AS s FROM people": "the function|Lambda",
    "SELECT COLUMNS('a.*') FROM people": "COLUMNS",
    "SELECT * REPLACE (age + 1 AS age) FROM people": "REPLACE",
    "SELECT * RENAME (age AS a) FROM people": "RENAME",
    "SELECT #1 AS a FROM people": "position",
    "SELECT rowid FROM people": "no column 'rowid'",
    "SELECT people FROM people": "no column 'people'",
    "SELECT q.age FROM people p": "no table 'q'",
    "SELECT income FROM people": "no column 'income'",
    "SELECT a FROM people AS p(a, b)": "new names",
    "SELECT age::INT[] AS a FROM people": "a cast of",
    "SELECT town::VARCHAR(3) COLLATE NOCASE AS a FROM people": "COLLATE",
    "SELECT town::TIMESTAMPTZ AS a FROM people": "a cast of",
    "SELECT town::STRUCT(a INT) AS a FROM people": "a cast of",
    "SELECT town::mood AS a FROM people": "a cast of",
    "SELECT born + INTERVAL 1 DAY AS a FROM people": "an interval",
    "SELECT extract(epoch FROM born) AS a FROM people": "'epoch'",
    "SELECT age FROM people WHERE town LIKE '50!' ESCAPE '!'": "ends with its escape character",
    "SELECT age FROM people WHERE town LIKE '!!!' ESCAPE '!'": "ends with its escape character",
    "SELECT age FROM people WHERE town LIKE sex ESCAPE '!'": "a pattern",
    "SELECT age FROM people WHERE town LIKE 'x' ESCAPE 'ab'": "a pattern",
    "SELECT age FROM people WHERE town LIKE 'x' ESCAPE sex": "parsed",
    "SELECT age FROM people WHERE age BETWEEN SYMMETRIC 2 AND 1": "BETWEEN SYMMETRIC",
    "SELECT age FROM people WHERE age = $1": "a parameter|Parameter",
    "SELECT age FROM people WHERE age = ?": "a parameter",
    "SELECT age FROM people AT (VERSION => 1)": "an earlier version",
    "SELECT age FROM people FOR UPDATE": "FOR UPDATE",
    "WITH RECURSIVE r AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM r) SELECT a FROM r": "RECURSIVE",
    "WITH c AS (SELECT count(*) AS n FROM people) SELECT n FROM c": "the function count",
    "SELECT n FROM (SELECT count(*) AS n FROM people)": "the function count",
    "SELECT a FROM (SELECT age AS a FROM people LIMIT 3)": "LIMIT",
    "(SELECT age FROM people) LIMIT 3": "LIMIT",
    "SELECT lower(town) FROM people": "without a name",
    "SELECT age, age FROM people": "two columns named 'age'",
    "SELECT age AS a, town AS A FROM people": "two columns named 'A'",
    "SELECT 1 AS a": "selects from no table",
    "SELECT DATE '2000-13-01' AS a FROM people": "has no value",
    "SELECT age FROM people WHERE 'x' AND age > 1": "'x' is not a condition",
    "SELECT age FROM people WHERE sex > 1": "combines a text with a whole number",
    "SELECT age FROM people WHERE town": "a text where a condition is needed",
    "SELECT age FROM people WHERE age": "a whole number where a condition is needed",
    "SELECT age FROM people WHERE age > 'old'": "'old' is not a whole number",
    "SELECT age FROM people WHERE born > '2000-13-01'": "is not a date",
    "SELECT age + sex AS a FROM people": "combines a text with a whole number",
    "SELECT pay // 2 AS a FROM people": "needs whole numbers",
    "SELECT -town AS a FROM people": "a text where a whole number is needed",
    "SELECT coalesce(age, town) AS a FROM people": "combines",
    "SELECT CASE WHEN age THEN 1 END AS a FROM people": "where a condition is needed",
    "SELECT year(town) AS a FROM people": "where a timestamp is needed",
    "SELECT age::DATE AS a FROM people": "a cast of a whole number to DATE",
    "SELECT right(town, age) AS a FROM people": "a position",
    "SELECT substring(town, 1, 99999999999) AS a FROM people": "a position",
    "SELECT pay + 1e999 AS a FROM people": "the number 1e999",
    "SELECT TRY(age + 1) AS a FROM people": "the function try",
    "SELECT age FROM people; SELECT age FROM people": "not one SELECT",
    "SELECT age FROM people; DROP TABLE people": "not one SELECT",
    "DROP TABLE people": "not one SELECT",
    "COPY people TO 'stolen.csv'": "not one SELECT",
    "ATTACH 'x.duckdb'": "not one SELECT",
    "INSTALL httpfs": "not one SELECT",
    "SET threads = 1": "not one SELECT",
    "PRAGMA database_size": "not one SELECT",
    "DESCRIBE people": "not one SELECT",
    "SUMMARIZE people": "not one SELECT",
    "EXPLAIN SELECT age FROM people": "not one SELECT",
    "CREATE VIEW v AS SELECT age FROM people": "not one SELECT",
    "INSERT INTO people SELECT * FROM people RETURNING age": "not one SELECT|parsed",
    "SELEKT age FROM people": "cannot be parsed",
    "SELECT age FROM": "parsed|no table",
    "SELECT 'open FROM people": "parsed",
    "nowhere": "no table or view 'nowhere'",
    "duckdb_tables": "no table or view",
    "information_schema.tables": "no table or view",
    "counted": r'in the view "main"\."counted", has the function count',
    "on_counted": r'in the view "main"\."counted", has the function count',
    "sampled": "a sample of rows",
    "firsts": "LIMIT",
    "twice": "UNION",
    "reads_a_file": "a table function",
    "names_a_file": "no table or view",
    "SELECT age FROM on_counted": "in the view",
    "generated": "a generated column",
    "SELECT a FROM generated": "a generated column",
}
"""Queries that are refused, and a part of the message."""


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with a table, views of all kinds, a macro and a second schema."""
    folder = tmp_path_factory.mktemp("house")
    (folder / "other.csv").write_text("age\n1\n")
    with duckdb.connect(str(folder / "house.duckdb")) as connection:
        connection.execute("CREATE TABLE people (age INT, sex VARCHAR, town VARCHAR, pay DOUBLE, born DATE)")
        connection.execute("INSERT INTO people VALUES (20, 'F', 'Ur', 1.5, '2000-01-01'), (9, 'M', NULL, 0, NULL)")
        for statement in [
            "CREATE VIEW adults AS SELECT age, sex AS s FROM people WHERE age > 17 ORDER BY age",
            "CREATE VIEW renamed (years, gender) AS SELECT age, sex FROM people",
            "CREATE VIEW nested AS WITH a AS (SELECT * FROM adults) SELECT age FROM a WHERE s = 'F'",
            "CREATE VIEW counted AS SELECT count(*) AS n FROM people",
            "CREATE VIEW on_counted AS SELECT n AS age FROM counted",
            "CREATE VIEW sampled AS SELECT * FROM people USING SAMPLE 50%",
            "CREATE VIEW firsts AS SELECT * FROM people LIMIT 5",
            "CREATE VIEW twice AS SELECT age FROM people UNION ALL SELECT age FROM people",
            f"CREATE VIEW reads_a_file AS SELECT * FROM read_csv('{folder}/other.csv')",
            f"CREATE VIEW names_a_file AS SELECT * FROM '{folder}/other.csv'",
            "CREATE TABLE generated (a VARCHAR, age INT GENERATED ALWAYS AS (CAST(a AS INT)))",
            "CREATE MACRO doubled(x) AS 2 * x",
            "CREATE SCHEMA other",
            "CREATE TABLE other.visitors (age INT)",
            "CREATE TABLE other.people (guest INT)",
            "CREATE VIEW other.guests AS SELECT guest FROM people",
        ]:
            connection.execute(statement)
    return folder / "house.duckdb"


def read(source: Source) -> list[tuple[Any, ...]]:
    names = source.schema.names
    return [tuple(row.values()) for batch in source.batches(names) for row in batch.to_pylist()]


def count_rows(source: Source) -> int:
    """The number of rows; values that Python has no object for are not looked at."""
    return sum(batch.num_rows for batch in source.batches(source.schema.names))


@pytest.mark.parametrize("query", ACCEPTED)
def test_a_row_wise_query_is_accepted_and_read(query: str, house: Path) -> None:
    source = open_source(house, query=query, protect="base rows")

    answer = query_answer(source)
    assert answer is not None
    assert answer.text.startswith("SELECT ")
    assert len(read(source)) <= 2


@pytest.mark.parametrize(("query", "words"), REFUSED.items())
def test_any_other_query_is_refused_and_named(query: str, words: str, house: Path) -> None:
    with pytest.raises(SourceError, match=words):
        open_source(house, query=query, protect="base rows")


@pytest.mark.parametrize("query", ["SELECT max(age) OVER () AS m FROM people", "counted", "firsts"])
def test_a_refusal_names_the_way_out(query: str, house: Path) -> None:
    with pytest.raises(SourceError, match="--protect-query-rows, or protect='query rows'"):
        open_source(house, query=query, protect="base rows")

    answer = query_answer(open_source(house, query=query, protect="query rows"))

    assert answer is not None
    assert answer.protect == "query rows"
    assert not answer.keeps_all_rows


def test_the_parser_logs_nothing(house: Path, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(SourceError, match="not one SELECT"):
        open_source(house, query="PRAGMA database_size", protect="base rows")

    assert not caplog.records


def test_names_in_a_view_are_those_of_its_schema(house: Path) -> None:
    assert open_source(house, query="other.guests", protect="base rows").schema.names == ["guest"]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("people", 'SELECT * FROM "main"."people"'),
        ("select AGE from people where sex='F' order by 1", None),
        ("nested", None),
        (
            "renamed",
            'SELECT "age" AS "years", "sex" AS "gender" FROM (SELECT "age", "sex" FROM "main"."people")',
        ),
    ],
)
def test_the_text_of_a_query_is_normal_and_shows_what_is_run(query: str, text: str | None, house: Path) -> None:
    expected = {
        "nested": 'SELECT "age" FROM (SELECT * FROM (SELECT "age", "sex" AS "s" FROM "main"."people" WHERE '
        '("age" > 17))) WHERE ("s" = \'F\')',
        "select AGE from people where sex='F' order by 1": 'SELECT "age" FROM "main"."people" WHERE ("sex" = \'F\')',
    }

    answer = query_answer(open_source(house, query=query, protect="base rows"))

    assert answer is not None
    assert answer.text == (text or expected[query])


def test_more_nested_subqueries_than_allowed_are_refused(house: Path) -> None:
    query = "SELECT age FROM people"
    for _ in range(30):
        query = f"SELECT age FROM ({query})"

    with pytest.raises(SourceError, match="nests more than 20"):
        open_source(house, query=query, protect="base rows")
    with pytest.raises(SourceError, match=r"nests|parsed"):
        open_source(house, query=f"SELECT {'(' * 3000}age{')' * 3000} AS a FROM people", protect="base rows")


# ── the guarantee: one base row, one row of the answer ───────────────────────────────────────────────────────


RANDOM_TEXTS = ("", "F", "M", "Ur", "Uruk", "12", "-3.5", "2001-02-03", "50%", "ä", None)


def random_people(rng: random.Random, rows: int) -> pa.Table:
    dates = [None, datetime(2000, 2, 29).date(), datetime(1, 1, 1).date(), datetime(9999, 12, 31).date()]
    return pa.table(
        {
            "age": pa.array([rng.choice([None, 0, 1, 17, 18, 2**31 - 1, -(2**31)]) for _ in range(rows)], pa.int32()),
            "sex": pa.array([rng.choice(RANDOM_TEXTS) for _ in range(rows)], pa.string()),
            "town": pa.array([rng.choice(RANDOM_TEXTS) for _ in range(rows)], pa.string()),
            "pay": pa.array([rng.choice([None, 0.0, -1.5, 1e308, float("inf")]) for _ in range(rows)], pa.float64()),
            "born": pa.array([rng.choice(dates) for _ in range(rows)], pa.date32()),
        }
    )


ON_FILES = [query for query in ACCEPTED if " people" in query.lower() and "guests" not in query]


@pytest.mark.parametrize("query", ON_FILES)
def test_removing_a_base_row_removes_at_most_one_row_of_the_answer(query: str, tmp_path: Path) -> None:
    rng = random.Random(query)
    table = random_people(rng, 12)
    path = tmp_path / "people.parquet"

    def answer(rows: pa.Table) -> Counter[str]:
        papq.write_table(rows, path)
        return Counter(map(repr, read(open_source(path, query=query, protect="base rows"))))

    whole = answer(table)
    for row in rng.sample(range(12), 2):
        rest = answer(pa.concat_tables([table[:row], table[row + 1 :]]))
        assert rest <= whole
        assert whole.total() - rest.total() <= 1
        alone = answer(table[row : row + 1])
        assert alone == whole - rest  # a row's part of the answer follows from that row


@pytest.mark.parametrize("query", ON_FILES)
def test_the_answer_is_the_one_that_duckdb_gives_where_that_does_not_fail(query: str, tmp_path: Path) -> None:
    table = pa.table(
        {
            "age": pa.array([20, 70, 3, None], pa.int32()),
            "sex": ["F", "M", None, "F"],
            "town": ["Ur", "Uruk", None, ""],
            "pay": [1.25, 0.0, None, -3.0],
            "born": pa.array([datetime(2000, 2, 29).date(), datetime(1950, 1, 1).date(), None, None], pa.date32()),
        }
    )
    papq.write_table(table, tmp_path / "people.parquet")
    with duckdb.connect() as connection:
        connection.register("people", table)
        try:
            expected = connection.execute(query.rstrip(";").partition("ORDER BY")[0]).fetchall()
        except duckdb.Error:
            return  # a cast of text to a number or a date

    source = open_source(tmp_path / "people.parquet", query=query, protect="base rows")

    assert Counter(map(repr, read(source))) == Counter(map(repr, expected))


def test_rows_are_kept_unless_there_is_a_condition_anywhere(house: Path) -> None:
    def keeps(query: str) -> bool:
        answer = query_answer(open_source(house, query=query, protect="base rows"))
        assert answer is not None
        return answer.keeps_all_rows

    assert keeps("people")
    assert keeps("renamed")
    assert keeps("SELECT age + 1 AS a FROM (SELECT age FROM people)")
    assert not keeps("adults")
    assert not keeps("nested")
    assert not keeps("SELECT age FROM people WHERE TRUE")
    assert not keeps("WITH p AS (SELECT age FROM people WHERE age > 0) SELECT age FROM p")
    assert not keeps("SELECT age FROM (SELECT * FROM adults)")


@pytest.mark.parametrize(
    ("query", "unchanged"),
    [
        ("SELECT * FROM people", {"age", "sex", "town", "pay", "born"}),
        ("SELECT age AS a, lower(sex) AS sex, (town) AS town FROM people", set()),
        ("SELECT age::INT AS age FROM people", set()),
        ("adults", {"age"}),
        ("SELECT town AS age, sex FROM people", {"sex"}),
        ("SELECT x AS y FROM (SELECT upper(sex) AS x, age FROM people)", set()),
        ("SELECT coalesce(age, 0) AS age, sex FROM people", {"sex"}),
    ],
)
def test_columns_that_are_passed_on_unchanged_are_known(query: str, unchanged: set[str], house: Path) -> None:
    answer = query_answer(open_source(house, query=query, protect="base rows"))

    assert answer is not None
    assert answer.unchanged == unchanged


# ── no value makes an accepted query fail ────────────────────────────────────────────────────────────────────


NASTY_TEXTS = (
    *("", " ", "x" * 100_000, "1e400", "99999999999999999999999", "-", "NaN", "infinity", "2000-02-30", "\x00"),
    *("%", "\\", "!", "'", '"', "\u202e", "\U0001f9d1\u200d\U0001f680", "a\ud7ff", "0x1F", "١٢٣", "1_000", "true"),
)


def nasty_rows() -> Iterator[pa.Table]:
    """Tables of one harmless row and one with a nasty cell."""
    types = {"age": pa.int32(), "sex": pa.string(), "town": pa.string(), "pay": pa.float64(), "born": pa.date32()}
    good: dict[str, Any] = {"age": 20, "sex": "F", "town": "Ur", "pay": 1.0, "born": datetime(2000, 1, 1).date()}
    cells: list[tuple[str, pa.Array]] = [
        *((name, pa.array([text], pa.string())) for name in ("sex", "town") for text in NASTY_TEXTS),
        *(("age", pa.array([number], pa.int32())) for number in (0, -1, 2**31 - 1, -(2**31), None)),
        *(("pay", pa.array([number])) for number in (float("nan"), float("inf"), -1.7e308, 5e-324, -0.0)),
        *(("born", pa.array([days], pa.int32()).view(pa.date32())) for days in (-(2**31), 2**31 - 1, -(10**6), 10**6)),
    ]
    for name, cell in cells:
        row = {column: cell if column == name else pa.array([good[column]], types[column]) for column in good}
        yield pa.concat_tables([pa.table({c: pa.array([good[c]], types[c]) for c in good}), pa.table(row)])


@pytest.mark.parametrize("query", ON_FILES)
def test_no_value_makes_an_accepted_query_fail(query: str, tmp_path: Path) -> None:
    tables = list(nasty_rows())
    path = tmp_path / "people.arrow"

    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, tables[0].schema) as writer:
        for table in tables:
            writer.write_table(table)
    assert count_rows(open_source(path, query=query, protect="base rows")) <= 2 * len(tables)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([-(2**63), 2**63 - 1, 0, None], pa.timestamp(unit, zone))
        for unit in ("s", "ms", "us", "ns")
        for zone in (None, "UTC")
    ]
    + [pa.array([-(2**63), 2**63 - 1, 0, None], pa.duration(unit)) for unit in ("s", "ms", "us", "ns")]
    + [
        pa.array([b"\xff\x00", b"", b"a", None], pa.binary()),
        pa.array([b"\xff\x00", b"", b"a", None], pa.large_binary()),
        pa.array(["x", None, "y", "x"]).dictionary_encode(),
        pa.array([2**64 - 1, 0, 1, None], pa.uint64()),
    ],
    ids=lambda column: str(column.type),
)
def test_no_value_of_any_type_makes_a_scan_fail(column: pa.Array, tmp_path: Path) -> None:
    table = pa.table({"x": column, "id": range(4)})
    with pa.OSFile(str(tmp_path / "t.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)

    source = open_source(tmp_path / "t.arrow", query="SELECT x, id FROM t WHERE id >= 0", protect="base rows")

    assert count_rows(source) == 4


@pytest.mark.parametrize("header", ["a,a", "A,a", "a,"])
@pytest.mark.parametrize("protect", ["base rows", "query rows"])
def test_columns_that_sql_cannot_tell_apart_are_refused(header: str, protect: Any, tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text(f"{header}\n1,2\n")

    with pytest.raises(SourceError, match=r"same name in SQL|has no name"):
        open_source(tmp_path / "p.csv", query="SELECT * FROM p", protect=protect)


def test_an_entry_that_is_not_utf8_is_null_so_two_ids_never_become_equal(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_bytes(b"id\n\xff\n\xfe\n\xc3\xa4\n")

    assert read(open_source(tmp_path / "p.csv", query="SELECT id FROM p", protect="base rows")) == [
        (None,),
        (None,),
        ("ä",),
    ]


WORDS = ("age", "sex", "town", "pay", "born", "0", "1", "-1", "2147483647", "1e308", "0.5", "'U'", "''", "NULL", "TRUE")
SHAPES = (
    *("({} + {})", "({} - {})", "({} * {})", "({} / {})", "({} // {})", "({} % {})", "({} || {})", "-{}", "abs({})"),
    *("({} = {})", "({} < {})", "({} >= {})", "({} IS DISTINCT FROM {})", "({} LIKE {})", "({} AND {})", "(NOT {})"),
    *("({} BETWEEN {} AND {})", "({} IN ({}, {}))", "({} IS NULL)", "CASE WHEN {} THEN {} ELSE {} END"),
    *("CASE {} WHEN {} THEN {} END", "coalesce({}, {})", "nullif({}, {})", "greatest({}, {})", "least({}, {})"),
    *("CAST({} AS TINYINT)", "CAST({} AS BIGINT)", "CAST({} AS DOUBLE)", "CAST({} AS FLOAT)", "CAST({} AS VARCHAR)"),
    *("CAST({} AS DATE)", "CAST({} AS TIMESTAMP)", "CAST({} AS BOOLEAN)", "CAST({} AS DECIMAL(38, 2))"),
    *("lower({})", "upper({})", "length({})", "trim({})", "rtrim({}, {})", "left({}, {})", "right({}, {})"),
    *("substring({}, {}, {})", "replace({}, 'U', 'u')", "contains({}, {})", "ends_with({}, {})", "concat({}, {})"),
    *("round({})", "round({}, {})", "floor({})", "ceil({})", "sign({})", "year({})", "month({})", "day({})"),
    *("date_part('decade', {})", "date_trunc('week', {})", "date_diff('second', {}, {})", "extract(doy FROM {})"),
)


def random_expression(rng: random.Random, depth: int) -> str:
    if depth == 0 or rng.random() < 0.2:
        return rng.choice(WORDS)
    shape = rng.choice(SHAPES)
    return shape.format(*(random_expression(rng, depth - 1) for _ in range(shape.count("{}"))))


@pytest.mark.check
@pytest.mark.parametrize("seed", range(3))
def test_no_expression_fails_on_a_value_or_depends_on_another_row(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    table = pa.concat_tables([random_people(rng, 30), *rng.sample(list(nasty_rows()), 15)]).combine_chunks()
    path = tmp_path / "people.arrow"
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    planned = 0

    for _ in range(120):
        expression = random_expression(rng, 3)
        query = rng.choice(["SELECT {} AS x FROM people", "SELECT town AS x FROM people WHERE {}"]).format(expression)
        try:
            source = open_source(path, query=query, protect="base rows")
        except SourceError:
            continue  # types that do not fit, whatever the values are
        whole = Counter(shown_values(source))
        alone = Counter[str]()
        for first in range(0, len(table), 6):  # a few rows at a time
            part = tmp_path / "part" / "people.arrow"
            part.parent.mkdir(exist_ok=True)
            with pa.OSFile(str(part), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
                writer.write_table(table[first : first + 6])
            alone.update(shown_values(open_source(part, query=query, protect="base rows")))
        assert whole == alone, query
        planned += 1

    assert planned > 10


def shown_values(source: Source) -> Iterator[str]:
    """The values of the column x as texts; dates and times as numbers, because Python has no object for some."""
    for batch in source.batches(["x"]):
        column = batch.column(0)
        if pa.types.is_temporal(column.type):
            column = column.view(pa.int32() if pa.types.is_date32(column.type) else pa.int64())
        yield from map(repr, column)


# ── databases ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["lower", "+", "||", "~~", "try_cast_me", "LENGTH", "date_part"])
def test_a_macro_that_replaces_a_function_is_refused(name: str, tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "m.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS a")
        connection.execute(f'CREATE MACRO "{name}"(x, y) AS (SELECT max(a) FROM t)')

    if name == "try_cast_me":
        assert read(open_source(tmp_path / "m.duckdb", query="SELECT a + 1 AS a FROM t", protect="base rows")) == [(2,)]
        return
    with pytest.raises(SourceError, match="a macro named"):
        open_source(tmp_path / "m.duckdb", query="SELECT a + 1 AS a FROM t", protect="base rows")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM read_csv('{folder}/other.csv')",
        "SELECT * FROM read_text('{folder}/other.csv')",
        "SELECT * FROM read_blob('/etc/passwd')",
        "SELECT * FROM glob('/*')",
        "SELECT * FROM '{folder}/other.csv'",
        "SELECT * FROM parquet_metadata('{folder}/other.csv')",
        "reads_a_file",
        "names_a_file",
        "SELECT * FROM sniff_csv('{folder}/other.csv')",
        "SELECT json_execute_serialized_sql(json_serialize_sql('SELECT * FROM glob(''/*'')')) AS x",
        "SELECT * FROM json_execute_serialized_sql(json_serialize_sql('SELECT * FROM glob(''/*'')'))",
        "SELECT * FROM query('SELECT * FROM glob(''/*'')')",
        "SELECT * FROM duckdb_extensions() WHERE load_aws_credentials()",
        "SELECT * FROM read_parquet('https://example.org/x.parquet')",
    ],
)
@pytest.mark.parametrize("protect", ["base rows", "query rows"])
def test_a_database_gives_no_access_to_other_files(query: str, protect: Any, house: Path) -> None:
    with pytest.raises(SourceError) as caught:
        read(open_source(house, query=query.format(folder=house.parent), protect=protect))

    assert caught.value.__context__ is None or caught.value.__suppress_context__


@pytest.mark.parametrize("query", ["SET enable_external_access = true", "SET temp_directory = '.'", "LOAD httpfs"])
def test_the_sandbox_cannot_be_left(query: str, house: Path) -> None:
    with pytest.raises(SourceError, match="not one SELECT"):
        open_source(house, query=query, protect="query rows")


def test_nothing_is_spilled_beside_a_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "big.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t AS SELECT i, repeat('x', 100) AS s FROM range(300000) r(i)")
    monkeypatch.setattr(
        "dpsyn.sources.duckdb._SANDBOX",
        {**__import__("dpsyn.sources.duckdb").sources.duckdb._SANDBOX, "memory_limit": "20MB"},
    )

    with pytest.raises(SourceError, match="the query failed"):
        read(open_source(path, query="SELECT i, s FROM t ORDER BY hash(s || i)", protect="query rows"))

    assert [file.name for file in tmp_path.iterdir()] == ["big.duckdb"]


def test_a_schema_may_have_the_name_of_its_database(tmp_path: Path) -> None:
    path = tmp_path / "people.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute('CREATE SCHEMA people; CREATE TABLE "people"."people"."t" AS SELECT 1 AS a')
        connection.execute('CREATE TABLE "people"."people"."both" AS SELECT 2 AS a')
        connection.execute('CREATE TABLE "people"."main"."both" AS SELECT 3 AS a')
    answers = {"people.t": 1, "people.people.both": 2, "people.main.both": 3, "both": 3}

    for name, value in answers.items():
        assert read(open_source(path, query=f"SELECT a FROM {name}", protect="base rows")) == [(value,)]
    with pytest.raises(SourceError, match=r'"people"\."both" may be a table of .* write database\.schema\.table'):
        open_source(path, query="SELECT a FROM people.both", protect="base rows")


def test_texts_do_not_grow_without_limit(house: Path) -> None:
    query = "SELECT sex FROM people"
    for _ in range(4):
        query = f"SELECT sex || sex AS sex FROM ({query})"
    open_source(house, query=query, protect="base rows")
    for _ in range(3):
        query = f"SELECT sex || sex AS sex FROM ({query})"

    with pytest.raises(SourceError, match="a text could become too long"):
        open_source(house, query=query, protect="base rows")


def test_a_relation_that_is_a_query_is_certified_as_one() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE people AS SELECT 1 AS age")

    mixing = query_answer(open_source(connection.sql("SELECT max(age) OVER () AS age FROM people")))

    assert mixing is not None
    assert mixing.protect == "query rows"
    assert "OVER" in mixing.text
    assert query_answer(open_source(connection.table("people"))) is None
