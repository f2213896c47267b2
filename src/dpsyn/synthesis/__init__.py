"""From tables of counts to records that match them. Post-processing: it costs nothing."""

from dpsyn.synthesis.decay import DECAYS, ConstantAlpha, Decay, ExponentialDecay, LinearDecay, RootDecay, StepDecay
from dpsyn.synthesis.gibbs import Fitted, restored
from dpsyn.synthesis.gum import GumOptions, Moves, gum
from dpsyn.synthesis.start import Records, start
from dpsyn.synthesis.synthesize import FIRST_TIME, first_time, synthesize

__all__ = [
    "DECAYS",
    "FIRST_TIME",
    "ConstantAlpha",
    "Decay",
    "ExponentialDecay",
    "Fitted",
    "GumOptions",
    "LinearDecay",
    "Moves",
    "Records",
    "RootDecay",
    "StepDecay",
    "first_time",
    "gum",
    "restored",
    "start",
    "synthesize",
]
