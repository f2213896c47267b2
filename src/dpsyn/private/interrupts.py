"""Interrupts wait until what was paid for is stored."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def finished_first() -> Iterator[None]:
    """Let the block end before Ctrl-C or a request to terminate has its effect; a second one has it at once.

    Only the main thread can do that; in others the block runs as it is.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting: list[int] = []
    before = {number: signal.getsignal(number) for number in _SIGNALS}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def wait(number: int, frame: FrameType | None) -> None:
        waiting.append(number)
        restore()

    for number in _SIGNALS:
        signal.signal(number, wait)
    try:
        yield
    finally:
        restore()
        if waiting:
            signal.raise_signal(waiting[0])
