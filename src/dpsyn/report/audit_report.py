"""The result of an audit, as text for the terminal and as an HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING

from dpsyn.audits.results import FAMILYWISE_ERROR, REDUCTIONS
from dpsyn.report.html_page import render_template
from dpsyn.report.numbers import format_count
from dpsyn.report.release_facts import page_facts

if TYPE_CHECKING:
    from dpsyn.audits.results import AuditReport, BoundFinding

_LESS = [f"{100 * reduction:.0f} %" for reduction in REDUCTIONS]

REPLAY_HEADINGS = ("replayed on neighboring tables", "pairs of tables", "answers", "largest change / charge", "")
NOISE_HEADINGS = (
    "noise of",
    "mechanism",
    "values",
    "std / stated",
    "p: scale",
    "p: distribution",
    "p: independence",
    *(f"finds {less} less" for less in _LESS),
)
BOUND_HEADINGS = (
    "canaries in",
    "",
    "runs a side",
    "claim",
    "reached",
    "lower bound",
    "of the claim",
    "at 95 %",
    *(f"if noise were {less} less" for less in _LESS),
)

EXPLANATION = (
    "All statistical tests together report a fault of a sound installation with a probability of at most "
    f"{FAMILYWISE_ERROR:g}. Replay is exact: a change above 1 is a fault. A lower bound above its claim is a fault; "
    "one far below it shows that there were few runs, not that there is more privacy. The last columns state what this "
    "audit would have found had there been less noise: * is a fault. Reached is the loss that the two tables "
    "can cause at most."
)


def replay_rows(report: AuditReport) -> list[Sequence[str]]:
    """A row of text for each program that was replayed."""
    return [
        (each.name, f"{each.pairs:,}", f"{each.answers:,}", f"{each.largest:.3f}", "FAULT" if each.faults else "")
        for each in report.replays
    ]


def noise_rows(report: AuditReport) -> list[Sequence[str]]:
    """A row of text for each mechanism of each case."""
    return [
        (
            each.name,
            each.mechanism,
            f"{each.values:,}",
            "–" if each.ratio is None else f"{each.ratio:.3f}",
            *(f"{each.p_values[test]:.2g}" for test in ("scale", "distribution", "independence")),
            *([f"{power:.2f}" for power in each.power] or ["–"] * len(REDUCTIONS)),
        )
        for each in report.noise
    ]


def bound_rows(report: AuditReport) -> list[Sequence[str]]:
    """A row of text for each lower bound."""
    return [
        (
            each.name,
            each.measure,
            f"{each.runs:,}",
            f"{each.claim:.3f}",
            "–" if each.reached is None else f"{each.reached:.3f}",
            f"{each.bound:.3f}",
            f"{each.share:.2f}",
            f"{each.likely:.3f}",
            *_format_less_noise(each),
        )
        for each in report.bounds
    ]


def _format_less_noise(finding: BoundFinding) -> list[str]:
    pairs = zip(finding.with_less_noise, finding.would_be_found, strict=True)
    return [f"{bound:.3f}{'*' if found else ''}" for bound, found in pairs]


def audit_page(report: AuditReport, *, made: date | None = None) -> str:
    """One HTML file without scripts."""
    seconds = format_count(round(report.seconds), "second")
    return render_template(
        "audit.html",
        scripted=False,
        facts=(*page_facts(None, made), ("runs", f"{report.runs:,} a side"), ("took", seconds)),
        report=report,
        explanation=EXPLANATION,
        replay_headings=REPLAY_HEADINGS,
        replay_rows=replay_rows(report),
        noise_headings=NOISE_HEADINGS,
        noise_rows=noise_rows(report),
        bound_headings=BOUND_HEADINGS,
        bound_rows=bound_rows(report),
    )
