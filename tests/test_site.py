"""The site of the documents: built without a warning, complete, and readable without a network, also on a phone."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

import dpsyn
from tests.browser import open_context

ROOT = Path(__file__).parents[1]
SITE: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "site.py"))
SETTINGS = (ROOT / "mkdocs.yml").read_text("utf-8")

LOOKED_AT = ("index", "tutorial", "reference/api", "reference/schema", "reference/command-line", "explanation/utility")
"""Pages with pictures, long signatures and wide tables, opened in a browser."""


class Page(HTMLParser):
    """What a page of HTML refers to: links, what it loads, and the names of its parts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.names: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.names |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif tag == "link" and values.get("rel") not in ("canonical", "next", "prev"):
            self.loaded.append(values.get("href", ""))
        elif "src" in values:
            self.loaded.append(values["src"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site, from a folder of its own, so that nothing is found by chance."""
    folder = tmp_path_factory.mktemp("site")
    SITE["gather_pages"](folder / "build" / "pages")
    settings = SETTINGS.replace("paths: [src]", f"paths: ['{Path(dpsyn.__file__).parents[1]}']")
    settings = settings.replace("docs/docstring_examples.py", str(ROOT / "docs" / "docstring_examples.py"))
    (folder / "mkdocs.yml").write_text(settings, "utf-8")
    build = [sys.executable, "-m", "zensical", "build", "--strict", "--clean", "-f", "mkdocs.yml"]
    done = subprocess.run(build, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "build" / "site"


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path.read_text("utf-8")) for path in sorted(site.rglob("*.html")) if path.name != "404.html"}


def test_the_navigation_names_every_document_once() -> None:
    named = re.findall(r": ([\w/.-]+\.md)$", SETTINGS, re.MULTILINE)
    documents = {
        path.relative_to(ROOT / "docs").with_suffix(".md").as_posix()
        for suffix in ("md", "ipynb")
        for path in (ROOT / "docs").rglob(f"*.{suffix}")
    }

    assert sorted(named) == sorted(documents | set(SITE["OUTSIDE"].values()))


def test_a_number_is_not_broken_between_its_groups_of_digits() -> None:
    assert SITE["change_links"]("in 48 842 rows of 2016 and 15 columns", "docs/a.md", "a.md") == (
        "in 48\N{NO-BREAK SPACE}842 rows of 2016 and 15 columns"
    )


def test_the_page_of_python_has_every_public_name_once() -> None:
    text = (ROOT / "docs" / "reference" / "api.md").read_text("utf-8")

    assert sorted(re.findall(r"^::: dpsyn\.(\w+)$", text, re.MULTILINE)) == sorted(set(dpsyn.__all__) - {"__version__"})


@pytest.mark.check
def test_every_link_inside_of_the_site_leads_to_a_page_and_a_part_of_it(pages: dict[Path, Page]) -> None:
    broken = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.exists() or (
                parts.fragment and unquote(parts.fragment) not in pages[target].names | {"__toc"}
            ):
                broken.append(f"{path.name} → {link}")

    assert broken == []
    assert sum(len(page.links) for page in pages.values()) > 1_000


@pytest.mark.check
def test_pages_load_nothing_from_elsewhere(pages: dict[Path, Page]) -> None:
    loaded = {url for page in pages.values() for url in page.loaded}

    assert len(loaded) > 10
    assert [url for url in loaded if urlsplit(url).netloc] == []


@pytest.mark.check
def test_llms_txt_lists_every_page(site: Path, pages: dict[Path, Page]) -> None:
    text = (site / "llms.txt").read_text("utf-8")
    lines = re.findall(r"^- \[.+\]\((\S+)\): (.*)$", text, re.MULTILINE)

    assert sorted(name for name, _ in lines) == sorted(path.relative_to(site).as_posix() for path in pages)
    assert min(len(summary) for name, summary in lines) > 20


@pytest.mark.check
@pytest.mark.chromium
@pytest.mark.parametrize("width", [1280, 390], ids=["screen", "phone"])
def test_pages_fit_the_window_and_ask_nobody_else(site: Path, width: int) -> None:
    """Nothing is wider than the window, no script fails, and no request leaves the folder."""
    with open_context(viewport={"width": width, "height": 800}) as context:
        page, requests, failures = context.new_page(), list[str](), list[str]()
        page.on("request", lambda request: requests.append(request.url))
        page.on("pageerror", lambda error: failures.append(str(error)))
        for name in LOOKED_AT:
            page.goto((site / f"{name}.html").as_uri())
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        assert {urlsplit(url).scheme for url in requests} <= {"file", "data", "blob"}
        assert failures == []


@pytest.mark.check
@pytest.mark.chromium
def test_the_search_finds_a_term_in_pages_that_are_opened_from_a_folder(site: Path) -> None:
    with open_context() as context:
        page = context.new_page()
        page.goto((site / "tutorial.html").as_uri())
        page.get_by_role("button", name="Search").first.click()
        page.keyboard.type("partition selection")
        page.get_by_text("Theorem M4").wait_for(timeout=20_000)


@pytest.mark.check
@pytest.mark.chromium
def test_a_command_is_copied_without_its_prompt(site: Path) -> None:
    """So that it can be pasted into a terminal."""
    keep_copied = """() => {
        window.copied = [];
        Document.prototype.execCommand = () => window.copied.push(document.activeElement.value) > 0;
    }"""
    with open_context() as context:
        page = context.new_page()
        page.goto((site / "tutorial.html").as_uri())
        page.evaluate(keep_copied)
        page.get_by_title("Copy to clipboard").first.click()
        page.wait_for_function("window.copied.length > 0")
        assert page.evaluate("window.copied.at(-1)") == "dpsyn demo --folder story --quiet"
