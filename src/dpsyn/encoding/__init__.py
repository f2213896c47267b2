"""Tables ⇄ integer codes: column codecs, bins, recodings, and released marginals under them.

Importing it does not load the compiler: what counts codes (``counter``, ``kernels``) is imported where it is used.
"""

from dpsyn.encoding.arrays import contingency_table
from dpsyn.encoding.binning import DomainCompression, Grouping, bucketize, merge_rare_values
from dpsyn.encoding.codec import Codec, Codes, check_structure, structural_problems, uniform_weights
from dpsyn.encoding.column_codecs import (
    ABOVE,
    BELOW,
    EMPTY,
    IN_DOMAIN,
    MISSING_STEP,
    UNREADABLE,
    ColumnCodec,
    EncodedColumn,
    RangedCodec,
    column_codec_for,
    narrowest_dtype,
)
from dpsyn.encoding.difference_coding import DifferenceCoding, expect_equal, group_differences, learn_mapping
from dpsyn.encoding.projection import are_equivalent, project_to_recoding
from dpsyn.encoding.recoding import RecodedColumn, Recoding
from dpsyn.encoding.writers import write_table

__all__ = [
    "ABOVE",
    "BELOW",
    "EMPTY",
    "IN_DOMAIN",
    "MISSING_STEP",
    "UNREADABLE",
    "Codec",
    "Codes",
    "ColumnCodec",
    "DifferenceCoding",
    "DomainCompression",
    "EncodedColumn",
    "Grouping",
    "RangedCodec",
    "RecodedColumn",
    "Recoding",
    "are_equivalent",
    "bucketize",
    "check_structure",
    "column_codec_for",
    "contingency_table",
    "expect_equal",
    "group_differences",
    "learn_mapping",
    "merge_rare_values",
    "narrowest_dtype",
    "project_to_recoding",
    "structural_problems",
    "uniform_weights",
    "write_table",
]
