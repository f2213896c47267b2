"""The steps of a run: which one it is at, and how much time is left."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import dpsyn
from dpsyn.cli import output
from dpsyn.cli.main import run
from dpsyn.demo import people, people_schema_text
from dpsyn.progress import FIT_MODEL, READ_TABLE, SAMPLE_ROWS, WRITE_VALUES, Step, StepTracker
from dpsyn.schema import Boolean


class Clock:
    """A clock that stands still until it is told the time."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


STEPS = (Step("reading", 0), Step("measuring", 2), Step("scoring", 3), Step("measuring", 2), Step("fitting", 3))


def test_steps_are_numbered_and_those_left_out_are_passed_over() -> None:
    tracker = StepTracker(STEPS)
    labels = []
    for phase in ("reading the table", "measuring a", "measuring a", "measuring 3 tables", "fitting records"):
        tracker.update(phase, 0.0)
        labels.append(tracker.label)

    assert labels == [f"step {n} of 5" for n in (1, 2, 2, 4, 5)]


def test_a_phase_that_no_later_step_has_belongs_to_the_current_one() -> None:
    tracker = StepTracker(STEPS)
    assert tracker.update("something else", 0.0)
    assert tracker.label == ""
    assert tracker.update("fitting records", 0.5)
    assert tracker.update("fitting again", 0.7)
    assert not tracker.update("fitting again", 0.8)

    assert tracker.label == "step 5 of 5"


def test_a_single_step_has_no_number() -> None:
    tracker = StepTracker([Step("sampling rows")])
    tracker.update("sampling rows", 0.3)

    assert tracker.label == ""
    assert tracker.share_done == pytest.approx(0.3)


def test_the_time_left_follows_from_the_time_of_comparable_steps() -> None:
    clock = Clock()
    tracker = StepTracker(STEPS, clock)
    tracker.update("reading the table", 0.0)
    clock.now += 1000  # a slow disk tells nothing about the other steps
    tracker.update("measuring a", 0.0)
    clock.now += 10
    tracker.update("scoring pairs", 0.0)

    assert tracker.seconds_left == pytest.approx(10 / 2 * (3 + 2 + 3))
    clock.now += 9
    tracker.update("scoring pairs", 1 / 3)
    assert tracker.seconds_left == pytest.approx(19 / 3 * (2 + 2 + 3))
    assert tracker.share_done == pytest.approx(3 / 10)
    tracker.update("fitting records", 0.0)  # the third step from the end was left out
    assert tracker.seconds_left == pytest.approx(19 / 5 * 3)
    clock.now += 5
    assert tracker.seconds_left == pytest.approx(19 / 5 * 3 - 5)  # it counts down while nothing is reported
    clock.now += 50
    assert tracker.seconds_left is None


def test_nothing_is_estimated_too_early() -> None:
    clock = Clock()
    tracker = StepTracker(STEPS, clock)
    tracker.update("measuring a", 0.0)
    clock.now += 30
    estimates = []
    for done in (0.2, 1.0):  # 0.2 is less than a twentieth of the work
        tracker.update("measuring a", done)
        estimates.append(tracker.seconds_left)
    assert estimates == [None, pytest.approx(30 / 2 * 8)]

    quick = StepTracker(STEPS, clock)
    quick.update("measuring a", 0.0)
    clock.now += 1
    quick.update("measuring a", 1.0)
    assert quick.seconds_left is None


@pytest.mark.parametrize("name", [name for name in dpsyn.RECIPES if name != "planned"])
def test_the_phases_of_every_recipe_are_its_steps_in_their_order(name: str) -> None:
    schema = dpsyn.Schema(attributes=tuple(Boolean(name=name) for name in "abcd"))
    codes = np.random.default_rng(1).integers(0, 2, (3_000, 4), dtype=np.uint8)
    codes[:, 1] |= codes[:, 0]
    table = pa.table({name: codes[:, axis].astype(bool) for axis, name in enumerate("abcd")})
    phases: list[str] = []

    def record(phase: str, done: float) -> None:
        if phase not in phases[-1:]:
            phases.append(phase)

    recipe = dpsyn.RECIPES[name]
    synopsis = dpsyn.measure(table, schema, 2.0, recipe=name, progress=record)
    synopsis.generate(rows=50, seed=1, progress=record)

    steps = (READ_TABLE, *recipe.steps, *FIT_MODEL, SAMPLE_ROWS, WRITE_VALUES)
    tracker, numbers = StepTracker(steps), []
    for phase in phases:
        tracker.update(phase, 0.0)
        numbers.append(int(tracker.label.split()[1]))
    assert numbers == sorted(set(numbers)), list(zip(phases, numbers, strict=True))


@pytest.fixture
def shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., list[str]]:
    """Synthesizes some rows, and returns the lines on standard error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(output, "MIN_TOTAL_SECONDS", math.inf)
    monkeypatch.setattr("dpsyn.progress._MIN_SECONDS", math.inf)
    Path("schema.yaml").write_text(people_schema_text(), "utf-8")

    def synthesize(rows: int, *options: str) -> list[str]:
        dpsyn.write_table(people(rows), "people.csv", synthetic=False)
        words = ["synthesize", "people.csv", "-s", "schema.yaml", "--epsilon", "1", "--recipe", "independent"]
        assert run([*words, "--rows", "20", "-o", "rows.csv", "--force", *options]) == 0
        return re.sub(r" \(first run[^)]*\)", "", capsys.readouterr().err).splitlines()

    return synthesize


def test_a_log_numbers_the_steps_and_is_the_same_for_any_number_of_rows(shown: Callable[..., list[str]]) -> None:
    few, many = shown(40), shown(900)

    assert few[1:] == [
        "… step 1 of 5: reading the table",
        "… step 2 of 5: measuring every attribute",
        "… step 3 of 5: making tables agree",
        "… step 4 of 5: fitting records",
        "… step 5 of 5: sampling rows",
    ]
    assert few == many
    assert shown(40, "-q") == []


def test_a_command_that_takes_long_ends_with_its_total_time(
    shown: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "MIN_TOTAL_SECONDS", 0.0)

    assert re.fullmatch(r"… done in (less than a second|\d+ s)", shown(40)[-1])


def test_a_terminal_gets_a_bar_and_keeps_a_line_for_every_step(
    shown: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "is_terminal", lambda stream: True)
    monkeypatch.setattr(output, "MIN_TOTAL_SECONDS", 0.0)

    kept = [line.strip() for line in shown(40)]

    assert [line for line in kept if line.startswith("✓")] == [
        "✓ reading the table",
        "✓ measuring every attribute",
        "✓ making tables agree",
        "✓ fitting records",
        "✓ sampling rows",
    ]
    assert any(line.startswith("Done in") for line in kept)
