"""The manifest of a synopsis file: everything but the numbers, as JSON of one declared shape."""

from __future__ import annotations

import json
from typing import Annotated, Any, TypeVar

import msgspec

from dpsyn.errors import SynopsisError

MANIFEST_KIND = "dpsyn synopsis"
"""What the manifest says it is of."""

MANIFEST_FORMAT = 1
"""The version of the file format."""

Index = Annotated[int, msgspec.Meta(ge=0, le=2**31)]
Positive = Annotated[float, msgspec.Meta(gt=0)]
NotNegative = Annotated[float, msgspec.Meta(ge=0)]
Digest = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
MemberName = str
"""The name of an array in the file."""

_T = TypeVar("_T")


class _ManifestEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Part of a manifest."""


class ReferenceEntry(_ManifestEntry, frozen=True):
    """Where a source is expected: by which other fine attribute, the codes, and how many differences go round."""

    anchor: Index
    expected: MemberName
    cells: Annotated[int, msgspec.Meta(ge=1, le=2**31)]


class ColumnEntry(_ManifestEntry, frozen=True, omit_defaults=True):
    """A recoded column; a table that is null leaves codes as they are, and so do merged codes that are."""

    name: str
    sources: tuple[Index, ...]
    tables: tuple[MemberName | None, ...]
    merged: MemberName | None
    references: tuple[ReferenceEntry | None, ...] = ()


class RecodingEntry(_ManifestEntry, frozen=True):
    """A recoding, and the names and sizes of the fine attributes it was made for."""

    origin: tuple[tuple[str, Annotated[int, msgspec.Meta(ge=1, le=2**31)]], ...]
    columns: tuple[ColumnEntry, ...]


class MarginalEntry(_ManifestEntry, frozen=True):
    """A released marginal."""

    clique: tuple[str, ...]
    raw: MemberName
    lattice: Annotated[int, msgspec.Meta(ge=0, le=1000)]
    deviation: Positive


class RoundEntry(_ManifestEntry, frozen=True):
    """Marginals under one recoding, which is named by its place in the list of recodings."""

    recoding: Index
    marginals: tuple[MarginalEntry, ...]


class ScoresEntry(_ManifestEntry, frozen=True):
    """Released scores."""

    kind: str
    cliques: tuple[tuple[str, ...], ...]
    values: MemberName
    deviation: NotNegative


class ReleaseEntry(_ManifestEntry, frozen=True):
    """One measurement; its certificate is null if it was made elsewhere."""

    recipe: str
    source: str
    certificate: dict[str, Any] | None
    stages: tuple[RoundEntry, ...]
    scores: tuple[ScoresEntry, ...]


class TableEntry(_ManifestEntry, frozen=True):
    """A consistent table."""

    clique: tuple[str, ...]
    values: MemberName
    variance: NotNegative


class DistributionEntry(_ManifestEntry, frozen=True):
    """A distribution over records: its cliques, and a number for each of their cells, one clique after the other."""

    cliques: tuple[tuple[str, ...], ...]
    parameters: MemberName
    expected: MemberName


class ModelEntry(_ManifestEntry, frozen=True):
    """What rows are drawn from."""

    recoding: Index
    tables: tuple[TableEntry, ...]
    histograms: dict[str, MemberName]
    total: NotNegative
    fitted: DistributionEntry | None


class Manifest(_ManifestEntry, frozen=True, kw_only=True):
    """All that is in a synopsis but its arrays, whose SHA-256 are listed as ``members``."""

    kind: str = MANIFEST_KIND
    format: int = MANIFEST_FORMAT
    made_with: dict[str, str]
    schema: str
    recodings: tuple[RecodingEntry, ...]
    releases: tuple[ReleaseEntry, ...]
    model: ModelEntry
    members: dict[str, Digest]

    def to_bytes(self) -> bytes:
        """JSON that a person can read, the same for the same manifest."""
        return json.dumps(msgspec.to_builtins(self), ensure_ascii=False, allow_nan=False, indent=1).encode()


class _ManifestMark(msgspec.Struct):
    """What every manifest has, whatever its format."""

    kind: str = ""
    format: int = 0


def read_manifest(data: bytes) -> Manifest:
    """The manifest in the bytes of a file; an error says what is wrong and what to do."""
    mark = _decode(data, _ManifestMark)
    if mark.kind != MANIFEST_KIND:
        raise SynopsisError("is a zip file but not a synopsis: its manifest is of something else; give another file")
    if mark.format > MANIFEST_FORMAT:
        raise SynopsisError(
            f"was written by a newer DPSyn: it has format {mark.format}, and this one reads format {MANIFEST_FORMAT}; "
            "install the newer DPSyn"
        )
    if mark.format != MANIFEST_FORMAT:
        raise SynopsisError(
            f"has format {mark.format}, and this DPSyn reads format {MANIFEST_FORMAT}; get a newer file"
        )
    return _decode(data, Manifest)


def _decode(data: bytes, kind: type[_T]) -> _T:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:  # a ValidationError is a DecodeError
        words = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise SynopsisError(
            f"has a manifest that is not as DPSyn writes it ({words}); get it again from where it was released"
        ) from None
