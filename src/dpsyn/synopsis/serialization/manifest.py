"""The manifest of a synopsis file: everything but the numbers, as JSON of one declared shape."""

from __future__ import annotations

import json
from typing import Annotated, Any, TypeVar

import msgspec

from dpsyn.encoding.column_types import ColumnType
from dpsyn.errors import SynopsisError

MANIFEST_KIND = "dpsyn synopsis"
"""The kind of file that the manifest declares."""

MANIFEST_FORMAT = 2
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


class DifferenceEntry(_ManifestEntry, frozen=True):
    """A source coded as a difference: the index of its anchor, the code expected for each anchor code, the modulus."""

    anchor: Index
    expected: MemberName
    modulus: Annotated[int, msgspec.Meta(ge=1, le=2**31)]


class ColumnEntry(_ManifestEntry, frozen=True, omit_defaults=True):
    """A recoded column; a table or merged codes that are null leave codes unchanged."""

    name: str
    sources: tuple[Index, ...]
    tables: tuple[MemberName | None, ...]
    merged: MemberName | None
    differences: tuple[DifferenceEntry | None, ...] = ()


class RecodingEntry(_ManifestEntry, frozen=True):
    """A recoding, with the names and sizes of the fine attributes it was made for."""

    origin: tuple[tuple[str, Annotated[int, msgspec.Meta(ge=1, le=2**31)]], ...]
    columns: tuple[ColumnEntry, ...]


class MarginalEntry(_ManifestEntry, frozen=True):
    """A released marginal."""

    clique: tuple[str, ...]
    raw: MemberName
    lattice: Annotated[int, msgspec.Meta(ge=0, le=1000)]
    std: Positive


class RoundEntry(_ManifestEntry, frozen=True):
    """Marginals under one recoding, which is given by its index in the list of recodings."""

    recoding: Index
    marginals: tuple[MarginalEntry, ...]


class ScoresEntry(_ManifestEntry, frozen=True):
    """Released scores."""

    kind: str
    cliques: tuple[tuple[str, ...], ...]
    values: MemberName
    std: NotNegative


class PublicEntry(_ManifestEntry, frozen=True):
    """What public rows answer to the questions of a release: their number, and for each round its arrays of counts."""

    rows: Positive
    counts: tuple[tuple[MemberName | None, ...], ...]
    pairs: RoundEntry | None = None


class ReleaseEntry(_ManifestEntry, frozen=True):
    """One release; its certificate is null if its numbers were imported.

    ``public`` is there only if public rows were a prior.
    """

    source: str
    certificate: dict[str, Any] | None
    rounds: tuple[RoundEntry, ...]
    scores: tuple[ScoresEntry, ...]
    public: PublicEntry | None = None


class TableEntry(_ManifestEntry, frozen=True):
    """A consistent table."""

    clique: tuple[str, ...]
    values: MemberName
    variance: NotNegative
    levels: dict[str, MemberName] = {}


class DistributionEntry(_ManifestEntry, frozen=True):
    """A maximum entropy model: its cliques, and arrays with a number for each cell, one clique after the other.

    ``levels`` has an entry for each clique, or none if no clique holds an attribute at a coarser level.
    """

    cliques: tuple[tuple[str, ...], ...]
    parameters: MemberName
    expected: MemberName
    levels: tuple[dict[str, MemberName], ...] = ()


class ModelEntry(_ManifestEntry, frozen=True):
    """The model that rows are sampled from; ``synthesis`` is the name of the method with its options."""

    recoding: Index
    tables: tuple[TableEntry, ...]
    histograms: dict[str, MemberName]
    total: NotNegative
    distribution: DistributionEntry | None
    synthesis: dict[str, Any]


class Manifest(_ManifestEntry, frozen=True, kw_only=True):
    """The content of a synopsis except its arrays, whose SHA-256 are listed as ``members``.

    ``column_types`` are the declared types of columns; files have them only if there are any, as earlier ones had none.
    ``attributes`` are those of the schema in the form that a certificate's hash is of, for programs that cannot read a
    schema; earlier files have none.
    """

    kind: str = MANIFEST_KIND
    format: int = MANIFEST_FORMAT
    made_with: dict[str, str]
    schema: str
    recodings: tuple[RecodingEntry, ...]
    releases: tuple[ReleaseEntry, ...]
    model: ModelEntry
    members: dict[str, Digest]
    column_types: dict[str, ColumnType] = {}
    attributes: list[Any] | None = None

    def to_bytes(self) -> bytes:
        """Readable JSON; the same manifest gives the same bytes."""
        data = msgspec.to_builtins(self)
        for name in ("column_types", "attributes"):
            if not data[name]:
                del data[name]
        for release in data["releases"]:
            if release["public"] is None:
                del release["public"]
        return json.dumps(data, ensure_ascii=False, allow_nan=False, indent=1).encode()


class _ManifestMark(msgspec.Struct):
    """The fields of every manifest, whatever its format."""

    kind: str = ""
    format: int = 0


def read_manifest(data: bytes) -> Manifest:
    """Parse the bytes of a manifest; a SynopsisError explains what is wrong and what to do."""
    mark = _decode(data, _ManifestMark)
    if mark.kind != MANIFEST_KIND:
        raise SynopsisError(
            "is a zip file but not a synopsis: its manifest is that of another kind of file; give another file"
        )
    if mark.format > MANIFEST_FORMAT:
        raise SynopsisError(
            f"was written by a newer DPSyn: it has format {mark.format}, and this one reads format {MANIFEST_FORMAT}; "
            "install the newer DPSyn"
        )
    if mark.format != MANIFEST_FORMAT:
        raise SynopsisError(
            f"has format {mark.format}, and this DPSyn reads format {MANIFEST_FORMAT}; use the DPSyn that wrote it"
        )
    return _decode(data, Manifest)


def _decode(data: bytes, kind: type[_T]) -> _T:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:  # a ValidationError is a DecodeError
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise SynopsisError(
            f"has a manifest that is not as DPSyn writes it ({reason}); get it again from where it was released"
        ) from None
