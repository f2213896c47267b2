"""Synopsis files: Synopsis ⇄ one zip of a manifest and arrays.

Released counts are stored exactly, as integers on their lattice, so a loaded synopsis gives the same rows and answers.
Loading checks everything: whatever a file holds, loading it gives a valid synopsis or raises a ``SynopsisError``.
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
from dpsyn.encoding.column_types import ColumnTypes
from dpsyn.encoding.recoding import MAX_JOINT_COMBINATIONS
from dpsyn.errors import DPSynError, InternalError, SchemaError, SynopsisError
from dpsyn.inference.gibbs import GibbsModel, restore_model
from dpsyn.inference.measurements import MeasurementRound, Model, PublicTables, Release, Scores, list_attributes
from dpsyn.inference.methods import SYNTHESIS_METHODS, Synthesis
from dpsyn.marginals import Clique, Estimate, Factor, Marginal
from dpsyn.options import options_from_data, options_to_data
from dpsyn.release_files import find_synopsis
from dpsyn.schema import Schema
from dpsyn.synopsis.serialization import archive
from dpsyn.synopsis.serialization.archive import GET_AGAIN, Archive, StoredType, sha256_digest
from dpsyn.synopsis.serialization.manifest import (
    ColumnEntry,
    DifferenceEntry,
    DistributionEntry,
    Manifest,
    MarginalEntry,
    ModelEntry,
    PublicEntry,
    RecodingEntry,
    ReleaseEntry,
    RoundEntry,
    ScoresEntry,
    TableEntry,
    read_manifest,
)
from dpsyn.synopsis.synopsis import Synopsis

SUFFIX = ".dpsyn"
"""The suffix of synopsis files, by convention."""


def save_synopsis(synopsis: Synopsis, path: str | Path) -> None:
    """Write a synopsis file; the same synopsis gives the same bytes."""
    manifest, arrays = pack_synopsis(synopsis)
    with atomic_write(Path(path)) as temporary:
        archive.write_archive(temporary, manifest.to_bytes(), arrays)


def load_synopsis(path: str | Path, *, recompute: bool = False) -> Synopsis:
    """Read a synopsis file, or that of a release folder; a SynopsisError names the file and explains what to do.

    The cost in each certificate is checked against its measurements by closed formulas; with ``recompute`` also by
    privacy loss distributions, which takes about a second more.
    """
    path = find_synopsis(path)
    try:
        with archive.open_archive(path) as file:
            return unpack_synopsis(file, recompute=recompute)
    except SynopsisError as error:
        raise SynopsisError(f"{path} {error}") from None


# ── Synopsis → manifest and arrays ───────────────────────────────────────────────────────────────────────────


RECORDED_PACKAGES = ("dpsyn", "numpy", "opendp", "dp-accounting")
"""The packages whose versions a file records, for anyone who wants to reproduce it."""


def pack_synopsis(synopsis: Synopsis) -> tuple[Manifest, Mapping[str, bytes]]:
    """The manifest of a synopsis, and the bytes of its arrays by name."""
    arrays = _ArrayCollection()
    pairs = [release.public.pairs for release in synopsis.releases if release.public and release.public.pairs]
    used = [*(each.recoding for release in synopsis.releases for each in release.rounds), synopsis.model.recoding]
    used += [each.recoding for each in pairs]
    recodings = list({id(recoding): recoding for recoding in used}.values())
    index_of = {id(recoding): index for index, recoding in enumerate(recodings)}
    manifest = Manifest(
        made_with={name: _package_version(name) for name in RECORDED_PACKAGES},
        schema=synopsis.schema.to_yaml(),
        recodings=tuple(_pack_recoding(recoding, f"recoding-{n}", arrays) for n, recoding in enumerate(recodings, 1)),
        releases=tuple(_pack_release(r, f"release-{n}", index_of, arrays) for n, r in enumerate(synopsis.releases, 1)),
        model=_pack_model(synopsis.model, index_of, arrays),
        members=arrays.digests,
        column_types=dict(synopsis.column_types),
        attributes=list_attributes(synopsis.schema),
    )
    return manifest, arrays.content


@dataclass(slots=True)
class _ArrayCollection:
    """Arrays to be written into a file; equal arrays are stored once, under the first name."""

    content: dict[str, bytes] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)
    _names: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, array: NDArray[Any], stored_type: StoredType) -> str:
        """Add an array, and return the name under which it is stored."""
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, np.ascontiguousarray(array, stored_type), version=(1, 0), allow_pickle=False)
        digest = sha256_digest(buffer.getvalue())
        stored_name = self._names.setdefault(digest, name)
        if stored_name == name:
            self.content[name], self.digests[name] = buffer.getvalue(), digest
        return stored_name


def _package_version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:  # run from a source tree
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
    differences = tuple(
        DifferenceEntry(
            anchor=coding.anchor,
            expected=arrays.add(f"{prefix}-expected-{n}.npy", coding.expected_codes, "<i8"),
            modulus=coding.modulus,
        )
        if coding
        else None
        for n, coding in enumerate(column.difference_codings, 1)
    )
    return ColumnEntry(name=column.name, sources=column.sources, tables=tables, merged=merged, differences=differences)


def _is_identity(table: NDArray[np.int64]) -> bool:
    return bool(np.array_equal(table, np.arange(len(table))))


def _pack_release(release: Release, prefix: str, index_of: Mapping[int, int], arrays: _ArrayCollection) -> ReleaseEntry:
    rounds = enumerate(release.rounds, 1)
    return ReleaseEntry(
        source=release.source,
        certificate=release.certificate.to_data() if release.certificate else None,
        rounds=tuple(_pack_round(r, f"{prefix}/round-{n}", index_of[id(r.recoding)], arrays) for n, r in rounds),
        scores=tuple(
            ScoresEntry(
                kind=scores.kind,
                cliques=scores.cliques,
                values=arrays.add(f"{prefix}/scores-{n}.npy", scores.values, "<f8"),
                std=scores.std,
            )
            for n, scores in enumerate(release.scores, 1)
        ),
        public=_pack_public(release.public, f"{prefix}/public", index_of, arrays) if release.public else None,
    )


def _pack_public(
    public: PublicTables, prefix: str, index_of: Mapping[int, int], arrays: _ArrayCollection
) -> PublicEntry:
    counts = tuple(
        tuple(
            None if table is None else arrays.add(f"{prefix}-{number}/table-{n}.npy", table, "<i8")
            for n, table in enumerate(of_round, 1)
        )
        for number, of_round in enumerate(public.counts, 1)
    )
    pairs = None
    if public.pairs is not None:
        pairs = _pack_round(public.pairs, f"{prefix}-pairs", index_of[id(public.pairs.recoding)], arrays)
    return PublicEntry(rows=public.rows, counts=counts, pairs=pairs)


def _pack_round(measurement_round: MeasurementRound, prefix: str, index: int, arrays: _ArrayCollection) -> RoundEntry:
    marginals = tuple(
        MarginalEntry(
            clique=marginal.clique,
            raw=arrays.add(f"{prefix}/marginal-{n}.npy", marginal.raw, "<i8"),
            lattice=marginal.lattice,
            std=marginal.std,
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
            levels=_pack_levels(table.levels, f"model/table-{n}", arrays),
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
        distribution=_pack_distribution(model.distribution, arrays) if model.distribution else None,
        synthesis=options_to_data(model.synthesis),
    )


def _pack_levels(levels: Mapping[str, NDArray[np.int64]], prefix: str, arrays: _ArrayCollection) -> dict[str, str]:
    named = enumerate(sorted(levels.items()), 1)
    return {name: arrays.add(f"{prefix}-level-{n}.npy", group_of, "<i8") for n, (name, group_of) in named}


def _pack_distribution(distribution: GibbsModel, arrays: _ArrayCollection) -> DistributionEntry:
    named = enumerate(distribution.levels, 1)
    return DistributionEntry(
        cliques=distribution.cliques,
        levels=tuple(_pack_levels(groups, f"model/clique-{n}", arrays) for n, groups in named)
        if any(distribution.levels)
        else (),
        parameters=arrays.add("model/parameters.npy", distribution.parameters, "<f8"),
        expected=arrays.add("model/expected.npy", distribution.expected_shares, "<f8"),
    )


# ── Synopsis file → synopsis, every part of it checked ───────────────────────────────────────────────────────


_MALFORMED_DATA_ERRORS = (
    DPSynError,
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What reading data of the wrong shape can raise."""


def unpack_synopsis(archive: Archive, *, recompute: bool) -> Synopsis:
    """The synopsis in an open file; with ``recompute`` its certificates are recomputed by every method."""
    manifest = read_manifest(archive.manifest())
    archive.require_members(manifest.members)
    schema = _unpack_schema(manifest)
    try:
        recodings = [_unpack_recoding(entry, archive) for entry in manifest.recodings]
        releases = tuple(
            _unpack_release(entry, number, recodings, archive, recompute)
            for number, entry in enumerate(manifest.releases, 1)
        )
        for release in releases:
            release.require_recorded(schema)
        model = _unpack_model(manifest.model, schema, recodings, archive)
        synopsis = Synopsis(schema, releases, model, column_types=_unpack_column_types(manifest, schema))
    except InternalError as error:  # the values check themselves; here the file is wrong, not DPSyn
        raise _damage_error(str(error)) from None
    if manifest.attributes not in (None, list_attributes(schema)):
        raise _damage_error("its list of attributes is not that of its schema")
    archive.require_all_read()
    return synopsis


def _damage_error(reason: str) -> SynopsisError:
    return SynopsisError(f"is damaged: {reason}; {GET_AGAIN}")


def _unpack_schema(manifest: Manifest) -> Schema:
    try:
        return Schema.from_yaml(manifest.schema)
    except SchemaError as error:
        raise _damage_error(f"its schema, {error}") from None


def _unpack_column_types(manifest: Manifest, schema: Schema) -> ColumnTypes:
    if unknown := manifest.column_types.keys() - set(schema.names):
        raise _damage_error(f"it has the type of a column that does not exist: {min(unknown)!r}")
    return manifest.column_types


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
    differences = _unpack_differences(entry, recoding, archive)
    if entry.merged is None:
        return RecodedColumn(entry.name, entry.sources, tables, difference_codings=differences)
    combinations = math.prod(int(table.max()) + 1 for table in tables)
    if combinations > MAX_JOINT_COMBINATIONS:
        raise _damage_error(f"{entry.name!r} has {combinations:,} combinations, more than {MAX_JOINT_COMBINATIONS:,}")
    return RecodedColumn(
        entry.name, entry.sources, tables, _unpack_code_table(entry.merged, combinations, archive), differences
    )


def _unpack_differences(
    entry: ColumnEntry, recoding: RecodingEntry, archive: Archive
) -> tuple[DifferenceCoding | None, ...]:
    """The difference codings of a column; ``DifferenceCoding`` itself refuses what does not fit."""
    if any(d.anchor >= len(recoding.origin) for d in entry.differences if d):
        raise _damage_error(f"{entry.name!r} is a difference from an attribute that does not exist")
    return tuple(
        DifferenceCoding(d.anchor, archive.array(d.expected, "<i8", (recoding.origin[d.anchor][1],)), d.modulus)
        if d
        else None
        for d in entry.differences
    )


def _unpack_code_table(name: str | None, size: int, archive: Archive) -> NDArray[np.int64]:
    """A table of codes from 0 without gaps, so every code stands for at least one finer code."""
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


def _unpack_release(
    entry: ReleaseEntry, number: int, recodings: Sequence[Recoding], archive: Archive, recompute: bool
) -> Release:
    return Release(
        rounds=tuple(_unpack_round(each, recodings, archive) for each in entry.rounds),
        scores=tuple(
            Scores(s.kind, s.cliques, archive.array(s.values, "<f8", (len(s.cliques),)), s.std) for s in entry.scores
        ),
        certificate=None if entry.certificate is None else _unpack_certificate(entry.certificate, number, recompute),
        source=entry.source,
        public=None if entry.public is None else _unpack_public(entry.public, entry.rounds, recodings, archive),
    )


def _unpack_public(
    entry: PublicEntry, rounds: Sequence[RoundEntry], recodings: Sequence[Recoding], archive: Archive
) -> PublicTables:
    if [len(of_round) for of_round in entry.counts] != [len(each.marginals) for each in rounds]:
        raise _damage_error("its public counts are not of its marginals")
    counts = tuple(
        tuple(
            None if file is None else _unpack_public_counts(file, marginal.clique, each, recodings, archive)
            for file, marginal in zip(of_round, each.marginals, strict=True)
        )
        for of_round, each in zip(entry.counts, rounds, strict=True)
    )
    pairs = None if entry.pairs is None else _unpack_round(entry.pairs, recodings, archive)
    return PublicTables(entry.rows, counts, pairs)


def _unpack_public_counts(
    file: str, clique: Clique, each: RoundEntry, recodings: Sequence[Recoding], archive: Archive
) -> NDArray[np.int64]:
    table = archive.array(file, "<i8", _clique_shape(clique, _recoding_at(each.recoding, recodings)))
    if table.min(initial=0) < 0:
        raise _damage_error(f"the public counts of {', '.join(clique)} are negative")
    return table


def _unpack_certificate(data: dict[str, Any], number: int, recompute: bool) -> Certificate:
    try:
        return Certificate.from_data(data, recompute=recompute)
    except _MALFORMED_DATA_ERRORS as error:
        raise SynopsisError(
            f"has an invalid certificate of release {number} ({error}); do not rely on its guarantee, and {GET_AGAIN}"
        ) from None


def _unpack_round(entry: RoundEntry, recodings: Sequence[Recoding], archive: Archive) -> MeasurementRound:
    recoding = _recoding_at(entry.recoding, recodings)
    marginals = [
        Marginal(m.clique, archive.array(m.raw, "<i8", _clique_shape(m.clique, recoding)), m.lattice, m.std)
        for m in entry.marginals
    ]
    return MeasurementRound(recoding, tuple(marginals))


def _unpack_model(entry: ModelEntry, schema: Schema, recodings: Sequence[Recoding], archive: Archive) -> Model:
    recoding = _recoding_at(entry.recoding, recodings)
    if recoding.origin != tuple((a.name, a.cells) for a in schema.modeled_attributes if a.coded):
        if {name for name, _ in recoding.origin}.intersection(schema.timestamp_parts):
            raise SynopsisError(
                "was made by an earlier version of DPSyn, which had no parts of timestamps; use it with that version, "
                "or measure the table anew"
            )
        raise _damage_error("its model was made for another schema")
    sizes = dict(recoding.origin)
    if entry.histograms.keys() != sizes.keys():
        raise _damage_error("its model does not have one histogram for each attribute")
    tables = tuple(_unpack_table(table, recoding, archive) for table in entry.tables)
    histograms = {name: archive.array(file, "<f8", (sizes[name],)) for name, file in entry.histograms.items()}
    factors = build_constraint_factors(schema, recoding, histograms) if entry.distribution else ()
    return Model(
        recoding=recoding,
        tables=tables,
        histograms=histograms,
        total=entry.total,
        distribution=_unpack_distribution(entry.distribution, tables, recoding, factors, archive)
        if entry.distribution
        else None,
        synthesis=_unpack_synthesis(entry.synthesis),
    )


def _unpack_table(entry: TableEntry, recoding: Recoding, archive: Archive) -> Estimate:
    levels = _unpack_levels(entry.clique, entry.levels, recoding, archive)
    values = archive.array(entry.values, "<f8", _level_shape(entry.clique, levels, recoding))
    return Estimate(entry.clique, values, entry.variance, levels)


def _unpack_levels(
    clique: Clique, levels: Mapping[str, str], recoding: Recoding, archive: Archive
) -> dict[str, NDArray[np.int64]]:
    """The groups of the attributes that a table counts at a coarser level."""
    sizes = dict(zip(clique, _clique_shape(clique, recoding), strict=True))
    if not levels.keys() <= sizes.keys():
        raise _damage_error(f"a table of {', '.join(clique)} has levels of other attributes")
    return {name: _unpack_code_table(file, sizes[name], archive) for name, file in levels.items()}


def _level_shape(clique: Clique, levels: Mapping[str, NDArray[np.int64]], recoding: Recoding) -> tuple[int, ...]:
    sizes = zip(clique, _clique_shape(clique, recoding), strict=True)
    return tuple(int(levels[name].max()) + 1 if name in levels else size for name, size in sizes)


def _unpack_synthesis(data: dict[str, Any]) -> Synthesis:
    try:
        return options_from_data(_move_alpha(data), SYNTHESIS_METHODS)
    except _MALFORMED_DATA_ERRORS as error:
        raise _damage_error(f"its synthesis method is not one that DPSyn has ({error})") from None


def _move_alpha(data: dict[str, Any]) -> dict[str, Any]:
    """GUM with α₀ among its own options; earlier files have it as ``start`` of the decay."""
    decay = data.get("decay")
    if not isinstance(decay, dict) or "start" not in decay:
        return data
    return {"alpha": decay["start"], **data, "decay": {name: decay[name] for name in decay if name != "start"}}


def _unpack_distribution(
    entry: DistributionEntry,
    tables: Sequence[Estimate],
    recoding: Recoding,
    factors: Sequence[Factor],
    archive: Archive,
) -> GibbsModel:
    if entry.levels and len(entry.levels) != len(entry.cliques):
        raise _damage_error("its distribution does not have levels for each clique")
    named = zip(entry.cliques, entry.levels or [{}] * len(entry.cliques), strict=True)
    cliques = [(clique, _unpack_levels(clique, levels, recoding, archive)) for clique, levels in named]
    cells = sum(math.prod(_level_shape(clique, levels, recoding)) for clique, levels in cliques)
    parameters, expected = (archive.array(file, "<f8", (cells,)) for file in (entry.parameters, entry.expected))
    return restore_model(tables, recoding.names, recoding.sizes, cliques, parameters, expected, factors)
