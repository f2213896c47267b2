"""The ranking of a contest on generated data, as text and as an HTML page that may be published."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from typing import TYPE_CHECKING

from dpsyn.report.html_page import render_template
from dpsyn.report.numbers import format_count, format_number
from dpsyn.report.release_facts import page_facts

if TYPE_CHECKING:
    from dpsyn.contest import ContestRanking, SubmissionScore

EXPLANATION = (
    "Scores are points out of 1,000,000: the mean over all ε, where a table that was not submitted counts 0. A fresh "
    "sample is the development table, another sample of the same distribution. Shuffled columns are the evaluation "
    "table with each column shuffled by itself: they lost all dependence. * The certificate of the submitted synopsis "
    "is within the contest's ε and δ; the guarantee of other tables is for people to judge."
)

_ABSENT = "–"


def ranking_headings(ranking: ContestRanking) -> list[str]:
    """The columns of ``ranking_rows``; all but the first two are numbers."""
    return ["", "contestant", "score", *(f"ε = {format_number(epsilon)}" for epsilon in ranking.contest.epsilons)]


def ranking_rows(ranking: ContestRanking) -> list[tuple[str, ...]]:
    """A row of text for each contestant, the best first, and for both references."""
    rows = []
    for entry in ranking.submissions:
        by_epsilon = {table.epsilon: table for table in entry.tables}
        means = (_format_mean(by_epsilon.get(epsilon)) for epsilon in ranking.contest.epsilons)
        rows.append((f"{entry.rank}.", entry.name, _format_points(entry.score), *means))
    absent = [_ABSENT] * len(ranking.contest.epsilons)
    for name, reference in (("a fresh sample", ranking.fresh_sample), ("shuffled columns", ranking.shuffled)):
        rows.append(("", name, _format_points(reference.mean), *absent))
    return rows


def ranking_page(ranking: ContestRanking, *, made: date | None = None) -> str:
    """One HTML file without scripts: the terms, the ranking, and each metric of each table."""
    contest = ranking.contest
    terms = (
        f"{format_count(contest.rows, 'row')}, a development table of {format_count(contest.development_rows, 'row')}, "
        f"δ at most {format_number(contest.delta, 3)}, metrics of preset {contest.preset}, "
        f"{format_count(ranking.draws, 'draw')} of triples and queries. "
        f"SHA-256 of the hidden seed, the terms and the schema: {contest.commitment}"
    )
    return render_template(
        "ranking.html",
        scripted=False,
        terms=terms,
        facts=page_facts(None, made),
        explanation=EXPLANATION,
        ranking_headings=ranking_headings(ranking),
        ranking_rows=ranking_rows(ranking),
        metric_headings=_METRIC_HEADINGS,
        metric_rows=list(_metric_rows(ranking)),
    )


_METRIC_HEADINGS = ("contestant", "ε", "density", "range queries", "Gini and gender gap", "mean")


def _metric_rows(ranking: ContestRanking) -> Iterator[Sequence[str]]:
    for entry in ranking.submissions:
        for table in entry.tables:
            yield _metric_row(entry.name, table)
    yield _metric_row("a fresh sample", ranking.fresh_sample)
    yield _metric_row("shuffled columns", ranking.shuffled)


def _metric_row(name: str, score: SubmissionScore) -> Sequence[str]:
    epsilon = _ABSENT if score.epsilon is None else format_number(score.epsilon)
    income = _ABSENT if score.income is None else _format_points(score.income)
    return (
        name,
        epsilon,
        _format_points(score.density),
        _format_points(score.range_queries),
        income,
        _format_mean(score),
    )


def _format_mean(score: SubmissionScore | None) -> str:
    return _ABSENT if score is None else _format_points(score.mean) + ("*" if score.certified else "")


def _format_points(number: float) -> str:
    return f"{number:,.0f}"
