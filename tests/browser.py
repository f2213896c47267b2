"""A real browser for tests: headless Chromium, driven by Playwright."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import BrowserContext, Page, sync_playwright

FLAGS = (
    "--no-sandbox",  # where tests run as root there is none
    "--disable-gpu",
    "--disable-dev-shm-usage",
)

PATIENCE = 60.0
"""The longest time in seconds that a step may take on a busy machine."""


@contextmanager
def open_context(**options: Any) -> Iterator[BrowserContext]:
    """A browser without cookies, which is closed at the end."""
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        context = started.new_context(**options)
        context.set_default_timeout(1_000 * PATIENCE)
        yield context
        started.close()


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser with one tab."""
    with open_context(no_viewport=True) as context:
        yield Browser(context.new_page())


def collect_problems(page: Page) -> list[str]:
    """A list to which the errors and warnings of a page are added from now on."""
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda line: problems.append(line.text) if line.type in ("error", "warning", "assert") else None)
    return problems


class Browser:
    """One tab. Errors and warnings of its page are collected in ``problems``."""

    def __init__(self, page: Page) -> None:
        self._page, self._protocol = page, page.context.new_cdp_session(page)
        self.problems = collect_problems(page)
        self.requests: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        self._protocol.send("Performance.enable", {"timeDomain": "threadTicks"})

    def open(self, path: Path, *, ready: str = "document.documentElement?.dataset.ready === 'yes'") -> float:
        """Load a file and wait until it is ready, by default until its script has run; returns the seconds it took."""
        self.problems.clear()
        self.requests.clear()
        begin = time.monotonic()
        self._page.goto(path.as_uri())
        self.wait(f"location.href === {json.dumps(path.as_uri())} && {ready}")
        return time.monotonic() - begin

    def wait(self, condition: str) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + PATIENCE
        while not self.run(f"Boolean({condition})"):
            if time.monotonic() > end:
                raise TimeoutError(f"{condition} did not come true; problems: {self.problems}")
            self._page.wait_for_timeout(50)

    def run(self, code: str) -> Any:
        """The value of an expression on the page."""
        return self._page.evaluate(code)

    def worked(self) -> float:
        """The processor time of the page in seconds, which does not depend on other load of the machine."""
        metrics = {each["name"]: each["value"] for each in self._protocol.send("Performance.getMetrics")["metrics"]}
        return float(metrics["TaskDuration"])

    def resize(self, width: int, height: int, *, phone: bool = False) -> None:
        """Change the size of the window."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone}
        self._protocol.send("Emulation.setDeviceMetricsOverride", size)

    def prefer(self, scheme: Any, media: Any = "screen") -> None:
        """Set the preferred color scheme, ``light`` or ``dark``, and the medium, ``screen`` or ``print``."""
        self._page.emulate_media(color_scheme=scheme, media=media)

    def move_mouse(self, x: float, y: float) -> None:
        """Hover over a point of the window."""
        self._page.mouse.move(x, y)

    def click(self, x: float, y: float) -> None:
        """Click at a point of the window."""
        self._page.mouse.click(x, y)

    def print(self, path: Path) -> None:
        """Save the page as a PDF file."""
        self._page.pdf(path=path, print_background=True)
