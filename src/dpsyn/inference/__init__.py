"""Noisy marginals → consistent tables → a fitted model, or records. Post-processing: it costs no privacy budget.

The names below are loaded when first used: most of them need compiled kernels, which a user of `norm_sub` or of the
option objects in `methods` does not.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from dpsyn.inference.methods import (
    DECAYS,
    GUM,
    MCF,
    SYNTHESIS_METHODS,
    ConstantDecay,
    Decay,
    ExponentialDecay,
    Gibbs,
    LinearDecay,
    Moves,
    SquareRootDecay,
    StepDecay,
    Synthesis,
)

if TYPE_CHECKING:
    from dpsyn.inference.cell_counts import divide_into_ranges, estimate_cell_counts
    from dpsyn.inference.consistency import ConsistencyOptions, make_consistent
    from dpsyn.inference.empirical_bayes import posterior_mean_counts
    from dpsyn.inference.fit import (
        combine_one_way,
        describe_cells,
        estimate_one_way,
        estimate_row_count,
        find_unmeasured,
        fit_distribution,
        fit_model,
    )
    from dpsyn.inference.gibbs import GibbsModel, restore_model
    from dpsyn.inference.gum import Records, initialize_records, run_gum
    from dpsyn.inference.mcf import run_mcf
    from dpsyn.inference.measurements import (
        FOURIER_COEFFICIENT,
        MeasurementRound,
        Model,
        PreviousReleases,
        PublicTables,
        Release,
        Scores,
        hash_contents,
        iterate_marginals,
        parse_synthesis,
    )
    from dpsyn.inference.nonnegativity import norm_cut, norm_sub, ripple
    from dpsyn.inference.public_prior import (
        PublicTrust,
        count_rows,
        describe_trust,
        expect_shares,
        shrink_interaction,
        shrink_one_ways,
    )
    from dpsyn.inference.synthesis import FIRST_RUN_NOTE, is_first_run, synthesize_records
    from dpsyn.inference.table_smoothing import SMOOTHED_VARIANCE, count_parameters

_HOMES = {
    "FIRST_RUN_NOTE": "synthesis",
    "ConsistencyOptions": "consistency",
    "GibbsModel": "gibbs",
    "MeasurementRound": "measurements",
    "Model": "measurements",
    "PreviousReleases": "measurements",
    "PublicTables": "measurements",
    "PublicTrust": "public_prior",
    "describe_trust": "public_prior",
    "Records": "gum",
    "Release": "measurements",
    "SMOOTHED_VARIANCE": "table_smoothing",
    "FOURIER_COEFFICIENT": "measurements",
    "Scores": "measurements",
    "combine_one_way": "fit",
    "count_rows": "public_prior",
    "count_parameters": "table_smoothing",
    "describe_cells": "fit",
    "divide_into_ranges": "cell_counts",
    "estimate_cell_counts": "cell_counts",
    "estimate_one_way": "fit",
    "estimate_row_count": "fit",
    "fit_distribution": "fit",
    "expect_shares": "public_prior",
    "find_unmeasured": "fit",
    "fit_model": "fit",
    "initialize_records": "gum",
    "is_first_run": "synthesis",
    "hash_contents": "measurements",
    "iterate_marginals": "measurements",
    "make_consistent": "consistency",
    "norm_cut": "nonnegativity",
    "norm_sub": "nonnegativity",
    "parse_synthesis": "measurements",
    "posterior_mean_counts": "empirical_bayes",
    "restore_model": "gibbs",
    "ripple": "nonnegativity",
    "run_gum": "gum",
    "run_mcf": "mcf",
    "shrink_interaction": "public_prior",
    "shrink_one_ways": "public_prior",
    "synthesize_records": "synthesis",
}

__all__ = [
    "DECAYS",
    "FIRST_RUN_NOTE",
    "FOURIER_COEFFICIENT",
    "GUM",
    "MCF",
    "SMOOTHED_VARIANCE",
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
    "PublicTables",
    "PublicTrust",
    "Records",
    "Release",
    "Scores",
    "SquareRootDecay",
    "StepDecay",
    "Synthesis",
    "combine_one_way",
    "count_parameters",
    "count_rows",
    "describe_cells",
    "describe_trust",
    "divide_into_ranges",
    "estimate_cell_counts",
    "estimate_one_way",
    "estimate_row_count",
    "expect_shares",
    "find_unmeasured",
    "fit_distribution",
    "fit_model",
    "hash_contents",
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
    "shrink_interaction",
    "shrink_one_ways",
    "synthesize_records",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"dpsyn.inference.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'dpsyn.inference' has no attribute {name!r}")
