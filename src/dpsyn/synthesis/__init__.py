"""From tables of counts to records that match them. Post-processing: it costs nothing."""

from dpsyn.synthesis.decay import DECAYS, ConstantAlpha, Decay, ExponentialDecay, LinearDecay, RootDecay, StepDecay
from dpsyn.synthesis.gum import GumOptions, Moves, gum
from dpsyn.synthesis.start import Records, start
from dpsyn.synthesis.synthesize import synthesize

__all__ = [
    "DECAYS",
    "ConstantAlpha",
    "Decay",
    "ExponentialDecay",
    "GumOptions",
    "LinearDecay",
    "Moves",
    "Records",
    "RootDecay",
    "StepDecay",
    "gum",
    "start",
    "synthesize",
]
