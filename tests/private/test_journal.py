"""An interrupted run is resumed from its journal: stored answers are returned again, the others are measured."""

from __future__ import annotations

import contextlib
import errno
import gzip
import os
import signal
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from dpsyn.accounting import Budget, Ledger, PrivacyUnit, hash_answer, split_exactly
from dpsyn.accounting.head_store import STATE_FOLDER_VARIABLE
from dpsyn.encoding import Grouping
from dpsyn.errors import BudgetError, JournalError, LedgerError, SourceError
from dpsyn.private import PrivateTable, SystemNoise, discard_journal, open_private
from dpsyn.private.append_log import AppendLog
from dpsyn.private.journal import AnswerRecord, StoredAnswer, hash_question, parse_record
from dpsyn.private.mechanisms import ChargedAnswer
from dpsyn.schema import Boolean, Categorical, Identifier, Integer, Open, Schema, UnitDeclaration
from tests.private.noise_doubles import RecordingNoise

SECRET = "Zaphod"
SCHEMA = Schema(
    attributes=(
        Identifier(name="person"),
        Integer(name="age", low=0, high=10**6),
        Categorical(name="sex", values=("F", "M"), missing=True),
        Boolean(name="ok"),
        Open(name="city"),
    ),
    dataset="people",
)
TABLE = pa.table(
    {
        "person": [f"p{i}" for i in range(200)],
        "age": [31, 32, 33, 33] * 50,
        "sex": ["F", "M", None, "x"] * 50,
        "ok": [True, False, True, True] * 50,
        "city": ["Oslo"] * 150 + [f"{SECRET}{i}" for i in range(50)],
    }
)
BUDGET = Budget.for_guarantee(10, 1e-6, pure_epsilons=[0.5], thresholds=True)
RHO = BUDGET.rho / 8
STEPS = 8
"""Questions that ``ask`` asks; one of them has two answers."""


class Stop(Exception):  # noqa: N818
    """What interrupts a run."""


def ask(table: PrivateTable, until: int = STEPS) -> list[Any]:
    """Ask all questions of the gate, which spends the whole budget, or the first few of them; return the answers."""
    found: list[Any] = []

    def discover(name: str, step: Callable[[PrivateTable], PrivateTable]) -> None:
        nonlocal table
        table = step(table)
        found.append(table.schema[name])

    questions: list[Callable[[], Any]] = [
        lambda: discover("age", lambda t: t.discover_range("age", RHO)),
        lambda: discover("city", lambda t: t.discover_values("city", RHO, BUDGET.threshold_delta)),
        lambda: found.append(table.measure_fine_histogram("age", RHO).raw.tolist()),
        lambda: found.extend(m.raw.tolist() for m in table.measure([("ok",), ("sex", "city")], [RHO, RHO])),
        lambda: found.append(table.measure_laplace([("ok", "sex")], BUDGET.pure_epsilons)[0].raw.tolist()),
        lambda: found.append(table.score_predictions([("ok",)], [np.array([50, 150])], RHO).values.tolist()),
        lambda: found.append(table.score_indif([("ok", "sex"), ("sex", "city")], RHO).values.tolist()),
        lambda: found.append(table.measure([("age",)], [RHO])[0].counts.tolist()),
    ]
    for question in questions[:until]:
        question()
    return found


def opened(folder: Path, *, ledger: bool = True, **options: Any) -> PrivateTable:
    """A run with a journal; its noise is not the real one, but fast."""
    path = folder / "l.db"
    book = (Ledger(path) if path.exists() else Ledger.create(path)) if ledger else None
    given: dict[str, Any] = {
        "mechanisms": RecordingNoise(len(list(folder.iterdir()))),
        "journal": folder / "j",
        "recipe": {"name": "all", "rounds": [1, 2]},
    } | options
    data, schema, budget = given.pop("data", TABLE), given.pop("schema", SCHEMA), given.pop("budget", BUDGET)
    return open_private(data, schema, budget, book, **given)


def interrupted(folder: Path, asked: int | Callable[[PrivateTable], object], **options: Any) -> None:
    """A run that was interrupted after some questions."""
    with contextlib.suppress(Stop), opened(folder, **options) as table:
        if isinstance(asked, int):
            ask(table, asked)
        else:
            asked(table)
        raise Stop


def journal_lines(folder: Path) -> list[bytes]:
    return (folder / "j").read_bytes().splitlines(keepends=True)


def keep_lines(folder: Path, number: int) -> None:
    """Cut the last lines off, as if the process had been killed before it stored them."""
    (folder / "j").write_bytes(b"".join(journal_lines(folder)[:number]))


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


# ── resuming ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("ledger", [True, False])
@pytest.mark.parametrize("until", range(1, STEPS))
def test_a_run_continues_where_it_was_interrupted(until: int, ledger: bool, tmp_path: Path) -> None:
    first, second = RecordingNoise(1), RecordingNoise(2)
    interrupted(tmp_path, until, ledger=ledger, mechanisms=first)

    with opened(tmp_path, ledger=ledger, resume=True, mechanisms=second) as table:
        answers = ask(table)
        certificate = table.certificate()

    recorded = [*first.answers, *second.answers]
    assert [measurement.cost for measurement in certificate.account.measurements] == [
        answer.cost for answer in recorded
    ]
    assert len(recorded) == len(answers) == 9
    assert answers[2] == recorded[2].released.tolist()
    assert answers[3] == recorded[3].released.tolist()
    assert answers[5] == recorded[5].released.tolist()
    assert certificate.epsilon_bounds.epsilon <= BUDGET.epsilon


@pytest.mark.parametrize("ledger", [True, False])
def test_all_answers_of_a_complete_run_are_returned_again_without_rows_or_charges(ledger: bool, tmp_path: Path) -> None:
    with opened(tmp_path, ledger=ledger) as table:
        before, inside = ask(table), table.certificate()
    after = table.certificate()
    noise = RecordingNoise()

    for _ in range(2):
        with opened(tmp_path, ledger=ledger, resume=True, mechanisms=noise) as again:
            assert ask(again) == before
            assert again.certificate() == inside
        assert again.certificate() == after

    assert noise.answers == []


def test_the_rows_of_a_complete_run_are_not_read_again(tmp_path: Path) -> None:
    schema = msgspec.structs.replace(SCHEMA, attributes=SCHEMA.attributes[:-1])
    with opened(tmp_path, schema=schema) as table:
        before = table.measure([("ok",)], [RHO])[0].raw.tolist()
    data = Untouchable()

    with opened(tmp_path, schema=schema, data=data, resume=True) as again:
        assert again.measure([("ok",)], [RHO])[0].raw.tolist() == before

    assert data.reads == 0


@pytest.mark.parametrize("ledger", [True, False])
def test_a_complete_run_measures_nothing_more(ledger: bool, tmp_path: Path) -> None:
    with opened(tmp_path, ledger=ledger) as table:
        table.measure([("ok",)], [RHO])

    with opened(tmp_path, ledger=ledger, resume=True) as again:
        again.measure([("ok",)], [RHO])
        with pytest.raises(BudgetError, match="this run is closed"):
            again.measure([("sex",)], [RHO])


def test_a_complete_run_that_could_not_be_closed_in_the_ledger_is_closed_when_it_is_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise LedgerError("no room")

    table = opened(tmp_path)
    before = table.measure([("ok",)], [RHO])[0].raw.tolist()
    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "close", fails)
        with pytest.raises(LedgerError, match="no room"):
            table.close()
    inside = table.certificate()

    with opened(tmp_path, resume=True) as again:
        assert again.measure([("ok",)], [RHO])[0].raw.tolist() == before
        assert again.certificate() == inside

    (run,) = Ledger(tmp_path / "l.db").datasets()[0].runs
    assert run.closed


def test_an_answer_is_sealed_on_disk_when_the_ledger_records_its_charge_and_its_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moments: list[tuple[int, int]] = []
    record = Ledger.record

    def watched(self: Ledger, run: str, measurements: Sequence[Any], position: int, keys: Sequence[str]) -> Any:
        content = (tmp_path / "j").read_bytes()
        moments.append((len(journal_lines(tmp_path)), len(keys)))
        assert not any(key.encode() in content for key in keys)
        assert not any(m.answer_hash.encode() in content for m in measurements)
        return record(self, run, measurements, position, keys)

    monkeypatch.setattr(Ledger, "record", watched)
    with opened(tmp_path) as table:
        first, second = table.measure([("ok",), ("sex",)], [RHO, RHO])
        table.measure([("age",)], [RHO])
    (run,) = Ledger(tmp_path / "l.db").datasets()[0].runs
    records = [parse_record(line[65:].strip(), tmp_path / "j") for line in journal_lines(tmp_path)[1:3]]

    assert moments == [(3, 2), (4, 1)]
    for marginal, answer, key, recorded in zip(
        (first, second), records, run.journal_keys, run.measurements, strict=False
    ):
        assert isinstance(answer, AnswerRecord)
        assert answer.content != marginal.raw.tobytes()
        opened_answer = answer.open_answer(bytes.fromhex(key))
        assert np.array_equal(opened_answer.answer, marginal.raw)
        assert recorded["answer_hash"] == hash_answer(marginal.raw) == opened_answer.charged.answer_hash


def test_without_a_ledger_the_line_of_an_answer_is_its_charge(tmp_path: Path) -> None:
    with opened(tmp_path, ledger=False) as table:
        (marginal,) = table.measure([("ok",)], [RHO])
        answer = parse_record(journal_lines(tmp_path)[1][65:].strip(), tmp_path / "j")

    assert isinstance(answer, AnswerRecord)
    assert answer.content == marginal.raw.tobytes()
    assert answer.seal == ""


def test_the_length_of_a_sealed_list_of_values_is_hidden(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        ask(table, 2)
    answer = parse_record(journal_lines(tmp_path)[2][65:].strip(), tmp_path / "j")

    assert isinstance(answer, AnswerRecord)
    assert len(answer.content) == 4096


@pytest.mark.parametrize("until", range(STEPS))
def test_an_answer_whose_charge_was_not_recorded_is_measured_anew(
    until: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = Ledger.record

    def fails_late(self: Ledger, run: str, measurements: Any, position: int, keys: Any) -> Any:
        if position >= until:
            raise Stop  # the answers are in the journal, sealed
        return record(self, run, measurements, position, keys)

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "record", fails_late)
        with contextlib.suppress(Stop), opened(tmp_path) as table:
            ask(table)
    noise = RecordingNoise(2)

    with opened(tmp_path, resume=True, mechanisms=noise) as again:
        answers = ask(again)
        certificate = again.certificate()

    assert len(answers) == len(certificate.account.measurements) == 9
    assert 9 - len(noise.answers) in (until, until + 1)  # two answers are charged together
    assert certificate.account.total.gaussian_rho <= BUDGET.rho


def test_a_resumed_run_generates_a_new_key_and_the_key_is_not_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys: list[bytes] = []

    def token(size: int) -> bytes:
        key = os.urandom(size)
        keys.extend([key] if size == 16 else [])  # the name of a run is shorter, and public
        return key

    monkeypatch.setattr("secrets.token_bytes", token)
    schema = msgspec.structs.replace(SCHEMA, privacy_unit=UnitDeclaration(id="person", max_rows=2))
    interrupted(tmp_path, 4, schema=schema)

    with opened(tmp_path, resume=True, schema=schema) as table:
        ask(table)

    content = (tmp_path / "j").read_bytes()
    assert len(set(keys)) == 2
    for key in keys:
        assert not any(form in content for form in (key, key.hex().encode(), msgspec.json.encode(key)[1:-3]))
    assert SECRET.encode() not in content


@pytest.mark.parametrize("error", [KeyboardInterrupt, LedgerError])
def test_an_interruption_right_after_the_first_charge_keeps_its_answers(
    error: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = Ledger.record

    def charged_then_interrupted(self: Ledger, *given: Any) -> Any:
        record(self, *given)
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "record", charged_then_interrupted)
        with pytest.raises(error), opened(tmp_path) as table:
            table.measure([("ok",)], [RHO])
    (run,) = Ledger(tmp_path / "l.db").datasets()[0].runs
    noise = RecordingNoise(2)

    with opened(tmp_path, resume=True, mechanisms=noise) as again:
        (marginal,) = again.measure([("ok",)], [RHO])

    assert not run.closed
    assert noise.answers == []
    assert run.measurements[0]["answer_hash"] == hash_answer(marginal.raw)


def test_answers_that_were_not_charged_are_in_no_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise LedgerError("no room")

    noise = RecordingNoise(1)
    monkeypatch.setattr(Ledger, "record", fails)
    with pytest.raises(LedgerError) as caught, opened(tmp_path, mechanisms=noise) as table:
        table.measure([("sex", "age"), ("ok",)], [RHO, RHO])

    answer = noise.answers[0].released
    frames = [frame for frame, _ in traceback.walk_tb(caught.tb) if "dpsyn" in frame.f_code.co_filename]
    held = [value for frame in frames if "tests" not in frame.f_code.co_filename for value in frame.f_locals.values()]
    flat = [inner for value in held for inner in (value if isinstance(value, list | tuple) else [value])]
    assert [frame.f_code.co_name for frame in frames][-1] == "_release"
    assert not any(value is answer or isinstance(value, StoredAnswer) for value in flat)


# ── lost answers ─────────────────────────────────────────────────────────────────────────────────────────────


def test_after_a_loss_what_is_left_of_the_budget_is_divided_among_the_measurements_to_come(tmp_path: Path) -> None:
    first, second = RecordingNoise(1), RecordingNoise(2)
    cliques = [("ok",), ("sex",), ("ok", "sex"), ("age",)]
    rhos = [BUDGET.rho / 4] * 4
    interrupted(tmp_path, lambda t: t.measure(cliques[:3], rhos[:3]), mechanisms=first)
    keep_lines(tmp_path, -2)  # of three answers one is stored

    def resumed(noise: RecordingNoise) -> PrivateTable:
        with pytest.warns(UserWarning, match=r"lacks answers that were charged \(marginal of sex .* stays spent"):
            return opened(tmp_path, resume=True, mechanisms=noise)

    def continued(table: PrivateTable) -> list[Any]:
        return [*table.measure(cliques[:3], rhos[:3]), *table.measure(cliques[3:], rhos[3:])]

    with contextlib.suppress(Stop), resumed(second) as table:
        table.measure(cliques[:3], rhos[:3])
        raise Stop
    third = RecordingNoise(3)
    with resumed(third) as again:
        found = continued(again)
        certificate = again.certificate()

    stds = [marginal.std for marginal in found]
    total = certificate.account.total.gaussian_rho
    assert [len(noise.answers) for noise in (first, second, third)] == [3, 2, 1]
    assert found[0].raw.tolist() == first.answers[0].released.tolist()
    assert stds[1:] == pytest.approx([stds[0] * 3**0.5] * 3)  # a third of ρ each: one of four parts for three
    assert 0.999999 * BUDGET.rho < total <= BUDGET.rho
    assert len(certificate.account.measurements) == 6
    assert certificate.lost_answers == 2
    assert "2 of the 6 measurements were charged, and their answers were" in certificate.summary()
    assert stds[1:] == [m.cost.std for m in certificate.account.measurements[3:]]  # type: ignore[attr-defined]


def test_a_run_that_lost_all_of_its_budget_stops_and_reports_what_was_lost(tmp_path: Path) -> None:
    interrupted(tmp_path, lambda t: t.measure([("ok",)], [BUDGET.rho]))
    keep_lines(tmp_path, 1)
    noise = RecordingNoise()

    with (
        pytest.warns(UserWarning, match="lacks answers that were charged"),
        pytest.raises(
            BudgetError,
            match=r"marginal of ok \(2 cells\)\)\. They cost ρ = .* Nothing is left .* are not enough for a release",
        ) as caught,
        opened(tmp_path, resume=True, mechanisms=noise) as table,
    ):
        table.measure([("ok",)], [BUDGET.rho])

    assert f"dpsyn ledger close {tmp_path / 'l.db'} " in str(caught.value)
    assert f"remove {tmp_path / 'j'}, and start a new run" in str(caught.value)
    assert noise.answers == []


def test_a_run_that_was_completed_after_a_loss_is_resumed_again(tmp_path: Path) -> None:
    budget = Budget.for_guarantee(10, 1e-6, pure_epsilons=[1])
    parts = split_exactly(budget.pure_epsilons[0], [1, 1, 1, 1])
    cliques = [("ok",), ("sex",), ("ok", "sex"), ("ok",)]

    def asked(table: PrivateTable) -> list[Any]:
        steps = zip(cliques, parts, strict=True)
        return [table.measure_laplace([clique], [part])[0].raw.tolist() for clique, part in steps]

    interrupted(tmp_path, lambda t: t.measure_laplace(cliques[:1], parts[:1]), budget=budget)
    keep_lines(tmp_path, 1)
    answers = []
    for _ in range(2):
        with pytest.warns(UserWarning, match="lacks answers that were charged"):
            table = opened(tmp_path, resume=True, budget=budget)
        with contextlib.suppress(Stop), table:
            answers.append(asked(table))
            raise Stop

    assert answers[0] == answers[1]


def test_lost_values_cost_delta_and_a_lost_pure_step_stays_used(tmp_path: Path) -> None:
    interrupted(tmp_path, 5)
    lines = journal_lines(tmp_path)
    (tmp_path / "j").write_bytes(b"".join(lines[:2]))  # of six answers one is stored

    for _ in range(2):  # what is left out is left out again when the run is resumed once more
        with pytest.warns(UserWarning, match=r"and 2 more\).* and δ = 1e-07"):
            table = opened(tmp_path, resume=True)
        with contextlib.suppress(Stop), table:
            table = table.discover_range("age", RHO)
            table = table.discover_values("city", RHO, BUDGET.threshold_delta)
            marginals = table.measure([("ok",), ("sex", "city")], [RHO, RHO])
            no_marginals = table.measure_laplace([("ok", "sex")], BUDGET.pure_epsilons)

            assert table.schema["city"] == Open(name="city").to_categorical([])
            assert [marginal.raw.size for marginal in marginals] == [2, 3]
            assert no_marginals == []
            assert table.left_out == ("values of city", "marginal of ok, sex (6 cells)")
            raise Stop

    with pytest.warns(UserWarning, match="lacks answers"):
        again = opened(tmp_path, resume=True)
    with again:
        again = again.discover_range("age", RHO)
        again = again.discover_values("city", RHO, BUDGET.threshold_delta)
        again.measure([("ok",), ("sex", "city")], [RHO, RHO])
    certificate = again.certificate()
    assert certificate.left_out == ("values of city",)
    assert "Nothing was left for: values of city. The release does without them." in certificate.summary()


@pytest.mark.parametrize("kept", [1, 2, 3])
def test_a_lost_pure_step_takes_the_place_of_no_other_one(kept: int, tmp_path: Path) -> None:
    budget = Budget.for_guarantee(10, 1e-6, pure_epsilons=[0.3, 0.2, 0.1])
    cliques = [("ok",), ("sex",), ("ok", "sex")]
    epsilons = [budget.pure_epsilons[i] for i in (2, 0, 1)]
    interrupted(tmp_path, lambda t: t.measure_laplace(cliques[:2], epsilons[:2]), budget=budget)
    keep_lines(tmp_path, kept)
    lost = [*range(kept - 1, 2)]

    for _ in range(2):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "the journal was damaged")
            table = opened(tmp_path, resume=True, budget=budget)
        with contextlib.suppress(Stop), table:
            marginals = table.measure_laplace(cliques[:2], epsilons[:2])
            marginals += table.measure_laplace(cliques[2:], epsilons[2:])
            account = table.certificate().account
            assert [m.clique for m in marginals] == [c for i, c in enumerate(cliques) if i not in lost]
            assert len(account.measurements) == 3
            raise Stop


def test_a_stored_answer_is_refused_to_another_question_after_a_loss(tmp_path: Path) -> None:
    interrupted(tmp_path, lambda t: [t.measure([("ok",)], [RHO]), t.measure([("sex",)], [RHO])])
    keep_lines(tmp_path, 2)

    with pytest.warns(UserWarning, match="lacks answers"):
        table = opened(tmp_path, resume=True)
    with table, pytest.raises(JournalError, match="the run asks other questions than before"):
        table.measure([("sex",)], [RHO])


def test_measurements_are_charged_together_or_not_at_all(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        with pytest.raises(BudgetError):
            table.measure([("ok",), ("sex",)], [BUDGET.rho * 3 / 4] * 2)

        assert table.certificate().account.measurements == ()


# ── refusals ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"schema": msgspec.structs.replace(SCHEMA, expected_size=100)}, "different: the schema. "),
        ({"recipe": {"name": "some", "rounds": [1, 2]}}, r"different: the recipe \(name\)\. "),
        ({"recipe": {"name": "all", "rounds": [2], "extends": ["a"]}}, r"the recipe \(rounds, extends\)\. "),
        ({"recipe": {}}, r"different: the recipe \(name, rounds\)\. "),
        ({"budget": Budget.for_guarantee(11, 1e-6, pure_epsilons=[0.5], thresholds=True)}, "different: the budget. "),
        ({"schema": msgspec.structs.replace(SCHEMA, dataset="others")}, "the schema, the name of the dataset"),
        (
            {"schema": msgspec.structs.replace(SCHEMA, privacy_unit=UnitDeclaration(id="person", max_rows=2))},
            "the schema, the privacy unit",
        ),
        ({"ledger": False}, "different: whether there is a ledger. "),
    ],
)
def test_a_run_is_resumed_only_with_the_same_arguments(options: dict[str, Any], words: str, tmp_path: Path) -> None:
    interrupted(tmp_path, 3)
    before = (tmp_path / "j").read_bytes(), Ledger(tmp_path / "l.db").verify()

    with pytest.raises(JournalError, match=words):
        opened(tmp_path, resume=True, **options)

    assert before == ((tmp_path / "j").read_bytes(), Ledger(tmp_path / "l.db").verify())
    with opened(tmp_path, resume=True) as table:
        ask(table)


def test_a_new_run_is_refused_where_there_is_a_journal(tmp_path: Path) -> None:
    interrupted(tmp_path, 3)
    before = (tmp_path / "j").read_bytes(), Ledger(tmp_path / "l.db").verify()

    with pytest.raises(JournalError, match="continue it with --resume, or remove the journal and start a new run"):
        opened(tmp_path)

    assert before == ((tmp_path / "j").read_bytes(), Ledger(tmp_path / "l.db").verify())


def test_without_a_journal_there_is_nothing_to_resume(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="no interrupted run to resume"):
        opened(tmp_path, resume=True)
    with pytest.raises(JournalError, match="give the path of the journal"):
        opened(tmp_path, resume=True, journal=None)

    assert Ledger(tmp_path / "l.db").datasets() == ()
    assert [path.name for path in tmp_path.iterdir()] == ["l.db"]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(lambda t: t.measure([("sex",)], [RHO]), id="another marginal"),
        pytest.param(lambda t: t.measure([("ok",)], [RHO / 2]), id="another share"),
        pytest.param(lambda t: t.measure([("ok",), ("sex",)], [RHO, RHO]), id="another table in between"),
        pytest.param(lambda t: t.measure_fine_histogram("ok", RHO), id="another method"),
        pytest.param(
            lambda t: t.recode(t.recoding.merge("ok", Grouping(np.array([1, 0])))).measure([("ok",)], [RHO]),
            id="other codes",
        ),
    ],
)
def test_a_stored_answer_is_never_returned_for_another_question(other: Any, tmp_path: Path) -> None:
    interrupted(tmp_path, lambda t: (t.measure([("ok",)], [RHO]), t.measure([("age",)], [RHO])))
    before = Ledger(tmp_path / "l.db").verify()

    with (
        pytest.raises(JournalError, match=r"asks other questions .* Nothing was charged"),
        opened(tmp_path, resume=True) as t,
    ):
        other(t)

    assert Ledger(tmp_path / "l.db").verify() == before


def test_a_stored_score_is_never_returned_for_another_prediction(tmp_path: Path) -> None:
    interrupted(tmp_path, lambda t: t.score_predictions([("ok",)], [np.array([50, 150])], RHO))

    with pytest.raises(JournalError, match="asks other questions"), opened(tmp_path, resume=True) as again:
        again.score_predictions([("ok",)], [np.array([50, 151])], RHO)


def test_different_questions_have_different_hashes() -> None:
    questions: list[object] = [
        "",
        [],
        [[]],
        [1, 2],
        [12],
        ["1", 2],
        [(1, 2), 3],
        [(1,), (2, 3)],
        np.array([1, 2]),
        np.array([[1, 2]]),
        [np.array([1]), np.array([2])],
        None,
    ]

    assert len({hash_question(question) for question in questions}) == len(questions)
    assert hash_question((1, [np.arange(3)])) == hash_question([1, (np.arange(3),)])


def test_a_run_that_was_closed_in_the_ledger_is_not_resumed(tmp_path: Path) -> None:
    interrupted(tmp_path, 3)
    ledger = Ledger(tmp_path / "l.db")
    (run,) = ledger.datasets()[0].runs
    ledger.close(run.run)

    with pytest.raises(LedgerError, match="is closed; start a new one"):
        opened(tmp_path, resume=True)


def test_answers_without_a_charge_in_the_ledger_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path) as table:
        backup = (tmp_path / "l.db").read_bytes()
        ask(table)
    (tmp_path / "l.db").write_bytes(backup)

    with pytest.raises(LedgerError, match=r"which this account of the computer saw in it, is not there any more"):
        opened(tmp_path, resume=True)
    monkeypatch.setenv(STATE_FOLDER_VARIABLE, str(tmp_path / "another account"))
    with pytest.raises(LedgerError, match="was cut or replaced"):
        opened(tmp_path, resume=True)


def test_the_run_of_another_ledger_is_refused(tmp_path: Path) -> None:
    interrupted(tmp_path, 3)
    (tmp_path / "l.db").rename(tmp_path / "mine.db")
    Ledger.create(tmp_path / "l.db").reserve("people", "other", BUDGET, PrivacyUnit())

    with pytest.raises(LedgerError, match="was cut or replaced"):
        opened(tmp_path, resume=True)


def test_a_journal_is_used_by_one_process_and_free_again_when_that_is_killed(tmp_path: Path) -> None:
    interrupted(tmp_path, 3)
    holder = "import sys; from pathlib import Path; from dpsyn.private.append_log import AppendLog; "
    holder += "lines = AppendLog.reopen(Path(sys.argv[1])); print('open', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", holder, str(tmp_path / "j")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"

        with pytest.raises(JournalError, match="in use by another process"):
            opened(tmp_path, resume=True)
        other.send_signal(signal.SIGKILL)
        other.wait()

    with opened(tmp_path, resume=True) as table:
        ask(table)


# ── failures ─────────────────────────────────────────────────────────────────────────────────────────────────


def no_room_for(path: Path) -> Callable[[int], None]:
    """A sync of files that has no room for one of them."""
    sync = os.fsync

    def sync_if_room(descriptor: int) -> None:
        if path.exists() and os.path.samestat(os.fstat(descriptor), path.stat()):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(descriptor)

    return sync_if_room


@pytest.mark.parametrize("full", [True, False])
def test_a_journal_that_cannot_be_written_stops_the_release_before_rows_are_read(
    full: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = Untouchable()
    schema = msgspec.structs.replace(SCHEMA, attributes=SCHEMA.attributes[:-1])
    path = tmp_path / "j" if full else tmp_path / "no folder" / "j"
    Ledger.create(tmp_path / "l.db")
    if full:
        monkeypatch.setattr("os.fsync", no_room_for(path))

    with pytest.raises(JournalError, match="cannot be written"):
        opened(tmp_path, data=data, schema=schema, journal=path)

    assert data.reads == 0
    (dataset,) = Ledger(tmp_path / "l.db").datasets()
    assert dataset.rho == 0
    assert dataset.runs[0].closed
    assert not path.exists()


def cut_off_file(folder: Path) -> Path:
    """A compressed table whose end is missing, longer than what is read to find its columns."""
    rows = "".join(f"p{number},1,F,true,{SECRET}\n" for number in range(250_000))
    path = folder / "people.csv.gz"
    path.write_bytes(gzip.compress(f"person,age,sex,ok,city\n{rows}".encode(), 1)[:-100])
    return path


def test_rows_that_cannot_be_read_leave_no_journal_and_no_reserved_budget(tmp_path: Path) -> None:
    path = cut_off_file(tmp_path)

    with pytest.raises(SourceError, match="it may be cut off"):
        opened(tmp_path, data=path)

    assert not (tmp_path / "j").exists()
    assert Ledger(tmp_path / "l.db").datasets()[0].rho == 0


def test_rows_that_cannot_be_read_any_more_leave_the_run_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "people.csv.gz"
    path.write_bytes(gzip.compress(b"person,age,sex,ok,city\n" + b"p,1,F,true,Oslo\n" * 300_000, 1))
    changed, whole = path.stat().st_mtime_ns, path.read_bytes()
    interrupted(tmp_path, 3, data=path)
    path.write_bytes(whole[:-100] + bytes(100))
    os.utime(path, ns=(changed, changed))  # as if the disk were damaged

    with pytest.raises(SourceError, match="it may be cut off"):
        opened(tmp_path, data=path, resume=True)

    path.write_bytes(whole)
    os.utime(path, ns=(changed, changed))
    with opened(tmp_path, data=path, resume=True) as table:
        assert len(ask(table)) == 9


@pytest.mark.parametrize("ledger", [True, False])
def test_an_answer_that_cannot_be_stored_is_neither_returned_nor_charged(
    ledger: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Filling(RecordingNoise):
        def add_noise(self, answers: Sequence[ChargedAnswer]) -> list[NDArray[np.int64]]:
            if len(self.answers) == 3:
                monkeypatch.setattr("os.fsync", no_room_for(tmp_path / "j"))
            return super().add_noise(answers)

    with (
        pytest.raises(JournalError, match="no space left"),
        opened(tmp_path, ledger=ledger, mechanisms=Filling()) as table,
    ):
        ask(table)
    monkeypatch.undo()

    if ledger:
        (dataset,) = Ledger(tmp_path / "l.db").datasets()
        assert dataset.rho == BUDGET.reserved_rho  # the run is open
        assert len(dataset.runs[0].measurements) == 3
    with pytest.raises(JournalError, match="is closed"):
        table.measure([("ok",)], [RHO])
    with opened(tmp_path, ledger=ledger, resume=True) as again:
        assert len(ask(again)) == 9


def test_an_exception_before_the_first_charge_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(Stop), opened(tmp_path):
        raise Stop

    assert not (tmp_path / "j").exists()
    assert Ledger(tmp_path / "l.db").datasets()[0].rho == 0


def test_an_exception_closes_a_run_without_a_journal_and_keeps_one_with_a_journal_open(tmp_path: Path) -> None:
    interrupted(tmp_path, 3, journal=None)
    interrupted(tmp_path, 3)

    (dataset,) = Ledger(tmp_path / "l.db").datasets()

    assert [run.closed for run in dataset.runs] == [True, False]
    assert dataset.runs[1].rho == BUDGET.reserved_rho


def test_a_journal_is_removed_when_all_is_written(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        ask(table)

    discard_journal(tmp_path / "j")
    discard_journal(tmp_path / "j")

    assert not (tmp_path / "j").exists()
    with opened(tmp_path, budget=Budget.for_guarantee(1, 1e-6)):
        pass


# ── noise of tests ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("ledger", [True, False])
@pytest.mark.parametrize(
    ("parts", "private"), [("real real", True), ("test real", False), ("real test real", False), ("real test", False)]
)
def test_a_run_is_private_only_if_all_its_parts_are(parts: str, private: bool, ledger: bool, tmp_path: Path) -> None:
    cliques = [("ok",), ("sex",), ("age",)]
    noises = [SystemNoise() if part == "real" else RecordingNoise() for part in parts.split()]
    for number, noise in enumerate(noises, start=1):
        asked = cliques[:number]
        interrupted(
            tmp_path,
            lambda t, asked=asked: [t.measure([clique], [RHO]) for clique in asked],  # type: ignore[misc]
            ledger=ledger,
            resume=number > 1,
            mechanisms=noise,
        )

    with opened(tmp_path, ledger=ledger, resume=True, mechanisms=SystemNoise()) as table:
        certificate = table.certificate()

    assert certificate.uses_real_noise == private


@pytest.mark.parametrize("ledger", [True, False])
def test_an_incomplete_last_line_is_an_answer_that_was_never_stored(ledger: bool, tmp_path: Path) -> None:
    interrupted(tmp_path, 3, ledger=ledger)
    whole = (tmp_path / "j").read_bytes()
    last = len(whole) - len(journal_lines(tmp_path)[-1])

    for end in (last, last + 1, (last + len(whole)) // 2, len(whole) - 1):
        (tmp_path / "j").write_bytes(whole[:end])

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            table = opened(tmp_path, ledger=ledger, resume=True)
        table._session.suspend()

        assert ["fine histogram of age" in str(warning.message) for warning in caught] == [True] * ledger


# ── other content ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("ledger", [True, False])
@pytest.mark.parametrize(
    "change",
    [
        {"measurement": {}},
        {"measurement": {"purpose": 1}},
        {"charged": {}},
        {"shape": [10**9, 10**9]},
        {"shape": [-1, 0]},
        {"shape": None},
        {"content": "AAAA"},
        {"ledger_head": {"sequence": 99, "hash": "x"}},
        {"question": "another"},
        {"unknown": 1},
    ],
)
def test_lines_with_right_hashes_and_wrong_content_are_refused(
    change: dict[str, Any], ledger: bool, tmp_path: Path
) -> None:
    interrupted(tmp_path, lambda t: t.measure([("ok",)], [RHO]), ledger=ledger)
    texts = [msgspec.json.decode(line[65:]) for line in journal_lines(tmp_path)]
    texts[1] |= change
    (tmp_path / "j").unlink()
    log = AppendLog.create(tmp_path / "j")
    log.append([msgspec.json.encode(text) for text in texts])
    log.release()
    if "ledger_head" in change and not ledger:
        return  # nobody looks at it

    with pytest.raises((JournalError, LedgerError)), opened(tmp_path, ledger=ledger, resume=True) as table:
        table.measure([("ok",)], [RHO])
