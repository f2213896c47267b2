"""Synthetic rows from a model: under conditions, in chunks, by threads, processes or Spark tasks. It costs nothing."""

from dpsyn.sampling.sampler import AllowedCodes, RowSampler, sample_codes

__all__ = ["AllowedCodes", "RowSampler", "sample_codes"]
