"""How much does each step of the default recipe contribute?

    python -m bench.ablation FOLDER... --results FILE [--epsilon 0.1 1 10] [--seeds 3]
    python -m bench.ablation --results FILE

Releases each table with the recipe as it is, and with one step changed at a time; evaluates the rows and adds the
figures to the results as ``bench.utility`` does, which also describes the FOLDERs. Without folders it prints the
results as a table: for each variant the distances and scores of each table and ε, divided by those of the recipe as it
is.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

import dpsyn as package
from bench.measuring import provenance
from bench.residuals import Residuals
from bench.utility import SEED, Line, Table, average_lines, read, release_table
from dpsyn.inference import GUM
from dpsyn.recipes import AdaptiveSelection, DPSyn

AS_IT_IS, RESIDUALS = "as it is", "each by itself, pairs as residuals (simulated)"


def select_by(**options: Any) -> DPSyn:
    """The default recipe with other options of its selection."""
    return DPSyn(selection=AdaptiveSelection(**options))


VARIANTS: dict[str, DPSyn] = {
    AS_IT_IS: DPSyn(),
    "records fitted by GUM": DPSyn(synthesis=GUM()),
    "1-ways: always a tenth": DPSyn(initial_share=0.1),
    "1-ways: always 0.3": DPSyn(initial_share=0.3),
    "never a second round": select_by(second_round_ratio=0.0, triples_below_error=0.0),
    "always a second round": select_by(second_round_ratio=1e9),
    "a second round only with triples": select_by(second_round_ratio=0.0),
    "always a second round with triples": select_by(triples_below_error=1e9),
    "second round without triples": select_by(max_triples=0),
    "each table by itself": select_by(max_merged_cells=0),
    "rare values kept apart": DPSyn(rare_sigmas=-1e9),
    "scores: a tenth": select_by(score_share=0.1),
    "scores: a hundredth": select_by(score_share=0.01),
    "errors predicted as c·σ·√(2/π)": DPSyn(),
    "scores not shrunk": DPSyn(),
    "rare values sampled by clipped counts": DPSyn(),
    "rows not polished": DPSyn(),
    RESIDUALS: select_by(max_merged_cells=0),
}


Counts = NDArray[np.float64]


def _correct_scores(scores: Counts, _std: float, explained: Counts, _largest: Counts) -> Counts:
    """Distances from noisy scores, without a prior."""
    distances: Counts = np.sqrt(np.maximum(np.maximum(scores, 0.0) ** 2 - explained**2, 0.0))
    return distances


@contextmanager
def change_step(variant: str, table: Table, seed: int) -> Iterator[None]:
    """Apply the changes of a variant that are not options of the recipe."""
    patches: dict[str, Any] = {
        "errors predicted as c·σ·√(2/π)": patch(
            "dpsyn.selection.marginal_selection.norm_sub", lambda values, _: values
        ),
        "scores not shrunk": patch("dpsyn.recipes.scoring.estimate_distances", _correct_scores),
        "rare values sampled by clipped counts": patch(
            "dpsyn.inference.fit.posterior_mean_counts", lambda values, _: np.maximum(values, 0.0)
        ),
        "rows not polished": patch("dpsyn.inference.gibbs.rows.polish_chains", lambda *_: None),
        RESIDUALS: patch("dpsyn.recipes.adaptive_selection.measure_tables", Residuals(table, seed).measure_tables),
        "1-ways: always a tenth": patch("dpsyn.recipes.dpsyn._one_way_share", lambda *_: 0.0),
        "1-ways: always 0.3": patch("dpsyn.recipes.dpsyn._one_way_share", lambda *_: 0.0),
    }
    if variant not in patches:
        yield
        return
    with patches[variant]:
        yield


def evaluate_release(table: Table, epsilon: float, recipe: DPSyn, seed: int) -> Line:
    """One release, and the distances of its rows from the real ones."""
    rows, about = release_table(table, epsilon, recipe, seed)
    result = package.evaluate(table.arrow(), rows, table.schema)
    distances, contest = result.distances, result.contest
    assert distances.two_way is not None
    assert distances.three_way is not None
    return about | {
        "two_way": distances.two_way.synthetic,
        "three_way": distances.three_way.synthetic,
        "range": contest.range_queries.synthetic,
    }


def run(chosen: argparse.Namespace) -> None:
    finished = {(line["table"], line["epsilon"], line["recipe"], line["seed"]) for line in read(chosen.results)}
    for folder in chosen.folders:
        for epsilon in chosen.epsilon:
            for seed in range(chosen.seeds):
                for words, recipe in VARIANTS.items():
                    if (folder.name, epsilon, words, seed) in finished:
                        continue
                    table = Table.load(folder)
                    with change_step(words, table, seed):
                        line = evaluate_release(table, epsilon, recipe, seed) | {"recipe": words}
                    with chosen.results.open("a") as file:
                        file.write(json.dumps(line) + "\n")
                    print(json.dumps(line), flush=True)


def print_results(results: Path) -> None:
    cells = average_lines(read(results))
    print(f"{provenance(SEED)}\n")
    settings = sorted({(name, epsilon) for name, epsilon, _ in cells if epsilon})
    print(
        "| 2-way / 3-way distance, range score | "
        + " | ".join(f"{name} ε = {epsilon:g}" for name, epsilon in settings)
        + " |"
    )
    print("|---" * (len(settings) + 1) + "|")
    for words in VARIANTS:
        shown = []
        for name, epsilon in settings:
            own, base = cells.get((name, epsilon, words)), cells.get((name, epsilon, AS_IT_IS))
            if own is None or base is None:
                shown.append("")
            elif words == AS_IT_IS:
                shown.append(f"{own['two_way']:.4f} / {own['three_way']:.4f}, {own['range'] / 1e6:.3f}")
            else:
                ratios = [own[column] / base[column] for column in ("two_way", "three_way", "range")]
                shown.append(f"{ratios[0]:.2f} / {ratios[1]:.2f}, {ratios[2]:.2f}")
        print(f"| {words} | {' | '.join(shown)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--epsilon", nargs="+", type=float, default=[0.1, 1.0, 10.0])
    parser.add_argument("--seeds", type=int, default=3)
    chosen = parser.parse_args()
    if chosen.folders:
        run(chosen)
    print_results(chosen.results)


if __name__ == "__main__":
    main()
