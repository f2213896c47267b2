"""Certificate and budget of a synopsis, for a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpsyn.report.content import Guarantee, Payments
from dpsyn.report.numbers import counted, plain
from dpsyn.report.synopsis import (
    PAYMENT_HEADINGS,
    overview_lines,
    payment_rows,
    release_lines,
    spending_line,
)

if TYPE_CHECKING:
    from dpsyn.synopsis import Release, Synopsis


def guarantee_of(synopsis: Synopsis) -> Guarantee:
    """What was promised and what it was spent on, in words and draw by draw."""
    paragraphs = []
    for number, release in enumerate(synopsis.releases, start=1):
        if len(synopsis.releases) > 1:
            paragraphs.append(f"Release {number} of {len(synopsis.releases)}, by the recipe {release.recipe}:")
        blocks = "\n".join(release_lines(release)).split("\n\n")
        paragraphs += [*(block for block in blocks if block.strip()), spending_line(release)]
    return Guarantee(
        facts=tuple(_facts(synopsis)),
        paragraphs=(*filter(None, paragraphs), *overview_lines(synopsis)[1:]),
        payments=tuple(Payments(headings=PAYMENT_HEADINGS, rows=tuple(payment_rows(r))) for r in synopsis.releases),
    )


def _facts(synopsis: Synopsis) -> list[tuple[str, str]]:
    marginals = sum(len(stage.marginals) for release in synopsis.releases for stage in release.stages)
    return [
        *map(_promise, synopsis.releases),
        (f"{marginals:,}", "noisy marginals were released"),
        (f"{synopsis.rows:,}", "rows, by the released estimate"),
        (f"{len(synopsis.model.recoding.origin):,}", "attributes"),
    ]


def _promise(release: Release) -> tuple[str, str]:
    if release.certificate is None:
        return "unknown", "promise of counts that were measured elsewhere"
    budget = release.certificate.account.budget
    figures = f"ε = {plain(float(budget.epsilon))}, δ = {plain(float(budget.delta))}"
    return figures, f"promised; {counted(len(release.certificate.account.draws), 'draw')}"
