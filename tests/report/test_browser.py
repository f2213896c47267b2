"""Reports in a real browser: charts, interaction, and screens of different sizes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from dpsyn.evaluation import Evaluation, evaluate
from dpsyn.report.evaluation_report import private_report
from dpsyn.report.release_report import publishable_report
from dpsyn.schema import Categorical, Schema
from tests.browser import Browser, chromium
from tests.report.pages import HOSTILE, VALUES, evaluation, opposite_evaluation, rows, synopsis

pytestmark = pytest.mark.chromium

MODES = ("private", "publishable")
SOON = 2.0
"""Seconds of processor time within which a page has loaded."""

WIDE_COLUMNS = 60


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("reports")
    made = {
        "private": private_report(evaluation("code"), synopsis()),
        "publishable": publishable_report(synopsis(), rows(seed=9)),
        "worse": private_report(opposite_evaluation()),
        "wide": private_report(wide_evaluation()),
    }
    for name, markup in made.items():
        (folder / f"{name}.html").write_text(markup, "utf-8")
    return {name: folder / f"{name}.html" for name in made}


def wide_evaluation() -> Evaluation:
    """Sixty columns, three of which differ."""
    rng = np.random.default_rng(2)
    real = {f"question_{index:02}": rng.integers(0, 4, 300) for index in range(WIDE_COLUMNS)}
    synthetic = real | {name: np.zeros(300, int) for name in ("question_07", "question_30", "question_41")}
    schema = Schema(attributes=tuple(Categorical(name=name, codes=4) for name in real))
    return evaluate(pa.table(real), pa.table(synthetic), schema)


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


@pytest.fixture
def wide(browser: Browser, files: dict[str, Path]) -> Browser:
    """The report of many columns."""
    browser.resize(1200, 900)
    browser.prefer("light")
    browser.open(files["wide"])
    return browser


def column(browser: Browser, index: int) -> list[str]:
    """The cells of a column of the table, as shown."""
    cells: list[str] = browser.run(
        "[...marginals.tBodies[0].rows].filter(row => !row.hidden)"
        f".map(row => row.cells[{index}].firstChild.textContent.trim())"
    )
    return cells


def shown_cards(browser: Browser) -> list[str]:
    """The names of the attributes that are shown."""
    names: list[str] = browser.run(
        "[...document.querySelectorAll('details.card')].filter(c => c.checkVisibility()).map(c => c.dataset.name)"
    )
    return names


def type_into(browser: Browser, field: str, text: str) -> None:
    browser.run(f"document.getElementById('{field}').value = {json.dumps(text)}")
    browser.run(f"document.getElementById('{field}').dispatchEvent(new Event('input'))")


def brightness_of_paper(browser: Browser) -> int:
    color: str = browser.run("getComputedStyle(document.body).backgroundColor")
    return sum(map(int, color.removeprefix("rgb(").removesuffix(")").split(",")))


def first_cell(browser: Browser) -> tuple[float, float]:
    """The position of a cell of the heat map on the screen, once scrolling has ended."""
    browser.run("document.querySelector('#heat tbody td[class]').scrollIntoView({block: 'center'})")
    browser.run("new Promise(resolve => setTimeout(resolve, 300))")
    x, y = browser.run(
        "(() => { const box = document.querySelector('#heat tbody td[class]').getBoundingClientRect();"
        " return [box.x + box.width / 2, box.y + box.height / 2] })()"
    )
    return x, y


def test_the_page_has_no_errors_and_fetches_nothing(opened: Browser) -> None:
    assert opened.problems == []
    assert [address.partition(":")[0] for address in opened.requests] == ["file"]


def test_a_page_loads_quickly(opened: Browser) -> None:
    assert opened.worked() < SOON


def test_every_attribute_has_its_picture(opened: Browser) -> None:
    marks = opened.run("[...document.querySelectorAll('.picture svg')].map(p => p.querySelectorAll('path').length)")
    assert len(marks) == 6
    assert min(marks) >= 3
    assert opened.run(
        "[...document.querySelectorAll('.picture svg')].every(s => s.getBoundingClientRect().width > 150)"
    )


def test_the_page_is_complete_without_its_script(browser: Browser, files: dict[str, Path], tmp_path: Path) -> None:
    bare = tmp_path / "bare.html"
    bare.write_text(re.sub(r"<script>.*?</script>", "", files["wide"].read_text("utf-8"), flags=re.DOTALL), "utf-8")
    browser.resize(1200, 900)
    browser.open(bare, ready="document.readyState === 'complete'")

    assert browser.problems == []
    assert browser.run("document.querySelectorAll('.picture svg').length") == WIDE_COLUMNS
    assert browser.run("marginals.tBodies[0].rows.length") == WIDE_COLUMNS + WIDE_COLUMNS * (WIDE_COLUMNS - 1) // 2
    controls = "[...document.querySelectorAll('.tools, #theme, #more')].map(e => e.checkVisibility())"
    assert not any(browser.run(controls))  # what would do nothing is not shown
    browser.run("document.querySelector('details.card:not([open]) summary').click()")
    assert browser.run("document.querySelectorAll('details.card[open]').length") == 7


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
    type_into(opened, "filter", "SIZE age")
    left = column(opened, 0)

    assert left == [name for name in previous if "size" in name and "age" in name]
    assert 0 < len(left) < len(previous)
    assert opened.run("document.getElementById('row-count').textContent").startswith(f"{len(left)} of ")


def test_filtering_by_the_full_name_of_a_marginal_keeps_only_that_one(opened: Browser) -> None:
    name = f"{HOSTILE} × size"
    type_into(opened, "filter", name)

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
@pytest.mark.parametrize("name", ["private", "publishable", "worse", "wide"])
def test_a_phone_shows_everything_without_scrolling_sideways(
    browser: Browser, files: dict[str, Path], name: str, width: int
) -> None:
    browser.resize(width, 800, phone=True)
    browser.open(files[name])

    assert browser.problems == []
    assert browser.run("document.documentElement.scrollWidth") == width
    assert browser.run(
        "[...document.querySelectorAll('details.card, .verdict, .stack, .track')]"
        ".every(f => f.getBoundingClientRect().right <= innerWidth)"
    )


def test_search_keeps_the_attributes_whose_names_contain_every_word(wide: Browser) -> None:
    assert len(shown_cards(wide)) == WIDE_COLUMNS

    type_into(wide, "find", "QUEST 41")

    assert shown_cards(wide) == ["question_41"]
    assert wide.run("document.querySelector('details.card[data-name=question_41]').open")
    assert wide.run("document.getElementById('card-count').textContent") == "1 of 60 attributes"
    type_into(wide, "find", "nothing like that")
    assert shown_cards(wide) == []
    assert wide.run("document.getElementById('card-count').textContent") == "no attribute matches"


def test_only_what_differs_can_be_shown(wide: Browser) -> None:
    wide.run("document.getElementById('differing').click()")

    assert sorted(shown_cards(wide)) == ["question_07", "question_30", "question_41"]
    wide.run("document.getElementById('differing').click()")
    assert len(shown_cards(wide)) == WIDE_COLUMNS


def test_many_attributes_are_folded_and_can_be_unfolded(wide: Browser) -> None:
    unfolded = "document.querySelectorAll('details.card[open]').length"
    at_first = wide.run(unfolded)
    wide.run("document.getElementById('fold').click()")
    folded = wide.run(unfolded)
    wide.wait("document.getElementById('fold').getAttribute('aria-expanded') === 'false'")
    wide.run("document.getElementById('fold').click()")

    assert (at_first, folded, wide.run(unfolded)) == (6, 0, WIDE_COLUMNS)
    wide.wait("document.getElementById('fold').textContent === 'Fold all'")


def test_controls_have_labels_and_can_be_reached_by_keyboard(wide: Browser) -> None:
    assert wide.run("[...document.querySelectorAll('input')].every(i => i.labels.length === 1)")
    assert wide.run("[...document.querySelectorAll('button:not([hidden])')].every(b => b.textContent.trim() !== '')")
    assert wide.run("[...document.querySelectorAll('.scroll')].every(s => s.tabIndex === 0 && s.ariaLabel)")
    assert wide.run("[...document.querySelectorAll('.picture')].every(p => p.role === 'group' && p.ariaLabel)")
    wide.run("document.querySelector('details.card summary').focus()")
    assert wide.run("document.activeElement.tagName") == "SUMMARY"


def test_what_is_worse_than_shuffled_is_visible(browser: Browser, files: dict[str, Path]) -> None:
    browser.resize(1200, 900)
    browser.prefer("light")
    browser.open(files["worse"])

    assert browser.run("document.querySelector('.verdict').classList.contains('bad')")
    beyond = "[...document.querySelectorAll('.track.worse i')].map(i => parseFloat(i.style.left))"
    assert min(browser.run(beyond)) > 200 / 3  # right of the mark
    assert "worse than shuffled" in browser.run("document.querySelector('#scores .badge').textContent")
    assert browser.run("document.querySelectorAll('#heat td.k').length") >= 2


def test_hovering_over_a_cell_of_the_heat_map_shows_its_pair(opened: Browser) -> None:
    opened.move_mouse(*first_cell(opened))
    opened.wait("!tip.hidden")

    lines = opened.run("tip.textContent").split("\n")
    assert " × " in lines[0]
    assert lines[-1] == opened.run("document.querySelector('#heat tbody td[class]').textContent")


def test_hovering_over_a_mark_of_a_picture_shows_its_shares(opened: Browser) -> None:
    opened.run("document.querySelector('.picture').scrollIntoView({block: 'center'})")
    opened.run("new Promise(resolve => setTimeout(resolve, 300))")
    marks = opened.run(
        "[...document.querySelectorAll('.picture:first-of-type [role=graphics-symbol][aria-label]')].map(mark => {"
        " const b = mark.getBoundingClientRect(); const [x, y] = [b.x + b.width / 2, b.y + b.height / 2];"
        " return [x, y, mark.getAttribute('aria-label'), document.elementFromPoint(x, y) === mark] })"
    )
    x, y, words, _ = next(mark for mark in marks if mark[3])  # others lie below it
    opened.move_mouse(x, y)
    opened.wait("!tip.hidden")

    assert opened.run("tip.textContent") == words
    assert words.split("\n")[-1].startswith("synthetic: ")


def test_a_click_on_the_heat_map_shows_the_pair_in_the_table(browser: Browser, files: dict[str, Path]) -> None:
    browser.resize(1200, 900)
    browser.open(files["private"])
    browser.click(*first_cell(browser))
    browser.wait("document.getElementById('filter').value !== ''")

    first, second = browser.run("document.getElementById('filter').value").split(" × ")
    assert column(browser, 0) in ([f"{first} × {second}"], [f"{second} × {first}"])


def test_the_shuffled_column_is_the_darkest_row(browser: Browser, files: dict[str, Path]) -> None:
    browser.resize(1200, 900)
    browser.open(files["private"])

    lines = browser.run(
        "[...document.querySelectorAll('#heat tbody tr')].map(row => [row.cells[0].textContent,"
        " [...row.querySelectorAll('td[class]')].map(cell => Number(cell.className[1]))])"
    )
    means = [sum(steps) / len(steps) for _, steps in lines]
    assert lines[0][0] == "code"
    assert means[0] > 4
    assert all(mean < means[0] / 2 for mean in means[1:])


def test_a_printed_page_is_light_and_expanded(opened: Browser, tmp_path: Path) -> None:
    opened.prefer("dark", media="print")
    paper = opened.run("getComputedStyle(document.documentElement).colorScheme")
    header = opened.run("getComputedStyle(document.querySelector('header')).display")

    opened.print(tmp_path / "report.pdf")

    assert (paper, header) == ("light", "none")
    assert (tmp_path / "report.pdf").stat().st_size > 30_000
    assert opened.run("[...document.querySelectorAll('details')].every(part => part.open)")
