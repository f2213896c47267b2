"""What a recipe is: a whole algorithm that asks a private table its questions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dpsyn.marginals import Marginal
from dpsyn.private import PrivateTable

Recipe = Callable[[PrivateTable], Sequence[Marginal]]
"""Spends the budget of a private table and gives what it measured.

Privacy: a recipe sees nothing but the gate's answers, so whatever it does is paid for.
"""
