"""``dpsyn compare-noise``: the table, the advice, the plot."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from dpsyn.cli.main import run
from tests.test_start import HEAVY, loaded_by

GUARANTEE = ["compare-noise", "--epsilon", "1", "--delta", "1e-9"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_all_eight_ways_are_compared_and_one_is_recommended(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*GUARANTEE, "--marginals", "50"]) == 0

    shown = capsys.readouterr().out
    lines = {line.strip().split("  ")[0]: line.split() for line in shown.splitlines() if line.strip()}
    assert "Standard deviation of each count for 50 marginals, ε = 1, δ = 1e-9, one row added" in shown
    assert {"70.71", "1.82"} < set(lines["Laplace, basic composition"])
    assert {"38.86", "1.00"} < set(lines["Gaussian, exact"])
    assert sum(", " in name and name.split(",")[0] in ("Laplace", "Gaussian") for name in lines) == 8
    assert "Use Gaussian noise (exact): the error of 95 % of the counts will be less than 76.2 rows" in shown
    assert "up to 15 marginals" in shown


def test_the_crossings_of_the_papers_figure_are_shown_beside_the_exact_ones(capsys: pytest.CaptureFixture[str]) -> None:
    budgets = ["--epsilon", "0.01,1", "--delta", "1e-8,1e-12"]
    assert run(["compare-noise", *budgets, "--marginals", "50", "--plot", "figure.svg"]) == 0

    shown = capsys.readouterr().out
    rows = [line.split()[-3:] for line in shown.splitlines() if line.startswith("  ε") and "added" in line]
    assert "they cross at 18, 28, 19, 28 marginals" in shown
    assert [row[0] for row in rows] == ["18.4", "27.6", "18.9", "28.1"]
    assert [row[2] for row in rows] == ["8.5", "16.8", "13.0", "21.5"]
    assert "47 % more Gaussian noise than the guarantee needs, at most" in shown
    picture = Path("figure.svg").read_text("utf-8")
    panels = [picture.index(f"<!-- ε = {e} and δ = {d} -->") for e in ("0.01", "1") for d in ("1e-8", "1e-12")]
    assert panels == sorted(panels)


def test_replaced_rows_are_compared_by_their_own_sensitivities(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*GUARANTEE, "--marginals", "8", "--neighbors", "replace", "--plot", "a.png"]) == 0

    shown = capsys.readouterr().out
    assert "for 8 marginals, ε = 1, δ = 1e-9, one row replaced" in shown
    assert "Use Gaussian noise (exact)" in shown
    assert "Laplace noise is smaller for up to 7 marginals" in shown


def test_marginals_at_constant_error_are_counted_by_rows(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*GUARANTEE, "--marginals", "50", "--error", "1e-5"]) == 0

    shown = capsys.readouterr().out
    rows = {line.split()[0]: line.split()[1:] for line in shown.splitlines() if ",000" in line}
    assert rows["10,000,000"] == ["70", "331", "193"]
    assert rows["1,000,000,000"] == ["7,071", "3,311,483", "1,443,925"]
    assert "10 times for pure ε, 100 times for δ = 1e-9, 87.3 times for δ = 1/rows²" in shown


def test_pure_epsilon_beside_others_has_one_way(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--epsilon", "1", "--delta", "0,1e-9", "--marginals", "5", "--error", "1e-3", "--plot", "a.png"]
    assert run(["compare-noise", *options]) == 0

    shown = capsys.readouterr().out
    exact = next(line for line in shown.splitlines() if line.strip().startswith("Gaussian, exact"))
    assert exact.split()[2] == "–"
    assert "10 times for pure ε, 87.3 times" in shown


def test_for_few_marginals_laplace_noise_is_recommended(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*GUARANTEE, "--marginals", "1"]) == 0

    shown = capsys.readouterr().out
    assert "for 1 marginal," in shown
    assert "Use Laplace noise (basic composition): the error of 95 % of the counts will be less than 3 rows" in shown


def test_without_delta_there_is_one_way(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare-noise", "--epsilon", "1", "--delta", "0", "--marginals", "5", "--plot", "pure.png"]) == 0

    shown = capsys.readouterr().out
    assert "Laplace, basic composition" in shown
    assert "Gaussian, exact" not in shown
    assert "Without a δ there is one way only" in shown


def test_a_budget_for_which_gaussian_noise_is_always_smaller(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare-noise", "--epsilon", "0.1", "--delta", "0.5", "--marginals", "1"]) == 0

    assert "smaller for any number of marginals" in capsys.readouterr().out


def test_json_is_for_machines_even_with_a_plot(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*GUARANTEE, "--marginals", "20", "--json", "--plot", "a.svg"]) == 0

    data = json.loads(capsys.readouterr().out)
    [budget] = data["budgets"]
    assert (budget["epsilon"], budget["delta"], data["marginals"], data["neighbors"]) == (1, 1e-9, 20, "add-remove")
    assert len(budget["ways"]) == 8
    assert [way["name"] for way in budget["ways"] if way["recommended"]] == ["Gaussian, exact"]
    assert min(way["times_the_best"] for way in budget["ways"]) == 1
    assert 15 < budget["crossings"]["add-remove"]["exact"] < 16
    assert 7 < budget["crossings"]["replace"]["exact"] < 8
    assert Path("a.svg").exists()


def test_the_plot_is_a_png_that_differs_with_the_number_of_marginals(capsys: pytest.CaptureFixture[str]) -> None:
    for marginals in ("10", "90"):
        assert run([*GUARANTEE, "--marginals", marginals, "--plot", f"{marginals}.png"]) == 0

    first, second = Path("10.png").read_bytes(), Path("90.png").read_bytes()
    width, height = struct.unpack(">II", first[16:24])
    assert first.startswith(b"\x89PNG\r\n\x1a\n")
    assert (width, height) == (1600, 960)
    assert 20_000 < len(first) < 500_000
    assert first != second
    assert "Wrote 90.png." in capsys.readouterr().out
    assert sorted(path.name for path in Path().iterdir()) == ["10.png", "90.png"]


def test_the_plot_is_an_svg_that_is_the_same_twice() -> None:
    for name in ("a.svg", "b.SVG"):
        assert run([*GUARANTEE, "--marginals", "50", "--plot", name]) == 0

    text = Path("a.svg").read_text("utf-8")
    assert ElementTree.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"
    assert 10_000 < len(text) < 500_000
    assert text == Path("b.SVG").read_text("utf-8")


def test_a_plot_without_the_library_names_the_extra() -> None:
    code = (
        "import sys\nsys.modules['matplotlib'] = None\nfrom dpsyn.cli.main import run\n"
        f"sys.exit(run({[*GUARANTEE, '--marginals', '5', '--plot', 'a.png']}))"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)

    assert done.returncode == 2
    assert "pip install 'matplotlib" in done.stderr
    assert done.stdout == ""
    assert list(Path().iterdir()) == []


def test_a_table_alone_does_not_load_the_plotting_library() -> None:
    loaded = loaded_by(f"from dpsyn.cli.main import run\nassert run({[*GUARANTEE, '--marginals', '5']}) == 0")

    assert loaded & (HEAVY - {"scipy"}) == set()


@pytest.mark.parametrize(
    "arguments",
    [
        ["--epsilon", "0", "--marginals", "5"],
        ["--epsilon", "-1", "--marginals", "5"],
        ["--epsilon", "nan", "--marginals", "5"],
        ["--epsilon", "inf", "--marginals", "5"],
        ["--epsilon", "much", "--marginals", "5"],
        ["--epsilon", "1e-300", "--marginals", "5"],
        ["--epsilon", "1", "--delta", "1", "--marginals", "5"],
        ["--epsilon", "1", "--delta", "-1e-9", "--marginals", "5"],
        ["--epsilon", "1", "--delta", "nan", "--marginals", "5"],
        ["--epsilon", "1", "--delta", "1e-320", "--marginals", "5"],
        ["--epsilon", "1", "--marginals", "0"],
        ["--epsilon", "1", "--marginals", "2.5"],
        ["--epsilon", "1", "--marginals", "1" + "0" * 400],
        ["--epsilon", "1"],
        ["--marginals", "5"],
        ["--epsilon", "1", "--marginals", "5", "--plot", "a.pdf"],
        ["--epsilon", "1", "--marginals", "5", "--plot", "png"],
        ["--epsilon", "1", "--marginals", "5", "--plot", "nowhere/a.png"],
        ["--epsilon", "1", "--marginals", "5", "--plot", "folder.png"],
        ["--epsilon", "0", "--marginals", "5", "--plot", "a.png"],
        ["--epsilon", "1,x", "--marginals", "5"],
        ["--epsilon", "1,,2", "--marginals", "5"],
        ["--epsilon", "1,2,3,4,5", "--marginals", "5"],
        ["--epsilon", "1", "--delta", "1e-9,2", "--marginals", "5"],
        ["--epsilon", "1", "--marginals", "5", "--neighbors", "both"],
        ["--epsilon", "1", "--marginals", "5", "--error", "0"],
        ["--epsilon", "1", "--marginals", "5", "--error", "1"],
        ["--epsilon", "1", "--marginals", "5", "--error", "nan"],
    ],
)
def test_bad_input_ends_with_2_and_writes_nothing(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    Path("folder.png").mkdir()

    code = run(["compare-noise", *arguments])

    shown = capsys.readouterr()
    assert code == 2
    assert shown.out == ""
    assert shown.err.strip()
    assert "Traceback" not in shown.err
    assert [path.name for path in Path().iterdir()] == ["folder.png"]
    assert list(Path("folder.png").iterdir()) == []
