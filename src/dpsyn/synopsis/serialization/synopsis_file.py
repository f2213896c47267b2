"""Synopsis files: Synopsis ⇄ one zip of a manifest and arrays.

What was released is kept as it was drawn, in whole numbers on their lattice, so a synopsis that is loaded gives the
same rows and answers. Loading checks everything: whatever a file holds, it is a synopsis or a ``SynopsisError``.
"""

from __future__ import annotations

import importlib.metadata
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn.accounting import Certificate
from dpsyn.atomic_files import atomic_write
from dpsyn.constraints import build_constraint_factors
from dpsyn.encoding import DifferenceCoding, RecodedColumn, Recoding
from dpsyn.encoding.recoding import MAX_JOINT_COMBINATIONS
from dpsyn.errors import DPSynError, InternalError, SchemaError, SynopsisError
from dpsyn.inference.gibbs import GibbsModel, restore_model
from dpsyn.inference.measurements import MeasurementRound, Model, Release, Scores
from dpsyn.marginals import Clique, Estimate, Factor, Marginal
from dpsyn.schema import Schema
from dpsyn.synopsis.serialization import archive
from dpsyn.synopsis.serialization.archive import GET_AGAIN, Archive, StoredType, sha256_digest
from dpsyn.synopsis.serialization.manifest import (
    ColumnEntry,
    DistributionEntry,
    Manifest,
    MarginalEntry,
    ModelEntry,
    RecodingEntry,
    ReferenceEntry,
    ReleaseEntry,
    RoundEntry,
    ScoresEntry,
    TableEntry,
    read_manifest,
)
from dpsyn.synopsis.synopsis import Synopsis

SUFFIX = ".dpsyn"
"""How synopsis files are called by convention."""


def save_synopsis(synopsis: Synopsis, path: str | Path) -> None:
    """Write a synopsis file; the same synopsis gives the same bytes."""
    manifest, arrays = pack_synopsis(synopsis)
    with atomic_write(Path(path)) as beside:
        archive.write_archive(beside, manifest.to_bytes(), arrays)


def load_synopsis(path: str | Path, *, recompute: bool = False) -> Synopsis:
    """Read a synopsis file; a SynopsisError names the file and says what to do.

    Certificates are held against their draws by closed formulas; with ``recompute`` also by privacy loss
    distributions, which takes a second more.
    """
    try:
        with archive.open_archive(Path(path)) as file:
            return unpack_synopsis(file, recompute=recompute)
    except SynopsisError as error:
        raise SynopsisError(f"{path} {error}") from None


# ── From a synopsis to what its file holds: a manifest and arrays ──


RECORDED_PACKAGES = ("dpsyn", "numpy", "opendp", "dp-accounting")
"""Whose versions a file records, for whoever wants to compute it again."""


def pack_synopsis(synopsis: Synopsis) -> tuple[Manifest, Mapping[str, bytes]]:
    """The manifest of a synopsis, and the bytes of its arrays by name."""
    arrays = _ArrayCollection()
    used = [*(stage.recoding for release in synopsis.releases for stage in release.rounds), synopsis.model.recoding]
    recodings = list({id(recoding): recoding for recoding in used}.values())
    place_of = {id(recoding): place for place, recoding in enumerate(recodings)}
    manifest = Manifest(
        made_with={name: _package_version(name) for name in RECORDED_PACKAGES},
        schema=synopsis.schema.to_yaml(),
        recodings=tuple(_pack_recoding(recoding, f"recoding-{n}", arrays) for n, recoding in enumerate(recodings, 1)),
        releases=tuple(_pack_release(r, f"release-{n}", place_of, arrays) for n, r in enumerate(synopsis.releases, 1)),
        model=_pack_model(synopsis.model, place_of, arrays),
        members=arrays.digests,
    )
    return manifest, arrays.content


@dataclass(slots=True)
class _ArrayCollection:
    """Arrays on their way into a file; equal ones are kept once, under the name that came first."""

    content: dict[str, bytes] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)
    _names: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, array: NDArray[Any], stored_type: StoredType) -> str:
        """The name under which an array is kept."""
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, np.ascontiguousarray(array, stored_type), version=(1, 0), allow_pickle=False)
        digest = sha256_digest(buffer.getvalue())
        known = self._names.setdefault(digest, name)
        if known == name:
            self.content[name], self.digests[name] = buffer.getvalue(), digest
        return known


def _package_version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:  # run from its source
        return "unknown"


def _pack_recoding(recoding: Recoding, prefix: str, arrays: _ArrayCollection) -> RecodingEntry:
    columns = tuple(_pack_column(c, f"{prefix}/column-{n}", arrays) for n, c in enumerate(recoding.columns, 1))
    return RecodingEntry(origin=recoding.origin, columns=columns)


def _pack_column(column: RecodedColumn, prefix: str, arrays: _ArrayCollection) -> ColumnEntry:
    tables = tuple(
        None if _is_identity(table) else arrays.add(f"{prefix}-source-{n}.npy", table, "<i8")
        for n, table in enumerate(column.tables, 1)
    )
    merged = None if column.merged is None else arrays.add(f"{prefix}-merged.npy", column.merged, "<i8")
    references = tuple(
        ReferenceEntry(
            anchor=r.anchor, expected=arrays.add(f"{prefix}-expected-{n}.npy", r.expected_codes, "<i8"), cells=r.modulus
        )
        if r
        else None
        for n, r in enumerate(column.difference_codings, 1)
    )
    return ColumnEntry(name=column.name, sources=column.sources, tables=tables, merged=merged, references=references)


def _is_identity(table: NDArray[np.int64]) -> bool:
    return bool(np.array_equal(table, np.arange(len(table))))


def _pack_release(release: Release, prefix: str, index_of: Mapping[int, int], arrays: _ArrayCollection) -> ReleaseEntry:
    stages = enumerate(release.rounds, 1)
    return ReleaseEntry(
        recipe=release.recipe,
        source=release.source,
        certificate=release.certificate.to_data() if release.certificate else None,
        stages=tuple(_pack_round(s, f"{prefix}/stage-{n}", index_of[id(s.recoding)], arrays) for n, s in stages),
        scores=tuple(
            ScoresEntry(
                kind=scores.kind,
                cliques=scores.cliques,
                values=arrays.add(f"{prefix}/scores-{n}.npy", scores.values, "<f8"),
                deviation=scores.std,
            )
            for n, scores in enumerate(release.scores, 1)
        ),
    )


def _pack_round(measurement_round: MeasurementRound, prefix: str, index: int, arrays: _ArrayCollection) -> RoundEntry:
    marginals = tuple(
        MarginalEntry(
            clique=marginal.clique,
            raw=arrays.add(f"{prefix}/marginal-{n}.npy", marginal.raw, "<i8"),
            lattice=marginal.lattice,
            deviation=marginal.std,
        )
        for n, marginal in enumerate(measurement_round.marginals, 1)
    )
    return RoundEntry(recoding=index, marginals=marginals)


def _pack_model(model: Model, index_of: Mapping[int, int], arrays: _ArrayCollection) -> ModelEntry:
    tables = tuple(
        TableEntry(
            clique=table.clique,
            values=arrays.add(f"model/table-{n}.npy", table.values, "<f8"),
            variance=table.variance,
        )
        for n, table in enumerate(model.tables, 1)
    )
    histograms = {
        name: arrays.add(f"model/histogram-{n}.npy", model.histograms[name], "<f8")
        for n, (name, _) in enumerate(model.recoding.origin, 1)
    }
    return ModelEntry(
        recoding=index_of[id(model.recoding)],
        tables=tables,
        histograms=histograms,
        total=model.total,
        fitted=_pack_distribution(model.distribution, arrays) if model.distribution else None,
    )


def _pack_distribution(distribution: GibbsModel, arrays: _ArrayCollection) -> DistributionEntry:
    return DistributionEntry(
        cliques=distribution.cliques,
        parameters=arrays.add("model/parameters.npy", distribution.parameters, "<f8"),
        expected=arrays.add("model/expected.npy", distribution.expected_shares, "<f8"),
    )


# ── From a synopsis file to a synopsis, every part of it checked before it is believed ──


_MALFORMED_DATA_ERRORS = (
    DPSynError,
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What data of another shape than a certificate's can raise."""


def unpack_synopsis(archive: Archive, *, recompute: bool) -> Synopsis:
    """The synopsis in an open file; with ``recompute`` its certificates are computed anew by all ways of counting."""
    manifest = read_manifest(archive.manifest())
    archive.require_members(manifest.members)
    schema = _unpack_schema(manifest)
    try:
        recodings = [_unpack_recoding(entry, archive) for entry in manifest.recodings]
        releases = tuple(
            _unpack_release(entry, number, recodings, archive, recompute)
            for number, entry in enumerate(manifest.releases, 1)
        )
        return Synopsis(schema, releases, _unpack_model(manifest.model, schema, recodings, archive))
    except InternalError as error:  # the values check themselves, and here it is the file that is wrong
        raise _damage_error(str(error)) from None


def _damage_error(what: str) -> SynopsisError:
    return SynopsisError(f"is damaged: {what}; {GET_AGAIN}")


def _unpack_schema(manifest: Manifest) -> Schema:
    try:
        return Schema.from_yaml(manifest.schema)
    except SchemaError as error:
        raise _damage_error(f"its schema, {error}") from None


# ── recodings ────────────────────────────────────────────────────────────────────────────────────────────────


def _unpack_recoding(entry: RecodingEntry, archive: Archive) -> Recoding:
    names = [column.name for column in entry.columns]
    if len(set(names)) < len(names):
        raise _damage_error("a recoding has two attributes of one name")
    return Recoding(tuple(_unpack_column(column, entry, archive) for column in entry.columns), entry.origin)


def _unpack_column(entry: ColumnEntry, recoding: RecodingEntry, archive: Archive) -> RecodedColumn:
    if not entry.sources or len(entry.sources) != len(entry.tables) or max(entry.sources) >= len(recoding.origin):
        raise _damage_error(f"the sources of {entry.name!r} are not those of a recoding")
    sizes = [recoding.origin[source][1] for source in entry.sources]
    tables = tuple(_unpack_code_table(name, size, archive) for name, size in zip(entry.tables, sizes, strict=True))
    references = _unpack_references(entry, recoding, archive)
    if entry.merged is None:
        return RecodedColumn(entry.name, entry.sources, tables, difference_codings=references)
    combinations = math.prod(int(table.max()) + 1 for table in tables)
    if combinations > MAX_JOINT_COMBINATIONS:
        raise _damage_error(f"{entry.name!r} has {combinations:,} combinations, more than {MAX_JOINT_COMBINATIONS:,}")
    return RecodedColumn(
        entry.name, entry.sources, tables, _unpack_code_table(entry.merged, combinations, archive), references
    )


def _unpack_references(
    entry: ColumnEntry, recoding: RecodingEntry, archive: Archive
) -> tuple[DifferenceCoding | None, ...]:
    """Where sources are expected; what does not fit is refused by the values themselves."""
    if any(r.anchor >= len(recoding.origin) for r in entry.references if r):
        raise _damage_error(f"{entry.name!r} is expected by an attribute that there is not")
    return tuple(
        DifferenceCoding(r.anchor, archive.array(r.expected, "<i8", (recoding.origin[r.anchor][1],)), r.cells)
        if r
        else None
        for r in entry.references
    )


def _unpack_code_table(name: str | None, size: int, archive: Archive) -> NDArray[np.int64]:
    """A table of codes from 0 without gaps, so that every code can be drawn apart again."""
    if name is None:
        return archive.identity_table(size)
    table = archive.array(name, "<i8", (size,))
    if table.min() < 0 or table.max() >= size or not np.bincount(table).all():
        raise _damage_error(f"the codes in {name} are not numbered from 0 without gaps")
    return table


def _recoding_at(index: int, recodings: Sequence[Recoding]) -> Recoding:
    if index >= len(recodings):
        raise _damage_error(f"there is no recoding {index}")
    return recodings[index]


def _clique_shape(clique: Clique, recoding: Recoding) -> tuple[int, ...]:
    sizes = dict(zip(recoding.names, recoding.sizes, strict=True))
    if not clique or len(set(clique)) < len(clique) or not sizes.keys() >= set(clique):
        raise _damage_error(f"a marginal of {', '.join(clique) or 'nothing'} does not fit its recoding")
    return tuple(sizes[name] for name in clique)


# ── releases and the model ───────────────────────────────────────────────────────────────────────────────────


def _unpack_release(
    entry: ReleaseEntry, number: int, recodings: Sequence[Recoding], archive: Archive, recompute: bool
) -> Release:
    return Release(
        recipe=entry.recipe,
        rounds=tuple(_unpack_round(stage, recodings, archive) for stage in entry.stages),
        scores=tuple(
            Scores(s.kind, s.cliques, archive.array(s.values, "<f8", (len(s.cliques),)), s.deviation)
            for s in entry.scores
        ),
        certificate=None if entry.certificate is None else _unpack_certificate(entry.certificate, number, recompute),
        source=entry.source,
    )


def _unpack_certificate(data: dict[str, Any], number: int, recompute: bool) -> Certificate:
    try:
        return Certificate.from_data(data, recompute=recompute)
    except _MALFORMED_DATA_ERRORS as error:
        raise SynopsisError(
            f"has a certificate, of release {number}, that does not hold ({error}); "
            f"do not rely on its guarantee, and {GET_AGAIN}"
        ) from None


def _unpack_round(entry: RoundEntry, recodings: Sequence[Recoding], archive: Archive) -> MeasurementRound:
    recoding = _recoding_at(entry.recoding, recodings)
    marginals = [
        Marginal(m.clique, archive.array(m.raw, "<i8", _clique_shape(m.clique, recoding)), m.lattice, m.deviation)
        for m in entry.marginals
    ]
    return MeasurementRound(recoding, tuple(marginals))


def _unpack_model(entry: ModelEntry, schema: Schema, recodings: Sequence[Recoding], archive: Archive) -> Model:
    recoding = _recoding_at(entry.recoding, recodings)
    if recoding.origin != tuple((a.name, a.cells) for a in schema.measured_attributes if a.coded):
        raise _damage_error("its model was made for another schema")
    sizes = dict(recoding.origin)
    if entry.histograms.keys() != sizes.keys():
        raise _damage_error("its model has not one histogram for each attribute")
    tables = tuple(
        Estimate(t.clique, archive.array(t.values, "<f8", _clique_shape(t.clique, recoding)), t.variance)
        for t in entry.tables
    )
    histograms = {name: archive.array(file, "<f8", (sizes[name],)) for name, file in entry.histograms.items()}
    factors = build_constraint_factors(schema, recoding, histograms) if entry.fitted else ()
    return Model(
        recoding=recoding,
        tables=tables,
        histograms=histograms,
        total=entry.total,
        distribution=_unpack_distribution(entry.fitted, tables, recoding, factors, archive) if entry.fitted else None,
    )


def _unpack_distribution(
    entry: DistributionEntry,
    tables: Sequence[Estimate],
    recoding: Recoding,
    factors: Sequence[Factor],
    archive: Archive,
) -> GibbsModel:
    cells = sum(math.prod(_clique_shape(clique, recoding)) for clique in entry.cliques)
    parameters, expected = (archive.array(file, "<f8", (cells,)) for file in (entry.parameters, entry.expected))
    return restore_model(tables, recoding.names, recoding.sizes, entry.cliques, parameters, expected, factors)
