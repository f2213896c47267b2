"""GUM, the gradual update method of PrivSyn: records that are changed until they match tables of counts."""

from dpsyn.inference.gum.decay import (
    DECAYS,
    ConstantDecay,
    Decay,
    ExponentialDecay,
    LinearDecay,
    SquareRootDecay,
    StepDecay,
)
from dpsyn.inference.gum.gradual_update import GUM, Moves, Records, initialize_records, run_gum
from dpsyn.inference.gum.synthesis import FIRST_RUN_NOTE, is_first_run, synthesize_records

__all__ = [
    "DECAYS",
    "FIRST_RUN_NOTE",
    "GUM",
    "ConstantDecay",
    "Decay",
    "ExponentialDecay",
    "LinearDecay",
    "Moves",
    "Records",
    "SquareRootDecay",
    "StepDecay",
    "initialize_records",
    "is_first_run",
    "run_gum",
    "synthesize_records",
]
