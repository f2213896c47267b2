"""A run that lost answers, and has nothing left to measure them again, ends with what is stored."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpsyn
from dpsyn.accounting import Exponential
from dpsyn.errors import BudgetError
from dpsyn.recipes.base import Recipe
from dpsyn.recipes.registry import RECIPES
from dpsyn.schema import Boolean, Categorical, Integer, Open, Schema

SCHEMA = Schema(
    attributes=(
        Integer(name="age", low=0, high=99, bins=(0, 18, 65)),
        Categorical(name="sex", values=("F", "M")),
        Boolean(name="works"),
        Open(name="city"),
    ),
    dataset="people",
)
RNG = np.random.default_rng(1)
ROWS = 3_000
TABLE = pa.table(
    {
        "age": RNG.integers(0, 100, ROWS),
        "sex": np.where(RNG.random(ROWS) < 0.3, "F", "M"),
        "works": RNG.random(ROWS) < 0.6,
        "city": np.where(RNG.random(ROWS) < 0.5, "Oslo", "Bergen"),
    }
)
BINARY = Schema(attributes=SCHEMA.attributes[1:3], dataset="people")
CITIES = SCHEMA.replace_attribute(Categorical(name="city", values=("Bergen", "Oslo")))


class Measured(Exception):  # noqa: N818
    """Everything is measured, and the run is interrupted."""


def options(folder: Path, recipe: str | Recipe) -> dict[str, Any]:
    return {"recipe": recipe, "ledger": folder / "l.db", "journal": folder / "j", "delta": 1e-6}


def interrupt_when_measured(folder: Path, recipe: str, schema: Schema, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Interrupt a run after its last measurement; return the lines of its journal."""
    dpsyn.Ledger.create(folder / "l.db")
    kind, measure = RECIPES[recipe], RECIPES[recipe].measure

    def stopping(self: Recipe, *args: Any, **named: Any) -> Any:
        measure(self, *args, **named)
        raise Measured

    with monkeypatch.context() as patch:
        patch.setattr(kind, "measure", stopping)
        with pytest.raises(Measured):
            dpsyn.measure(TABLE, schema, 4.0, **options(folder, recipe))
    return (folder / "j").read_bytes().splitlines(keepends=True)


def resume(folder: Path, recipe: str, schema: Schema, lines: list[bytes]) -> tuple[dpsyn.Synopsis, list[str]]:
    """Resume a run whose journal has these lines left; return the release and the warnings."""
    (folder / "j").write_bytes(b"".join(lines))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        synopsis = dpsyn.measure(TABLE, schema, 4.0, resume=True, **options(folder, recipe))
    return synopsis, [str(warning.message) for warning in caught]


@pytest.mark.parametrize("recipe", sorted(set(RECIPES) - {"fourier"}))
def test_every_recipe_ends_with_what_is_stored(recipe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = CITIES
    lines = interrupt_when_measured(tmp_path, recipe, schema, monkeypatch)
    charged = len(lines) - 1

    synopsis, messages = resume(tmp_path, recipe, schema, lines[:-1])

    (release,) = synopsis.releases
    certificate = release.certificate
    assert certificate is not None
    assert certificate.lost_answers == 1
    assert len(certificate.left_out) == 1
    assert len(certificate.account.measurements) == charged
    choices = sum(isinstance(record.cost, Exponential) for record in certificate.account.measurements)
    stored = sum(len(each.marginals) for each in release.rounds) + len(release.scores) + choices
    assert stored == charged - 1
    assert "lacks answers that were charged" in messages[0]
    assert any("the release ends with the answers that are stored" in message for message in messages)
    assert "Nothing was left for: " in certificate.summary()
    assert synopsis.generate(rows=50, seed=1).column_names == list(schema.names)
    synopsis.save(tmp_path / "s.dpsyn")
    assert dpsyn.Synopsis.load(tmp_path / "s.dpsyn").certificates[0] == certificate
    assert dpsyn.Ledger(tmp_path / "l.db").verify().faults == ()


def test_a_recipe_whose_only_answer_is_lost_ends_with_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = interrupt_when_measured(tmp_path, "fourier", BINARY, monkeypatch)
    assert len(lines) == 2

    with pytest.raises(BudgetError, match=r"Nothing is left of the budget to measure .* Fourier coefficients"):
        resume(tmp_path, "fourier", BINARY, lines[:1])


@pytest.mark.parametrize("recipe", ["dpsyn", "independent", "privsyn", "planned"])
def test_a_journal_may_be_cut_anywhere(recipe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = interrupt_when_measured(tmp_path, recipe, SCHEMA, monkeypatch)
    ledger, states = (tmp_path / "l.db").read_bytes(), list((tmp_path).iterdir())
    assert len(states) == 2
    for kept in range(1, len(lines)):
        (tmp_path / "l.db").write_bytes(ledger)
        monkeypatch.setenv("DPSYN_STATE_DIR", str(tmp_path / f"state{kept}"))  # the ledger goes back on purpose
        if kept <= 2:  # nothing but the values of the open attribute
            with pytest.raises(BudgetError, match="answers that are stored are not enough for a release"):
                resume(tmp_path, recipe, SCHEMA, lines[:kept])
            continue

        synopsis, messages = resume(tmp_path, recipe, SCHEMA, lines[:kept])

        certificate = synopsis.certificates[0]
        assert certificate is not None
        assert certificate.lost_answers == len(lines) - kept
        assert len(certificate.account.measurements) == len(lines) - 1
        assert set(synopsis.generate(rows=20, seed=1)["city"].to_pylist()) <= {"Bergen", "Oslo", "other"}
        spread = "Nothing at all is stored about" in " ".join(messages)
        assert spread == any(len(set(table.values.shape)) == 1 == table.values.size for table in synopsis.model.tables)


def test_a_run_that_ended_with_what_was_stored_is_resumed_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = interrupt_when_measured(tmp_path, "dpsyn", CITIES, monkeypatch)
    first, _ = resume(tmp_path, "dpsyn", CITIES, lines[:-1])

    second, _ = resume(tmp_path, "dpsyn", CITIES, (tmp_path / "j").read_bytes().splitlines(keepends=True))

    assert first.certificates == second.certificates
    assert first.generate(rows=50, seed=1) == second.generate(rows=50, seed=1)


def test_without_any_stored_answer_the_error_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = interrupt_when_measured(tmp_path, "independent", CITIES, monkeypatch)

    with pytest.raises(BudgetError, match=r"Nothing is left of the budget to measure .* start a new run"):
        resume(tmp_path, "independent", CITIES, lines[:1])
