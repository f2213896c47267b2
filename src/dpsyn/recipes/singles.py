"""The first step of most recipes: every attribute by itself."""

from __future__ import annotations

from fractions import Fraction

from dpsyn.accounting import split
from dpsyn.marginals import Clique
from dpsyn.private import PrivateTable, initial_recoding
from dpsyn.records import Codec
from dpsyn.schema import Open
from dpsyn.synopsis import Stage
from dpsyn.transforms import Recoding


def measure_singles(table: PrivateTable, share: Fraction) -> tuple[PrivateTable, tuple[Stage, ...]]:
    """Buy the values of open attributes and measure the 1-way marginal of every attribute, in equal shares.

    Where cells are finer than bins, half of an attribute's share goes to each: sums of many noisy cells would be poor
    estimates of the bins, and bins say nothing about spikes. An open attribute spends half of its share on its values.
    Attributes that the schema groups are measured as one, with the shares of all.

    Privacy: spends ``share`` of ρ, and the δ that the budget keeps for thresholds if there are open attributes.
    """
    opened = [attribute.name for attribute in table.schema.measured if isinstance(attribute, Open)]
    codec = Codec(table.schema)
    finer = [name for name, cells, bins in zip(codec.names, codec.cells, codec.bins, strict=True) if cells > bins]
    names = [attribute.name for attribute in table.schema.measured]
    weights = [1 if name in opened or name in finer else 2 for name in names] + [1] * (len(opened) + len(finer))
    shares = split(share, weights)
    of_bins, of_extras = (
        dict(zip(names, shares, strict=False)),
        dict(zip([*opened, *finer], shares[len(names) :], strict=True)),
    )

    deltas = split(table.budget.threshold_delta, [1] * len(opened)) if opened else ()
    for name, delta in zip(opened, deltas, strict=True):
        table = table.discover(name, of_extras[name], delta)
    codec = Codec(table.schema)
    table = table.recode(initial_recoding(table.schema))
    of_columns = {
        c.name: sum((of_bins[codec.names[s]] for s in c.sources), Fraction(0)) for c in table.recoding.columns
    }
    parts: list[tuple[Recoding, dict[Clique, Fraction]]] = [
        (table.recoding, {(name,): share for name, share in of_columns.items()})
    ]
    if finer:
        parts.insert(0, (Recoding.fine(codec), {(name,): of_extras[name] for name in finer}))
    found = table.measure_under(parts)
    return table, tuple(Stage(recoding, tuple(some)) for (recoding, _), some in zip(parts, found, strict=True))
