"""Answers to queries, and frequent itemsets with their rules, as rows of tables and sentences."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from dpsyn.report.numbers import format_count, format_number

if TYPE_CHECKING:
    from dpsyn.itemsets import FrequentItemsets
    from dpsyn.query import Answer


_SOURCE_NOTES = {
    "covered": (
        "Covered: a released marginal contains all of these attributes. An interval contains the true count with "
        "probability {confidence}; it is centered at the count before negative counts were removed."
    ),
    "interpolated": (
        "Covered, but finer than measured: a released marginal contains all of these attributes with coarser values. "
        "Standard errors and intervals account for the privacy noise only."
    ),
    "reconstructed": (
        "Reconstructed: no released marginal contains all of these attributes, so the counts were estimated from "
        "marginals of some of them."
    ),
    "model": (
        "From the fitted model: no released marginal contains all of these attributes, and marginals with other "
        "attributes add information about them."
    ),
}


def answer_headings(answer: Answer, confidence: float) -> tuple[str, ...]:
    """The columns of ``answer_rows``; those after the attributes are numbers."""
    noise = () if answer.source == "covered" else ("of which noise",)
    return (*answer.attributes, "count", "± standard error", *noise, f"{_format_confidence(confidence)} interval")


def answer_rows(answer: Answer, confidence: float, max_rows: int | None = None) -> list[tuple[str, ...]]:
    """A row of text for each count, or for the first ``max_rows`` counts."""
    low, high = answer.interval(confidence)
    errors = (answer.total_errors,) if answer.source == "covered" else (answer.total_errors, answer.standard_errors)
    columns = [array.ravel()[:max_rows].tolist() for array in (answer.counts, *errors, low, high)]
    rows = [[_format_row_count(number) for number in numbers] for numbers in zip(*columns, strict=True)]
    return [
        (*labels, *texts[:-2], f"{texts[-2]} … {texts[-1]}")
        for labels, texts in zip(product(*answer.labels), rows, strict=False)
    ]


def answer_lines(answer: Answer, confidence: float) -> list[str]:
    """How the answer was computed, and which errors its standard errors include."""
    interpolated = answer.source == "covered" and answer.interpolated_attributes
    note = _SOURCE_NOTES["interpolated" if interpolated else answer.source]
    lines = [note.format(confidence=_format_confidence(confidence))]
    if answer.source != "covered":
        lines.append(_model_error_line(answer))
    if answer.interpolated_attributes:
        lines.append(
            f"{', '.join(answer.interpolated_attributes)}: the query is finer than what was measured together with the "
            "other attributes. Rows of a bin, or of merged rare values, are divided by the released histogram of the "
            "attribute, as if its shares were the same in every cell."
        )
    return lines + [f"Note: {note}." for note in answer.notes]


def _model_error_line(answer: Answer) -> str:
    if answer.model_error is None:
        return (
            "Standard errors and intervals account for the privacy noise and the sampling of records only; the model "
            "error, which comes in addition, is not known."
        )
    return (
        "Standard errors and intervals include the model error, because the released marginals do not determine the "
        f"counts: about {format_number(answer.model_error, 2)} rows (root mean square)."
    )


def _format_confidence(confidence: float) -> str:
    return f"{format_number(100 * confidence, 4)} %"


def _format_row_count(number: float) -> str:
    """A number of rows: with one decimal below 100, and never rounded to 0 unless it is 0."""
    if 0 < abs(number) < 0.05:
        return format_number(number, 1)
    return f"{number:,.1f}" if abs(number) < 100 else f"{number:,.0f}"


# ── frequent itemsets and association rules ──────────────────────────────────────────────────────────────────


ITEMSET_HEADINGS = ("", "items", "baskets", "±", "frequency")
"""The columns of ``itemset_rows``; all but the second are numbers."""

RULE_HEADINGS = ("given → then", "confidence", "±", "lift", "baskets")
"""The columns of ``rule_rows``; all but the first are numbers."""


def itemset_title(result: FrequentItemsets) -> str:
    """How many itemsets there are, of how many baskets."""
    return f"{format_count(len(result.itemsets), 'itemset')} of about {round(result.baskets):,} baskets"


def itemset_rows(result: FrequentItemsets) -> list[tuple[str, ...]]:
    """A row of text for every itemset: its rank, items, count, standard error and share of the baskets."""
    return [
        (
            str(rank),
            ", ".join(itemset.items),
            format_number(round(itemset.count)),
            format_number(itemset.std, 2),
            _format_share(itemset.frequency),
        )
        for rank, itemset in enumerate(result.itemsets, start=1)
    ]


def rule_rows(result: FrequentItemsets, confidence: float) -> list[tuple[str, ...]]:
    """A row of text for every association rule with at least this confidence."""
    return [
        (
            f"{', '.join(rule.antecedent)} → {', '.join(rule.consequent)}",
            _format_share(rule.confidence),
            _format_share(rule.standard_error),
            format_number(rule.lift, 3),
            format_number(round(rule.count)),
        )
        for rule in result.association_rules(confidence)
    ]


def _format_share(share: float) -> str:
    return f"{100 * share:.1f} %"
