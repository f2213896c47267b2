"""Released numbers drawn again: what another release of another sample would have been.

A release is t + s + e: the tables t of a population, the deviation s of the private table from it by sampling, and the
recorded noise e. How far an estimate F(t + s + e) is from F(t) is not known. But how far F(y + s′ + e′) is from F(y)
is known, for the released y and fresh s′ and e′, because F and the law of the noise are. Where F is about linear, both
differences have the same distribution, so the copies y + s′ + e′ carry the whole uncertainty: a parametric bootstrap
around the released numbers. They start from these rather than from the tables of the fitted model, because F clips and
shrinks, and would do so twice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dpsyn.accounting import Laplace
from dpsyn.encoding import Codec, Codes, Recoding
from dpsyn.errors import UserError, quote_argument
from dpsyn.inference.fit import fit_model, ordered_attributes
from dpsyn.inference.gibbs import column_type
from dpsyn.inference.measurements import MeasurementRound, Model, Release
from dpsyn.inference.unmeasured import UnmeasuredPairs
from dpsyn.marginals import Marginal
from dpsyn.progress import Progress, ignore_progress
from dpsyn.schema import Schema

Uncertainty = Literal["all", "noise", "rows"]
"""What differs between replicates: everything, the private table being a sample of a population; privacy noise, the
private table being all there is; or only the rows that are sampled from one model."""

REESTIMATED = ("fourier", "mwem")
"""Recipes that estimate tables themselves, not from marginals alone, so that these cannot be drawn again."""

ZEROING = ("privsyn", "priview")
"""Recipes by which merged rare values may count as empty."""


def parse_uncertainty(uncertainty: object) -> Uncertainty:
    """One of the three kinds; a UserError for anything else."""
    for kind in get_args(Uncertainty):
        if uncertainty == kind:
            return kind  # type: ignore[no-any-return]
    raise UserError(f"the uncertainty is {quote_argument(uncertainty)}; use {', '.join(get_args(Uncertainty))}")


def require_redrawable(releases: Sequence[Release]) -> None:
    """Refuse releases whose model follows from more than marginals with known noise."""
    for release in releases:
        if release.recipe.get("name") in REESTIMATED:
            raise UserError(
                f"recipe {release.recipe['name']} estimates its tables in a way that cannot be repeated from the "
                'released numbers; use uncertainty="rows", which carries no noise, or another recipe'
            )


class ModelDraws:
    """Models of releases that are drawn again, each fitted as that of the real ones was.

    Args:
        schema: what is public.
        model: the fitted model.
        releases: what was released.
        population: fine codes of rows of the model, rows × attributes. They stand for the population, and fits start
            from them.
        sampling: whether the private table is a sample of a population; otherwise only noise is drawn again.
    """

    def __init__(
        self, schema: Schema, model: Model, releases: Sequence[Release], population: Codes, *, sampling: bool
    ) -> None:
        certificates = [release.certificate for release in releases if release.certificate]
        is_public = schema.row_count_is_public and all(c.privacy_unit.row_count_is_public for c in certificates)
        recipes = {release.recipe.get("name") for release in releases}
        self._schema, self._model, self._releases = schema, model, releases
        self._population, self._sampling = len(population), sampling
        ordered = frozenset(ordered_attributes(model.recoding, Codec(schema)).names)
        self._unmeasured = UnmeasuredPairs.of(model, releases, ordered)
        self._total = model.total if is_public else None
        self._zeroed = _zeroed_attributes(model) if recipes & {*ZEROING} else []
        self._rows_per_unit = max((c.privacy_unit.max_rows for c in certificates), default=1)
        columns = model.recoding.apply(population).T.astype(column_type(max(model.recoding.sizes)))
        self._start = np.ascontiguousarray(columns)
        recodings = {id(each.recoding): each.recoding for release in releases for each in release.rounds}
        self._recoded = {key: recoding.apply(population).T.copy() for key, recoding in recodings.items() if sampling}

    def draw(self, rng: np.random.Generator, progress: Progress = ignore_progress) -> Model:
        """The model of another release of another sample."""
        deviations = self._sample_deviations(rng) if self._sampling else None
        return fit_model(
            self._schema,
            self._model.recoding,
            [self._redraw_release(release, deviations, rng) for release in self._releases],
            zeroed_attributes=self._zeroed,
            total=self._total,
            synthesis=self._model.synthesis,
            interactions=self._unmeasured.draw(rng),
            start=self._start,
            progress=progress,
        )

    def _sample_deviations(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """By how much each row of the population is in another sample more often than on average.

        The rows of one person may be alike, so with k rows in a privacy unit the variance of sampling is up to k times
        as large; that is assumed.
        """
        rows = round(self._model.total)
        drawn = rng.multinomial(rows, np.full(self._population, 1 / self._population)).astype(np.float64)
        deviations: NDArray[np.float64] = (drawn - rows / self._population) * math.sqrt(self._rows_per_unit)
        return deviations

    def _redraw_release(
        self, release: Release, deviations: NDArray[np.float64] | None, rng: np.random.Generator
    ) -> Release:
        measured = release.certificate.account.measurements if release.certificate else ()
        laplace = {record.cost.std for record in measured if isinstance(record.cost, Laplace)}
        rounds = []
        for each in release.rounds:
            drawn = []
            for marginal in each.marginals:
                noise = rng.laplace if marginal.std in laplace else rng.normal
                scale = marginal.std / math.sqrt(2) if marginal.std in laplace else marginal.std
                change = np.asarray(noise(0, scale, marginal.raw.shape), np.float64)
                if deviations is not None:
                    change += self._sum_deviations(each.recoding, marginal, deviations)
                raw = marginal.raw + np.rint(change * 2.0**marginal.lattice).astype(np.int64)
                drawn.append(replace(marginal, raw=raw))
            rounds.append(MeasurementRound(each.recoding, tuple(drawn)))
        return Release(tuple(rounds), release.scores, public=release.public)

    def _sum_deviations(
        self, recoding: Recoding, marginal: Marginal, deviations: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        codes, shape = self._recoded[id(recoding)], marginal.raw.shape
        cells = np.ravel_multi_index(tuple(codes[recoding.index_of(name)] for name in marginal.clique), shape)
        sums: NDArray[np.float64] = np.bincount(cells, deviations, marginal.raw.size).astype(np.float64).reshape(shape)
        return sums


def _zeroed_attributes(model: Model) -> list[str]:
    """The attributes whose last code was counted as empty: no table has any row there."""
    counts = dict.fromkeys(model.recoding.names, 0.0)
    for table in model.tables:
        for name in table.clique:
            if name not in table.levels:
                counts[name] += float(table.project([name])[-1])
    return [name for name, count in counts.items() if count == 0]
