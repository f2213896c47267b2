"""Whether public numbers of rows contradict each other."""

from __future__ import annotations

from itertools import permutations

import numpy as np

from dpsyn.errors import SchemaError
from dpsyn.schema.constraints import Constraints, Counted
from dpsyn.schema.satisfying import witness
from dpsyn.schema.scales import Mask


def check_totals(known: Constraints) -> None:
    """Refuse totals that cannot all be true: parts larger than the whole, or rows that rules exclude."""
    for total in known.by_table:
        if total.count and witness(known.by_row, known.sizes, dict(total.selection)) is None:
            raise _refused(total, "the rules allow no row that it counts")
    for one, other in permutations(known.by_table, 2):
        if one.count > other.count and _within(one, other, known.sizes):
            raise _refused(one, f"it counts {one.count:,} rows among the {other.count:,} of rule {other.number}")
    for whole in known.by_table:
        parts = [total for total in known.by_table if total is not whole and _within(total, whole, known.sizes)]
        for place in sorted({place for part in parts for place, _ in part.selection}):
            _check_parts(whole, [p for p in parts if [at for at, _ in p.selection] == [place]], place, known)


def _check_parts(whole: Counted, parts: list[Counted], place: int, known: Constraints) -> None:
    """Refuse parts by one attribute that add up to more than the whole, or cover it and add up to less."""
    masks = [dict(part.selection)[place] for part in parts]
    covered = np.sum(masks, axis=0) if masks else np.zeros(known.sizes[place])
    counts = sum(part.count for part in parts)
    if not parts or covered.max() > 1:
        return
    complete = (covered > 0)[dict(whole.selection).get(place, np.ones(known.sizes[place], np.bool_))].all()
    if counts > whole.count or (complete and counts < whole.count):
        told = (
            f"the totals by {known.names[place]!r} add up to {counts:,}, and those of all of them are {whole.count:,}"
        )
        raise _refused(parts[-1], told)


def _within(part: Counted, whole: Counted, sizes: tuple[int, ...]) -> bool:
    """Whether every row that the first counts is one that the second counts."""
    narrow = dict(part.selection)

    def everything(place: int) -> Mask:
        return np.ones(sizes[place], np.bool_)

    return all(not (narrow.get(place, everything(place)) & ~mask).any() for place, mask in whole.selection)


def _refused(total: Counted, why: str) -> SchemaError:
    return SchemaError(f"this total cannot be true: {why}", ("rules", total.number - 1, "count"))
