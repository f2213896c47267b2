"""A fitted model from what a file holds of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpsyn.errors import InternalError
from dpsyn.marginals import Clique, Estimate, Factor
from dpsyn.synthesis.gibbs.fitted import Fitted
from dpsyn.synthesis.gibbs.forest import plant
from dpsyn.synthesis.gibbs.knowing import known_of
from dpsyn.synthesis.gibbs.layout import Cells, Layout
from dpsyn.synthesis.gibbs.targets import noise_of, targets_of, total_of


def restored(
    tables: Sequence[Estimate],
    names: Sequence[str],
    sizes: Sequence[int],
    cliques: Sequence[Clique],
    parameters: Cells,
    expected: Cells,
    factors: Sequence[Factor] = (),
) -> Fitted:
    """The model that was fitted to these tables and found these numbers; the records of the fit are gone.

    ``cliques`` are in the order of the numbers, each with its attributes in the order of its axes. ``factors`` are what
    was known besides.
    """
    if not (np.isfinite(parameters).all() and np.isfinite(expected).all() and (expected >= 0).all()):
        raise InternalError("a fitted model has a number that is not finite, or expects a negative count")
    places = {name: place for place, name in enumerate(names)}
    targets, known = targets_of(tables, names, sizes), known_of(factors, names, sizes)
    total = total_of(targets)
    followed = [tuple(places[name] for name in clique) for clique in cliques]
    return Fitted(
        names=tuple(names),
        layout=Layout.of(sizes, followed, known.cliques),
        forest=plant([(target.places, target.shrunk()) for target in targets], len(names)),
        parameters=parameters,
        expected=expected,
        total=total,
        noise=noise_of(targets, total),
        records=np.empty((len(names), 0), np.uint16),
        distances=(),
        known=known.logs,
    )
