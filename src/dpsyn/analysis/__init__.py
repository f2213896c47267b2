"""Conclusions from a release: estimates whose intervals include sampling and the privacy noise."""

from dpsyn.analysis._pool import pool
from dpsyn.analysis.conclusion import Conclusion
from dpsyn.analysis.direct_answers import DirectAnswers
from dpsyn.analysis.pooled import Pooled
from dpsyn.analysis.record import METADATA_KEY, ReplicatesRecord, load_record
from dpsyn.analysis.results_file import pool_results_file

__all__ = [
    "METADATA_KEY",
    "Conclusion",
    "DirectAnswers",
    "Pooled",
    "ReplicatesRecord",
    "load_record",
    "pool",
    "pool_results_file",
]
