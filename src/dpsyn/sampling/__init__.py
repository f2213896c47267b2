"""Synthetic rows from a model: under conditions, in chunks, by threads, processes or Spark tasks. Costs no privacy."""

from dpsyn.sampling.sampler import AllowedCodes, RowSampler, sample_codes, select_synthesis

__all__ = ["AllowedCodes", "RowSampler", "sample_codes", "select_synthesis"]
