"""Synopses of small made-up tables with seeded noise, made without a gate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dpsyn.encoding import Codec, Recoding
from dpsyn.inference import GUM, Scores, fit_model
from dpsyn.inference.measurements import Release
from dpsyn.marginals import Clique
from dpsyn.schema import Categorical, Integer, Schema
from dpsyn.synopsis import Synopsis
from dpsyn.synopsis.imported_marginals import import_marginals

Table = NDArray[np.float64]


def binary_schema(count: int) -> Schema:
    return Schema(attributes=tuple(Categorical(name=f"x{index}", codes=2) for index in range(count)))


def baskets(rows: int, count: int, seed: int = 0) -> NDArray[np.int64]:
    """Binary rows whose attributes depend on two hidden numbers."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(rows, 2))
    loads, levels = rng.normal(size=(2, count)), rng.uniform(-1, 1.5, count)
    return (hidden @ loads + rng.normal(size=(rows, count)) > levels).astype(np.int64)


def count_table(rows: NDArray[np.int64], columns: Sequence[int], sizes: Sequence[int]) -> Table:
    """The exact table of some columns."""
    shape = [sizes[column] for column in columns]
    cells = np.ravel_multi_index([rows[:, column] for column in columns], shape)
    return np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape).astype(np.float64)


def make_release(
    schema: Schema, tables: Mapping[Clique, Table], std: float, rng: np.random.Generator | None
) -> Release:
    """A release of these tables with noise of this std; without a generator no noise is added."""
    noisy = {
        clique: table if rng is None else table + rng.normal(0, std, table.shape) for clique, table in tables.items()
    }
    return import_marginals(schema, noisy, std=std, source="a test")


def make_synopsis(schema: Schema, *releases: Release, total: float | None = None) -> Synopsis:
    """The synopsis of some releases. No distribution is fitted, because that would take most of the time."""
    recoding = Recoding.coarse(Codec(schema))
    return Synopsis(schema, releases, fit_model(schema, recoding, releases, total=total, synthesis=GUM()))


def make_view_synopsis(
    rows: NDArray[np.int64], views: Sequence[Sequence[int]], std: float, rng: np.random.Generator | None
) -> Synopsis:
    """A synopsis of binary rows."""
    schema = binary_schema(rows.shape[1])
    tables = {tuple(f"x{index}" for index in view): count_table(rows, view, [2] * rows.shape[1]) for view in views}
    return make_synopsis(schema, make_release(schema, tables, std, rng))


PEOPLE = Schema(
    attributes=(
        Integer(name="age", low=0, high=99, bins=(0, 18, 35, 65), missing=True),
        Categorical(name="sex", values=("F", "M")),
        Categorical(name="job", values=("nurse", "cook", "clerk", "none"), other="none"),
    )
)


def people_rows(count: int = 5000, seed: int = 0) -> NDArray[np.int64]:
    """Cells of age, sex and job."""
    rng = np.random.default_rng(seed)
    age = np.where(rng.random(count) < 0.02, 100, np.clip(rng.normal(40, 20, count), 0, 99)).astype(np.int64)
    sex = (rng.random(count) < 0.5).astype(np.int64)
    job = np.where((age < 18) | (age == 100), 3, (rng.integers(0, 3, count) + sex) % 3)
    return np.stack([age, sex, job], axis=1)


def bin_ages(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rows with the bins of age instead of its cells."""
    return np.stack([PEOPLE["age"].bin_of_cell()[rows[:, 0]], rows[:, 1], rows[:, 2]], axis=1)


def people_synopsis(
    rows: NDArray[np.int64], std: float, rng: np.random.Generator | None, *, pairs: bool = True
) -> Synopsis:
    """Ages over cells and bins, sex and job; and the pairs of age and sex, sex and job."""
    sizes, coarse = [5, 2, 4], bin_ages(rows)
    tables: dict[Clique, Table] = {(n,): count_table(coarse, [p], sizes) for p, n in enumerate(("age", "sex", "job"))}
    if pairs:
        tables[("age", "sex")] = count_table(coarse, [0, 1], sizes)
        tables[("sex", "job")] = count_table(coarse, [1, 2], sizes)
    fine = make_release(PEOPLE, {("age",): count_table(rows, [0], [101])}, std, rng)
    return make_synopsis(PEOPLE, fine, make_release(PEOPLE, tables, std, rng))


def with_scores(synopsis: Synopsis, scores: Scores) -> Synopsis:
    """The synopsis with scores in its first release."""
    first, *others = synopsis.releases
    release = Release(first.rounds, (scores,), first.certificate, first.source)
    return Synopsis(synopsis.schema, (release, *others), synopsis.model)
