"""A real browser for tests: headless Chromium, controlled through the DevTools protocol over two pipes."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless",
    "--no-sandbox",  # where tests run as root there is none
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
    "about:blank",
)

PATIENCE = 60.0
"""The longest time in seconds that a step may take on a busy machine."""


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser that is closed, and its files deleted, at the end."""
    (reading, commands), (answers, writing) = os.pipe(), os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        script = f'exec 3<&{reading} 4>&{writing}; exec chromium "$@"'
        words = ["bash", "-c", script, "chromium", f"--user-data-dir={profile}", *FLAGS]
        process = subprocess.Popen(
            words, pass_fds=(reading, writing), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(reading)
        os.close(writing)
        try:
            with os.fdopen(commands, "wb", buffering=0) as to, os.fdopen(answers, "rb", buffering=0) as back:
                yield Browser(to, back)
        finally:
            process.terminate()
            process.wait(10)


class Browser:
    """One tab. Errors and warnings of its page are collected in ``problems``."""

    def __init__(self, commands: Any, answers: Any) -> None:
        self._commands, self._answers, self._rest = commands, answers, b""
        self._number = 0
        self._session: str | None = None
        self.problems: list[str] = []
        self.requests: list[str] = []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")
        self._call("Performance.enable", timeDomain="threadTicks")

    def open(self, path: Path, *, ready: str = "document.documentElement?.dataset.ready === 'yes'") -> float:
        """Load a file and wait until it is ready, by default until its script has run; returns the seconds it took."""
        self.problems.clear()
        self.requests.clear()
        begin = time.monotonic()
        self._call("Page.navigate", url=path.as_uri())
        self.wait(f"location.href === {json.dumps(path.as_uri())} && {ready}")
        return time.monotonic() - begin

    def wait(self, condition: str) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + PATIENCE
        while not self.run(f"Boolean({condition})"):
            if time.monotonic() > end:
                raise TimeoutError(f"{condition} did not come true; problems: {self.problems}")
            time.sleep(0.05)

    def run(self, code: str) -> Any:
        """The value of an expression on the page."""
        answer = self._call("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(f"{code}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def worked(self) -> float:
        """The processor time of the page in seconds, which does not depend on other load of the machine."""
        metrics = {metric["name"]: metric["value"] for metric in self._call("Performance.getMetrics")["metrics"]}
        return float(metrics["TaskDuration"])

    def resize(self, width: int, height: int, *, phone: bool = False) -> None:
        """Change the size of the window."""
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)

    def prefer(self, scheme: str, media: str = "screen") -> None:
        """Set the preferred color scheme, ``light`` or ``dark``, and the medium, ``screen`` or ``print``."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self._call("Emulation.setEmulatedMedia", media=media, features=features)

    def move_mouse(self, x: float, y: float) -> None:
        """Hover over a point of the window."""
        self._call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, x: float, y: float) -> None:
        """Click at a point of the window."""
        self.move_mouse(x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self._call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        """Save an image of the window, or of the whole page."""
        picture = self._call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(picture["data"]))

    def print(self, path: Path) -> None:
        """Save the page as a PDF file."""
        path.write_bytes(base64.b64decode(self._call("Page.printToPDF", printBackground=True)["data"]))

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._commands.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result
            self._note(answer)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            part = self._answers.read(1 << 16)
            if not part:
                raise AssertionError("the browser is gone")
            self._rest += part
        message, _, self._rest = self._rest.partition(b"\0")
        answer: dict[str, Any] = json.loads(message)
        return answer

    def _note(self, event: dict[str, Any]) -> None:
        """Record errors, warnings and requests."""
        method, parameters = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.problems.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
            self.problems.append(f"console: {[argument.get('value') for argument in parameters['args']]}")
        elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.problems.append(f"{parameters['entry']['source']}: {parameters['entry']['text']}")
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
