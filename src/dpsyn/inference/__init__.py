"""Noisy marginals → consistent tables → a fitted model or records. Post-processing: it costs nothing."""

from dpsyn.inference.consistency import ConsistencyOptions, make_consistent
from dpsyn.inference.empirical_bayes import posterior_mean_counts
from dpsyn.inference.fit import estimate_one_way, estimate_row_count, fit_model
from dpsyn.inference.gibbs import Gibbs, GibbsModel, restore_model
from dpsyn.inference.gum import (
    DECAYS,
    FIRST_RUN_NOTE,
    GUM,
    ConstantDecay,
    Decay,
    ExponentialDecay,
    LinearDecay,
    Moves,
    Records,
    SquareRootDecay,
    StepDecay,
    initialize_records,
    is_first_run,
    run_gum,
    synthesize_records,
)
from dpsyn.inference.mcf import MCF, run_mcf
from dpsyn.inference.measurements import MeasurementRound, Model, Release, Scores, SynthesisMethod
from dpsyn.inference.nonnegativity import norm_cut, norm_sub, ripple

__all__ = [
    "DECAYS",
    "FIRST_RUN_NOTE",
    "GUM",
    "MCF",
    "ConsistencyOptions",
    "ConstantDecay",
    "Decay",
    "ExponentialDecay",
    "Gibbs",
    "GibbsModel",
    "LinearDecay",
    "MeasurementRound",
    "Model",
    "Moves",
    "Records",
    "Release",
    "Scores",
    "SquareRootDecay",
    "StepDecay",
    "SynthesisMethod",
    "estimate_one_way",
    "estimate_row_count",
    "fit_model",
    "initialize_records",
    "is_first_run",
    "make_consistent",
    "norm_cut",
    "norm_sub",
    "posterior_mean_counts",
    "restore_model",
    "ripple",
    "run_gum",
    "run_mcf",
    "synthesize_records",
]
