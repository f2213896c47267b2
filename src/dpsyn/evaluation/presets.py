"""The contest's metrics come in two sets of parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dpsyn.errors import UserError

Categories = Literal["subset", "until a repeat"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """Parameters of the contest's metrics.

    Attributes:
        name: how it is called.
        triples: random triples of columns whose densities are compared.
        last_column: whether the last column is drawn into triples.
        queries: random range queries, at most; each starts from another row of the real table.
        chance: the probability with which a column has a condition.
        categories: which categories a condition admits besides the row's own: a random subset of random size, or codes
            drawn until one repeats.
    """

    name: str
    triples: int
    last_column: bool
    queries: int
    chance: float
    categories: Categories


PAPER = Preset(name="paper", triples=300, last_column=True, queries=300, chance=0.33, categories="subset")
"""As *DPSyn: Experiences in the NIST Differential Privacy Data Synthesis Challenges* describes the metrics."""

MATCH3 = Preset(name="match3", triples=100, last_column=False, queries=300, chance=0.10, categories="until a repeat")
"""As the scorer of the third match computed them."""

PRESETS = {preset.name: preset for preset in (PAPER, MATCH3)}


def preset_named(name: str) -> Preset:
    """A preset by its name; a UserError if there is none."""
    if name not in PRESETS:
        raise UserError(f"there is no preset {name!r}; there are {', '.join(PRESETS)}")
    return PRESETS[name]
