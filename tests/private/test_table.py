"""The gate charges before it counts, refuses without a charge, and shows nothing of the rows."""

from __future__ import annotations

import copy
import pickle
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any, get_args

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from dpsyn.accounting import Budget, Cap, Certificate, Ledger
from dpsyn.accounting.privacy_unit import CHANGED_UNITS
from dpsyn.encoding import Recoding
from dpsyn.engines import Engine
from dpsyn.errors import BudgetError, DPSynError, InternalError, LedgerError, SchemaError, SourceError
from dpsyn.private import PrivateTable, ReleaseLimits, SystemNoise, open_private
from dpsyn.private.approximate_bounds import MAGNITUDE_BUCKETS, bucket_bounds, magnitude_bucket
from dpsyn.recipes import Independent
from dpsyn.schema import (
    Boolean,
    Categorical,
    Identifier,
    Impossible,
    Integer,
    NeighboringRelation,
    Open,
    Real,
    Schema,
    UnitDeclaration,
)
from tests.private.noise_doubles import InventedNoise, NoNoise, RecordingNoise

SECRET = "Zaphod"
SCHEMA = Schema(
    attributes=(
        Integer(name="age", low=0, high=10**6),
        Categorical(name="sex", values=("F", "M"), missing=True),
        Boolean(name="ok"),
        Open(name="city"),
    ),
    dataset="people",
)
TABLE = pa.table(
    {
        "age": [31, 32, 33, 33] * 50,
        "sex": ["F", "M", None, "x"] * 50,
        "ok": [True, False, True, True] * 50,
        "city": ["Oslo"] * 150 + [f"{SECRET}{i}" for i in range(50)],
    }
)
BUDGET = Budget.for_guarantee(10, 1e-6, thresholds=True)


def opened(**options: Any) -> PrivateTable:
    return open_private(TABLE, SCHEMA, options.pop("budget", BUDGET), mechanisms=NoNoise(), **options)


# ── what it answers ──────────────────────────────────────────────────────────────────────────────────────────


def test_without_noise_the_answers_are_the_counts() -> None:
    with opened() as table:
        both, one = table.measure([("ok", "sex"), ("sex",)], table.budget.split_rho([1, 1]))

    assert both.counts.tolist() == [[0, 50, 0], [50, 0, 100]]
    assert one.counts.tolist() == [50, 50, 100]
    assert both.clique == ("ok", "sex")


def test_the_record_distinguishes_finer_from_coarser_bins_of_the_same_attribute() -> None:
    with opened() as table:
        coarse = table.recoding.columns[table.recoding.index_of("age")].size
        table.measure([("age",), ("ok", "sex")], table.budget.split_rho([1, 1, 2])[:2])
        table.recode(table.recoding.join("both", ("ok", "sex"))).measure([("both",)], [table.budget.rho / 2])
        certificate = table.certificate()

    purposes = [measurement.purpose for measurement in certificate.account.measurements]
    assert purposes == [
        f"marginal of age ({coarse:,} cells)",
        "marginal of ok, sex (6 cells)",
        "marginal of both (6 cells)",
    ]
    assert "marginal of ok, sex (6 cells): Gaussian noise" in certificate.text()


def test_a_fine_histogram_is_over_cells() -> None:
    with opened() as table:
        fine = table.measure_fine_histogram("age", table.budget.rho)

    assert fine.counts.sum() == 200
    assert len(fine.counts) == SCHEMA["age"].cells


def test_distances_from_a_prediction_are_rounded_first() -> None:
    with opened() as table:
        scores = table.score_predictions(
            [("sex",), ("ok",)], [np.array([50.4, 49.6, 99.5]), np.array([0, 0])], table.budget.rho
        )

    assert scores.values.tolist() == [0, 200]


def test_dependence_is_the_distance_from_independence() -> None:
    with opened() as table:
        scores = table.score_indif([("ok", "sex"), ("sex", "ok")], table.budget.rho)

    counts = np.array([[0, 50, 0], [50, 0, 100]])
    expected = np.abs(counts - np.outer(counts.sum(1), counts.sum(0)) / 200).sum()
    assert scores.values.tolist() == [int(expected)] * 2


def test_frequent_values_are_discovered_and_the_others_become_other() -> None:
    with opened() as table:
        discovered = table.discover_values("city", table.budget.rho / 2, table.budget.threshold_delta)
        (cities,) = discovered.measure([("city",)], [table.budget.rho / 2])

    attribute: Any = discovered.schema["city"]
    assert attribute.values == ("Oslo",)
    assert cities.counts.tolist() == [150, 50]


def test_a_wide_range_is_narrowed_to_the_powers_of_two_in_use() -> None:
    with opened() as table:
        narrowed: Any = table.discover_range("age", table.budget.rho).schema["age"]

    assert (narrowed.low, narrowed.high) == (16, 63)


def test_bounds_and_values_are_read_off_released_numbers_alone() -> None:
    noise = InventedNoise(full=int(magnitude_bucket(np.array([1000.0]))[0]), value="Bergen")
    with open_private(TABLE, SCHEMA, BUDGET, mechanisms=noise) as table:
        narrowed: Any = table.discover_range("age", table.budget.rho / 2).schema["age"]
        discovered: Any = table.discover_values("city", table.budget.rho / 2, table.budget.threshold_delta).schema[
            "city"
        ]

    assert (narrowed.low, narrowed.high) == (512, 1023)
    assert discovered.values == ("Bergen",)


@pytest.mark.parametrize("coordinate", [0, 1, -1, 2, 3, 1023, 1024, -1024, 2**52, -(2**52), 2**53 - 1])
def test_every_number_lies_in_the_bounds_of_its_bucket(coordinate: int) -> None:
    bucket = int(magnitude_bucket(np.array([coordinate], np.float64))[0])

    low, high = bucket_bounds(bucket, bucket)

    assert 0 <= bucket < MAGNITUDE_BUCKETS - 1
    assert low <= coordinate <= high


def test_reals_are_narrowed_on_their_lattice() -> None:
    schema = Schema(attributes=(Real(name="w", low=-1000, high=1000, decimals=1),))
    with open_private(pa.table({"w": [0.0, 12.5, 30.0] * 40}), schema, BUDGET, mechanisms=NoNoise()) as table:
        narrowed: Any = table.discover_range("w", table.budget.rho).schema["w"]

    assert (narrowed.low, narrowed.high) == (0, 51.1)


def test_an_error_of_ours_while_noise_is_added_holds_no_exact_counts() -> None:
    class Failing(NoNoise):
        def add_noise(self, answers: Any) -> Any:
            raise BudgetError("the sampler refuses")

    failing = open_private(TABLE, SCHEMA, BUDGET, mechanisms=Failing())
    with failing as table, pytest.raises(BudgetError, match="the sampler refuses") as caught:
        table.measure([("ok",)], [table.budget.rho])

    names = {frame.f_code.co_name for frame, _ in traceback.walk_tb(caught.tb)}
    assert "_release" in names
    assert not {"_count_and_randomize", "add_noise"} & names
    assert caught.value.__context__ is None


def test_a_recoding_that_could_look_at_rows_is_refused() -> None:
    class Watching(Recoding):
        pass

    with opened() as table, pytest.raises(InternalError, match="a subclass could look at rows"):
        table.recode(Watching(table.recoding.columns, table.recoding.origin))


def test_a_recoding_is_measured_instead() -> None:
    with opened() as table:
        joined = table.recode(table.recoding.join("both", ["sex", "ok"]))
        (marginal,) = joined.measure([("both",)], [table.budget.rho])

    assert marginal.counts.tolist() == [0, 50, 50, 0, 0, 100]


def test_a_recipe_spends_exactly_its_budget() -> None:
    with opened(budget=Budget.for_guarantee(1, 1e-6, thresholds=True)) as table:
        Independent().measure(table)
        certificate = table.certificate()

        with pytest.raises(BudgetError):
            table.measure([("ok",)], [table.budget.rho / 10**6])

    assert certificate.epsilon_bounds.epsilon <= 1
    assert certificate.epsilon_bounds.epsilon > 0.99


# ── count, charge, return ───────────────────────────────────────────────────────────────────────────────────────────


class Watching:
    """An engine that notes the number of charges in the ledger when it counts, and then fails."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.charges: list[int] = []

    def count(self, *_: object) -> list[Any]:
        (dataset,) = self.ledger.datasets()
        self.charges.append(len(dataset.runs[-1].measurements))
        raise RuntimeError("the disk is gone")

    count_texts = count_column = count

    def require_rereadable(self, why: str) -> None:
        """It can be read again."""


QUESTIONS: list[Callable[[PrivateTable, Fraction], object]] = [
    lambda table, rho: table.measure([("ok",)], [rho]),
    lambda table, rho: table.measure_fine_histogram("ok", rho),
    lambda table, rho: table.score_predictions([("ok",)], [np.zeros(2)], rho),
    lambda table, rho: table.score_indif([("ok", "sex")], rho),
    lambda table, rho: table.discover_values("city", rho, table.budget.threshold_delta),
    lambda table, rho: table.discover_range("age", rho),
]


@pytest.mark.parametrize("ask", QUESTIONS)
def test_nothing_is_charged_if_counting_fails(tmp_path: Path, ask: Any) -> None:
    ledger = Ledger.create(tmp_path / "l.db")
    table = opened(ledger=ledger)
    watching = Watching(ledger)
    table._engine = watching  # type: ignore[assignment]

    with pytest.raises(InternalError, match=r"counting rows failed \(RuntimeError\)") as caught:
        ask(table, table.budget.rho / 2)
    table.close()

    assert caught.value.__context__ is None
    assert watching.charges == [0]
    (dataset,) = ledger.datasets()
    assert dataset.rho == 0
    assert ledger.verify().faults == ()


@pytest.mark.parametrize("journal", [True, False])
@pytest.mark.parametrize("ask", QUESTIONS)
def test_no_answer_is_returned_if_its_charge_is_not_recorded(
    tmp_path: Path, ask: Any, journal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise LedgerError("no room")

    ledger, noise = Ledger.create(tmp_path / "l.db"), RecordingNoise()
    path = tmp_path / "j" if journal else None
    monkeypatch.setattr(Ledger, "record", fails)

    with (
        pytest.raises(LedgerError, match="no room"),
        open_private(TABLE, SCHEMA, BUDGET, ledger, mechanisms=noise, journal=path) as table,
    ):
        ask(table, table.budget.rho / 2)

    assert len(noise.answers) == 1  # it was counted and randomized, and then discarded
    assert table.certificate().account.measurements == ()


def test_every_answer_has_an_entry_and_every_entry_an_answer(tmp_path: Path) -> None:
    ledger, noise = Ledger.create(tmp_path / "l.db"), RecordingNoise()
    budget = Budget.for_guarantee(10, 1e-6, pure_epsilons=[0.5], thresholds=True)
    with open_private(TABLE, SCHEMA, budget, ledger, mechanisms=noise) as table:
        rho = budget.rho / 8
        table.measure([("ok",), ("sex", "ok")], [rho, rho])
        table.measure_laplace([("ok",)], [budget.pure_epsilons[0]])
        table.measure_fine_histogram("age", rho)
        table.score_predictions([("ok",)], [np.zeros(2)], rho)
        table.score_indif([("ok", "sex")], rho)
        table.discover_range("age", rho)
        table.discover_values("city", rho, budget.threshold_delta)
        certificate = table.certificate()

    (dataset,) = ledger.datasets()
    assert [measurement["mechanism"] for measurement in dataset.runs[0].measurements] == [
        answer.cost.to_data() for answer in noise.answers
    ]
    assert len(noise.answers) == 8
    assert not dataset.runs[0].uses_real_noise
    assert certificate == Certificate.from_data(certificate.to_data())
    assert "not private" in certificate.text().lower()


def test_an_overspend_is_refused_and_no_row_is_counted(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "l.db")
    table = opened(ledger=ledger)
    watching = Watching(ledger)
    table._engine = watching  # type: ignore[assignment]

    with pytest.raises(BudgetError):
        table.measure([("ok",)], [table.budget.rho * 2])

    assert watching.charges == []


def test_unspent_budget_is_returned(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "l.db")
    with opened(ledger=ledger) as table:
        table.measure([("ok",)], [table.budget.rho / 4])
        held = ledger.datasets()[0].rho

    assert ledger.datasets()[0].rho <= table.budget.rho / 4
    assert held == table.budget.reserved_rho


# ── refusals before a row is read ────────────────────────────────────────────────────────────────────────────


class Untouchable:
    """A table whose rows must not be read."""

    def __init__(self) -> None:
        self.reads = 0

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        reader = pa.RecordBatchReader.from_batches(TABLE.schema, self._batches())
        return reader.__arrow_c_stream__(requested_schema)

    def _batches(self) -> Any:
        self.reads += 1
        yield from TABLE.to_batches()


def test_a_ledger_that_cannot_be_written_stops_the_release_before_rows_are_read(tmp_path: Path) -> None:
    data = Untouchable()

    with pytest.raises(LedgerError):
        open_private(data, SCHEMA, BUDGET, Ledger(tmp_path / "no folder" / "l.db"), mechanisms=NoNoise())

    assert data.reads == 0


def test_a_cap_stops_the_release_before_rows_are_read(tmp_path: Path) -> None:
    ledger, data = Ledger.create(tmp_path / "l.db"), Untouchable()
    ledger.set_cap("people", Cap.for_guarantee(0.1, 1e-9))

    with pytest.raises(LedgerError, match="cap"):
        open_private(data, SCHEMA, BUDGET, ledger, mechanisms=NoNoise())

    assert data.reads == 0


def test_a_drafted_schema_stops_the_release_before_rows_are_read() -> None:
    drafted = Schema(attributes=(Boolean(name="ok", provenance="data"),))
    data = Untouchable()

    with pytest.raises(SchemaError, match="taken from the data"):
        open_private(data, drafted, BUDGET, mechanisms=NoNoise())

    assert data.reads == 0


def test_a_table_that_does_not_fit_costs_nothing(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "l.db")

    with pytest.raises(SourceError, match="no column"):
        open_private(TABLE.drop_columns(["ok"]), SCHEMA, BUDGET, ledger)

    assert ledger.datasets() == ()


def test_a_table_that_breaks_off_returns_the_budget(tmp_path: Path) -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        yield TABLE.to_batches()[0]
        raise KeyError(SECRET)

    ledger, stream = Ledger.create(tmp_path / "l.db"), pa.RecordBatchReader.from_batches(TABLE.schema, broken())

    with pytest.raises(SourceError, match="the stream stopped with an error") as caught:
        open_private(stream, msgspec.structs.replace(SCHEMA, attributes=SCHEMA.attributes[:-1]), BUDGET, ledger)

    assert SECRET not in str(caught.value)
    (dataset,) = ledger.datasets()
    assert dataset.rho == 0
    assert dataset.runs[0].closed


@pytest.mark.parametrize(
    ("ask", "expected"),
    [
        (lambda t: t.measure([("ok", "nothing")], [t.budget.rho]), "no attribute 'nothing'"),
        (lambda t: t.measure([("ok", "ok")], [t.budget.rho]), "each only once"),
        (lambda t: t.measure([()], [t.budget.rho]), "at least one attribute"),
        (lambda t: t.measure([("age", "sex")], [t.budget.rho]), "more than 50"),
        (lambda t: t.measure_fine_histogram("age", t.budget.rho), "more than 50"),
        (lambda t: t.measure([("sex",)] * 40, t.budget.split_rho([1] * 40)), "would contain 120 noisy values"),
        (lambda t: t.discover_values("ok", t.budget.rho, t.budget.threshold_delta), "public already"),
        (lambda t: t.discover_range("ok", t.budget.rho), "only the range of integers and reals"),
        (lambda t: t.refine_cells({"ok": [1]}), "only numbers and dates"),
        (lambda t: t.score_indif([("ok", "sex", "ok")], t.budget.rho), "exactly two"),
        (lambda t: t.score_predictions([("ok",)], [np.array([2.0**58, 0])], t.budget.rho), "must be finite"),
        (lambda t: t.score_predictions([("ok",)], [np.array([np.nan, 0])], t.budget.rho), "must be finite"),
    ],
)
def test_an_invalid_question_is_refused_without_a_charge(ask: Any, expected: str) -> None:
    with opened(limits=ReleaseLimits(max_marginal_cells=50, max_noisy_values=100)) as table:
        with pytest.raises(DPSynError, match=expected):
            ask(table)

        assert table.certificate().epsilon_bounds.epsilon == 0


def test_further_cells_cost_nothing_and_divide_the_counts_of_the_public_ones() -> None:
    with opened() as table:
        before = table.measure_fine_histogram("age", table.budget.rho / 4)
        charged = table.certificate().epsilon_bounds.epsilon

        refined = table.refine_cells({"age": [32, 33]})

        assert refined.certificate().epsilon_bounds.epsilon == charged
        assert table.refine_cells({"age": [0]}) is table  # there is such a cell already
        after = refined.measure_fine_histogram("age", table.budget.rho / 4)
        old: Any = table.schema["age"]
        new: Any = refined.schema["age"]
        cell_of = old.grid().cell_of(new.grid().edges[:-1])
        assert len(after.counts) == len(before.counts) + 2
        np.testing.assert_array_equal(np.bincount(cell_of, after.counts), before.counts)


# ── opaque ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_private_table_shows_nothing_of_its_rows() -> None:
    with opened() as table:
        shown = repr(table) + str(table) + repr(table._engine) + f"{table}"

        assert SECRET not in shown
        assert "200" not in shown
        acts: list[Callable[[Any], Any]] = [pickle.dumps, copy.copy, copy.deepcopy, len, iter, list]
        for act in acts:
            with pytest.raises((InternalError, TypeError)):
                act(table)
        assert not hasattr(table, "__dict__")


def test_an_error_inside_a_release_quotes_no_row() -> None:
    with opened() as table, pytest.raises(InternalError) as caught:
        table.score_predictions([("ok",)], [np.zeros(3)], table.budget.rho)

    assert SECRET not in str(caught.value)


def test_a_column_of_categories_is_narrowed_without_quoting_a_cell() -> None:
    schema = Schema(attributes=(Integer(name="v", low=0, high=1000),))
    table = pa.table({"v": pa.array(["1", "2", SECRET] * 40).dictionary_encode()})

    with open_private(table, schema, BUDGET, mechanisms=NoNoise()) as private:
        narrowed: Any = private.discover_range("v", private.budget.rho).schema["v"]

    assert (narrowed.low, narrowed.high) == (1, 3)


def test_values_beyond_the_bounds_narrow_a_range_to_the_bound() -> None:
    schema = Schema(attributes=(Integer(name="v", low=0, high=1000),))

    with open_private(pa.table({"v": [10**6] * 90}), schema, BUDGET, mechanisms=NoNoise()) as private:
        narrowed: Any = private.discover_range("v", private.budget.rho).schema["v"]

    assert (narrowed.low, narrowed.high) == (512, 1000)


def test_a_rule_about_a_value_that_was_not_discovered_is_dropped() -> None:
    rules = (
        Impossible(where=(("city", "Bergen"), ("ok", True))),
        Impossible(where=(("city", ("Bergen", "Oslo")), ("ok", True))),
    )
    schema = msgspec.structs.replace(SCHEMA, rules=rules)

    with open_private(TABLE, schema, BUDGET, mechanisms=NoNoise()) as table:
        discovered = table.discover_values("city", table.budget.rho, table.budget.threshold_delta).schema

    assert discovered.rules == (Impossible(where=(("city", ("Oslo",)), ("ok", True))),)


def test_a_recoding_of_another_schema_is_refused() -> None:
    with opened() as table:
        before = table.recoding
        after = table.discover_values("city", table.budget.rho, table.budget.threshold_delta)

        with pytest.raises(InternalError, match="another schema"):
            after.recode(before)


def test_threads_that_share_a_table_are_charged_for_every_answer() -> None:
    with opened() as table, ThreadPoolExecutor(8) as pool:

        def ask(_: int) -> bool:
            try:
                table.measure([("ok",)], [table.budget.rho])
            except BudgetError:
                return False
            return True

        answered = sum(pool.map(ask, range(40)))

    assert answered == 1


def test_only_the_real_noise_is_called_private() -> None:
    class Pretender(SystemNoise):
        private = True

    with open_private(TABLE, SCHEMA, BUDGET, mechanisms=Pretender()) as table:
        assert "not private" in table.certificate().text().lower()


# ── persons ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_at_most_max_rows_of_a_person_are_counted() -> None:
    schema = Schema(
        attributes=(Identifier(name="id"), Categorical(name="a", codes=10)),
        privacy_unit=UnitDeclaration(id="id", max_rows=2),
    )
    ids: Sequence[str | None] = ["p"] * 10 + ["q"] + [None] * 5
    table = pa.table({"id": ids, "a": [i % 10 for i in range(16)]})

    with open_private(table, schema, BUDGET, mechanisms=NoNoise()) as private:
        (marginal,) = private.measure([("a",)], [private.budget.rho])
        certificate = private.certificate()

    assert marginal.counts.sum() == 2 + 1
    assert "at most 2" in certificate.text()


def test_which_rows_of_a_person_count_differs_from_release_to_release() -> None:
    schema = Schema(
        attributes=(Identifier(name="id"), Categorical(name="a", codes=50)),
        privacy_unit=UnitDeclaration(id="id", max_rows=1),
    )
    table = pa.table({"id": ["p"] * 50, "a": range(50)})
    chosen = set()

    for _ in range(6):
        with open_private(table, schema, BUDGET, mechanisms=NoNoise()) as private:
            chosen.add(int(private.measure([("a",)], [private.budget.rho])[0].raw.argmax()))

    assert len(chosen) > 1  # all six are the same with probability 50⁻⁵


def test_schema_and_accounting_know_the_same_neighboring_relations() -> None:
    assert set(get_args(NeighboringRelation)) == set(CHANGED_UNITS)


def test_the_engines_give_the_same_counts() -> None:
    answers = []
    for engine in ("memory", "stream"):
        with opened(engine=engine) as table:
            answers.append(table.measure([("ok", "sex")], [table.budget.rho])[0].raw.tolist())

    assert answers[0] == answers[1]


def test_engines_have_the_methods_of_the_protocol() -> None:
    assert {"count", "count_texts", "count_column", "with_schema"} <= set(dir(Engine))
