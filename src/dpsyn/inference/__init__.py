"""Noisy marginals → consistent tables → a fitted model or records. Post-processing: it costs nothing."""

from dpsyn.inference.consistency import ConsistencyOptions, make_consistent
from dpsyn.inference.empirical_bayes import posterior_mean_counts
from dpsyn.inference.fit import estimate_one_way, estimate_row_count, fit_distribution, fit_model
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
from dpsyn.inference.measurements import (
    SYNTHESIS_METHODS,
    MeasurementRound,
    Model,
    PreviousReleases,
    Release,
    Scores,
    Synthesis,
    iterate_marginals,
    parse_synthesis,
)
from dpsyn.inference.nonnegativity import norm_cut, norm_sub, ripple

__all__ = [
    "DECAYS",
    "FIRST_RUN_NOTE",
    "GUM",
    "MCF",
    "SYNTHESIS_METHODS",
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
    "PreviousReleases",
    "Records",
    "Release",
    "Scores",
    "SquareRootDecay",
    "StepDecay",
    "Synthesis",
    "estimate_one_way",
    "estimate_row_count",
    "fit_distribution",
    "fit_model",
    "initialize_records",
    "is_first_run",
    "iterate_marginals",
    "make_consistent",
    "norm_cut",
    "norm_sub",
    "parse_synthesis",
    "posterior_mean_counts",
    "restore_model",
    "ripple",
    "run_gum",
    "run_mcf",
    "synthesize_records",
]
