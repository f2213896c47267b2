"""Maximum entropy: a model fitted to tables by Gibbs sampling over synthetic records, and rows sampled from it."""

from dpsyn.inference.gibbs.chains import polish
from dpsyn.inference.gibbs.layout import Columns, column_type
from dpsyn.inference.gibbs.maximum_entropy import fit
from dpsyn.inference.gibbs.model import GibbsModel, restore_model
from dpsyn.inference.gibbs.rows import chunk_sizes, max_chunk_rows, sample_chunk, sample_chunks

__all__ = [
    "Columns",
    "GibbsModel",
    "chunk_sizes",
    "column_type",
    "fit",
    "max_chunk_rows",
    "polish",
    "restore_model",
    "sample_chunk",
    "sample_chunks",
]
