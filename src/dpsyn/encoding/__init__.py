"""Tables ⇄ integer codes: column codecs, bins, recodings, and released marginals under them.

The words of this package, each with one meaning:

- **entry**: what one row of a table holds in one column, such as the text ``"42"``.
- **cell**: the finest public unit of an attribute: one listed value, or one interval of numbers or dates. Every entry
  belongs to exactly one cell. A cell of a *marginal* is a combination of codes, one for each of its attributes.
- **bin**: a group of cells. Marginals of several attributes count bins, one-way marginals count cells.
- **code**: the integer, from 0, that stands for a cell or a bin of an attribute. *Fine* codes stand for cells, *coarse*
  codes for bins or other groups of cells.
- **step**: the position of a value on the lattice of a ranged attribute, such as the days since its first date. A cell
  may hold many steps; values inside a cell are sampled uniformly.
- **recoding**: a public, row-by-row function from the fine codes of a table to the codes that marginals are counted
  over. It merges cells into bins, merges rare values, joins attributes, and applies difference coding.
- **difference coding**: the code of an attribute is replaced by its difference from the code that another attribute of
  the same row, the *anchor*, leads one to expect.

Codes of a table are always *rows × attributes*, column-major. Only kernels take *columns* (attributes × rows).

Importing the package does not load the compiler: the modules that count private tables (``counter``, ``kernels``) are
imported where they are used.
"""

from dpsyn.encoding.arrays import contingency_table
from dpsyn.encoding.binning import DomainCompression, Grouping, bucketize, merge_rare_values
from dpsyn.encoding.codec import (
    Codec,
    Codes,
    check_structure,
    describe_structure,
    header_problems,
    read_attribute,
    structural_problems,
    type_remarks,
    uniform_weights,
)
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
from dpsyn.encoding.difference_coding import (
    DifferenceCoding,
    expect_equal,
    expect_same_value,
    group_differences,
    learn_mapping,
)
from dpsyn.encoding.levels import FREQUENCY_SIZES, Levels, equal_mass_levels, frequency_levels
from dpsyn.encoding.projection import are_equivalent, project_to_levels, project_to_recoding
from dpsyn.encoding.recoding import RecodedColumn, Recoding
from dpsyn.encoding.writers import write_table

__all__ = [
    "ABOVE",
    "BELOW",
    "EMPTY",
    "FREQUENCY_SIZES",
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
    "Levels",
    "RangedCodec",
    "RecodedColumn",
    "Recoding",
    "are_equivalent",
    "bucketize",
    "check_structure",
    "column_codec_for",
    "contingency_table",
    "describe_structure",
    "equal_mass_levels",
    "expect_equal",
    "expect_same_value",
    "frequency_levels",
    "group_differences",
    "header_problems",
    "learn_mapping",
    "merge_rare_values",
    "narrowest_dtype",
    "project_to_levels",
    "project_to_recoding",
    "read_attribute",
    "structural_problems",
    "type_remarks",
    "uniform_weights",
    "write_table",
]
