"""What a synopsis says about some attributes, in lines of a table and in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpsyn.report.numbers import format_count, format_number

if TYPE_CHECKING:
    from dpsyn.itemsets import FrequentItemsets
    from dpsyn.query import Answer


_SOURCE_NOTES = {
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
    return (*answer.attributes, "count", "± standard error", f"{_format_level(level)} interval")


def answer_rows(answer: Answer, level: float, max_rows: int | None = None) -> list[tuple[str, ...]]:
    """A line for each count, or for the first so many."""
    *columns, count, error, low, high = (
        column.to_pylist() for column in answer.to_arrow(level).slice(0, max_rows).itercolumns()
    )
    numbers = [
        (_format_row_count(c), _format_row_count(e), f"{_format_row_count(a)} … {_format_row_count(b)}")
        for c, e, a, b in zip(count, error, low, high, strict=True)
    ]
    return [(*values, *shown) for *values, shown in zip(*columns, numbers, strict=True)]


def answer_lines(answer: Answer, level: float) -> list[str]:
    """How the answer was come by, and how far it may be off for reasons that no standard error tells."""
    split = answer.source == "covered" and answer.interpolated_attributes
    lines = [_SOURCE_NOTES["split" if split else answer.source].format(level=_format_level(level))]
    if answer.source != "covered":
        lines.append(_model_error_line(answer))
    if answer.interpolated_attributes:
        lines.append(
            f"{', '.join(answer.interpolated_attributes)}: asked for more finely than measured with others. Rows of a bin, or of rare "
            "values, are split by the released histogram of the attribute, as if they were spread alike in every cell."
        )
    return lines + [f"Note: {note}." for note in answer.notes]


def _model_error_line(answer: Answer) -> str:
    if answer.model_error is None:
        return "Nothing that was released tells how far counts are off besides."
    cells = "a count is" if answer.attributes else "the count is"
    return (
        f"Besides, {cells} off by about {format_number(answer.model_error, 2)} rows, root mean square, because the tables do "
        "not tell all; that is judged by what was released."
    )


def _format_level(level: float) -> str:
    return f"{format_number(100 * level, 4)} %"


def _format_row_count(number: float) -> str:
    """A number of rows: with a decimal where that is a tenth of it or more; what is next to nothing is not nothing."""
    if 0 < abs(number) < 0.05:
        return format_number(number, 1)
    return f"{number:,.1f}" if abs(number) < 100 else f"{number:,.0f}"


# ── Frequent itemsets and rules as people read them ──


ITEMSET_HEADINGS = ("", "items", "baskets", "±", "part")
"""The columns of ``itemset_rows``; all but the second are numbers."""

RULE_HEADINGS = ("given → then", "confidence", "±", "lift", "baskets")
"""The columns of ``rule_rows``; all but the first are numbers."""


def itemset_title(found: FrequentItemsets) -> str:
    """How many itemsets there are, of how many baskets."""
    return f"{format_count(len(found.itemsets), 'itemset')} of about {round(found.baskets):,} baskets"


def itemset_rows(found: FrequentItemsets) -> list[tuple[str, ...]]:
    """A row of text for every itemset: its rank, items, count, standard error and part of the baskets."""
    return [
        (
            str(rank),
            ", ".join(itemset.items),
            format_number(round(itemset.count)),
            format_number(itemset.std, 2),
            _format_share(itemset.frequency),
        )
        for rank, itemset in enumerate(found.itemsets, start=1)
    ]


def rule_rows(found: FrequentItemsets, confidence: float) -> list[tuple[str, ...]]:
    """A row of text for every rule of at least some confidence."""
    return [
        (
            f"{', '.join(rule.antecedent)} → {', '.join(rule.consequent)}",
            _format_share(rule.confidence),
            _format_share(rule.standard_error),
            format_number(rule.lift, 3),
            format_number(round(rule.count)),
        )
        for rule in found.association_rules(confidence)
    ]


def _format_share(share: float) -> str:
    return f"{100 * share:.1f} %"
