"""``frequent_itemsets``: from a file of baskets to a result that may be published."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from operator import index
from pathlib import Path
from typing import Any, Literal

from dpsyn.accounting import Budget, Ledger, check_large_epsilon, exact_fraction
from dpsyn.errors import BudgetError, UserError, quote_argument
from dpsyn.itemsets.privbasis import PrivBasis, mine_itemsets, privbasis
from dpsyn.itemsets.result import FrequentItemsets
from dpsyn.options import options_to_data
from dpsyn.private import Protect, open_baskets
from dpsyn.progress import Progress, ignore_progress
from dpsyn.schema import BasketSchema, NeighboringRelation, UnitDeclaration, read_items

DEFAULT_TOP = 100
MAX_TOP = 2_000
"""The maximum number of itemsets: with more, each selection gets so little of ε that it is nearly random."""

DISCOVERY_SHARE = Fraction(3, 10)
"""The part of ε that discovers the universe of items privately; see ``bench.itemsets``."""


def frequent_itemsets(
    data: Any,
    items: str | Path | Iterable[object] | None,
    epsilon: float,
    *,
    top: int | None = None,
    min_support: float | None = None,
    delta: float | None = None,
    allow_large_epsilon: bool = False,
    max_items: int | None = None,
    method: Literal["auto", "bases"] = "auto",
    basket: str = "basket",
    item: str = "item",
    unit: str | None = None,
    max_baskets: int = 1,
    neighbors: NeighboringRelation = "add-remove",
    ledger: Ledger | str | Path | None = None,
    dataset: str = "",
    query: str | None = None,
    protect: Protect = "base rows",
    journal: str | Path | None = None,
    resume: bool = False,
    progress: Progress = ignore_progress,
) -> FrequentItemsets:
    """The most frequent itemsets of baskets, with counts and standard errors; the result may be published.

    Privacy: ε-differential privacy for one basket, or for all baskets of a person, of which at most ``max_baskets`` are
    used. If the universe of items is not public, it is discovered privately, and the guarantee is (ε, δ). All baskets
    are read through the gate, which charges the budget before it counts.

    Args:
        data: a ``.dat`` file with a basket on each line, a list of lists, or a long table with a row for each item of
            a basket: a path, a frame, an Arrow table.
        items: the universe, which is public: a range such as ``1..16470``, a file with one item on each line, or the
            items; None to discover it privately. Items of baskets that are not in the universe are ignored.
        epsilon: the ε of the guarantee.
        top: the number of itemsets; 100 unless ``min_support`` is given.
        min_support: only itemsets in at least this fraction of the baskets.
        delta: the δ of the guarantee; required to discover the universe.
        allow_large_epsilon: allow an ε above 20, which is no meaningful guarantee; the certificate then says so.
        max_items: the maximum number of items of a basket that are used to discover the universe.
        method: ``bases`` is PrivBasis alone. ``auto`` falls back to noisy counts of items and pairs where released
            numbers predict that fewer itemsets are missed by them, as for hundreds of itemsets of short baskets. Then
            there are no bases, and no synopsis.
        basket: the column of a long table that names the basket.
        item: the column that names the item.
        unit: the column that names a person whose baskets are protected together.
        max_baskets: the maximum number of baskets of a person that are used.
        neighbors: ``add-remove`` a basket (or person), or ``replace`` one.
        ledger: where the guarantee and every measurement is recorded; without one, this release is accounted alone.
        dataset: the name of the dataset in the ledger.
        query: a SELECT, or the name of a table, of a database; or a SELECT on files, called ``data``. It becomes part
            of the certificate.
        protect: whose baskets are protected if there is a query, as for ``measure``: ``base rows`` or ``query rows``.
        journal: a file that keeps every answer until the work is done, so that it can be resumed.
        resume: continue the run whose journal this is.
        progress: called with the current phase and the fraction done.
    """
    max_itemsets, support = _check_request(top, min_support)
    if method not in ("auto", "bases"):
        raise UserError(f"the method is {quote_argument(method)}; give 'auto' or 'bases'")
    check_large_epsilon(epsilon, allowed=allow_large_epsilon)
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
            f"max_baskets is {quote_argument(max_baskets)}, but no column names the person; give the column as unit"
        )
    max_basket = _check_basket_limit(universe is None, delta, max_items)
    progress("reading the baskets", 0.0)
    with open_baskets(
        data,
        schema,
        _make_budget(epsilon, delta),
        Ledger(Path(ledger)) if isinstance(ledger, str | Path) else ledger,
        query=query,
        protect=protect,
        journal=None if journal is None else Path(journal),
        resume=resume,
        recipe={
            **options_to_data(PrivBasis()),
            "top": max_itemsets,
            "min_support": None if support is None else str(support),
            "max_items": max_basket,
            "method": method,
        },
    ) as baskets:
        if max_basket is not None:
            progress("discovering the items", 0.0)
            baskets = baskets.discover_items(baskets.budget.rho, baskets.budget.threshold_delta, max_basket)
        mine = mine_itemsets if method == "auto" else privbasis
        mined = mine(baskets, top=max_itemsets, min_support=support, progress=progress) if baskets.items else []
        basket_count = baskets.public_basket_count()
    return FrequentItemsets.from_bases(
        mined,
        baskets.items,
        baskets.certificate(),
        top=max_itemsets,
        min_support=min_support,
        baskets=basket_count,
        dataset=dataset,
        neighbors=neighbors,
    )


def _check_request(top: int | None, min_support: float | None) -> tuple[int | None, Fraction | None]:
    if top is None and min_support is None:
        top = DEFAULT_TOP
    if top is not None and not 1 <= top <= MAX_TOP:
        raise UserError(f"the number of itemsets is {top:,}; give a number from 1 to {MAX_TOP:,}")
    if min_support is not None and not 0 < min_support <= 1:
        raise UserError(
            f"the support is {quote_argument(min_support)}; give a fraction of the baskets, above 0 and at most 1"
        )
    return None if top is None else index(top), None if min_support is None else exact_fraction(min_support)


def _check_basket_limit(discovered: bool, delta: float | None, max_basket: int | None) -> int | None:
    """The number of items of a basket that are used to discover the universe; None if the universe is public."""
    if not discovered:
        if delta is not None or max_basket is not None:
            raise UserError(
                "a δ and a maximum number of items are for discovering the items, which are public here; leave both out"
            )
        return None
    if delta is None or max_basket is None:
        raise UserError(
            "the items are not public, so they must be discovered privately: give a δ such as 1e-9 and the maximum "
            "number of items of a basket that are used, such as 20, or give a list of items"
        )
    if max_basket < 1:
        raise UserError(
            f"the maximum number of items of a basket is {quote_argument(max_basket)}; give a number from 1"
        )
    return max_basket


def _make_budget(epsilon: float, delta: float | None) -> Budget:
    """One pure-ε step for PrivBasis; with a δ also Gaussian noise and a threshold to discover the universe."""
    if delta is None:
        return Budget.for_guarantee(epsilon, 0, pure_epsilons=[epsilon])
    budget = Budget.for_guarantee(
        epsilon, delta, pure_epsilons=[exact_fraction(epsilon) * (1 - DISCOVERY_SHARE)], thresholds=True
    )
    if not budget.rho:
        raise BudgetError(f"ε = {epsilon:g} is too large to discover items; give at most 50, or a list of items")
    return budget
