"""Reports in a real browser: charts, interaction, and screens of different sizes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpsyn.report.evaluation_report import private_report
from dpsyn.report.release_report import publishable_report
from tests.browser import Browser, chromium
from tests.report.pages import HOSTILE, VALUES, evaluation, rows, synopsis

pytestmark = pytest.mark.chromium

MODES = ("private", "publishable")
SOON = 2.0
"""Seconds of processor time within which a page has loaded and drawn everything."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("reports")
    made = {
        "private": private_report(evaluation("code"), synopsis()),
        "publishable": publishable_report(synopsis(), rows(seed=9)),
    }
    for name, markup in made.items():
        (folder / f"{name}.html").write_text(markup, "utf-8")
    return {name: folder / f"{name}.html" for name in made}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture(params=MODES)
def opened(request: pytest.FixtureRequest, browser: Browser, files: dict[str, Path]) -> Browser:
    """Either report on a large light screen."""
    browser.resize(1200, 900)
    browser.prefer("light")
    browser.run("try { localStorage.clear() } catch {}")
    browser.open(files[request.param])
    return browser


def column(browser: Browser, index: int) -> list[str]:
    """The cells of a column of the table, as shown."""
    cells: list[str] = browser.run(f"[...marginals.tBodies[0].rows].map(row => row.cells[{index}].textContent)")
    return cells


def brightness_of_paper(browser: Browser) -> int:
    color: str = browser.run("getComputedStyle(document.body).backgroundColor")
    return sum(map(int, color.removeprefix("rgb(").removesuffix(")").split(",")))


def first_cell(browser: Browser) -> tuple[float, float]:
    """The position of the first cell of the heat map on the screen, once scrolling has ended."""
    browser.run("document.querySelector('[data-picture=heat]').scrollIntoView({block: 'center'})")
    browser.run("new Promise(resolve => setTimeout(resolve, 300))")
    x, y = browser.run(
        "(() => { const box = document.querySelector('[data-picture=heat] .mark-rect path').getBoundingClientRect();"
        " return [box.x + box.width / 2, box.y + box.height / 2] })()"
    )
    return x, y


def test_the_page_has_no_errors_and_fetches_nothing(opened: Browser) -> None:
    assert opened.problems == []
    assert [address.partition(":")[0] for address in opened.requests] == ["file"]


def test_everything_is_drawn_quickly(opened: Browser) -> None:
    assert opened.worked() < SOON


def test_every_chart_is_drawn_with_its_marks(opened: Browser) -> None:
    boxes, drawn = opened.run(
        "[...'  '].map((_, i) => document.querySelectorAll(i ? '.picture svg' : '.picture').length)"
    )
    assert boxes == drawn >= 6 + 1 + 3

    marks = opened.run("[...document.querySelectorAll('.picture')].map(p => p.querySelectorAll('path').length)")
    assert min(marks) >= 3
    assert opened.run(
        "[...document.querySelectorAll('.picture svg')].every(s => s.getBoundingClientRect().width > 150)"
    )


def test_names_and_values_are_shown_as_text_and_never_run(opened: Browser) -> None:
    assert opened.run("typeof window.caught") == "undefined"
    assert opened.run("document.querySelectorAll('main img, main script').length") == 0
    assert HOSTILE in opened.run("[...document.querySelectorAll('h3')].map(h => h.textContent)")
    shown = opened.run("[...document.querySelectorAll('.picture text')].map(t => t.textContent)")
    assert {VALUES[2], VALUES[3]} <= set(shown)


def test_an_injected_script_would_not_run(opened: Browser) -> None:
    opened.run("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.caught = 9\">')")
    opened.run(
        "{ const s = document.createElement('script'); s.textContent = 'window.caught = 8'; document.body.append(s) }"
    )
    opened.run("new Promise(resolve => setTimeout(resolve, 100))")

    assert opened.run("typeof window.caught") == "undefined"
    assert any("Content Security Policy" in problem for problem in opened.problems)


def test_a_click_on_a_heading_sorts_and_a_second_click_reverses(opened: Browser) -> None:
    opened.run("marginals.tHead.rows[0].cells[0].querySelector('button').click()")
    ascending = column(opened, 0)
    opened.run("marginals.tHead.rows[0].cells[0].querySelector('button').click()")

    assert len(ascending) > 5
    assert ascending == opened.run(f"{json.dumps(ascending)}.sort((a, b) => a.localeCompare(b))")
    assert column(opened, 0) == ascending[::-1]
    assert opened.run("marginals.tHead.rows[0].cells[0].getAttribute('aria-sort')") == "descending"


def test_numbers_are_sorted_as_numbers_the_worst_first(opened: Browser) -> None:
    last = opened.run("marginals.tHead.rows[0].cells.length") - 1
    at_first = [float(cell) for cell in column(opened, last)]
    opened.run("marginals.tHead.rows[0].cells[1].querySelector('button').click()")

    assert at_first == sorted(at_first, reverse=True)
    assert [int(cell) for cell in column(opened, 1)] == sorted(map(int, column(opened, 1)), reverse=True)


def test_filtering_keeps_the_rows_that_contain_every_word(opened: Browser) -> None:
    previous = column(opened, 0)
    opened.run("document.getElementById('filter').value = 'SIZE age'")
    opened.run("document.getElementById('filter').dispatchEvent(new Event('input'))")
    left = column(opened, 0)

    assert left == [name for name in previous if "size" in name and "age" in name]
    assert 0 < len(left) < len(previous)
    assert opened.run("document.getElementById('row-count').textContent").startswith(f"{len(left)} of ")


def test_filtering_by_the_full_name_of_a_marginal_keeps_only_that_one(opened: Browser) -> None:
    name = f"{HOSTILE} × size"
    opened.run(f"document.getElementById('filter').value = {json.dumps(name)}")
    opened.run("document.getElementById('filter').dispatchEvent(new Event('input'))")

    assert column(opened, 0) == [name]


def test_dark_follows_the_system_and_the_switch(opened: Browser) -> None:
    light = brightness_of_paper(opened)
    opened.prefer("dark")
    dark = brightness_of_paper(opened)
    opened.run("document.getElementById('theme').click()")
    switched = brightness_of_paper(opened)
    opened.run("document.getElementById('theme').click()")

    assert light > 700 > 120 > dark
    assert switched == light
    assert brightness_of_paper(opened) == dark


def test_charts_change_color_with_the_theme(opened: Browser) -> None:
    opened.run(
        "void (window.mark = [...document.querySelectorAll('.picture path')].find("
        "p => (p.getAttribute('fill') ?? p.style.fill ?? '').includes('--reference')))"
    )
    light = opened.run("getComputedStyle(window.mark).fill")
    opened.prefer("dark")

    assert light.startswith("rgb(")
    assert opened.run("getComputedStyle(window.mark).fill") != light


@pytest.mark.parametrize("width", [320, 390])
def test_a_phone_shows_everything_without_scrolling_sideways(opened: Browser, width: int) -> None:
    opened.resize(width, 800, phone=True)
    opened.run("new Promise(resolve => setTimeout(resolve, 400))")

    assert opened.run("document.documentElement.scrollWidth") == width
    assert opened.run(
        "[...document.querySelectorAll('figure:not(.wide)')].every(f => f.getBoundingClientRect().right <= innerWidth)"
    )


def test_hovering_over_a_cell_of_the_heat_map_shows_its_distances(opened: Browser) -> None:
    opened.move_mouse(*first_cell(opened))
    opened.wait("!tip.hidden")

    lines = opened.run("tip.textContent").split("\n")
    assert " × " in lines[0]
    assert lines[1].startswith("distance 0.")
    assert len(lines) == 4


def test_a_click_on_the_heat_map_shows_the_pair_in_the_table(opened: Browser) -> None:
    opened.click(*first_cell(opened))
    opened.wait("document.getElementById('filter').value !== ''")

    first, second = opened.run("JSON.parse(document.getElementById('data').textContent).heat.cells[0].slice(0, 2)")
    names = opened.run("JSON.parse(document.getElementById('data').textContent).heat.names")
    assert all(names[first] in cell and names[second] in cell for cell in column(opened, 0))
    assert column(opened, 0)


def test_the_shuffled_column_is_the_darkest_row(browser: Browser, files: dict[str, Path]) -> None:
    browser.resize(1200, 900)
    browser.open(files["private"])

    heat = browser.run("JSON.parse(document.getElementById('data').textContent).heat")
    fills = browser.run(
        "[...document.querySelectorAll('[data-picture=heat] .mark-rect path')]"
        ".map(p => [p.__data__.datum.line, p.__data__.datum.column, Number(p.__data__.datum.fill.match(/\\d/)[0])])"
    )
    steps: dict[int, list[int]] = {}
    for line, _, step in fills:
        steps.setdefault(line, []).append(step)
    means = {line: sum(levels) / len(levels) for line, levels in steps.items()}
    assert heat["names"][0] == "code"
    assert means[0] == max(means.values()) > 4
    assert all(mean < means[0] / 2 for line, mean in means.items() if line)


def test_a_printed_page_is_light_and_expanded(opened: Browser, tmp_path: Path) -> None:
    opened.prefer("dark", media="print")
    paper = opened.run("getComputedStyle(document.documentElement).colorScheme")
    header = opened.run("getComputedStyle(document.querySelector('header')).display")

    opened.print(tmp_path / "report.pdf")

    assert (paper, header) == ("light", "none")
    assert (tmp_path / "report.pdf").stat().st_size > 50_000
    assert opened.run("[...document.querySelectorAll('details')].every(part => part.open)")
