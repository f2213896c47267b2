"""What is in a synopsis, in words for its reader and as plain data: who paid what for which number."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpsyn.accounting import Gaussian, Laplace, Threshold
from dpsyn.accounting.certificate import STAMP
from dpsyn.report.ledger import NOT_PRIVATE
from dpsyn.report.numbers import counted, plain
from dpsyn.synopsis.guarantee import NOT_VERIFIED, is_private, release_text, together

if TYPE_CHECKING:
    from dpsyn.accounting import Draw, Spend
    from dpsyn.synopsis import Release, Scores, Synopsis

PAYMENT_HEADINGS = ("measured", "cells", "noise σ", "share")
"""The columns of ``payment_rows``; all but the first are numbers."""

_MOST_SHOWN = 5
"""Scores, and changed attributes, that are named."""

_UNKNOWN = "—"


@dataclass(frozen=True, slots=True)
class Payment:
    """What was bought by one draw.

    Attributes:
        what: the attributes of a marginal, or what else the draw was for.
        cells: how many numbers a marginal has.
        deviation: the standard deviation of the noise; None where the step adds none.
        rho: its cost in zCDP; None if no draw of a certificate is known for it.
        share: the part of what was promised: of ρ, or of ε where all steps are pure.
        ways: how many attributes a marginal has; 0 if it was something else.
    """

    what: str
    cells: int | None
    deviation: float | None
    rho: float | None
    share: float | None
    ways: int = 0


# ── words ────────────────────────────────────────────────────────────────────────────────────────────────────


def overview_lines(synopsis: Synopsis) -> list[str]:
    """What the synopsis is of, what it costs in all, and what rows are drawn from."""
    named = f" of {synopsis.schema.dataset}" if synopsis.schema.dataset else ""
    return [
        f"Synopsis{named}: {counted(len(synopsis.releases), 'release')}, "
        f"{counted(len(synopsis.model.recoding.origin), 'attribute')}, "
        f"about {round(synopsis.model.total):,} rows.",
        *stamp_lines(synopsis),
        *together(synopsis.releases),
        _model_line(synopsis),
        *_recoding_lines(synopsis),
    ]


def stamp_lines(synopsis: Synopsis) -> list[str]:
    """What must be said of numbers that are not private, or of which nobody here knows; nothing of others."""
    stamps = {True: [], False: [f"{NOT_PRIVATE}: publish nothing that is made from it."], None: [NOT_VERIFIED]}
    return stamps[is_private(synopsis.releases)]


def release_lines(release: Release) -> list[str]:
    """The guarantee of a release and what was declared public; ``payment_rows`` tells of its draws."""
    return release_text(release, draws=False).rstrip("\n").split("\n")


def payment_rows(release: Release) -> list[tuple[str, ...]]:
    """A row of text for every draw, in the order of paying, and for what of the promise was not spent."""
    paid = payments(release)
    rows: list[tuple[str, ...]] = [
        (
            payment.what,
            _UNKNOWN if payment.cells is None else f"{payment.cells:,}",
            _UNKNOWN if payment.deviation is None else plain(payment.deviation, 4),
            _UNKNOWN if payment.share is None else _percent(payment.share),
        )
        for payment in paid
    ]
    left = 1 - sum(payment.share or 0.0 for payment in paid) if release.certificate else 0.0
    return rows + ([("not spent", _UNKNOWN, _UNKNOWN, _percent(left))] if left >= 0.0005 else [])


def score_lines(release: Release) -> list[str]:
    """A line for each set of scores: how many, how noisy, and the highest."""
    return [_score_line(scores) for scores in release.scores]


def payments(release: Release) -> list[Payment]:
    """What was bought by each draw; marginals for which no draw is known come last, without a price."""
    draws = release.certificate.account.draws if release.certificate else ()
    waiting = [marginal for stage in release.stages for marginal in stage.marginals]
    found = []
    for draw in draws:
        deviation = _deviation(draw.spend)
        bought = next((m for m in waiting if _is_for(draw, m.clique) and m.deviation == deviation), None)
        waiting = [marginal for marginal in waiting if marginal is not bought]
        what, cells = (", ".join(bought.clique), bought.raw.size) if bought else (draw.purpose, None)
        ways = len(bought.clique) if bought else 0
        found.append(Payment(what, cells, deviation, float(draw.spend.rho), _share(draw.spend, release), ways))
    return found + [Payment(", ".join(m.clique), m.raw.size, m.deviation, None, None, len(m.clique)) for m in waiting]


def spending_line(release: Release) -> str:
    """What the budget of a release went to, in a sentence; empty if it is not known."""
    paid = [payment for payment in payments(release) if payment.share is not None]
    parts = []
    for ways in sorted({payment.ways for payment in paid}, key=lambda ways: ways or math.inf):
        same = [payment for payment in paid if payment.ways == ways]
        noun = f"{ways}-way marginal" if ways else "other draw"
        parts.append(f"{_percent(sum(payment.share or 0.0 for payment in same))} on {counted(len(same), noun)}")
    return f"The budget was spent: {', '.join(parts)}." if parts else ""


def _share(spend: Spend, release: Release) -> float:
    """The part of the promise that a step took: pure steps add up in ε, others in ρ."""
    budget = release.certificate.account.budget if release.certificate else None
    if budget is None or not budget.reserved_rho:
        return 0.0
    return float(spend.rho / budget.reserved_rho if budget.rho else sum(spend.pure) / sum(budget.pure))


def _is_for(draw: Draw, clique: tuple[str, ...]) -> bool:
    return re.sub(r" \([0-9,]+ cells\)$", "", draw.purpose).endswith(f" of {', '.join(clique)}")


def _deviation(spend: Spend) -> float | None:
    match spend:
        case Gaussian():
            return spend.sigma
        case Laplace():
            return math.sqrt(2) * spend.scale
        case Threshold():
            return _deviation(spend.noise)
    return None


def _percent(share: float) -> str:
    return f"{plain(100 * share, 2)} %"


def _score_line(scores: Scores) -> str:
    told = f"{scores.kind}: {counted(len(scores.cliques), 'score')}, noise σ = {plain(scores.deviation, 4)}"
    highest = sorted(zip(scores.values.tolist(), scores.cliques, strict=True), reverse=True)[:_MOST_SHOWN]
    shown = [f"{', '.join(clique)} {plain(value, 4)}" for value, clique in highest]
    return f"{told}; highest: {'; '.join(shown)}" if shown else told


def _model_line(synopsis: Synopsis) -> str:
    tables = synopsis.model.tables
    largest = max(tables, key=lambda table: table.values.size)
    cells = sum(table.values.size for table in tables)
    return (
        f"Model: {counted(len(tables), 'table')} of {cells:,} cells in all; the largest, of "
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
        more = f" and {len(changed) - _MOST_SHOWN} more" if len(changed) > _MOST_SHOWN else ""
        yield f"Merged or joined values: {', '.join(changed[:_MOST_SHOWN])}{more}."


# ── plain data ───────────────────────────────────────────────────────────────────────────────────────────────


def synopsis_data(synopsis: Synopsis) -> dict[str, Any]:
    """All of the above as plain data for JSON."""
    return {
        "dataset": synopsis.schema.dataset,
        STAMP: is_private(synopsis.releases),
        "releases": [_release_data(release) for release in synopsis.releases],
        "together": together(synopsis.releases),
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
        "recipe": release.recipe,
        "source": release.source,
        "verified": release.certificate is not None,
        "certificate": release.certificate.to_data() if release.certificate else None,
        "payments": [
            {"what": p.what, "cells": p.cells, "deviation": p.deviation, "rho": p.rho, "share": p.share}
            for p in payments(release)
        ],
        "scores": [
            {
                "kind": scores.kind,
                "deviation": scores.deviation,
                "values": [
                    {"attributes": list(clique), "score": value}
                    for clique, value in zip(scores.cliques, scores.values.tolist(), strict=True)
                ],
            }
            for scores in release.scores
        ],
    }
