"""Dependence that was not measured: how large it may be, as far as released scores tell, and random draws of it.

A model takes the attributes of a pair that no table holds for independent, given what was measured. Scores say how far
such pairs were from a prediction, with noise. If their strengths d, as shares of the rows, have a half-Cauchy
distribution of scale τ, with its many weak and few strong pairs, scores give a posterior of τ, and given τ one of each
d; pairs without a score are as strong as others. τ is at most a half, and the more likely the larger, so that few and
noisy scores do not make it small. The direction of the dependence is not known, so it is random: smooth for numbers and
dates, any for categories.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpsyn.inference.measurements import Model, Release
from dpsyn.inference.table_smoothing import rake
from dpsyn.marginals import Clique, Factor

Floats = NDArray[np.float64]

MAX_PAIRS = 100
"""So many pairs have random dependence in each draw at most: those that may depend most."""

STRENGTHS = np.linspace(0, 1, 101)[:-1] + 0.005
SCALES = np.linspace(0, 0.5, 26)
"""The strengths d, and their scales τ, that are considered."""

SCALING_STEPS = 4
"""How often a factor is scaled, until its distance from independence is about the one that is wanted."""

MAX_LOG_CHANGE = 3.0
"""No cell changes by more than this factor, as a logarithm."""


@dataclass(frozen=True, slots=True, eq=False)
class UnmeasuredPairs:
    """Pairs of attributes that no table of a model holds, with their scores, as far as they have some.

    Attributes:
        cliques: the pairs.
        likelihoods: pairs × strengths: how likely each strength is by the score of the pair.
        shares: the shares of the codes of every attribute in them.
        ordered: the attributes whose codes are in order.
    """

    cliques: Sequence[Clique]
    likelihoods: Floats
    shares: Mapping[str, Floats]
    ordered: frozenset[str]

    @classmethod
    def of(cls, model: Model, releases: Sequence[Release], ordered: frozenset[str]) -> UnmeasuredPairs:
        """The pairs that were not measured. Without any scores nothing tells how large dependence is; then none."""
        measured = [set(table.clique) for table in model.tables]
        scores: dict[Clique, tuple[float, float]] = {}
        for release in releases:
            for each in (scores_of for scores_of in release.scores if scores_of.are_distances):
                for clique, value in zip(each.cliques, each.values.tolist(), strict=True):
                    known = all(name in model.recoding.names for name in clique)
                    if len(clique) == 2 and known and not any({*clique} <= table for table in measured):
                        scores[tuple(sorted(clique, key=model.recoding.names.index))] = (float(value), each.std)
        if not scores:
            return cls([], np.empty((0, len(STRENGTHS))), {}, ordered)
        for clique in combinations(model.recoding.names, 2):
            if clique not in scores and not any({*clique} <= table for table in measured):
                scores[clique] = (0.0, math.inf)
        shares = {name: _shares_of(model, name) for clique in scores for name in clique}
        scores = {c: score for c, score in scores.items() if min(len(shares[name]) for name in c) > 1}
        rows = max(model.total, 1.0)
        values = np.array([value for value, _ in scores.values()])[:, None] / rows
        stds = np.array([std for _, std in scores.values()])[:, None] / rows
        logs = -0.5 * ((values - STRENGTHS) / stds) ** 2
        likelihoods = np.exp(logs - logs.max(axis=1, keepdims=True)) if len(scores) else logs
        return cls(list(scores), likelihoods, shares, ordered)

    def draw(self, rng: np.random.Generator) -> list[Factor]:
        """Random dependence of these pairs: a scale, then strengths, then directions."""
        if not self.cliques:
            return []
        prior = 1 / (1 + (STRENGTHS / np.maximum(SCALES, 0.01)[:, None]) ** 2)
        prior /= prior.sum(axis=1, keepdims=True)
        evidence = np.log(np.maximum(self.likelihoods @ prior.T, 1e-300)).sum(axis=0)  # of each scale
        weights = SCALES * np.exp(evidence - evidence.max())
        scale = int(rng.choice(len(SCALES), p=weights / weights.sum()))
        posterior = self.likelihoods * prior[scale]
        cumulative = np.cumsum(posterior / posterior.sum(axis=1, keepdims=True), axis=1)
        drawn = STRENGTHS[np.minimum((cumulative < rng.random((len(cumulative), 1))).sum(axis=1), len(STRENGTHS) - 1)]
        strongest = np.argsort(-drawn, kind="stable")[:MAX_PAIRS]
        return [self._draw_factor(self.cliques[index], float(drawn[index]), rng) for index in strongest]

    def _draw_factor(self, clique: Clique, strength: float, rng: np.random.Generator) -> Factor:
        """A factor by which the counts of a pair differ from independent ones by this share; its margins stay.

        The dependence is that of one direction of each attribute, because that of most pairs is mainly so.
        """
        one, other = (basis @ rng.normal(size=basis.shape[1]) for basis in (self._basis(name) for name in clique))
        shares = [np.maximum(self.shares[name], 1e-9) for name in clique]
        mass, change, scale = np.outer(*shares), np.outer(one, other), 0.0
        distance = float((mass * np.abs(change)).sum())
        table = mass
        for _ in range(SCALING_STEPS):
            scale = (scale or 1.0) * strength / max(distance, 1e-12)
            table = rake(mass * np.exp(np.clip(scale * change, -MAX_LOG_CHANGE, MAX_LOG_CHANGE)), shares)
            distance = max(float(np.abs(table - mass).sum()), 1e-12)
        weights = table / mass
        return Factor(clique, weights / float(weights.max()))

    def _basis(self, name: str) -> Floats:
        """Codes × directions, orthonormal by the shares of the codes, and to a constant."""
        shares = np.maximum(self.shares[name], 1e-6)
        size, roots = len(shares), np.sqrt(shares / shares.sum())
        if name in self.ordered:
            middle = np.cumsum(shares) - shares / 2
            powers = np.column_stack([middle**degree for degree in range(min(2, size - 1) + 1)])
        else:
            powers = np.column_stack([np.ones(size), np.eye(size)[:, 1:]])
        basis: Floats = np.linalg.qr(powers * roots[:, None])[0][:, 1:] / roots[:, None]
        return basis * (np.array([1.0, 0.5])[: basis.shape[1]] if name in self.ordered else 1.0)  # mainly up or down


def _shares_of(model: Model, name: str) -> Floats:
    """The shares of an attribute's codes, by the table that tells them most precisely."""
    tables = [table for table in model.tables if name in table.clique and name not in table.levels]
    best = min(tables, key=lambda table: table.variance * table.values.size)
    counts = np.maximum(best.project([name]), 0.0)
    return counts / max(float(counts.sum()), math.ulp(1.0))
