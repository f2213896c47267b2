"""Make released tables agree with each other, and make them non-negative. Post-processing: it costs nothing."""

from dpsyn.consistency.average import averaged
from dpsyn.consistency.consistent import ConsistencyOptions, consistent
from dpsyn.consistency.likely import likely_counts
from dpsyn.consistency.nonnegative import norm_cut, norm_sub
from dpsyn.consistency.ripple import ripple

__all__ = ["ConsistencyOptions", "averaged", "consistent", "likely_counts", "norm_cut", "norm_sub", "ripple"]
