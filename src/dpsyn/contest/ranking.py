"""Scores of submissions to a contest, and their ranking.

The evaluation table is made again from the hidden seed, and changed terms or a changed schema are refused, so a changed
file cannot change a score. All submissions meet the same random triples of columns and the same random queries.
"""

from __future__ import annotations

import contextlib
import statistics
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from dpsyn.contest.terms import (
    SUBMISSIONS_FOLDER,
    Contest,
    derive_seed,
    find_changed_tables,
    load_contest,
    simulate_table,
)
from dpsyn.errors import SourceError, UserError, quote_argument
from dpsyn.evaluation.enumerations import read_enumerations
from dpsyn.evaluation.nist_contest import MAX_CONTEST_SCORE, find_preset, score_contest
from dpsyn.evaluation.reader import TableSource, open_table, read_sources
from dpsyn.evaluation.results import ContestScore
from dpsyn.marginals import Metric
from dpsyn.progress import Progress, ignore_progress
from dpsyn.release_files import find_synopsis, find_table, is_release
from dpsyn.schema import Attribute, Categorical, Identifier, Open, Ranged, Schema
from dpsyn.schema.attributes import without_provenance
from dpsyn.synopsis import Synopsis

RANKING_FORMAT = 1
"""The version of the JSON form."""

DRAWS = 3
"""Draws of random triples and queries whose scores are averaged."""

MAX_SCORE = MAX_CONTEST_SCORE
"""The score of a perfect table."""

_TABLE_SUFFIXES = ("csv", "csv.gz", "tsv", "tsv.gz", "parquet", "arrow", "feather")
_SYNOPSIS_SUFFIX = "dpsyn"
_SUFFIXES = (*_TABLE_SUFFIXES, _SYNOPSIS_SUFFIX)

Submissions = Mapping[str, Mapping[float, Any]]
"""The name of each contestant, and a table for each ε."""

Files = dict[tuple[str, float], Path]
"""Paths by contestant and ε."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionScore:
    """The score of one table: each metric from 0 to 1 000 000, averaged over draws of triples and queries.

    Attributes:
        epsilon: the ε of the table; None for a reference, which has no privacy guarantee.
        density: how close the densities of random triples of columns are.
        range_queries: how close the answers to random range queries are.
        income: Gini index and gender gap; None if the contest leaves them out.
        mean: the mean of these metrics.
        certified: whether a synopsis was submitted with the table whose certificate is within the contest's ε and δ.
            Without one, people must judge the guarantee.
    """

    epsilon: float | None
    density: float
    range_queries: float
    income: float | None
    mean: float
    certified: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionScores:
    """The scores of one contestant.

    Attributes:
        rank: 1 for the highest score; contestants with equal scores share a rank.
        name: the contestant.
        score: the mean over all ε of the contest; a table that was not submitted counts 0.
        tables: the scores of the submitted tables, by ascending ε.
    """

    rank: int
    name: str
    score: float
    tables: tuple[SubmissionScore, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContestRanking:
    """All contestants, the best first, with two references.

    The tables of a contest are generated, so a ranking reveals nothing about anybody and may be published.

    Attributes:
        contest: the terms.
        submissions: the contestants, the best first.
        fresh_sample: the score of the development table: what another sample of the same distribution reaches.
        shuffled: the score of the evaluation table with each column shuffled by itself: all dependence is lost.
        draws: the number of draws of triples and queries.
        format: the version of the JSON form.
    """

    contest: Contest
    submissions: tuple[SubmissionScores, ...]
    fresh_sample: SubmissionScore
    shuffled: SubmissionScore
    draws: int
    format: int = RANKING_FORMAT

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        data: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        return data


def score_submissions(
    folder: str | Path,
    submissions: Submissions | None = None,
    *,
    draws: int = DRAWS,
    progress: Progress = ignore_progress,
) -> ContestRanking:
    """Score submissions to a contest, and rank them by the mean over all ε, as the NIST contest did.

    Args:
        folder: the contest, as ``make_contest`` wrote it, with the hidden seed.
        submissions: for each contestant a table for each ε, such as ``{"mine": {1.0: "rows.csv"}}``; by default the
            files ``submissions/NAME-epsilon-E.csv`` (or another format) in the folder of the contest. A synopsis
            ``NAME-epsilon-E.dpsyn`` beside a file, or the one in a release folder ``NAME-epsilon-E/``, shows that its
            guarantee is within the contest's.
        draws: how many draws of random triples and queries to average.
        progress: is called with each phase.

    Returns:
        The ranking; ``to_dict`` turns it into plain data for JSON.
    """
    contest, schema, seed = load_contest(folder)
    if draws < 1:
        raise UserError(f"{draws} draws were requested; give at least 1")
    problems = _Problems()
    synopses: Files = {}
    if submissions is None:
        submissions, synopses = find_submissions(Path(folder) / SUBMISSIONS_FOLDER, contest, problems)
    certified = _check_synopses(synopses, contest, schema, problems)
    sources = _open_tables(submissions, contest, schema, problems)
    problems.refuse()
    progress("making the tables", 0.0)
    made = {name: simulate_table(contest, schema, seed, name).table() for name in ("evaluation", "development")}
    for file in find_changed_tables(folder, made, schema):
        warnings.warn(
            f"{Path(folder) / file} is not the table that the seed makes, which is scored; ask who used this file",
            UserWarning,
            stacklevel=2,
        )
    real, fresh = (_open_table(table, contest, schema) for table in made.values())
    judge = _Judge(contest, schema, real, derive_seed(seed, "scoring"), draws)
    progress("scoring the references", 0.0)
    reference = judge.score(fresh)
    scored: dict[str, list[SubmissionScore]] = {name: [] for name in submissions}
    for number, ((name, epsilon), source) in enumerate(sorted(sources.items())):
        progress(f"scoring {name} at ε = {epsilon:g}", number / len(sources))
        with problems.collect(_entry_name(name, epsilon)):
            metrics = judge.score(source)
            scored[name].append(_pick(metrics, "synthetic", epsilon, certified=(name, epsilon) in certified))
    problems.refuse()
    return ContestRanking(
        contest=contest,
        submissions=_rank(scored, contest),
        fresh_sample=_pick(reference, "synthetic"),
        shuffled=_pick(reference, "independent"),
        draws=draws,
    )


def _rank(scored: Mapping[str, Sequence[SubmissionScore]], contest: Contest) -> tuple[SubmissionScores, ...]:
    totals = {name: sum(table.mean for table in tables) / len(contest.epsilons) for name, tables in scored.items()}
    return tuple(
        SubmissionScores(
            rank=1 + sum(other > totals[name] for other in totals.values()),
            name=name,
            score=totals[name],
            tables=tuple(scored[name]),
        )
        for name in sorted(totals, key=lambda name: (-totals[name], name))
    )


# ── checks before scoring ────────────────────────────────────────────────────────────────────────────────────


class _Problems:
    """What is wrong with submissions, collected so that one message names all of them."""

    def __init__(self) -> None:
        self._reasons: dict[str, str] = {}

    def add(self, name: str, reason: str) -> None:
        """Note what is wrong with a file, or a contestant's table."""
        self._reasons.setdefault(name, reason)

    @contextlib.contextmanager
    def collect(self, name: str) -> Iterator[None]:
        """Note an error that the user can fix, and go on."""
        try:
            yield
        except UserError as error:
            self.add(name, str(error))

    def refuse(self) -> None:
        """Refuse all submissions if anything is wrong; every name comes first, for a long message is shortened."""
        if len(self._reasons) > 1:
            reasons = "".join(f"\n- {name}: {reason}" for name, reason in self._reasons.items())
            raise UserError(
                f"{len(self._reasons)} submissions cannot be scored: {', '.join(map(repr, self._reasons))}. Nothing "
                f"was scored; mend or remove them.{reasons}"
            )
        for reason in self._reasons.values():
            raise UserError(reason)


def _entry_name(name: str, epsilon: float) -> str:
    return f"{name} at ε = {epsilon:g}"


def _check_synopses(files: Files, contest: Contest, schema: Schema, problems: _Problems) -> set[tuple[str, float]]:
    """The contestants and ε whose synopsis shows that the guarantee is within the contest's."""
    certified = set()
    for (name, epsilon), path in files.items():
        with problems.collect(path.name):
            if _is_certified(path, epsilon, contest, schema):
                certified.add((name, epsilon))
    return certified


def _open_tables(
    submissions: Submissions, contest: Contest, schema: Schema, problems: _Problems
) -> dict[tuple[str, float], TableSource]:
    """All tables, opened; those that do not fit the contest are noted."""
    sources = {}
    for name, tables in submissions.items():
        for epsilon, table in tables.items():
            with problems.collect(table.name if isinstance(table, Path) else _entry_name(name, epsilon)):
                if epsilon not in contest.epsilons:
                    listed = ", ".join(map(contest.format_epsilon, contest.epsilons))
                    raise UserError(f"{quote_argument(name)} has a table for ε = {epsilon!r}; the contest has {listed}")
                sources[name, epsilon] = _open_table(table, contest, schema)
    if not any(submissions.values()):
        problems.refuse()
        raise UserError("there are no submissions; name their files NAME-epsilon-E.csv")
    return sources


def _open_table(table: Any, contest: Contest, schema: Schema) -> TableSource:
    """A table with the columns of the schema; where derived columns are scored, these too."""
    enumerations = find_preset(contest.preset).enumerations
    source = open_table(table, schema, reread=enumerations)
    if enumerations:
        _require_columns(source.schema.names, schema, source.label)
    return source


def _require_columns(names: Iterable[str], schema: Schema, label: str) -> None:
    """Refuse a table without a derived column: it would not be scored by it."""
    present = set(names)
    lacking = [a.name for a in schema if not isinstance(a, Identifier) and a.name not in present]
    if lacking:
        raise SourceError(f"{label} lacks {', '.join(map(repr, lacking))}; a submission has all columns of the schema")


# ── scoring one table ────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, eq=False)
class _Judge:
    """Scores tables against one evaluation table."""

    contest: Contest
    schema: Schema
    real: TableSource
    seed: int
    draws: int

    def score(self, table: TableSource) -> list[ContestScore]:
        """The scores of a table, one for each draw of triples and queries."""
        preset, sources = find_preset(self.contest.preset), (self.real, table)
        tables = read_sources(sources, self.schema, seed=self.seed)
        enumerations = read_enumerations(sources, self.schema, {}, seed=self.seed) if preset.enumerations else None
        income = self.contest.income_columns
        return [
            score_contest(tables, preset, income, enumerations=enumerations, seed=self.seed + draw)
            for draw in range(self.draws)
        ]


def _pick(
    scores: list[ContestScore], part: str, epsilon: float | None = None, *, certified: bool = False
) -> SubmissionScore:
    """One of the three tables that were scored together, with its metrics averaged over the draws."""

    def average(metrics: Iterable[Metric]) -> float:
        return float(statistics.mean(getattr(metric, part) for metric in metrics))

    incomes = [score.income.score for score in scores if score.income is not None]
    return SubmissionScore(
        epsilon=epsilon,
        density=average(score.density for score in scores),
        range_queries=average(score.range_queries for score in scores),
        income=average(incomes) if incomes else None,
        mean=average(score.mean for score in scores),
        certified=certified,
    )


# ── the files of submissions ─────────────────────────────────────────────────────────────────────────────────


def find_submissions(folder: Path, contest: Contest, problems: _Problems) -> tuple[dict[str, dict[float, Path]], Files]:
    """The tables in a folder by contestant and ε, and the synopses beside them; other files are ignored with a note.

    A release folder ``NAME-epsilon-E`` holds both.
    """
    tables: Files = {}
    synopses: Files = {}
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}; it holds the submissions, NAME-epsilon-E.csv")
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue
        released = is_release(path)
        if not released and not path.name.endswith(tuple(f".{suffix}" for suffix in _SUFFIXES)):
            warnings.warn(f"{path} is ignored: its suffix is not that of a table", UserWarning, stacklevel=3)
            continue
        with problems.collect(path.name):
            name, epsilon, suffix = _parse_name(path.name, contest, ("",) if released else _SUFFIXES)
            if released:
                given = [(tables, find_table(path)), (synopses, find_synopsis(path))]
            else:
                given = [(synopses if suffix == _SYNOPSIS_SUFFIX else tables, path)]
            for files, file in given:
                if other := files.get((name, epsilon)):
                    raise UserError(f"{file} and {other} are of the same contestant and ε; remove one")
                files[name, epsilon] = file
    grouped: dict[str, dict[float, Path]] = {}
    for (name, epsilon), path in tables.items():
        grouped.setdefault(name, {})[epsilon] = path
    return grouped, synopses


def _parse_name(file: str, contest: Contest, suffixes: Sequence[str]) -> tuple[str, float, str]:
    for epsilon in contest.epsilons:
        name, marker, rest = file.rpartition(f"-epsilon-{contest.format_epsilon(epsilon)}")
        suffix = rest.removeprefix(".")
        if name and marker and suffix in suffixes and bool(suffix) == rest.startswith("."):
            return name, epsilon, suffix
    raise UserError(
        f"{quote_argument(file)} is not the name of a submission; the contest's are {', '.join(contest.file_names())}"
    )


def _is_certified(path: Path, epsilon: float, contest: Contest, schema: Schema) -> bool:
    """Whether the certificates of a synopsis are within the contest's guarantee; refused if they exceed it.

    A synopsis of other attributes is refused. That it is one of the evaluation table is for people to judge.
    """
    synopsis = Synopsis.load(path, recompute=True)
    if differing := _list_differences(synopsis.schema, schema):
        raise UserError(
            f"{path} is a synopsis of another table: {', '.join(map(quote_argument, differing))} is not as in the "
            "contest's public/schema.yaml; release the evaluation table with that schema, or remove the synopsis"
        )
    certificates = synopsis.certificates
    if not all(certificate is not None and certificate.uses_real_noise for certificate in certificates):
        return False
    budgets = [certificate.account.budget for certificate in certificates if certificate is not None]
    spent = float(sum(budget.epsilon for budget in budgets)), float(sum(budget.delta for budget in budgets))
    if spent[0] > epsilon or spent[1] > contest.delta:
        raise UserError(
            f"{path} was released with ε = {spent[0]:g}, δ = {spent[1]:g}; the contest allows ε = {epsilon:g}, "
            f"δ = {contest.delta:g}"
        )
    return True


def _list_differences(released: Schema, public: Schema) -> list[str]:
    """The names of attributes that a synopsis has and the public schema has not, or the other way round.

    An open attribute was released with the values that were discovered, and a number or a date with the cuts. Why an
    attribute is public does not count.
    """

    def describe(attribute: Attribute) -> Attribute:
        discovered = {"cuts": ()} if isinstance(attribute, Ranged) else {}
        return without_provenance(msgspec.structs.replace(attribute, **discovered))

    left = {attribute.name: describe(attribute) for attribute in released}
    right = {attribute.name: describe(attribute) for attribute in public}
    for name, attribute in right.items():
        discovered = left.get(name)
        if isinstance(attribute, Open) and isinstance(discovered, Categorical):
            right[name] = attribute.to_categorical([str(value) for value in discovered.values])
    return [name for name in {**right, **left} if left.get(name) != right.get(name)]
