"""Records from tables by maximum entropy: a model fitted by Gibbs sampling over synthetic records, and its rows."""

from dpsyn.synthesis.gibbs.fit import fit
from dpsyn.synthesis.gibbs.fitted import Fitted
from dpsyn.synthesis.gibbs.generate import chunk_sizes, generate, generate_chunk, most_rows
from dpsyn.synthesis.gibbs.options import GibbsOptions
from dpsyn.synthesis.gibbs.polish import polish
from dpsyn.synthesis.gibbs.restore import restored

__all__ = [
    "Fitted",
    "GibbsOptions",
    "chunk_sizes",
    "fit",
    "generate",
    "generate_chunk",
    "most_rows",
    "polish",
    "restored",
]
