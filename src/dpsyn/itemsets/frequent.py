"""Frequent itemsets, from a file of baskets to what may be published about it."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from operator import index
from pathlib import Path
from typing import Any

from dpsyn.accounting import Budget, Ledger, exact_fraction
from dpsyn.errors import BudgetError, UserError
from dpsyn.itemsets.privbasis import privbasis
from dpsyn.itemsets.result import FrequentItemsets
from dpsyn.private import open_baskets
from dpsyn.progress import Progress, ignore_progress
from dpsyn.schema import BasketSchema, NeighboringRelation, UnitDeclaration, read_items

DEFAULT_TOP = 100
MAX_TOP = 2_000
"""Itemsets that can be asked for: beyond it every draw has so little of ε that it is left to chance."""

DISCOVERY_SHARE = Fraction(3, 10)
"""The part of ε with which a universe is bought; see ``bench.itemsets``."""


def frequent_itemsets(
    data: Any,
    items: str | Path | Iterable[object] | None,
    epsilon: float,
    *,
    top: int | None = None,
    min_support: float | None = None,
    delta: float | None = None,
    max_items: int | None = None,
    basket: str = "basket",
    item: str = "item",
    unit: str | None = None,
    max_baskets: int = 1,
    neighbors: NeighboringRelation = "add-remove",
    ledger: Ledger | str | Path | None = None,
    dataset: str = "",
    query: str | None = None,
    journal: str | Path | None = None,
    resume: bool = False,
    progress: Progress = ignore_progress,
) -> FrequentItemsets:
    """The most frequent itemsets of baskets, with counts and standard errors; what comes back may be published.

    Privacy: ε-differential privacy for one basket, or for all baskets of a person of which at most ``max_baskets`` are used.
    If the universe of items is not public it is bought, and the guarantee is (ε, δ). All baskets are read through the
    gate, which pays before it looks.

    Args:
        data: a ``.dat`` file with a basket on each line, a list of lists, or a long table with a row for each item of
            a basket: a path, a frame, an Arrow table.
        items: the universe, which is public: a range such as ``1..16470``, a file with one item on each line, or the
            items; None to buy it. Items of baskets that are not among them are ignored.
        epsilon: the ε of the promise.
        top: how many itemsets; 100 unless ``min_support`` is given.
        min_support: only itemsets in so large a part of the baskets.
        delta: the δ of the promise; needed if the universe is bought.
        max_items: of each basket so many items at most are looked at to buy the universe.
        basket: the column of a long table that names the basket.
        item: the column that names the item.
        unit: the column that names a person whose baskets are protected together.
        max_baskets: so many baskets of a person are used at most.
        neighbors: ``add-remove`` a basket (or person), or ``replace`` one.
        ledger: where the promise and every draw is recorded; without one this release is counted alone.
        dataset: under which name.
        query: a SELECT, or the name of a table, of a database; or a SELECT on files, called ``data``.
        journal: a file that keeps every answer until the work is done, so that it can be resumed.
        resume: go on with the run whose journal this is.
        progress: is told what is going on.
    """
    asked = _check_request(top, min_support)
    universe, because = (None, "") if items is None else read_items(items)
    schema = BasketSchema(
        items=universe,
        because=because,
        basket=basket,
        item=item,
        dataset=dataset,
        neighbors=neighbors,
        privacy_unit=None if unit is None else UnitDeclaration(id=unit, max_rows=max_baskets),
    )
    if unit is None and max_baskets != 1:
        raise UserError(
            f"{max_baskets} baskets of a person are to be used, but no column names the person; give a unit"
        )
    longest = _check_basket_limit(universe is None, delta, max_items)
    progress("reading the baskets", 0.0)
    with open_baskets(
        data,
        schema,
        _make_budget(epsilon, delta),
        Ledger(Path(ledger)) if isinstance(ledger, str | Path) else ledger,
        query=query,
        journal=None if journal is None else Path(journal),
        resume=resume,
        recipe={
            "name": "privbasis",
            "identity": f"recipe privbasis, top {asked[0]}, support {asked[1]}, longest {longest}",
        },
    ) as baskets:
        if longest is not None:
            progress("buying the items", 0.0)
            baskets = baskets.discover_items(baskets.budget.rho, baskets.budget.threshold_delta, longest)
        found = privbasis(baskets, top=asked[0], min_support=asked[1], progress=progress) if baskets.items else []
        number = baskets.public_basket_count()
    return FrequentItemsets.from_bases(
        found,
        baskets.items,
        baskets.certificate(),
        top=asked[0],
        min_support=min_support,
        baskets=number,
        dataset=dataset,
        neighbors=neighbors,
    )


def _check_request(top: int | None, min_support: float | None) -> tuple[int | None, Fraction | None]:
    if top is None and min_support is None:
        top = DEFAULT_TOP
    if top is not None and not 1 <= top <= MAX_TOP:
        raise UserError(f"the top {top:,} itemsets were asked for; give a number from 1 to {MAX_TOP:,}")
    if min_support is not None and not 0 < min_support <= 1:
        raise UserError(f"the support is {min_support}; give a part of the baskets, more than 0 and at most 1")
    return None if top is None else index(top), None if min_support is None else exact_fraction(min_support)


def _check_basket_limit(discovered: bool, delta: float | None, max_basket: int | None) -> int | None:
    """How many items of a basket are looked at to buy the universe; None if it is public."""
    if not discovered:
        if delta is not None or max_basket is not None:
            raise UserError(
                "a δ, and a longest basket, are for buying the items; they are public here, so leave both out"
            )
        return None
    if delta is None or max_basket is None:
        raise UserError(
            "the items are not public, so they must be bought: give a δ such as 1e-9, and the number of items of a "
            "basket that are looked at, such as 20 — or a list of items"
        )
    if max_basket < 1:
        raise UserError(f"at most {max_basket} items of a basket would be looked at; give a number from 1")
    return max_basket


def _make_budget(epsilon: float, delta: float | None) -> Budget:
    """One pure step that all draws share; with a δ, Gaussian noise and a threshold for the universe beside it."""
    if delta is None:
        return Budget.for_guarantee(epsilon, 0, pure_epsilons=[epsilon])
    budget = Budget.for_guarantee(
        epsilon, delta, pure_epsilons=[exact_fraction(epsilon) * (1 - DISCOVERY_SHARE)], thresholds=True
    )
    if not budget.rho:
        raise BudgetError(f"ε = {epsilon:g} is too large to buy items with; give at most 50, or a list of items")
    return budget
