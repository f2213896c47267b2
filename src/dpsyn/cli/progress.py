"""What long work shows: a bar on a terminal, a plain line for each phase elsewhere, nothing if asked to be quiet."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

import click

from dpsyn.progress import Progress, silent


@contextlib.contextmanager
def shown(quiet: bool) -> Iterator[Progress]:
    """A progress that is shown on standard error while the block runs."""
    if quiet:
        yield silent
    elif sys.stderr.isatty():
        with _bar() as progress:
            yield progress
    else:
        yield _Lines()


class _Lines:
    """One line whenever a phase begins."""

    def __init__(self) -> None:
        self._phase = ""

    def __call__(self, phase: str, done: float) -> None:
        if phase != self._phase:
            click.echo(f"… {phase}", err=True)
            self._phase = phase


@contextlib.contextmanager
def _bar() -> Iterator[Progress]:
    """The current phase and how much of it is done; phases that are over leave a line."""
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars
    from rich.text import Text

    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with Bars(*columns, console=console, transient=True) as bars:
        task = bars.add_task("starting", total=None)
        current = ""

        def progress(phase: str, done: float) -> None:
            nonlocal current
            if phase != current:
                if current:
                    console.print(Text(f"✓ {current}"))
                current = phase
                bars.reset(task, description=phase, total=None)
            if done > 0:
                bars.update(task, total=1.0, completed=done)

        yield progress
