"""The gate between private rows and released numbers."""

from dpsyn.private.baskets import PrivateBaskets
from dpsyn.private.doorway import Limits
from dpsyn.private.journal import discard_journal
from dpsyn.private.mechanisms import Mechanisms, SystemNoise
from dpsyn.private.opening import open_baskets, open_private
from dpsyn.private.table import PrivateTable, initial_recoding

__all__ = [
    "Limits",
    "Mechanisms",
    "PrivateBaskets",
    "PrivateTable",
    "SystemNoise",
    "discard_journal",
    "initial_recoding",
    "open_baskets",
    "open_private",
]
