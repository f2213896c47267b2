"""What a large ε is worth is said in words, and a very large one must be allowed on purpose."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import dpsyn
from dpsyn.accounting import Budget, PrivacyUnit, Run
from dpsyn.accounting.large_epsilon import check_large_epsilon, describe_large_epsilon
from dpsyn.cli.main import run
from dpsyn.errors import BudgetError

SCHEMA = dpsyn.Schema(attributes=(dpsyn.Boolean(name="a"), dpsyn.Boolean(name="b")), dataset="people")
TABLE = pa.table({"a": [True, False] * 20, "b": [True] * 40})


@pytest.mark.parametrize("epsilon", [0.1, 1, 5, "5"])
def test_a_usual_epsilon_needs_no_words(epsilon: Any) -> None:
    check_large_epsilon(epsilon, allowed=False)

    assert describe_large_epsilon(float(epsilon)) == ""


@pytest.mark.parametrize(
    ("epsilon", "certainty"), [(5.01, "99.3374 % sure"), (8, "99.9665 % sure"), (20, "practically certain")]
)
def test_above_five_the_worst_case_is_a_certainty_rounded_up(epsilon: float, certainty: str) -> None:
    check_large_epsilon(epsilon, allowed=False)

    assert f"can be {certainty} of it" in describe_large_epsilon(epsilon)


@pytest.mark.parametrize("epsilon", [20.001, "21", Fraction(41, 2), 1e6])
def test_above_twenty_a_release_must_be_allowed(epsilon: Any) -> None:
    with pytest.raises(BudgetError, match="above 20 a guarantee protects nobody"):
        check_large_epsilon(epsilon, allowed=False)
    check_large_epsilon(epsilon, allowed=True)

    assert "protects nobody" in describe_large_epsilon(float(Fraction(epsilon)))


@pytest.mark.parametrize(
    ("epsilon", "words"), [(1, None), (8, "so this guarantee is weak"), (30, "It was allowed on purpose")]
)
def test_the_certificate_and_its_summary_say_it(epsilon: float, words: str | None) -> None:
    certificate = Run.open(Budget.for_guarantee(epsilon, 1e-9), PrivacyUnit()).certificate()

    for text in (certificate.text(), certificate.summary()):
        assert (words or "the guarantee holds") in text
        assert ("ε is above" in text) == (words is not None)


def test_every_way_to_release_asks(tmp_path: Path) -> None:
    ledger = tmp_path / "l.db"
    with pytest.raises(BudgetError, match="allow_large_epsilon=True"):
        dpsyn.measure(TABLE, SCHEMA, 21, recipe="independent", ledger=ledger)
    with pytest.raises(BudgetError, match="allow_large_epsilon=True"):
        dpsyn.Synthesizer(SCHEMA, 21, ledger=ledger).fit(TABLE)
    with pytest.raises(BudgetError, match="allow_large_epsilon=True"):
        dpsyn.frequent_itemsets([["a"]], ["a"], 21, ledger=ledger, dataset="shop")

    assert not ledger.exists()
    synopsis = dpsyn.measure(TABLE, SCHEMA, 21, allow_large_epsilon=True, recipe="independent")
    assert "allowed on purpose" in synopsis.certificates[0].summary()  # type: ignore[union-attr]


@pytest.mark.parametrize("command", ["synthesize", "measure", "explore", "itemsets"])
def test_the_commands_ask(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    SCHEMA.save("schema.yaml")
    Path("t.csv").write_text("a,b\n" + "true,false\n" * 30, "utf-8")
    Path("b.dat").write_text("1 2\n" * 30, "utf-8")
    target = "o.csv" if command in ("synthesize", "itemsets") else "o.dpsyn"
    source = ["b.dat", "--items", "1..3", "--top", "2"] if command == "itemsets" else ["t.csv", "-s", "schema.yaml"]
    release = [command, *source, "--epsilon", "25", "-o", target]

    assert run(release) == 2
    assert "--allow-large-epsilon" in capsys.readouterr().err
    assert not Path(target).exists()
    assert run([*release, "--allow-large-epsilon"]) == 0
    if command != "explore":
        assert "It was allowed on purpose" in capsys.readouterr().out
