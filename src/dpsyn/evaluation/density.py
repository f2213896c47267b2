"""The contest's first metric: densities of random triples of columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpsyn.evaluation.counting import distances
from dpsyn.evaluation.presets import Preset
from dpsyn.evaluation.results import Figure
from dpsyn.evaluation.tables import Comparison
from dpsyn.evaluation.triples import random_triples

BEST = 1_000_000
"""The score of a perfect table, in all of the contest's metrics."""


def density_score(comparison: Comparison, triples: Sequence[tuple[int, ...]]) -> Figure:
    """10⁶·(1 − mean L1/2): one minus the mean total variation distance of the triples' densities.

    Numbers and dates are cut into 100 buckets between the schema's bounds; empty cells have a bucket of their own.
    """
    mean = Figure.mean(distances(comparison.buckets(), triples))
    return Figure(
        synthetic=BEST * (1 - mean.synthetic),
        floor=BEST * (1 - mean.floor),
        independent=BEST * (1 - mean.independent),
    )


def density_triples(comparison: Comparison, preset: Preset, rng: np.random.Generator) -> list[tuple[int, ...]]:
    """The triples of a preset; the last column is among them if it is the only one, whatever the preset says."""
    columns = len(comparison.domains)
    return random_triples(columns if preset.last_column else max(1, columns - 1), preset.triples, rng)
