"""Both HTML reports: self-contained, and no name or value of a table becomes markup or code."""

from __future__ import annotations

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpsyn
from dpsyn.errors import InternalError, MissingExtraError
from dpsyn.evaluation import EVALUATION_NOTICE, IDENTICAL_ROWS_NOTE
from dpsyn.report import html_page
from dpsyn.report.charts import require_vega
from dpsyn.report.evaluation_report import private_report
from dpsyn.report.html_page import content_security_policy, escape_json, escape_script, escape_text
from dpsyn.report.release_report import comparison_report, publishable_report
from dpsyn.synopsis.guarantee import NOT_VERIFIED
from tests.report.pages import HOSTILE, VALUES, evaluation, rows, synopsis
from tests.synopsis.synopses import certificate
from tests.synopsis.synopses import synopsis as certified
from tests.test_architecture import MAP, Module, modules_of

MAX_BYTES = 5_000_000


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
    return private_report(evaluation(), synopsis())


@pytest.fixture(scope="module")
def publishable() -> str:
    return publishable_report(synopsis(), rows(seed=9))


def data_of(markup: str) -> Any:
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', markup, re.DOTALL)
    return json.loads(data)


def words_of(markup: str) -> str:
    """The text that a person reads."""
    reader = Reader(markup)
    return " ".join(text for tag, text in reader.texts.items() if tag not in ("script", "style"))


# ── two modes ────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_private_report_states_first_that_it_is_private(private: str) -> None:
    body = private.partition("<main>")[2]

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
        data = data_of(markup)
        kinds = [each["template"] for each in data["attributes"]]
        assert sorted(kinds) == ["bars"] * 4 + ["histogram", "timeline"]
        assert data["words"] == {"reference": reference, "floor": floor}
        assert len(data["heat"]["names"]) >= 4
        assert 1 <= len(data["pairs"]) <= 8
        assert markup.count("data-picture=") == len(kinds) + 1 + 3 * len(data["pairs"])
        assert all(len(row) == len(data["table"]["columns"]) for row in data["table"]["rows"])
    assert len(data_of(private)["table"]["rows"]) == 6 + 15
    assert len(data_of(publishable)["table"]["rows"]) == len(synopsis().releases[0].rounds[0].marginals)


def test_attributes_come_worst_first() -> None:
    markup = private_report(evaluation("code"))
    scores = {score.name: score.distance.synthetic - score.distance.floor for score in evaluation("code").attributes}

    names = data_of(markup)["names"]

    assert names == sorted(scores, key=lambda name: -max(0.0, scores[name]))


def test_only_the_publishable_report_shows_noise(private: str, publishable: str) -> None:
    assert all("low" in each for each in data_of(publishable)["attributes"])
    assert not any("low" in each for each in data_of(private)["attributes"])
    assert "noise σ" in words_of(publishable)


def test_without_a_synopsis_the_report_explains_how_to_add_the_certificate() -> None:
    assert "Add it with dpsyn evaluate --certificate s.dpsyn." in words_of(private_report(evaluation()))


def test_the_same_input_gives_the_same_file(publishable: str) -> None:
    assert publishable_report(synopsis(), rows(seed=9)) == publishable


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

    assert publishable_report(loaded, rows(seed=9)) == publishable_report(synopsis(), rows(seed=9))


# ── one file, harmless ───────────────────────────────────────────────────────────────────────────────────────


def test_a_report_is_self_contained(private: str, publishable: str) -> None:
    for markup in (private, publishable):
        reader = Reader(markup)
        assert all(address.startswith("#") for address in reader.addresses)
        assert "link" not in reader.tags
        assert "iframe" not in reader.tags
        assert len(markup.encode()) < MAX_BYTES
        assert "default-src 'none'" in markup


def test_names_and_values_never_become_markup_or_code(private: str, publishable: str) -> None:
    for markup in (private, publishable):
        reader = Reader(markup)
        assert reader.tags.count("script") == 3
        assert "img" not in reader.tags
        assert "<b>& co" not in markup
        assert reader.events == []
        assert HOSTILE in reader.texts["h3"]
        assert HOSTILE in data_of(markup)["names"]
        shown = {label for each in data_of(markup)["attributes"] for label in each["label"]}
        assert set(VALUES) <= shown
    assert "club <b>& co</b>" in words_of(publishable)


@given(st.text(alphabet=st.characters(exclude_categories=["Cc"])))
def test_any_text_stays_text(words: str) -> None:
    safe = escape_text(words)

    assert not set("<>\"'") & set(safe)
    assert Reader(f"<p>{safe}</p>").texts.get("p", "") == words.encode("utf-8", "replace").decode()
    assert Reader(f'<p title="{safe}">x</p>').tags == ["p"]


@given(st.recursive(st.text() | st.integers() | st.none(), lambda inner: st.lists(inner, max_size=3)))
def test_any_data_stays_in_its_element(data: Any) -> None:
    safe = escape_json(data)

    assert json.loads(safe) == data
    assert safe.isascii()
    assert not set("<>&") & set(safe)


def test_a_script_cannot_end_its_element() -> None:
    assert escape_script("a='</script>';b='<!--';c=1<2") == r"a='\x3C/script>';b='\x3C!--';c=1<2"
    assert not re.search(r"</script|<!--", html_page.read_asset("page.js"), re.IGNORECASE)


def test_only_the_scripts_of_the_page_may_run(private: str) -> None:
    plain = re.findall(r"<script>(.*?)</script>", private, re.DOTALL)

    (stated,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', private)
    assert len(plain) == 2
    assert stated == content_security_policy(*plain)
    assert "'unsafe-eval'" not in stated
    assert "script-src 'sha256-" in stated


def test_without_the_library_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)

    with pytest.raises(MissingExtraError, match=r"an HTML report needs .* pip install 'vl-convert-python"):
        require_vega()
