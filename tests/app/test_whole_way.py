"""The whole way in a real browser: from a hostile file to a release, with a server that is killed in between."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import dpsyn
from dpsyn.app.answers import export_page
from dpsyn.app.workspace import Workspace
from tests.app.workbench import HOSTILE, VALUES, write_table
from tests.browser import PATIENCE, collect_problems, open_context
from tests.report.pages import synopsis

pytestmark = pytest.mark.chromium

expect.set_options(timeout=1_000 * PATIENCE)


class Server:
    """``dpsyn app`` as a person starts it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.start()

    def start(self) -> None:
        """Start it, and read the address that it prints."""
        words = [sys.executable, "-m", "dpsyn", "app", "--no-browser", "--folder", str(self._folder)]
        self._process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=self._folder.parent)
        assert self._process.stdout
        self.link = next(line.strip() for line in self._process.stdout if "http://" in line)

    def stop(self, number: int = signal.SIGTERM) -> None:
        """End it by a signal."""
        self._process.send_signal(number)
        self._process.wait(PATIENCE)
        if self._process.stdout:
            self._process.stdout.close()


@contextmanager
def serve(folder: Path) -> Iterator[Server]:
    server = Server(folder)
    try:
        yield server
    finally:
        server.stop()


def check_page(page: Page) -> None:
    """Nothing hostile has run; everything has a label; nothing needs to be scrolled sideways."""
    assert page.evaluate("typeof window.caught") == "undefined"
    assert page.evaluate("document.querySelectorAll('main img').length") == 0
    assert page.evaluate(
        "[...document.querySelectorAll('input:not([type=hidden]), select, textarea')]"
        ".every(field => field.labels.length || field.ariaLabel)"
    )
    assert page.evaluate(
        "[...document.querySelectorAll('button')].every(each => each.hidden || each.textContent.trim())"
    )
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def check_phone(page: Page) -> None:
    """The page fits on a telephone."""
    resize(page, 360)
    assert page.evaluate("document.documentElement.scrollWidth") == 360, page.url
    resize(page, 1_200)


def resize(page: Page, width: int) -> None:
    """Change the width of the window, and wait until the page has noticed."""
    page.set_viewport_size({"width": width, "height": 900})
    end = time.monotonic() + PATIENCE
    while page.evaluate("[innerWidth, document.documentElement.clientWidth]") != [width, width]:
        assert time.monotonic() < end
        page.wait_for_timeout(20)


def wait_for_check(page: Page) -> None:
    """Wait until the schema as it is now has been checked against the file; the page shows the result in place."""
    expect(page.locator("#check[data-check=done]:not([data-start])")).to_contain_text("3,000 rows")


def test_a_steward_gets_from_a_hostile_file_to_a_release_although_the_server_is_killed(tmp_path: Path) -> None:
    file = write_table(tmp_path / "people <b>.csv", 3_000)
    work = tmp_path / "work"
    with serve(work) as server, open_context(viewport={"width": 1200, "height": 900}) as context:
        page = context.new_page()
        problems = collect_problems(page)
        page.goto(server.link)
        page.wait_for_url(re.compile(r"/$"))
        check_page(page)

        # the file, its first rows, the draft
        page.set_input_files("#file", file)
        page.wait_for_url(re.compile(r"/tables/"))
        expect(page.get_by_role("region", name="First rows")).to_contain_text(VALUES[0])
        expect(page.get_by_role("region", name="First rows")).to_contain_text(HOSTILE)
        check_page(page)
        check_phone(page)
        page.get_by_role("button", name="Draft a schema").click()
        expect(page.locator(".entries")).to_be_visible()
        wait_for_check(page)

        # the schema: one entry edited, the others approved
        age = page.locator(".entry", has=page.locator(".entry-name", has_text=re.compile("^age$")))
        age.locator("summary").first.click()
        age.get_by_label("Kind").select_option("real")
        age.get_by_label("highest possible").fill("120")
        age.get_by_label("lowest possible").fill("0")
        age.get_by_label("decimals").fill("0")
        age.get_by_role("button", name="Save the entry").click()
        expect(page.get_by_role("status").first).to_contain_text("Saved")
        member = page.locator(".entry", has=page.locator(".entry-name", has_text=re.compile("^member$")))
        member.locator("summary").first.click()
        wait_for_check(page)
        assert member.evaluate("entry => entry.open")  # the result of the check has not closed it
        check_page(page)
        page.get_by_label("About how many rows").fill("3000")
        page.get_by_role("button", name="Save", exact=True).click()
        page.get_by_text(re.compile("Approve the other")).click()
        page.get_by_label("Why are they publicly known?").fill("code book 2024")
        page.get_by_label(re.compile("Also those that are exactly")).check()
        page.get_by_role("button", name=re.compile(r"Approve \d+ entries")).click()
        expect(page.get_by_text("Everything is approved")).to_be_visible()
        wait_for_check(page)
        check_phone(page)
        page.get_by_role("link", name="Go on to the budget").click()

        # the forecast follows ε
        expect(page.locator("#forecast")).to_contain_text("73.1 %")
        page.get_by_role("button", name="2", exact=True).click()
        expect(page.locator("#forecast")).to_contain_text("88.1 %")
        check_page(page)
        check_phone(page)

        # the server and its worker are killed in the middle of the release
        page.get_by_role("button", name="Start the release").click()
        page.wait_for_url(re.compile(r"/releases/"))
        place = re.sub(r"^http://[^/]*", "", page.url)
        release = Workspace.open(work).release(place.removeprefix("/releases/"))
        wait_for_measurements(release.journal)
        assert problems == []
        worker = int((release.folder / "worker.lock").read_text())
        server.stop(signal.SIGKILL)
        os.kill(worker, signal.SIGKILL)
        assert not release.is_made
        server.start()
        page.goto(server.link)
        page.wait_for_url(re.compile(r"/$"))
        problems.clear()  # meanwhile the page could not reach its server
        page.get_by_role("region", name="Releases").get_by_role("link").first.click()
        expect(page.get_by_text("nothing is spent twice")).to_be_visible()
        check_page(page)
        check_phone(page)
        page.get_by_role("button", name="Continue the release").click()

        # the result, the report, a question, the ledger
        expect(page.get_by_text("Download everything (zip)")).to_be_visible()
        check_page(page)
        check_phone(page)
        with page.expect_download() as download:
            page.get_by_text("Download everything (zip)").click()
        assert any(name.endswith("synthetic.csv") for name in zipfile.ZipFile(download.value.path()).namelist())
        with page.expect_popup() as popup:
            page.get_by_role("link", name="Open the report").click()
        report = popup.value
        expect(report.locator("h1")).to_be_visible()
        assert report.evaluate("typeof window.caught") == "undefined"
        report.close()
        page.get_by_label("File of your private key, on this computer").fill(str(tmp_path / "steward.key"))
        page.get_by_label(re.compile("I have no key yet")).check()
        page.get_by_role("button", name="Sign the release").click()
        public = page.get_by_label(re.compile("Its public key")).input_value()
        check_phone(page)
        page.get_by_text("Add another signature").click()
        page.get_by_role("link", name="Verify it").click()
        page.get_by_label(re.compile("Public key of whoever")).fill(public)
        page.get_by_role("button", name="Verify").click()
        expect(page.get_by_role("status").first).to_contain_text("Verified: whoever has this key")
        check_page(page)
        check_phone(page)
        page.goto(f"{server.link.partition('/open')[0]}{place}")
        page.get_by_role("link", name="Ask it a question").click()
        page.get_by_label("Count rows by").select_option(HOSTILE)
        page.get_by_label("and by").first.select_option("member")
        page.get_by_role("button", name="Ask", exact=True).click()
        expect(page.locator(".matrix")).to_contain_text(VALUES[0])
        check_page(page)
        check_phone(page)
        page.get_by_role("link", name="Ledger").click()
        page.get_by_role("link", name="Verify it").click()
        expect(page.get_by_role("status").first).to_contain_text("agree with 1 release")
        check_page(page)
        check_phone(page)

        # the back button, and the release started once more: the page asks before anything is spent again
        page.goto(f"{server.link.partition('/open')[0]}{place}")
        page.get_by_role("link", name="Budget").click()
        page.go_back()
        page.go_forward()
        page.get_by_role("button", name="Start the release").click()
        expect(page.get_by_label(re.compile("Spend again"))).to_be_focused()
        assert problems == []

    runs = [run for account in dpsyn.Ledger(work / "ledger.db").datasets() for run in account.runs]
    assert len(runs) == 1
    assert runs[0].closed


def wait_for_measurements(journal: Path) -> None:
    """Wait until a run has measured something, so that there is something to lose."""
    end = time.monotonic() + PATIENCE
    while not journal.exists() or journal.read_bytes().count(b"\n") < 3:
        assert time.monotonic() < end
        time.sleep(0.01)


def test_an_exported_page_answers_questions_without_a_server(tmp_path: Path) -> None:
    (tmp_path / "ask.html").write_text(export_page(synopsis()), "utf-8")
    answer = synopsis().marginal("size", "member")
    with open_context(viewport={"width": 360, "height": 740}, offline=True, color_scheme="dark") as context:
        page = context.new_page()
        problems, requests = collect_problems(page), []
        page.on("request", lambda request: requests.append(request.url))
        page.goto((tmp_path / "ask.html").as_uri())
        expect(page.locator(".bars li").first).to_be_visible()
        page.get_by_label("Count rows by").select_option("member")  # the other way around than it is stored
        page.get_by_label("and by").select_option("size")
        cells = page.locator("#counts tbody tr")
        expect(cells).to_have_count(answer.counts.size)
        for line, label in enumerate(answer.labels[1]):
            for column, other in enumerate(answer.labels[0]):
                texts = cells.nth(line * len(answer.labels[0]) + column).locator("td").all_text_contents()
                assert texts[:2] == [label, other]
                assert float(texts[2].replace(",", "")) == pytest.approx(answer.counts[column, line], abs=0.5)
        page.get_by_label("Show").select_option("line")
        shares = [float(row.split("%")[0].split()[-1]) for row in cells.all_inner_texts()]
        assert sum(shares[: len(answer.labels[0])]) == pytest.approx(100, abs=0.3)
        assert page.evaluate("document.documentElement.scrollWidth") == 360
        assert page.evaluate("typeof window.caught") == "undefined"
        assert (problems, requests) == ([], [(tmp_path / "ask.html").as_uri()])
