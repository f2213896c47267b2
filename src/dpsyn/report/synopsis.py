"""What is in a synopsis, in words for its reader and as plain data: who paid what for which number."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpsyn.accounting import Gaussian, Laplace, PartitionSelection
from dpsyn.accounting.certificate import PRIVACY_FLAG
from dpsyn.report.content import Guarantee, SpendingTable
from dpsyn.report.ledger import NOT_PRIVATE
from dpsyn.report.numbers import format_count, format_number
from dpsyn.synopsis.guarantee import NOT_VERIFIED, describe_combined_cost, is_private, release_text

if TYPE_CHECKING:
    from dpsyn.accounting import MeasurementRecord, MechanismCost
    from dpsyn.inference import Release, Scores
    from dpsyn.synopsis import Synopsis


SPENDING_HEADINGS = ("measured", "cells", "noise σ", "share")
"""The columns of ``payment_rows``; all but the first are numbers."""

_MAX_SHOWN = 5
"""Scores, and changed attributes, that are named."""

_UNKNOWN_CELL = "—"


@dataclass(frozen=True, slots=True)
class SpendingEntry:
    """What was bought by one draw.

    Attributes:
        purpose: the attributes of a marginal, or what else the draw was for.
        cells: how many numbers a marginal has.
        std: the standard deviation of the noise; None where the step adds none.
        rho: its cost in zCDP; None if no draw of a certificate is known for it.
        budget_share: the part of what was promised: of ρ, or of ε where all steps are pure.
        ways: how many attributes a marginal has; 0 if it was something else.
    """

    purpose: str
    cells: int | None
    std: float | None
    rho: float | None
    budget_share: float | None
    ways: int = 0


# ── words ────────────────────────────────────────────────────────────────────────────────────────────────────


def overview_lines(synopsis: Synopsis) -> list[str]:
    """What the synopsis is of, what it costs in all, and what rows are drawn from."""
    named = f" of {synopsis.schema.dataset}" if synopsis.schema.dataset else ""
    return [
        f"Synopsis{named}: {format_count(len(synopsis.releases), 'release')}, "
        f"{format_count(len(synopsis.model.recoding.origin), 'attribute')}, "
        f"about {round(synopsis.model.total):,} rows.",
        *privacy_warning_lines(synopsis),
        *describe_combined_cost(synopsis.releases),
        _model_line(synopsis),
        *_recoding_lines(synopsis),
    ]


def privacy_warning_lines(synopsis: Synopsis) -> list[str]:
    """What must be said of numbers that are not private, or of which nobody here knows; nothing of others."""
    stamps = {True: [], False: [f"{NOT_PRIVATE}: publish nothing that is made from it."], None: [NOT_VERIFIED]}
    return stamps[is_private(synopsis.releases)]


def release_lines(release: Release) -> list[str]:
    """The guarantee of a release and what was declared public; ``payment_rows`` tells of its draws."""
    return release_text(release, measurements=False).rstrip("\n").split("\n")


def spending_rows(release: Release) -> list[tuple[str, ...]]:
    """A row of text for every draw, in the order of paying, and for what of the promise was not spent."""
    paid = spending_entries(release)
    rows: list[tuple[str, ...]] = [
        (
            payment.purpose,
            _UNKNOWN_CELL if payment.cells is None else f"{payment.cells:,}",
            _UNKNOWN_CELL if payment.std is None else format_number(payment.std, 4),
            _UNKNOWN_CELL if payment.budget_share is None else _format_share(payment.budget_share),
        )
        for payment in paid
    ]
    left = 1 - sum(payment.budget_share or 0.0 for payment in paid) if release.certificate else 0.0
    return rows + ([("not spent", _UNKNOWN_CELL, _UNKNOWN_CELL, _format_share(left))] if left >= 0.0005 else [])


def score_lines(release: Release) -> list[str]:
    """A line for each set of scores: how many, how noisy, and the highest."""
    return [_score_line(scores) for scores in release.scores]


def spending_entries(release: Release) -> list[SpendingEntry]:
    """What was bought by each draw; marginals for which no draw is known come last, without a price."""
    draws = release.certificate.account.measurements if release.certificate else ()
    waiting = [marginal for stage in release.rounds for marginal in stage.marginals]
    found = []
    for draw in draws:
        deviation = _noise_std(draw.cost)
        bought = next((m for m in waiting if _is_measurement_of(draw, m.clique) and m.std == deviation), None)
        waiting = [marginal for marginal in waiting if marginal is not bought]
        what, cells = (", ".join(bought.clique), bought.raw.size) if bought else (draw.purpose, None)
        ways = len(bought.clique) if bought else 0
        found.append(
            SpendingEntry(what, cells, deviation, float(draw.cost.rho), _budget_share(draw.cost, release), ways)
        )
    return found + [SpendingEntry(", ".join(m.clique), m.raw.size, m.std, None, None, len(m.clique)) for m in waiting]


def spending_line(release: Release) -> str:
    """What the budget of a release went to, in a sentence; empty if it is not known."""
    paid = [payment for payment in spending_entries(release) if payment.budget_share is not None]
    parts = []
    for ways in sorted({payment.ways for payment in paid}, key=lambda ways: ways or math.inf):
        same = [payment for payment in paid if payment.ways == ways]
        noun = f"{ways}-way marginal" if ways else "other draw"
        parts.append(
            f"{_format_share(sum(payment.budget_share or 0.0 for payment in same))} on {format_count(len(same), noun)}"
        )
    return f"The budget was spent: {', '.join(parts)}." if parts else ""


def _budget_share(spend: MechanismCost, release: Release) -> float:
    """The part of the promise that a step took: pure steps add up in ε, others in ρ."""
    budget = release.certificate.account.budget if release.certificate else None
    if budget is None or not budget.reserved_rho:
        return 0.0
    return float(
        spend.rho / budget.reserved_rho if budget.rho else sum(spend.pure_epsilons) / sum(budget.pure_epsilons)
    )


def _is_measurement_of(draw: MeasurementRecord, clique: tuple[str, ...]) -> bool:
    return re.sub(r" \([0-9,]+ cells\)$", "", draw.purpose).endswith(f" of {', '.join(clique)}")


def _noise_std(spend: MechanismCost) -> float | None:
    match spend:
        case Gaussian():
            return spend.sigma
        case Laplace():
            return math.sqrt(2) * spend.scale
        case PartitionSelection():
            return _noise_std(spend.noise)
    return None


def _format_share(share: float) -> str:
    return f"{format_number(100 * share, 2)} %"


def _score_line(scores: Scores) -> str:
    told = f"{scores.kind}: {format_count(len(scores.cliques), 'score')}, noise σ = {format_number(scores.std, 4)}"
    highest = sorted(zip(scores.values.tolist(), scores.cliques, strict=True), reverse=True)[:_MAX_SHOWN]
    shown = [f"{', '.join(clique)} {format_number(value, 4)}" for value, clique in highest]
    return f"{told}; highest: {'; '.join(shown)}" if shown else told


def _model_line(synopsis: Synopsis) -> str:
    tables = synopsis.model.tables
    largest = max(tables, key=lambda table: table.values.size)
    cells = sum(table.values.size for table in tables)
    return (
        f"Model: {format_count(len(tables), 'table')} of {cells:,} cells in all; the largest, of "
        f"{', '.join(largest.clique)}, has {largest.values.size:,}."
    )


def _recoding_lines(synopsis: Synopsis) -> Iterator[str]:
    """The attributes of the model that are not those of the schema at their finest."""
    origin = synopsis.model.recoding.origin
    changed = []
    for column in synopsis.model.recoding.columns:
        names = " and ".join(origin[source][0] for source in column.sources)
        before = math.prod(origin[source][1] for source in column.sources)
        if before != column.size or len(column.sources) > 1:
            joined = f"{column.name} from {names}" if len(column.sources) > 1 else column.name
            changed.append(f"{joined} ({before:,} → {column.size:,})")
    if changed:
        more = f" and {len(changed) - _MAX_SHOWN} more" if len(changed) > _MAX_SHOWN else ""
        yield f"Merged or joined values: {', '.join(changed[:_MAX_SHOWN])}{more}."


# ── plain data ───────────────────────────────────────────────────────────────────────────────────────────────


def synopsis_data(synopsis: Synopsis) -> dict[str, Any]:
    """All of the above as plain data for JSON."""
    return {
        "dataset": synopsis.schema.dataset,
        PRIVACY_FLAG: is_private(synopsis.releases),
        "releases": [_release_data(release) for release in synopsis.releases],
        "together": describe_combined_cost(synopsis.releases),
        "model": {
            "rows": synopsis.model.total,
            "attributes": [
                {
                    "name": column.name,
                    "sources": [synopsis.model.recoding.origin[source][0] for source in column.sources],
                    "codes": column.size,
                }
                for column in synopsis.model.recoding.columns
            ],
            "tables": [
                {"attributes": list(table.clique), "cells": table.values.size, "variance": table.variance}
                for table in synopsis.model.tables
            ],
        },
    }


def _release_data(release: Release) -> dict[str, Any]:
    return {
        "recipe": dict(release.recipe),
        "source": release.source,
        "verified": release.certificate is not None,
        "certificate": release.certificate.to_data() if release.certificate else None,
        "payments": [
            {"what": p.purpose, "cells": p.cells, "deviation": p.std, "rho": p.rho, "share": p.budget_share}
            for p in spending_entries(release)
        ],
        "scores": [
            {
                "kind": scores.kind,
                "deviation": scores.std,
                "values": [
                    {"attributes": list(clique), "score": value}
                    for clique, value in zip(scores.cliques, scores.values.tolist(), strict=True)
                ],
            }
            for scores in release.scores
        ],
    }


# ── Certificate and budget of a synopsis, for a page ──


def describe_guarantee(synopsis: Synopsis) -> Guarantee:
    """What was promised and what it was spent on, in words and draw by draw."""
    paragraphs = []
    for number, release in enumerate(synopsis.releases, start=1):
        if len(synopsis.releases) > 1:
            paragraphs.append(f"Release {number} of {len(synopsis.releases)}: {release.title}")
        blocks = "\n".join(release_lines(release)).split("\n\n")
        paragraphs += [*(block for block in blocks if block.strip()), spending_line(release)]
    return Guarantee(
        facts=tuple(_guarantee_facts(synopsis)),
        paragraphs=(*filter(None, paragraphs), *overview_lines(synopsis)[1:]),
        spending=tuple(
            SpendingTable(headings=SPENDING_HEADINGS, rows=tuple(spending_rows(r))) for r in synopsis.releases
        ),
    )


def _guarantee_facts(synopsis: Synopsis) -> list[tuple[str, str]]:
    marginals = sum(len(stage.marginals) for release in synopsis.releases for stage in release.rounds)
    return [
        *map(_budget_fact, synopsis.releases),
        (f"{marginals:,}", "noisy marginals were released"),
        (f"{synopsis.rows:,}", "rows, by the released estimate"),
        (f"{len(synopsis.model.recoding.origin):,}", "attributes"),
    ]


def _budget_fact(release: Release) -> tuple[str, str]:
    if release.certificate is None:
        return "unknown", "promise of counts that were measured elsewhere"
    budget = release.certificate.account.budget
    figures = f"ε = {format_number(float(budget.epsilon))}, δ = {format_number(float(budget.delta))}"
    return figures, f"promised; {format_count(len(release.certificate.account.measurements), 'draw')}"
