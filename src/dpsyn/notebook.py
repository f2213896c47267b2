"""What notebooks show: HTML tables, plots and progress, made of plain texts and numbers.

The classes of the public API describe themselves with these functions, each with what it knows. All texts are escaped:
names of columns and values are whatever a table holds.
"""

from __future__ import annotations

import functools
import inspect
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from html import escape
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from dpsyn.errors import MissingExtraError, UserError, shorten
from dpsyn.progress import Progress

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
else:
    Axes = Any  # matplotlib is loaded by the first plot

_P = ParamSpec("_P")
_T = TypeVar("_T")

MAX_TABLE_ROWS = 30
"""Rows of a table that are shown; a notebook is read, not searched."""

MAX_BARS = 40
"""Bars of a plot; more could not be labeled."""

MAX_LABEL_LENGTH = 40
"""Characters of a label in a plot."""

PROGRESS_DELAY = 1.0
"""Seconds after which progress is shown: what is faster needs none."""

PROGRESS_INTERVAL = 0.2
"""Seconds between two updates of the progress."""

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#8a8a8a"
"""Okabe and Ito's colors, which are distinguishable with every kind of color vision."""


# ── tables ───────────────────────────────────────────────────────────────────────────────────────────────────


def html_table(
    title: str,
    headings: Sequence[str] = (),
    rows: Sequence[Sequence[object]] = (),
    *,
    notice: str = "",
    notes: Sequence[str] = (),
) -> str:
    """A title, a table and some lines as HTML; everything is escaped. Numbers are aligned at the right.

    Args:
        title: stands above the table.
        headings: the columns.
        rows: the cells; those beyond ``MAX_TABLE_ROWS`` are counted, not shown.
        notice: a warning that stands first, such as that the content is private.
        notes: lines below the table.
    """
    parts = [f'<p style="color:#B00020;font-weight:bold">{escape(notice)}</p>'] * bool(notice)
    parts.append(f"<p><b>{escape(title)}</b></p>")
    if rows:
        head = "".join(f'<th style="text-align:left">{escape(heading)}</th>' for heading in headings)
        body = "".join(f"<tr>{''.join(map(_html_cell, row))}</tr>" for row in rows[:MAX_TABLE_ROWS])
        parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
    left_out = len(rows) - MAX_TABLE_ROWS
    shown = [*([f"and {left_out:,} more"] if left_out > 0 else []), *notes]
    parts += [f"<p>{escape(line)}</p>" for line in shown]
    return f"<div>{''.join(parts)}</div>"


def _html_cell(value: object) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    text = f"{value:,.4g}" if isinstance(value, float) else f"{value:,}" if number else str(value)
    return f'<td style="text-align:{"right" if number else "left"}">{escape(text)}</td>'


# ── plots ────────────────────────────────────────────────────────────────────────────────────────────────────


def new_axes(axes: Axes | None = None, *, bars: int = 10) -> Axes:
    """The given axes of matplotlib, or those of a new figure with room for horizontal bars."""
    if axes is not None:
        return axes
    try:
        from matplotlib import pyplot
    except ImportError:
        raise MissingExtraError("matplotlib", "plot", "a plot") from None
    return pyplot.subplots(figsize=(7.0, min(12.0, 1.6 + 0.28 * bars)), layout="constrained")[1]


def plot_bars(
    axes: Axes | None,
    labels: Sequence[str],
    values: Any,
    *,
    title: str,
    unit: str,
    intervals: tuple[Any, Any] | None = None,
    marks: Sequence[tuple[str, Sequence[float]]] = (),
) -> Axes:
    """Horizontal bars, the first at the top, with intervals and marks of other values on them.

    Args:
        axes: where to draw; None makes a new figure.
        labels: a label for each bar; the bars beyond ``MAX_BARS`` are left out, and the title says so.
        values: the lengths of the bars.
        title: stands above.
        unit: what the lengths are.
        intervals: the lower and upper ends of an interval for each bar; it need not be centered at the bar's end.
        marks: names and values of marks on every bar, such as a baseline.
    """
    count = min(len(labels), MAX_BARS)
    axes = new_axes(axes, bars=count)
    if count < len(labels):
        title = f"{title} (the first {count} of {len(labels):,})"
    positions = list(range(count))
    axes.barh(positions, values[:count], color=BLUE, alpha=0.8)
    if intervals is not None:
        axes.hlines(positions, intervals[0][:count], intervals[1][:count], color=ORANGE, linewidth=1.5)
    for (name, each), color, symbol in zip(marks, (ORANGE, GREY), ("D", "|"), strict=False):
        axes.plot(each[:count], positions, symbol, color=color, label=name, markersize=6, linestyle="none")
    axes.set_yticks(positions, [_plain_label(label) for label in labels[:count]])
    axes.invert_yaxis()
    return _finish(axes, title, unit, legend=bool(marks))


def plot_matrix(
    axes: Axes | None, labels: tuple[Sequence[str], Sequence[str]], values: Any, *, names: Sequence[str], title: str
) -> Axes:
    """A matrix as colored cells; the first axis runs downward."""
    rows, columns = labels
    axes = new_axes(axes, bars=len(rows))
    image = axes.imshow(values, aspect="auto", cmap="Blues", interpolation="nearest")
    axes.figure.colorbar(image, ax=axes, label="rows")
    axes.set_yticks(*_ticks(rows))
    axes.set_xticks(*_ticks(columns), rotation=90)
    axes.set_ylabel(_plain_label(names[0]), parse_math=False)
    return _finish(axes, title, _plain_label(names[1]))


def plot_lines(
    axes: Axes | None, positions: Sequence[float], lines: Mapping[str, Sequence[float]], *, title: str, unit: str
) -> Axes:
    """Lines over a logarithmic axis of ε."""
    axes = new_axes(axes)
    for (name, values), style in zip(lines.items(), ("-", "--", "-.", ":"), strict=False):
        axes.plot(positions, values, style, marker="o", markersize=4, label=name)
    axes.set_xscale("log")
    axes.set_xticks(positions, [f"{position:g}" for position in positions])
    axes.minorticks_off()
    axes.set_ylabel(unit)
    axes.set_ylim(bottom=0)
    return _finish(axes, title, "ε", legend=True)


def _ticks(labels: Sequence[str]) -> tuple[list[int], list[str]]:
    step = -(-len(labels) // MAX_BARS)
    return list(range(0, len(labels), step)), [_plain_label(label) for label in labels[::step]]


def _plain_label(label: str) -> str:
    """A label that fits; matplotlib takes text between two dollars for a formula, so dollars are escaped."""
    return shorten(str(label), MAX_LABEL_LENGTH).replace("$", r"\$")


def _finish(axes: Axes, title: str, unit: str, *, legend: bool = False) -> Axes:
    axes.set_title(title, loc="left", fontsize=11, parse_math=False)
    axes.set_xlabel(unit)
    axes.spines[["top", "right"]].set_visible(False)
    if legend:
        axes.legend(frameon=False)
    return axes


def refuse_to_plot(what: str) -> UserError:
    """The error for something that has no plot."""
    return UserError(f"{what} has no plot; print it, or use its table")


# ── progress ─────────────────────────────────────────────────────────────────────────────────────────────────


_line_is_shown: ContextVar[bool] = ContextVar("_line_is_shown", default=False)
"""Whether a line is shown already: what a function calls does not show another one."""


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")


def show_progress(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Let a function with a parameter ``progress`` show it in notebooks, unless a caller gives one.

    Whatever takes longer than a second shows the current phase in one line, and in the end how long it took.
    """
    parameters = inspect.signature(function).parameters
    if "progress" not in parameters:
        raise TypeError(f"{function.__qualname__} has no parameter progress")

    @functools.wraps(function)
    def call(*arguments: _P.args, **options: _P.kwargs) -> _T:
        if "progress" in options or _line_is_shown.get() or not in_notebook():
            return function(*arguments, **options)
        with _notebook_line(function.__name__) as progress:
            options["progress"] = progress
            return function(*arguments, **options)

    return call


@contextmanager
def _notebook_line(title: str) -> Iterator[Progress]:
    """A line below the cell that is replaced by each phase."""
    from IPython import display  # a notebook runs, so it is there

    show: Any = display.display
    start = updated = time.monotonic()
    handle: Any = None

    def progress(phase: str, done: float) -> None:
        nonlocal handle, updated
        now = time.monotonic()
        if now - start < PROGRESS_DELAY or (handle is not None and now - updated < PROGRESS_INTERVAL):
            return
        share = f" {done:.0%}" if done > 0 else ""
        line = _Line(f"{title}: {phase}{share}, {now - start:.0f} s")
        updated = now
        if handle is None:
            handle = show(line, display_id=True)
        else:
            handle.update(line)

    token, end = _line_is_shown.set(True), "stopped after"
    try:
        yield progress
        end = "done in"
    finally:
        _line_is_shown.reset(token)
        if handle is not None:
            handle.update(_Line(f"{title}: {end} {time.monotonic() - start:.0f} s"))


class _Line:
    """A line of plain text."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text
