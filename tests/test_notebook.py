"""What notebooks show: HTML that escapes every name and value, plots, and progress."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from matplotlib import pyplot
from matplotlib.axes import Axes

import dpsyn
from dpsyn import notebook

EVIL = "<script>alert('x')</script>"
FORMULA = "$\\frac{$"


@pytest.fixture(scope="module")
def objects() -> dict[str, Any]:
    """An object of every class that notebooks show, with names and values that are HTML and no formulas."""
    schema = dpsyn.Schema(
        dataset=EVIL,
        attributes=(
            dpsyn.Categorical(name=EVIL, values=(EVIL, FORMULA), because=EVIL),
            dpsyn.Integer(name=FORMULA, low=0, high=9),
            dpsyn.Boolean(name="b", description=EVIL),
        ),
    )
    rows = pd.DataFrame({EVIL: [EVIL, FORMULA] * 50, FORMULA: list(range(10)) * 10, "b": [True, False] * 50})
    synopsis = dpsyn.measure(rows, schema, epsilon=1, recipe="independent")
    return {
        "Schema": schema,
        "SchemaDraft": dpsyn.draft_schema(rows),
        "Synopsis": synopsis,
        "Certificate": synopsis.certificates[0],
        "Answer": synopsis.marginal(EVIL),
        "Answer of two": synopsis.marginal([EVIL, FORMULA]),
        "Answer of none": synopsis.count(b=True),
        "Evaluation": dpsyn.evaluate(rows, synopsis.generate(50), schema),
        "Forecast": dpsyn.forecast(schema, [0.5, 1.0], rows=20, recipe="independent"),
    }


NAMES = [
    *("Schema", "SchemaDraft", "Synopsis", "Certificate", "Answer", "Answer of two", "Answer of none"),
    *("Evaluation", "Forecast"),
]


@pytest.fixture
def closed_figures() -> Iterator[None]:
    """Draw without a screen, and close all figures afterwards."""
    before = pyplot.get_backend()
    pyplot.switch_backend("Agg")
    yield
    pyplot.close("all")
    pyplot.switch_backend(before)


# ── HTML ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", NAMES)
def test_html_escapes_names_and_values(name: str, objects: dict[str, Any]) -> None:
    html = objects[name]._repr_html_()

    assert "<script" not in html
    assert {tag.lower() for tag in re.findall(r"</?([a-zA-Z]+)", html)} <= {
        *("div", "p", "b", "table", "thead", "tbody"),
        *("tr", "th", "td"),
    }
    if name in ("Schema", "SchemaDraft", "Synopsis", "Answer", "Answer of two"):
        assert "&lt;script&gt;" in html


def test_html_of_a_draft_shows_no_value_of_the_rows() -> None:
    draft = dpsyn.draft_schema(pd.DataFrame({"city": ["S3CRET", "Bern"] * 20, "age": [7_318, 4] * 20}))

    assert not any(secret in draft._repr_html_() for secret in ("S3CRET", "Bern", "7318", "7,318"))
    assert "PRIVATE" in draft._repr_html_()
    assert "PRIVATE" in draft.to_schema()._repr_html_()
    approved = draft.approve(*draft.unapproved, because="x", as_drafted=True, despite_remarks=True)
    assert "PRIVATE" not in approved._repr_html_()


def test_html_of_an_evaluation_says_first_that_it_is_private(objects: dict[str, Any]) -> None:
    assert re.sub("<[^>]*>", "", objects["Evaluation"]._repr_html_()).startswith("PRIVATE")


def test_a_long_table_shows_its_first_rows_and_counts_the_others() -> None:
    html = notebook.html_table("title", ["n"], [(number,) for number in range(100)])

    assert html.count("<tr>") == 1 + notebook.MAX_TABLE_ROWS
    assert "and 70 more" in html


def test_numbers_are_grouped_and_aligned_and_truth_values_are_words() -> None:
    html = notebook.html_table("title", ["a"], [(1234567,), (0.123456,), (True,)])

    assert '<td style="text-align:right">1,234,567</td>' in html
    assert '<td style="text-align:right">0.1235</td>' in html
    assert '<td style="text-align:left">True</td>' in html


# ── plots ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("closed_figures")
@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("SchemaDraft", "Synopsis", "Answer of none")])
def test_everything_can_be_plotted_whatever_its_names(name: str, objects: dict[str, Any]) -> None:
    axes = objects[name].plot()

    assert isinstance(axes, Axes)
    axes.figure.canvas.draw()  # would fail on a formula
    given = pyplot.subplots()[1]
    assert objects[name].plot(given) is given


@pytest.mark.usefixtures("closed_figures")
def test_the_plot_of_a_synopsis_is_that_of_a_marginal(objects: dict[str, Any]) -> None:
    synopsis, answer = objects["Synopsis"], objects["Answer"]
    axes = synopsis.plot(EVIL)
    axes.figure.canvas.draw()

    assert [bar.get_width() for bar in axes.patches] == list(answer.counts)
    (lines,) = axes.collections
    low, high = answer.interval()
    assert [segment[:, 0].tolist() for segment in lines.get_segments()] == [
        list(ends) for ends in zip(low, high, strict=True)
    ]
    assert synopsis.plot([EVIL, FORMULA]).images[0].get_array().shape == (2, 10)


def test_an_answer_of_one_number_has_no_plot(objects: dict[str, Any]) -> None:
    with pytest.raises(dpsyn.UserError, match="has no plot"):
        objects["Answer of none"].plot()


@pytest.mark.usefixtures("closed_figures")
def test_more_bars_than_can_be_labeled_are_left_out_with_a_note() -> None:
    axes = notebook.plot_bars(None, [str(n) for n in range(99)], list(range(99)), title="many", unit="rows")

    assert len(axes.patches) == notebook.MAX_BARS
    assert axes.get_title("left") == f"many (the first {notebook.MAX_BARS} of 99)"


def test_without_matplotlib_a_plot_names_the_extra(monkeypatch: pytest.MonkeyPatch, objects: dict[str, Any]) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)

    with pytest.raises(dpsyn.MissingExtraError, match="the extra 'plot'"):
        objects["Schema"].plot()


# ── progress ─────────────────────────────────────────────────────────────────────────────────────────────────


class Display:
    """Takes the place of IPython and keeps the texts of each line."""

    def __init__(self) -> None:
        self.lines: list[list[str]] = []

    def display(self, shown: object, *, display_id: bool) -> Any:
        line = [repr(shown)]
        self.lines.append(line)
        return SimpleNamespace(update=lambda later: line.append(repr(later)))


@pytest.fixture
def display(monkeypatch: pytest.MonkeyPatch) -> Display:
    shown = Display()
    shell = SimpleNamespace(kernel=object())
    display_module = SimpleNamespace(display=shown.display)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell, display=display_module))
    monkeypatch.setattr(notebook, "PROGRESS_DELAY", 0.0)
    monkeypatch.setattr(notebook, "PROGRESS_INTERVAL", 0.0)
    return shown


@notebook.show_progress
def work(*, fail: bool = False, progress: Any = lambda phase, done: None) -> str:
    progress("thinking", 0.0)
    inner()
    progress("writing", 0.5)
    if fail:
        raise ValueError("S3CRET")
    return "result"


@notebook.show_progress
def inner(*, progress: Any = lambda phase, done: None) -> None:
    progress("inside", 0.0)


def test_a_notebook_shows_one_line_that_ends_with_the_time(display: Display) -> None:
    assert work() == "result"

    assert display.lines == [["work: thinking, 0 s", "work: writing 50%, 0 s", "work: done in 0 s"]]


def test_a_failure_is_seen_in_the_line_without_its_message(display: Display) -> None:
    with pytest.raises(ValueError, match="S3CRET"):
        work(fail=True)

    assert display.lines[0][-1] == "work: stopped after 0 s"
    assert work() == "result"
    assert len(display.lines) == 2


def test_progress_of_the_caller_replaces_the_line(display: Display) -> None:
    phases: list[str] = []
    work(progress=lambda phase, done: phases.append(phase))

    assert phases == ["thinking", "writing"]
    assert [line[0] for line in display.lines] == ["inner: inside, 0 s"]


def test_what_is_fast_and_what_runs_elsewhere_shows_nothing(
    display: Display, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(notebook, "PROGRESS_DELAY", 60.0)
    work()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))  # a plain shell
    monkeypatch.setattr(notebook, "PROGRESS_DELAY", 0.0)
    work()
    monkeypatch.delitem(sys.modules, "IPython")
    work()

    assert display.lines == []
    assert capfd.readouterr() == ("", "")


def test_only_functions_with_progress_can_show_it() -> None:
    with pytest.raises(TypeError, match="no parameter progress"):
        notebook.show_progress(len)


@pytest.mark.check
def test_a_release_in_a_real_notebook(tmp_path: Any) -> None:
    import nbclient
    import nbformat

    cells = [
        "import dpsyn, pandas, polars\n"
        "from dpsyn.demo import people, people_schema\n"
        "frame = people(rows=500).select(['age', 'sex']).to_pandas().astype({'age': 'UInt8', 'sex': 'category'})\n"
        "draft = dpsyn.draft_schema(frame)\n"
        "draft",
        "draft = draft.edit('age', low=0, high=120).approve('age', 'sex', because='questionnaire', as_drafted=True)\n"
        "synopsis = dpsyn.measure(frame, draft, epsilon=1)\n"
        "synopsis",
        "print(dict(synopsis.generate(10).dtypes.astype(str)))",
        "synopsis.plot('sex')",
        "print(type(dpsyn.measure(polars.from_pandas(frame), draft, epsilon=1).generate(3)).__module__)",
    ]
    make: Any = nbformat.v4
    book = make.new_notebook(cells=[make.new_code_cell(cell) for cell in cells])

    nbclient.NotebookClient(book, timeout=300, kernel_name="python3").execute(cwd=str(tmp_path))

    shown = [{kind for output in cell.outputs for kind in output.get("data", {})} for cell in book.cells]
    texts = ["".join(output.get("text", "") for output in cell.outputs) for cell in book.cells]
    assert "text/html" in shown[0] & shown[1]
    assert texts[2] == "{'age': 'UInt8', 'sex': 'category'}\n"
    assert "image/png" in shown[3]
    assert texts[4].startswith("polars")
