"""What is each step of the default recipe worth?

    python -m bench.ablation FOLDER... [--epsilon 0.1 1 10] [--seeds 2]

Releases each table with the recipe as it is, and with one step changed at a time; prints the mean total variation
distances of 1-, 2- and 3-way marginals as ``bench.utility`` does. FOLDERs are as there.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from bench.measuring import provenance
from bench.utility import SEED, Table, averaged, released
from dpsyn.recipes import RECIPES, DPSynOptions, Findings, dpsyn


def fitted_by_gum(*arguments: Any, **options: Any) -> Findings:
    return replace(dpsyn(*arguments, **options), method="gum")


VARIANTS: dict[str, Callable[..., Findings]] = {
    "as it is": dpsyn,
    "fitted by GUM": fitted_by_gum,
    "1-ways: always a tenth": partial(dpsyn, options=DPSynOptions(first=0.1, most_singles=0.1)),
    "1-ways: always 0.3": partial(dpsyn, options=DPSynOptions(first=0.3, most_singles=0.3)),
    "never triples": partial(dpsyn, options=DPSynOptions(accurate=0.0)),
    "always a second round": partial(dpsyn, options=DPSynOptions(accurate=1e9)),
    "no rare values merged": partial(dpsyn, options=DPSynOptions(rare=-1e9)),
    "scores: a tenth": partial(dpsyn, options=DPSynOptions(scores=0.1)),
    "scores: a hundredth": partial(dpsyn, options=DPSynOptions(scores=0.01)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--epsilon", nargs="+", type=float, default=[0.1, 1.0, 10.0])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--drop", nargs="*", default=[])
    chosen = parser.parse_args()
    print(f"{provenance(SEED)}; {chosen.seeds} releases each")
    print(f"{'table':<10} {'ε':>5}  {'variant':<24} 1-way   2-way   3-way     cpu s   wall s")
    for folder in chosen.folders:
        table = Table.load(folder, chosen.drop)
        for epsilon in chosen.epsilon:
            for words, recipe in VARIANTS.items():
                with patch.dict(RECIPES, {"variant": recipe}):
                    runs = [released(table, epsilon, "variant", seed) for seed in range(chosen.seeds)]
                print(f"{table.name:<10} {epsilon:>5g}  {words:<22} {averaged(runs).line()}", flush=True)


if __name__ == "__main__":
    main()
