"""What a synopsis consists of: releases, which were paid for, and a model, which was worked out from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpsyn.accounting import Certificate
from dpsyn.encoding import Recoding
from dpsyn.errors import InternalError
from dpsyn.inference.gibbs import GibbsModel
from dpsyn.marginals import Clique, Estimate, Marginal

SynthesisMethod = Literal["gibbs", "gum"]
"""How records are fitted to tables: by a maximum entropy model, or by PrivSyn's gradual update method."""


@dataclass(frozen=True, slots=True, eq=False)
class MeasurementRound:
    """Marginals that were measured under one recoding.

    Attributes:
        recoding: the attributes, and how their codes follow from the fine codes of the schema.
        marginals: noisy counts over those codes.
    """

    recoding: Recoding
    marginals: tuple[Marginal, ...]

    def __post_init__(self) -> None:
        sizes = dict(zip(self.recoding.names, self.recoding.sizes, strict=True))
        for marginal in self.marginals:
            if marginal.raw.shape != tuple(sizes.get(name) for name in marginal.clique):
                raise InternalError(f"the marginal of {', '.join(marginal.clique)} does not fit its recoding")


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """Noisy scores by which marginals were chosen.

    Attributes:
        kind: what was scored, such as ``dependence``.
        cliques: of which attributes.
        values: the released scores.
        std: the standard deviation of their noise.
    """

    kind: str
    cliques: tuple[Clique, ...]
    values: NDArray[np.float64]
    std: float

    def __post_init__(self) -> None:
        if self.values.shape != (len(self.cliques),):
            raise InternalError(f"{len(self.cliques)} cliques have scores of shape {self.values.shape}")
        self.values.setflags(write=False)


@dataclass(frozen=True, slots=True, eq=False)
class Release:
    """One measurement of a private table: every number that left it.

    Attributes:
        recipe: the algorithm that chose what to measure.
        rounds: the marginals, in the order in which they were measured.
        scores: what they were chosen by.
        certificate: what the numbers cost; None if they were measured elsewhere, so that nothing is verified here.
        source: where imported numbers come from, in the words of who imported them.
    """

    recipe: str
    rounds: tuple[MeasurementRound, ...]
    scores: tuple[Scores, ...] = ()
    certificate: Certificate | None = None
    source: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """What rows are drawn from; worked out from releases, so that it costs nothing.

    Attributes:
        recoding: the attributes of the tables, as functions of the fine codes.
        tables: consistent non-negative counts of equal totals; every attribute is in one of them at least.
        histograms: weights of the fine codes of each attribute, by which codes are drawn apart again.
        total: the estimated number of rows.
        distribution: the distribution over records that follows the tables; None if each table of rows is to be fitted to
            them anew, by GUM.
    """

    recoding: Recoding
    tables: tuple[Estimate, ...]
    histograms: Mapping[str, NDArray[np.float64]]
    total: float
    distribution: GibbsModel | None = None

    def __post_init__(self) -> None:
        sizes = dict(zip(self.recoding.names, self.recoding.sizes, strict=True))
        for table in self.tables:
            if table.values.shape != tuple(sizes.get(name) for name in table.clique):
                raise InternalError(f"the table of {', '.join(table.clique)} does not fit its recoding")
        if {name for table in self.tables for name in table.clique} != set(sizes):
            raise InternalError("an attribute is in no table of the model")
        if {name: weights.shape for name, weights in self.histograms.items()} != {
            name: (size,) for name, size in self.recoding.origin
        }:
            raise InternalError("a model has a histogram of every attribute, over its fine codes")
        if {place for column in self.recoding.columns for place in column.sources} != {*range(len(self.histograms))}:
            raise InternalError("an attribute is not in the recoding of the model, so its codes would be lost")
        if self.distribution and (self.distribution.names, self.distribution.layout.sizes) != (
            self.recoding.names,
            self.recoding.sizes,
        ):
            raise InternalError("the fitted distribution of a model is of other attributes")
        numbers = [*(table.values for table in self.tables), *self.histograms.values(), np.array([self.total])]
        if not all(np.isfinite(array).all() and (array >= 0).all() for array in numbers):
            raise InternalError("a model consists of finite numbers that are not negative")
