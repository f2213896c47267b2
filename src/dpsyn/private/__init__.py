"""The privacy gate: the only way from private rows to released numbers."""

from dpsyn.private.baskets import PrivateBaskets
from dpsyn.private.counted_table import MAX_COUNTED_CELLS, NoisyScores
from dpsyn.private.distances import DistanceQuery
from dpsyn.private.gate import NothingLeftError, ReleasedMarginals, ReleasedScores, ReleaseLimits
from dpsyn.private.journal import discard_journal
from dpsyn.private.mechanisms import Mechanisms, SystemNoise
from dpsyn.private.rehearsal import DivergedError, Rehearsal, RehearsedAnswer, TableKind, Transcript
from dpsyn.private.resources import ResourceEstimate, estimate_reading
from dpsyn.private.session import open_baskets, open_private, privacy_unit_of
from dpsyn.private.table import PrivateTable, initial_recoding, values_purpose
from dpsyn.sources import Protect

__all__ = [
    "MAX_COUNTED_CELLS",
    "DistanceQuery",
    "DivergedError",
    "Mechanisms",
    "NoisyScores",
    "NothingLeftError",
    "PrivateBaskets",
    "PrivateTable",
    "Protect",
    "Rehearsal",
    "RehearsedAnswer",
    "ReleaseLimits",
    "ReleasedMarginals",
    "ReleasedScores",
    "ResourceEstimate",
    "SystemNoise",
    "TableKind",
    "Transcript",
    "discard_journal",
    "estimate_reading",
    "initial_recoding",
    "open_baskets",
    "open_private",
    "privacy_unit_of",
    "values_purpose",
]
