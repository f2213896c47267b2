"""The content of a synopsis as text and as plain data: its releases, and what each spent its budget on."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from dpsyn.accounting import Gaussian, Laplace, PartitionSelection
from dpsyn.accounting.certificate import PRIVACY_FLAG
from dpsyn.forecasts.reached import predict_reached
from dpsyn.inference import describe_trust, iterate_marginals
from dpsyn.report.content import Guarantee, SpendingTable
from dpsyn.report.ledger import NOT_PRIVATE
from dpsyn.report.numbers import format_count, format_number
from dpsyn.synopsis.guarantee import NOT_VERIFIED, describe_combined_cost, is_private, release_text

if TYPE_CHECKING:
    from dpsyn.accounting import MeasurementRecord, MechanismCost
    from dpsyn.inference import Release, Scores
    from dpsyn.synopsis import Synopsis

SPENDING_HEADINGS = ("measurement", "cells", "noise σ", "share of budget")
"""The columns of ``spending_rows``; all but the first are numbers."""

_MAX_SHOWN = 5
"""Scores, and recoded attributes, that are listed."""

_UNKNOWN_CELL = "—"

_WAYS = {1: "one", 2: "two", 3: "three", 4: "four"}


@dataclass(frozen=True, slots=True)
class SpendingEntry:
    """One measurement and its cost.

    Attributes:
        purpose: the attributes of a marginal, or the purpose of another measurement.
        cells: how many cells a marginal has.
        std: the standard deviation of the noise; None if the mechanism adds none.
        rho: its cost in zCDP; None if the certificate has no such measurement.
        budget_share: the share of the budget: of ρ, or of ε if all mechanisms are pure.
        ways: how many attributes a marginal has; 0 for other measurements.
    """

    purpose: str
    cells: int | None
    std: float | None
    rho: float | None
    budget_share: float | None
    ways: int = 0


# ── text ─────────────────────────────────────────────────────────────────────────────────────────────────────


def overview_lines(synopsis: Synopsis) -> list[str]:
    """The dataset and releases, the combined cost, and the model that rows are sampled from."""
    dataset = f" of {synopsis.schema.dataset}" if synopsis.schema.dataset else ""
    return [
        f"Synopsis{dataset}: {format_count(len(synopsis.releases), 'release')}, "
        f"{format_count(len(synopsis.model.recoding.origin), 'attribute')}, "
        f"about {round(synopsis.model.total):,} rows.",
        *privacy_warning_lines(synopsis),
        *describe_combined_cost(synopsis.releases),
        _model_line(synopsis),
        *independence_lines(synopsis),
        *public_lines(synopsis),
        *_recoding_lines(synopsis),
    ]


def privacy_warning_lines(synopsis: Synopsis) -> list[str]:
    """A warning if the numbers are not private, or if their guarantee is not verified; else nothing."""
    warnings = {True: [], False: [f"{NOT_PRIVATE}: publish nothing that is made from it."], None: [NOT_VERIFIED]}
    return warnings[is_private(synopsis.releases)]


def independence_lines(synopsis: Synopsis) -> list[str]:
    """A sentence if only one-way marginals were measured, so that the rows have no dependence; else nothing."""
    follows_public = any(release.public and release.public.pairs for release in synopsis.releases)
    if pairs_were_measured(synopsis) or follows_public:
        return []
    declared = bool(synopsis.schema.rules or synopsis.schema.derive)
    kept = ", beyond what the schema derives or constrains" if declared else ""
    return [
        "No pair of attributes was measured: rows are sampled column by column, as if attributes were independent of "
        f"each other{kept}."
    ]


def public_lines(synopsis: Synopsis) -> list[str]:
    """How far each release trusts public rows that were a prior, and for what."""
    return [trust.description for release in synopsis.releases if (trust := describe_trust(release)) is not None]


def pairs_were_measured(synopsis: Synopsis) -> bool:
    """Whether a release tells how any two attributes depend on each other; true if there is only one attribute.

    A joint attribute, a difference between two attributes and a Fourier coefficient of several attributes do, too.
    """
    coefficients = (each for release in synopsis.releases for each in release.scores if not each.are_distances)
    return (
        len(synopsis.model.recoding.origin) == 1
        or any(
            len(marginal.clique) > 1 or recoding.joint_parts or recoding.difference_codings
            for recoding, marginal in iterate_marginals(synopsis.releases)
        )
        or any(len(clique) > 1 for each in coefficients for clique in each.cliques)
    )


def forecast_lines(synopsis: Synopsis) -> list[str]:
    """What the release reached, as its own numbers tell, beside the forecast; nothing if its cost is not certified."""
    reached = predict_reached(synopsis)
    return [reached.description] if reached else []


def release_lines(release: Release) -> list[str]:
    """The guarantee of a release and what was declared public; ``spending_rows`` lists its measurements."""
    return release_text(release, measurements=False).rstrip("\n").split("\n")


def spending_rows(release: Release) -> list[tuple[str, ...]]:
    """A row of text for every measurement, in the order of charging, and one for the unspent budget."""
    entries = spending_entries(release)
    rows: list[tuple[str, ...]] = [
        (
            entry.purpose,
            _UNKNOWN_CELL if entry.cells is None else f"{entry.cells:,}",
            _UNKNOWN_CELL if entry.std is None else format_number(entry.std, 4),
            _UNKNOWN_CELL if entry.budget_share is None else _format_share(entry.budget_share),
        )
        for entry in entries
    ]
    unspent = 1 - sum(entry.budget_share or 0.0 for entry in entries) if release.certificate else 0.0
    return rows + ([("not spent", _UNKNOWN_CELL, _UNKNOWN_CELL, _format_share(unspent))] if unspent >= 0.0005 else [])


def score_lines(release: Release) -> list[str]:
    """A line for each set of scores: their number, their noise, and the highest."""
    return [_score_line(scores) for scores in release.scores]


def spending_entries(release: Release) -> list[SpendingEntry]:
    """Every measurement of the certificate; marginals that it does not list come last, without a cost."""
    records = release.certificate.account.measurements if release.certificate else ()
    unmatched = [marginal for measurement_round in release.rounds for marginal in measurement_round.marginals]
    entries = []
    for record in records:
        std, rho, share = _noise_std(record.cost), float(record.cost.rho), _budget_share(record.cost, release)
        marginal = next((m for m in unmatched if _is_measurement_of(record, m.clique) and m.std == std), None)
        if marginal is None:
            entries.append(SpendingEntry(record.purpose, None, std, rho, share))
        else:
            unmatched = [other for other in unmatched if other is not marginal]
            clique = marginal.clique
            entries.append(SpendingEntry(", ".join(clique), marginal.raw.size, std, rho, share, len(clique)))
    return entries + [
        SpendingEntry(", ".join(m.clique), m.raw.size, m.std, None, None, len(m.clique)) for m in unmatched
    ]


def spending_line(release: Release) -> str:
    """What a release spent its budget on, in one sentence; empty if that is not known."""
    entries = [entry for entry in spending_entries(release) if entry.budget_share is not None]
    parts = []
    for ways in sorted({entry.ways for entry in entries}, key=lambda ways: ways or math.inf):
        shares = [entry.budget_share or 0.0 for entry in entries if entry.ways == ways]
        noun = f"{_WAYS.get(ways, ways)}-way marginal" if ways else "other measurement"
        parts.append(f"{_format_share(sum(shares))} on {format_count(len(shares), noun)}")
    return f"The budget was spent: {', '.join(parts)}." if parts else ""


def _budget_share(cost: MechanismCost, release: Release) -> float:
    """The share of the budget that a measurement cost: in ε if all mechanisms are pure, else in ρ."""
    budget = release.certificate.account.budget if release.certificate else None
    if budget is None or not budget.reserved_rho:
        return 0.0
    return float(cost.rho / budget.reserved_rho if budget.rho else sum(cost.pure_epsilons) / sum(budget.pure_epsilons))


def _is_measurement_of(record: MeasurementRecord, clique: tuple[str, ...]) -> bool:
    return re.sub(r" \([0-9,]+ cells\)$", "", record.purpose).endswith(f" of {', '.join(clique)}")


def _noise_std(cost: MechanismCost) -> float | None:
    match cost:
        case Gaussian() | Laplace():
            return cost.std
        case PartitionSelection():
            return _noise_std(cost.noise)
    return None


def _format_share(share: float) -> str:
    return f"{format_number(100 * share, 2)} %"


def _score_line(scores: Scores) -> str:
    summary = f"{scores.kind}: {format_count(len(scores.cliques), 'score')}, noise σ = {format_number(scores.std, 4)}"
    highest = sorted(zip(scores.values.tolist(), scores.cliques, strict=True), reverse=True)[:_MAX_SHOWN]
    listed = [f"{', '.join(clique)} {format_number(value, 4)}" for value, clique in highest]
    return f"{summary}; highest: {'; '.join(listed)}" if listed else summary


def _model_line(synopsis: Synopsis) -> str:
    tables = synopsis.model.tables
    largest = max(tables, key=lambda table: table.values.size)
    cells = sum(table.values.size for table in tables)
    return (
        f"Model: {format_count(len(tables), 'table')} of {cells:,} cells in all; the largest, of "
        f"{', '.join(largest.clique)}, has {largest.values.size:,}."
    )


def _recoding_lines(synopsis: Synopsis) -> Iterator[str]:
    """The attributes of the model whose values differ from the finest ones of the schema."""
    origin = synopsis.model.recoding.origin
    changed = []
    for column in synopsis.model.recoding.columns:
        names = " and ".join(origin[source][0] for source in column.sources)
        original_size = math.prod(origin[source][1] for source in column.sources)
        if original_size != column.size or len(column.sources) > 1:
            name = f"{column.name} from {names}" if len(column.sources) > 1 else column.name
            changed.append(f"{name} ({original_size:,} → {column.size:,})")
    if changed:
        more = f" and {len(changed) - _MAX_SHOWN} more" if len(changed) > _MAX_SHOWN else ""
        yield f"Merged or joined values: {', '.join(changed[:_MAX_SHOWN])}{more}."


# ── plain data ───────────────────────────────────────────────────────────────────────────────────────────────


def synopsis_data(synopsis: Synopsis) -> dict[str, Any]:
    """The content of a synopsis as plain data for JSON."""
    return {
        "dataset": synopsis.schema.dataset,
        PRIVACY_FLAG: is_private(synopsis.releases),
        "releases": [_release_data(release) for release in synopsis.releases],
        "together": describe_combined_cost(synopsis.releases),
        "forecast": msgspec.to_builtins(predict_reached(synopsis)),
        "pairs_measured": pairs_were_measured(synopsis),
        "public": [msgspec.to_builtins(trust) for release in synopsis.releases if (trust := describe_trust(release))],
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
        "spending": [
            {
                "purpose": entry.purpose,
                "cells": entry.cells,
                "std": entry.std,
                "rho": entry.rho,
                "budget_share": entry.budget_share,
            }
            for entry in spending_entries(release)
        ],
        "scores": [
            {
                "kind": scores.kind,
                "std": scores.std,
                "values": [
                    {"attributes": list(clique), "score": value}
                    for clique, value in zip(scores.cliques, scores.values.tolist(), strict=True)
                ],
            }
            for scores in release.scores
        ],
    }


# ── HTML page ────────────────────────────────────────────────────────────────────────────────────────────────


def describe_guarantee(synopsis: Synopsis) -> Guarantee:
    """The guarantees of all releases and what each spent its budget on."""
    paragraphs = []
    for number, release in enumerate(synopsis.releases, start=1):
        if len(synopsis.releases) > 1:
            paragraphs.append(f"Release {number} of {len(synopsis.releases)}: {release.title}")
        paragraphs += [*_release_paragraphs(release), spending_line(release)]
    return Guarantee(
        facts=tuple(_guarantee_facts(synopsis)),
        paragraphs=(*filter(None, paragraphs), *overview_lines(synopsis)[1:]),
        spending=tuple(
            SpendingTable(headings=SPENDING_HEADINGS, rows=tuple(spending_rows(r))) for r in synopsis.releases
        ),
    )


def _release_paragraphs(release: Release) -> Sequence[str]:
    if release.certificate:
        return release.certificate.paragraphs(measurements=False)
    return release_text(release, measurements=False).strip().split("\n\n")


def _guarantee_facts(synopsis: Synopsis) -> list[tuple[str, str]]:
    rounds = [measurement_round for release in synopsis.releases for measurement_round in release.rounds]
    marginals = sum(len(measurement_round.marginals) for measurement_round in rounds)
    return [
        *map(_budget_fact, synopsis.releases),
        (f"{marginals:,}", "noisy marginals were released"),
        (f"{synopsis.rows:,}", "rows, by the released estimate"),
        (f"{len(synopsis.model.recoding.origin):,}", "attributes"),
    ]


def _budget_fact(release: Release) -> tuple[str, str]:
    if release.certificate is None:
        return "unknown", "guarantee of counts that were measured elsewhere"
    measurements = format_count(len(release.certificate.account.measurements), "measurement")
    return release.certificate.guarantee, f"guaranteed; {measurements}"
