"""What is each step of the default recipe worth?

    python -m bench.ablation FOLDER... --results FILE [--epsilon 0.1 1 10] [--seeds 3]
    python -m bench.ablation --results FILE

Releases each table with the recipe as it is, and with one step changed at a time; evaluates the rows and adds the
figures to the results as ``bench.utility`` does, whose FOLDERs these are. Without folders it prints what is in the
results as a table: for each variant the distances and scores of each table and ε divided by those of the recipe
as it is.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import dpsyn as package
from bench.measuring import provenance
from bench.residuals import Residuals
from bench.utility import SEED, Line, Table, average_lines, read, release_table
from dpsyn.recipes import RECIPES, AdaptiveSelection, Measurements, dpsyn

AS_IT_IS, RESIDUALS = "as it is", "each by itself, pairs as residuals (simulated)"


def fitted_by_gum(*arguments: Any, **options: Any) -> Measurements:
    return replace(dpsyn(*arguments, **options), method="gum")


VARIANTS: dict[str, Callable[..., Measurements]] = {
    AS_IT_IS: dpsyn,
    "records fitted by GUM": fitted_by_gum,
    "1-ways: always a tenth": partial(dpsyn, options=AdaptiveSelection(initial_share=0.1, max_one_way_share=1e9)),
    "1-ways: always 0.3": partial(dpsyn, options=AdaptiveSelection(initial_share=0.3, max_one_way_share=1e9)),
    "never a second round": partial(dpsyn, options=AdaptiveSelection(second_round_ratio=0.0, triples_below_error=0.0)),
    "always a second round": partial(dpsyn, options=AdaptiveSelection(second_round_ratio=1e9)),
    "a second round only with triples": partial(dpsyn, options=AdaptiveSelection(second_round_ratio=0.0)),
    "always a second round with triples": partial(dpsyn, options=AdaptiveSelection(triples_below_error=1e9)),
    "second round without triples": partial(dpsyn, options=AdaptiveSelection(max_triples=0)),
    "each table by itself": partial(dpsyn, options=AdaptiveSelection(max_merged_cells=0)),
    "rare values kept apart": partial(dpsyn, options=AdaptiveSelection(rare_sigmas=-1e9)),
    "scores: a tenth": partial(dpsyn, options=AdaptiveSelection(score_share=0.1)),
    "scores: a hundredth": partial(dpsyn, options=AdaptiveSelection(score_share=0.01)),
    "errors predicted as c·σ·√(2/π)": dpsyn,
    "scores not shrunk": dpsyn,
    "rare values drawn by clipped counts": dpsyn,
    "rows not polished": dpsyn,
    RESIDUALS: partial(dpsyn, options=AdaptiveSelection(max_merged_cells=0)),
}


@contextmanager
def changed(words: str, table: Table, seed: int) -> Iterator[None]:
    """What a variant changes outside of the recipe's options."""
    patches = {
        "errors predicted as c·σ·√(2/π)": patch(
            "dpsyn.selection.marginal_selection.norm_sub", lambda values, _: values
        ),
        "scores not shrunk": patch("dpsyn.recipes.adaptive_selection.shrunk", lambda scores, _: scores),
        "rare values drawn by clipped counts": patch(
            "dpsyn.inference.fit.likely_counts", lambda values, _: np.maximum(values, 0.0)
        ),
        "rows not polished": patch("dpsyn.inference.gibbs.rows.polish_chains", lambda *_: None),
        RESIDUALS: patch("dpsyn.recipes.adaptive_selection.measured", Residuals(table, seed).measured),
        "1-ways: always a tenth": patch("dpsyn.recipes.dpsyn._singles_part", lambda *_: 0.0),
        "1-ways: always 0.3": patch("dpsyn.recipes.dpsyn._singles_part", lambda *_: 0.0),
    }
    if words not in patches:
        yield
        return
    with patches[words]:
        yield


def evaluated(table: Table, epsilon: float, words: str, seed: int) -> Line:
    """One release, and how far its rows are from the real ones."""
    rows, about = release_table(table, epsilon, words, seed)
    found = package.evaluate(table.arrow(), rows, table.schema)
    distances, contest = found.distances, found.contest
    assert distances.two_way is not None
    assert distances.three_way is not None
    return about | {
        "two_way": distances.two_way.synthetic,
        "three_way": distances.three_way.synthetic,
        "range": contest.range_queries.synthetic,
    }


def run(chosen: argparse.Namespace) -> None:
    there = {(line["table"], line["epsilon"], line["recipe"], line["seed"]) for line in read(chosen.results)}
    for folder in chosen.folders:
        for epsilon in chosen.epsilon:
            for seed in range(chosen.seeds):
                for words, recipe in VARIANTS.items():
                    if (folder.name, epsilon, words, seed) in there:
                        continue
                    table = Table.load(folder)
                    with changed(words, table, seed), patch.dict(RECIPES, {words: recipe}):
                        line = evaluated(table, epsilon, words, seed)
                    with chosen.results.open("a") as file:
                        file.write(json.dumps(line) + "\n")
                    print(json.dumps(line), flush=True)


def tell(results: Path) -> None:
    cells = average_lines(read(results))
    print(f"{provenance(SEED)}\n")
    places = sorted({(name, epsilon) for name, epsilon, _ in cells if epsilon})
    print(
        "| 2-way / 3-way distance, range score | "
        + " | ".join(f"{name} ε = {epsilon:g}" for name, epsilon in places)
        + " |"
    )
    print("|---" * (len(places) + 1) + "|")
    for words in VARIANTS:
        shown = []
        for name, epsilon in places:
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
    tell(chosen.results)


if __name__ == "__main__":
    main()
