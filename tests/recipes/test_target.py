"""A declared target: what several attributes tell together about it is found, also where no pair shows anything."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest

import dpsyn
from dpsyn.cli.main import run
from dpsyn.errors import UserError
from dpsyn.recipes import DPSyn
from dpsyn.schema import Categorical, Real, Schema


def parity(rows: int, numbers: int, idle: int = 0) -> tuple[pa.Table, Schema]:
    """Numbers, and a label that is the parity of the signs of the first ones."""
    rng = np.random.default_rng(1)
    columns = rng.uniform(-1, 1, (numbers + idle, rows)).round(3)
    label = (columns[:numbers] > 0).sum(axis=0) % 2
    names = [f"x{index}" for index in range(numbers + idle)]
    table = pa.table({**dict(zip(names, columns, strict=True)), "label": [("even", "odd")[bit] for bit in label]})
    numeric = [Real(name=name, low=-1, high=1, decimals=3) for name in names]
    return table, Schema(attributes=(*numeric, Categorical(name="label", values=("even", "odd"))))


def share_of_parity(synopsis: dpsyn.Synopsis, numbers: int) -> float:
    """The part of the synthetic rows whose label is the parity of the signs."""
    rows = synopsis.generate(rows=4_000, seed=1)
    found = pa.table(rows) if isinstance(rows, pa.Table) else pa.Table.from_pandas(rows)
    signs = sum((np.asarray(found[f"x{index}"]) > 0).astype(int) for index in range(numbers))
    return float(np.mean((signs % 2 == 1) == (np.asarray(found["label"]) == "odd")))


@pytest.mark.parametrize(("numbers", "idle"), [(2, 6), (3, 1), (4, 0)])
def test_a_parity_that_shows_in_no_pair_is_kept_for_a_declared_target(numbers: int, idle: int) -> None:
    """Of 4 000 rows at ε = 2; a release that misses the parity keeps half of it. 30 releases had .93 and more."""
    table, schema = parity(4_000, numbers, idle)

    synopsis = dpsyn.measure(table, schema, 2.0, target="label")

    cliques = {frozenset(m.clique) for stage in synopsis.releases[0].rounds for m in stage.marginals}
    assert any({"label", *(f"x{index}" for index in range(numbers))} <= clique for clique in cliques)
    assert share_of_parity(synopsis, numbers) > 0.8


def test_the_target_is_recorded_as_an_option_of_the_recipe() -> None:
    table, schema = parity(200, 2)
    certificate = dpsyn.measure(table, schema, 1.0, target="label").certificates[-1]

    assert certificate is not None
    assert certificate.recipe["target"] == "label"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "income"}, "the target 'income' is not measured; give one of the attributes x0, x1, label"),
        ({"target": "label", "recipe": "independent"}, "recipe 'independent' has no target; leave it out, or use"),
        ({"target": "label", "recipe": DPSyn(target="x0")}, "the recipe has the target 'x0', and target='label'"),
    ],
)
def test_a_target_that_cannot_be_used_is_refused(options: dict[str, object], message: str) -> None:
    table, schema = parity(100, 2)

    with pytest.raises(UserError, match=message):
        dpsyn.measure(table, schema, 1.0, **options)  # type: ignore[arg-type]


def test_the_command_line_takes_a_target(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, schema = parity(300, 2)
    pacsv.write_csv(table, tmp_path / "t.csv")
    schema.save(tmp_path / "s.yaml")
    release = ["synthesize", str(tmp_path / "t.csv"), "-s", str(tmp_path / "s.yaml"), "--epsilon", "1"]

    assert (
        run([*release, "-o", str(tmp_path / "o.csv"), "--target", "label", "--synopsis", str(tmp_path / "o.dpsyn")])
        == 0
    )
    certificate = dpsyn.Synopsis.load(tmp_path / "o.dpsyn").certificates[-1]
    assert certificate is not None
    assert certificate.recipe["target"] == "label"

    capsys.readouterr()
    assert run([*release, "-o", str(tmp_path / "p.csv"), "--target", "lable"]) == 2
    assert "the target 'lable' is not measured" in capsys.readouterr().err
