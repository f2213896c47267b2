"""Bind records to a model's marginals: what is left between them is less than one record in most cells."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from dpsyn.synthesis.gibbs.chains import Chains, Pull
from dpsyn.synthesis.gibbs.fitted import Fitted
from dpsyn.synthesis.gibbs.layout import Cells, Columns, column_type
from dpsyn.synthesis.gibbs.options import GibbsOptions


def polish(records: Columns, fitted: Fitted, *, seed: int, options: GibbsOptions | None = None) -> Columns:
    """Records (attributes × records) moved until their counts are those that the model expects of so many.

    The values still come from the model's conditionals, so that what the cliques do not tell stays as it is; only the
    noise of having drawn a finite number of records goes.
    """
    columns = np.array(records, column_type(max(fitted.layout.sizes)), order="C")
    with ThreadPoolExecutor() as pool:
        chains = Chains(fitted.layout, columns, pool, np.random.default_rng(seed))
        polish_chains(chains, fitted.logs, fitted.counts(columns.shape[1]), options or GibbsOptions())
    return columns


def polish_chains(chains: Chains, parameters: Cells, expected: Cells, options: GibbsOptions) -> None:
    """The same in place, for counts expected of these very records."""
    stiffness = chains.layout.firmness(options.polish / len(chains.parts()))
    for _ in range(options.polished):
        chains.sweep(parameters, Pull(expected, stiffness, options.reach))


def press_chains(chains: Chains, parameters: Cells, expected: Cells, options: GibbsOptions) -> None:
    """Bind them closer, where tables are so precise that whole rows are what is left: ever firmer, as steel is cooled.

    Firm at once, rows are stuck: with 364 tables of three attributes of Adult, at a distance of .0084 instead of .006.
    """
    pull = Pull(expected, chains.layout.firmness(options.press), options.reach)
    for number in range(options.pressed):
        if chains.distance(expected) <= options.close:
            break
        most = pull.most * (options.press / pull.most) ** (number / options.pressed)
        chains.sweep(parameters, replace(pull, most=most))
