"""Parameters by which records that are left to themselves stay where they are."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache

import numpy as np

from dpsyn.synthesis.gibbs.chains import Chains
from dpsyn.synthesis.gibbs.fitted import Fitted
from dpsyn.synthesis.gibbs.generate import generate
from dpsyn.synthesis.gibbs.layout import Cells, Layout

ROWS, ROUNDS = 50_000, 20
"""Records that are let go, and how often."""

STEP, FARTHEST, PSEUDOCOUNT = 1.5, 1.0, 1.0
"""How much of a drift one round undoes, for a clique whose attributes are in one clique each; the most by which it
changes a logarithm; and what is added to counts, so that empty cells have one."""


@lru_cache(maxsize=1)  # whoever draws under one condition often draws under the next
def freed(fitted: Fitted) -> Fitted:
    """The same model with parameters for records that nothing holds to the marginals, as under conditions.

    While a model is fitted and while rows are drawn from it, records are held to its marginals; the parameters alone
    need not keep them there. Records that match the marginals are let go for one sweep, and the cells into which they
    drift lose weight: contrastive divergence (Hinton 2002). The mean over the later rounds evens out their chance.
    """
    columns = np.concatenate(list(generate(fitted, ROWS, seed=0)), axis=1)
    steps = _steps(fitted.layout) * fitted.layout.spread(_in_use(fitted.layout, fitted.parameters))
    wanted = fitted.expected * ROWS + PSEUDOCOUNT
    parameters, mean = np.array(fitted.parameters), np.zeros_like(fitted.parameters)
    random = np.random.default_rng(0)
    with ThreadPoolExecutor() as pool:
        for number in range(ROUNDS):
            chains = Chains(fitted.layout, columns.copy(), pool, random)
            chains.sweep(parameters)
            drift = np.log(wanted / (chains.counts() + PSEUDOCOUNT))
            parameters += steps * np.clip(drift, -FARTHEST, FARTHEST)
            if number >= ROUNDS // 2:
                mean += parameters / (ROUNDS - ROUNDS // 2)
    return replace(fitted, parameters=mean)


def _steps(layout: Layout) -> Cells:
    """The more cliques share an attribute, the less each of them has to change."""
    cliques_of = np.bincount([place for clique in layout.cliques for place in clique], minlength=len(layout.sizes))
    return layout.spread(np.array([STEP / max(STEP, cliques_of[list(clique)].mean()) for clique in layout.cliques]))


def _in_use(layout: Layout, parameters: Cells) -> Cells:
    """1 for cliques that were measured, 0 for the others, whose parameters are zero."""
    return (layout.per_clique(np.abs(parameters)) > 0).astype(np.float64)
