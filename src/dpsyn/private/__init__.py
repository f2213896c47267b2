"""The gate between private rows and released numbers."""

from dpsyn.private.baskets import PrivateBaskets
from dpsyn.private.doorway import Limits
from dpsyn.private.journal import discard_journal
from dpsyn.private.mechanisms import Mechanisms, SystemNoise
from dpsyn.private.opening import open_baskets, open_private
from dpsyn.private.planning import ReadingPlan, plan_reading
from dpsyn.private.table import MOST_COUNTED, PrivateTable, initial_recoding

__all__ = [
    "MOST_COUNTED",
    "Limits",
    "Mechanisms",
    "PrivateBaskets",
    "PrivateTable",
    "ReadingPlan",
    "SystemNoise",
    "discard_journal",
    "initial_recoding",
    "open_baskets",
    "open_private",
    "plan_reading",
]
