"""Both HTML reports: self-contained, and no name or value of a table becomes markup or code."""

from __future__ import annotations

import html
import re
import sys
from datetime import date
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError

import dpsyn
from dpsyn.errors import InternalError, MissingExtraError
from dpsyn.evaluation import EVALUATION_NOTICE, IDENTICAL_ROWS_NOTE
from dpsyn.report import html_page
from dpsyn.report.charts import require_vega
from dpsyn.report.evaluation_report import private_report
from dpsyn.report.html_page import TEMPLATES, content_security_policy, environment, render_template
from dpsyn.report.release_report import comparison_report, publishable_report
from dpsyn.schema import Boolean, Identifier, Open
from dpsyn.synopsis.guarantee import NOT_VERIFIED
from tests.report.pages import HOSTILE, SCHEMA, VALUES, evaluation, opposite_evaluation, rows, synopsis
from tests.synopsis.synopses import certificate
from tests.synopsis.synopses import synopsis as certified
from tests.test_architecture import MAP, Module, modules_of

MAX_BYTES = 1_000_000
MADE = date(2030, 1, 2)


RANKING = ("facts", "ranking_headings", "ranking_rows", "metric_headings", "metric_rows")


class Reader(HTMLParser):
    """The elements of a page, their links, and the text of each kind of element."""

    def __init__(self, markup: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.events: list[str] = []
        self.texts: dict[str, str] = {}
        self._open = ""
        self.feed(markup)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._open = tag
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "action", "data")]
        self.events += [name for name, _ in attrs if name.startswith("on")]

    def handle_data(self, data: str) -> None:
        self.texts[self._open] = self.texts.get(self._open, "") + data


@pytest.fixture(scope="module")
def private() -> str:
    return private_report(evaluation(), synopsis(), made=MADE)


@pytest.fixture(scope="module")
def publishable() -> str:
    return publishable_report(synopsis(), rows(seed=9), made=MADE)


@pytest.fixture(scope="module")
def released() -> dpsyn.Synopsis:
    """A release with an open attribute, an identifier, and no pairs."""
    table = pa.table({"town": ["A"] * 300 + ["B"] * 200 + ["C"], "x": [True] * 501, "id": range(501)})
    schema = dpsyn.Schema(attributes=(Open(name="town"), Boolean(name="x"), Identifier(name="id")), dataset="towns")
    return dpsyn.measure(table, schema, epsilon=5.0, recipe="independent")


def cards_of(markup: str) -> list[str]:
    """The names of the attributes, in their order on the page."""
    return [html.unescape(name) for name in re.findall(r'<details class="card" data-name="(.*?)"', markup)]


def words_of(markup: str) -> str:
    """The text that a person reads."""
    reader = Reader(markup)
    return " ".join(text for tag, text in reader.texts.items() if tag not in ("script", "style"))


# ── two modes ────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_private_report_states_first_that_it_is_private(private: str) -> None:
    body = private.partition("<main")[2]

    assert f'<p class="banner private" role="note">{EVALUATION_NOTICE}</p>' in body
    assert body.index("banner private") < body.index("<section")
    assert "do not choose among releases by it" in words_of(private)
    assert IDENTICAL_ROWS_NOTE in words_of(private)


def test_the_publishable_report_states_what_it_was_made_from() -> None:
    real = certified(certificate())
    shown = words_of(publishable_report(real, real.generate_arrow(60, seed=1)))

    assert "May be published: this comparison was made from the released counts and the synthetic rows alone." in shown
    assert "Certified: the guarantee holds." in shown
    assert "ε = 1, δ = 1e-9" in shown


def test_a_report_that_must_not_be_published_does_not_claim_otherwise() -> None:
    fake = certified(certificate(private=False))
    tested, imported = (
        words_of(publishable_report(synopsis_, table))
        for synopsis_, table in ((fake, fake.generate_arrow(60, seed=1)), (synopsis(), rows()))
    )

    assert "NOT PRIVATE: the noise came from a test." in tested
    assert NOT_VERIFIED in imported
    assert "May be published:" not in tested + imported


def test_every_section_has_its_content(private: str, publishable: str) -> None:
    for markup, reference, floor in ((private, "real", "sampling floor"), (publishable, "released", "noise floor")):
        assert len(cards_of(markup)) == 6
        assert markup.count("<svg") == 6
        sections = re.findall(r'<section id="([^"]*)"', markup)
        for section in ("verdict", "use", "scores", "guarantee", "attributes", "correlations", "pairs", "table"):
            assert section in sections
            assert f'href="#{section}"' in markup
        assert f"<i></i>{reference}</span>" in markup
        assert f">{floor}</th>" in markup
        assert 1 <= markup.count('<details class="wide"') <= 8
    rows_of_table = [markup.partition('id="marginals"')[2].count("<tr") - 1 for markup in (private, publishable)]
    assert rows_of_table == [6 + 15, len(synopsis().releases[0].rounds[0].marginals)]


def test_the_verdict_comes_before_the_numbers(private: str, publishable: str) -> None:
    for markup in (private, publishable):
        assert markup.index('class="banner') < markup.index('id="verdict"') < markup.index('id="scores"')
        assert '<p class="headline">' in markup


def test_the_page_states_dataset_recipe_guarantee_date_and_version(released: dpsyn.Synopsis) -> None:
    shown = words_of(publishable_report(released, released.generate_arrow(60, seed=1), made=date(2031, 2, 3)))

    for words in ("towns", "independent", "ε = 5, δ = ", "2031-02-03", f"DPSyn {dpsyn.__version__}"):
        assert words in shown
    assert re.search(r"report made\s+20\d\d-\d\d-\d\d", re.sub("<[^>]*>", " ", private_report(evaluation())))


def test_what_is_worse_than_shuffled_is_marked() -> None:
    bad = private_report(opposite_evaluation())
    good = private_report(dpsyn.evaluate(rows(), rows(), SCHEMA))

    assert bad.count("worse than shuffled</span>") >= 2
    assert "Pairs are worse than shuffled" in bad
    assert '<section id="verdict" class="verdict bad"' in bad
    assert "worse than shuffled</span>" not in good


def test_a_page_says_how_to_use_the_rows(private: str, publishable: str) -> None:
    for markup in (private, publishable):
        shown = words_of(markup)
        for begin in (
            "Counts: ",
            "Rows: ",
            "Conclusions need replicates",
            "Small groups: ",
            "Do not look for a person",
        ):
            assert begin in shown
    assert "groups of fewer than about 16 rows is mostly noise" in words_of(publishable)  # four times σ = 4


def test_a_page_says_what_was_left_out(publishable: str) -> None:
    shown = words_of(publishable)

    assert "11 of 15 pairs were not measured" in shown
    assert "age (100 → " not in shown  # its bins were measured, and no value was merged beyond them


def test_a_release_states_what_it_left_out(released: dpsyn.Synopsis) -> None:
    shown = words_of(publishable_report(released, released.generate_arrow(50, seed=1)))

    assert re.search(r"town.*: values in fewer than about \d+ rows are not listed", shown)
    assert "id: not measured." in shown
    assert "None of 1 pair was measured." in shown
    assert "No pair was measured, so the columns are independent of each other" in shown


def test_statistics_stand_beside_the_pictures(private: str, publishable: str) -> None:
    for markup in (private, publishable):
        (card,) = re.findall(r'<details class="card" data-name="age".*?</details>', markup, re.DOTALL)
        assert re.findall(r'<th scope="row">([^<]*)</th>', card) == [
            "mean", "5 %", "25 %", "median", "75 %", "95 %", "missing",
        ]  # fmt: skip
    ages = [age for age in rows().column("age").to_pylist() if age is not None]
    (card,) = re.findall(r'<details class="card" data-name="age".*?</details>', private, re.DOTALL)
    assert f'mean</th><td class="number">{np.mean(ages):.4g}<' in card
    assert f'median</th><td class="number">{np.quantile(ages, 0.5, method="inverted_cdf"):.0f}<' in card


def test_the_publishable_heat_map_frames_the_measured_pairs() -> None:
    markup = publishable_report(synopsis(), rows(seed=9))
    heat = markup.partition('id="heat"')[2].partition("</figure>")[0]

    assert (
        heat.count(' k">') == 2 * 4
    )  # both halves of age × size, and of the three pairs of three attributes that were measured together
    assert "Framed pairs were measured" in heat


def test_attributes_come_worst_first() -> None:
    scores = {score.name: score.distance.synthetic - score.distance.floor for score in evaluation("code").attributes}

    assert cards_of(private_report(evaluation("code"))) == sorted(scores, key=lambda name: -max(0.0, scores[name]))


def test_only_the_publishable_report_shows_noise(private: str, publishable: str) -> None:
    assert "95 % of the noise" in publishable
    assert "var(--whisker)" in publishable.partition("<body>")[2]
    assert "var(--whisker)" not in private.partition("<body>")[2]
    assert "noise σ" in words_of(publishable)


def test_without_a_synopsis_the_report_explains_how_to_add_the_certificate() -> None:
    assert "Add it with dpsyn evaluate --certificate s.dpsyn." in words_of(private_report(evaluation()))


def test_the_same_input_gives_the_same_file(publishable: str) -> None:
    assert publishable_report(synopsis(), rows(seed=9), made=MADE) == publishable


# ── nothing else can be in a publishable report ─────────────────────────────────────────────────────────────────


def imports_of(start: str) -> set[str]:
    """Every module of the project that a module imports, directly or indirectly."""
    modules = {module.path: module for module in modules_of(Path(dpsyn.__file__).parent)}
    seen, waiting = set[str](), [start]
    while waiting:
        path = waiting.pop()
        if path not in seen:
            seen.add(path)
            waiting += [file for name, _ in modules[path].imports() for file in _imported_files(name, modules)]
    return seen


def _imported_files(name: str, modules: dict[str, Module]) -> list[str]:
    """The files that importing a dotted name runs: a module, or a name of one, and the packages above it."""
    parts = name.split(".")[1:] if name.startswith("dpsyn.") else []
    stems = ["/".join(parts[:length]) for length in range(1, len(parts) + 1)]
    return [path for stem in stems for path in (f"{stem}.py", f"{stem}/__init__.py") if path in modules]


def test_a_private_evaluation_cannot_become_a_publishable_report() -> None:
    with pytest.raises(InternalError, match="cannot show a Evaluation"):
        comparison_report(synopsis(), evaluation())  # type: ignore[arg-type]


def test_nothing_that_the_publishable_report_imports_can_reach_a_real_row() -> None:
    reached = {path.split("/")[0].removesuffix(".py") for path in imports_of("report/release_report.py")}

    assert {"report", "synopsis", "encoding", "schema", "accounting"} <= reached
    assert reached & {"evaluation", "sources", "engines", "private", "recipes", "diagnose"} == set()
    assert reached <= set(MAP)


def test_following_imports_would_find_a_path_to_real_rows() -> None:
    assert "sources/factory.py" in imports_of("report/evaluation_report.py")


def test_the_publishable_report_depends_only_on_the_synopsis_and_the_rows(tmp_path: Path) -> None:
    synopsis().save(tmp_path / "a.dpsyn")
    loaded = dpsyn.Synopsis.load(tmp_path / "a.dpsyn")

    assert publishable_report(loaded, rows(seed=9), made=MADE) == publishable_report(
        synopsis(), rows(seed=9), made=MADE
    )


# ── one file, harmless ───────────────────────────────────────────────────────────────────────────────────────


def test_a_report_is_self_contained(private: str, publishable: str) -> None:
    for markup in (private, publishable):
        reader = Reader(markup)
        assert all(address.startswith("#") for address in reader.addresses)
        assert "link" not in reader.tags
        assert "iframe" not in reader.tags
        assert len(markup.encode()) < MAX_BYTES
        assert "default-src &#39;none&#39;" in markup


def test_names_and_values_never_become_markup_or_code(private: str, publishable: str) -> None:
    for markup in (private, publishable):
        reader = Reader(markup)
        assert reader.tags.count("script") == 1
        assert "img" not in reader.tags
        assert "<b>& co" not in markup
        assert reader.events == []
        assert HOSTILE in reader.texts["h3"]
        assert HOSTILE in cards_of(markup)
        assert all(value in reader.texts["text"] for value in (VALUES[2], VALUES[3]))
    assert "club <b>& co</b>" in words_of(publishable)


@given(st.text(alphabet=st.characters(exclude_categories=["Cc"])))
def test_any_text_stays_text(words: str) -> None:
    table = '{% import "macros.html" as parts %}{{ parts.table([words], [[words]]) }}{{ parts.banner(words, words) }}'
    reader = Reader(environment().from_string(table).render(words=words))

    assert [tag for tag in reader.tags if tag not in ("div", "table", "thead", "tbody", "tr")] == ["th", "td", "p"]
    assert all(reader.texts.get(tag, "").strip() == words.strip() for tag in ("th", "td"))
    assert reader.events == []


def test_templates_escape_everything_and_know_every_name() -> None:
    made = environment()

    assert made.autoescape is True
    assert made.from_string("{{ a }}").render(a="<b>\"'&") == "&lt;b&gt;&#34;&#39;&amp;"
    with pytest.raises(UndefinedError):
        made.from_string("{{ unknown }}").render()
    for name in made.list_templates(extensions=["html"]):
        assert not re.search(r"\|\s*safe", (TEMPLATES / name).read_text("utf-8"))


def test_a_name_with_half_of_a_character_is_shown() -> None:
    half = render_template("ranking.html", **dict.fromkeys(RANKING, ()) | {"terms": "a\ud800b", "explanation": ""})

    assert "a?b" in half


def test_the_script_cannot_end_its_element() -> None:
    assert not re.search(r"</script|<!--", html_page.read_asset("page.js"), re.IGNORECASE)
    assert not re.search(r"</style", html_page.read_asset("page.css"), re.IGNORECASE)


def test_only_the_scripts_of_the_page_may_run(private: str) -> None:
    plain = re.findall(r"<script>(.*?)</script>", private, re.DOTALL)

    (stated,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', private)
    assert len(plain) == 1
    assert html.unescape(stated) == content_security_policy(*plain)
    assert "unsafe-eval" not in stated
    assert "script-src 'sha256-" in html.unescape(stated)


def test_without_the_library_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)

    with pytest.raises(MissingExtraError, match=r"an HTML report needs .* pip install 'vl-convert-python"):
        require_vega()
