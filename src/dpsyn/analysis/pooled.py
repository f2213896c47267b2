"""The result of pooling replicates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsyn.analysis.conclusion import Conclusion, FloatArray, check_level, plain_number
from dpsyn.analysis.record import ReplicatesRecord
from dpsyn.errors import InternalError
from dpsyn.inference.redraw import Uncertainty


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class Pooled(Conclusion):
    """Estimates from replicates, combined: one number, or several named terms such as the coefficients of a regression.

    With m estimates, their mean q̄ and their variance b between replicates, the variance of q̄ is T = (1 + 1/m)·b, with
    m − 1 degrees of freedom; ``docs/explanation/conclusions.md`` derives it from how replicates are drawn.

    Attributes:
        estimates: what each replicate gave: an array of one number, or one row, per replicate.
        sampling_variance: what the analyses report as variance, on average, for as many rows as the private table has;
            None if they report none, or the number of rows is not known.
        record: what the replicates are, if that is known.
    """

    estimates: FloatArray
    sampling_variance: FloatArray | None = None
    record: ReplicatesRecord | None = None

    def __post_init__(self) -> None:
        shape = self.estimates.shape[1:]
        if len(self.estimates) < 2 or shape != ((len(self.terms),) if self.terms or shape else ()):
            raise InternalError(f"estimates of shape {self.estimates.shape} have {len(self.terms)} terms")
        if self.sampling_variance is not None and self.sampling_variance.shape != shape:
            raise InternalError(f"estimates of shape {shape} have variances of {self.sampling_variance.shape}")
        check_level(self.level)
        self.estimates.setflags(write=False)

    @property
    def replicates(self) -> int:
        """The number of replicates."""
        return len(self.estimates)

    @property
    def estimate(self) -> Any:
        """The mean over replicates: a number, or an array with one number for each term."""
        return plain_number(self.estimates.mean(0))

    @property
    def between_variance(self) -> Any:
        """The variance b of the estimates between replicates, for each term."""
        return plain_number(self.estimates.var(0, ddof=1))

    @property
    def standard_error(self) -> Any:
        """√T, for each term."""
        return plain_number(np.sqrt(self._variance))

    @property
    def covariance(self) -> FloatArray:
        """The covariance matrix of all terms, (1 + 1/m)·B. Its rank is below m: test single terms or few of them."""
        flat = self.estimates.reshape(self.replicates, -1)
        return np.atleast_2d(np.cov(flat, rowvar=False)) * (1 + 1 / self.replicates)

    @property
    def degrees_of_freedom(self) -> int:
        """Those of the t distribution of (estimate − truth)/standard error: m − 1."""
        return self.replicates - 1

    @property
    def sampling_share(self) -> Any:
        """The part of the variance that a private table without noise would have, too; None if it is not known."""
        if self.sampling_variance is None:
            return None
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.minimum(1.0, self.sampling_variance / self._variance)
        return plain_number(np.where(np.isnan(share), 0.0, share))  # 0/0: nothing varies

    @property
    def uncertainty(self) -> Uncertainty | None:
        """What differs between the replicates, if that is known."""
        return None if self.record is None else self.record.uncertainty

    @property
    def _variance(self) -> FloatArray:
        variance: FloatArray = np.asarray(self.estimates.var(0, ddof=1) * (1 + 1 / self.replicates))
        return variance

    def interval(self, level: float | None = None) -> tuple[Any, Any]:
        """The lower and the upper end of a confidence interval for each term, by default at ``level``."""
        width = self._quantile(self.level if level is None else level) * np.sqrt(self._variance)
        center = self.estimates.mean(0)
        low, high = (np.clip(end, *self.bounds) for end in (center - width, center + width))
        return plain_number(low), plain_number(high)

    def _quantile(self, level: float) -> float:
        from scipy.stats import t  # takes half a second to import

        return float(t.ppf((1 + check_level(level)) / 2, self.degrees_of_freedom))
