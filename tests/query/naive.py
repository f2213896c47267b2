"""Slow, obvious answers: least squares with the whole matrix, proportional fitting with dictionaries."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dpsyn.query.linear_estimation import Observation

Table = NDArray[np.float64]


def summation_matrix(shape: tuple[int, ...], axes: Sequence[int]) -> Table:
    """The matrix that sums a flat table over all axes except these."""
    cells = list(product(*(range(size) for size in shape)))
    sums = list(product(*(range(shape[axis]) for axis in axes)))
    matrix = np.zeros((len(sums), len(cells)))
    for column, cell in enumerate(cells):
        matrix[sums.index(tuple(cell[axis] for axis in axes)), column] = 1.0
    return matrix


def least_squares(shape: tuple[int, ...], observations: Sequence[Observation]) -> tuple[Table, Table]:
    """The estimate with the least Σ (sums − observed)² / variance and, of those, Σ cell²; and its covariance."""
    matrix = np.concatenate(
        [summation_matrix(shape, observed.axes) / np.sqrt(observed.variance) for observed in observations]
    )
    values = np.concatenate([np.ravel(observed.values) / np.sqrt(observed.variance) for observed in observations])
    inverse = np.linalg.pinv(matrix, rcond=1e-10)
    return (inverse @ values).reshape(shape), inverse @ inverse.T


def proportional_fitting(
    shape: tuple[int, ...], parts: Sequence[tuple[tuple[int, ...], Table]], sweeps: int
) -> dict[tuple[int, ...], float]:
    """Scale all cells to match one marginal after the other."""
    cells = dict.fromkeys(product(*(range(size) for size in shape)), 1.0)
    for _ in range(sweeps):
        for axes, target in parts:
            present: dict[tuple[int, ...], float] = {}
            for cell, value in cells.items():
                key = tuple(cell[axis] for axis in axes)
                present[key] = present.get(key, 0.0) + value
            for cell in cells:
                key = tuple(cell[axis] for axis in axes)
                cells[cell] *= target[key] / present[key] if present[key] > 0 else 0.0
    return cells
