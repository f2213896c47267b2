"""What a synopsis says about some attributes, in lines of a table and in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpsyn.report.numbers import plain

if TYPE_CHECKING:
    from dpsyn.synopsis.answering import Answer

_HOW = {
    "covered": (
        "Covered: a released table holds all of these attributes. An interval has the true count in it with "
        "probability {level}; it lies around the count before negative counts were removed."
    ),
    "split": (
        "Covered, but more finely than measured: a released table holds all of these attributes with coarser values. "
        "Standard errors and intervals tell of the noise of the release alone."
    ),
    "reconstructed": (
        "Reconstructed by maximum entropy: no released table holds all of these attributes, so they were put together "
        "from tables that hold some of them. Standard errors and intervals tell of the noise of the release alone."
    ),
    "model": (
        "From the fitted model: no released table holds all of these attributes, and tables of others tell more about "
        "them. Standard errors and intervals tell of the noise of the release, and of drawing records, alone."
    ),
}


def answer_headings(answer: Answer, level: float) -> tuple[str, ...]:
    """The columns of ``answer_rows``; those after the attributes are numbers."""
    return (*answer.attributes, "count", "± standard error", f"{_percent(level)} interval")


def answer_rows(answer: Answer, level: float, most: int | None = None) -> list[tuple[str, ...]]:
    """A line for each count, or for the first so many."""
    *columns, count, error, low, high = (
        column.to_pylist() for column in answer.to_arrow(level).slice(0, most).itercolumns()
    )
    numbers = [
        (_rows(c), _rows(e), f"{_rows(a)} … {_rows(b)}") for c, e, a, b in zip(count, error, low, high, strict=True)
    ]
    return [(*values, *shown) for *values, shown in zip(*columns, numbers, strict=True)]


def answer_lines(answer: Answer, level: float) -> list[str]:
    """How the answer was come by, and how far it may be off for reasons that no standard error tells."""
    split = answer.how == "covered" and answer.split
    lines = [_HOW["split" if split else answer.how].format(level=_percent(level))]
    if answer.how != "covered":
        lines.append(_model_error(answer))
    if answer.split:
        lines.append(
            f"{', '.join(answer.split)}: asked for more finely than measured with others. Rows of a bin, or of rare "
            "values, are split by the released histogram of the attribute, as if they were spread alike in every cell."
        )
    return lines + [f"Note: {note}." for note in answer.notes]


def _model_error(answer: Answer) -> str:
    if answer.model_error is None:
        return "Nothing that was released tells how far counts are off besides."
    cells = "a count is" if answer.attributes else "the count is"
    return (
        f"Besides, {cells} off by about {plain(answer.model_error, 2)} rows, root mean square, because the tables do "
        "not tell all; that is judged by what was released."
    )


def _percent(level: float) -> str:
    return f"{plain(100 * level, 4)} %"


def _rows(number: float) -> str:
    """A number of rows: with a decimal where that is a tenth of it or more; what is next to nothing is not nothing."""
    if 0 < abs(number) < 0.05:
        return plain(number, 1)
    return f"{number:,.1f}" if abs(number) < 100 else f"{number:,.0f}"
