"""Ctrl-C takes effect only after a charged answer is stored."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from dpsyn.private.gate import defer_interrupts


def _send(numbers: list[signal.Signals], done: list[str]) -> None:
    with defer_interrupts():
        for number in numbers:
            os.kill(os.getpid(), number)
        done.append("stored")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_block_is_finished_before_an_interrupt_has_its_effect(number: signal.Signals) -> None:
    done: list[str] = []
    before = signal.getsignal(number)
    signal.signal(number, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            _send([number], done)
    finally:
        signal.signal(number, before)

    assert done == ["stored"]


def test_a_second_interrupt_has_its_effect_at_once() -> None:
    done: list[str] = []
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # shells let background jobs ignore it
    try:
        with pytest.raises(KeyboardInterrupt):
            _send([signal.SIGINT, signal.SIGINT], done)
    finally:
        signal.signal(signal.SIGINT, before)

    assert done == []


def test_handlers_are_as_they_were_also_after_an_error() -> None:
    before = signal.getsignal(signal.SIGINT)

    with pytest.raises(ZeroDivisionError), defer_interrupts():
        raise ZeroDivisionError

    assert signal.getsignal(signal.SIGINT) is before


def test_other_threads_run_as_they_are() -> None:
    done: list[bool] = []

    def work() -> None:
        with defer_interrupts():
            done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

    assert done == [True]
