"""From a synopsis file to a synopsis, every part of it checked before it is believed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn.accounting import Certificate
from dpsyn.errors import DPSynError, InternalError, SchemaError, SynopsisError
from dpsyn.marginals import Clique, Estimate, Factor, Marginal
from dpsyn.rules import factors_of
from dpsyn.schema import Schema
from dpsyn.synopsis.archive import AGAIN, Archive
from dpsyn.synopsis.manifest import (
    ColumnEntry,
    FittedEntry,
    Manifest,
    ModelEntry,
    RecodingEntry,
    ReleaseEntry,
    StageEntry,
    read_manifest,
)
from dpsyn.synopsis.parts import Model, Release, Scores, Stage
from dpsyn.synopsis.synopsis import Synopsis
from dpsyn.synthesis import Fitted, restored
from dpsyn.transforms import RecodedColumn, Recoding, Reference
from dpsyn.transforms.recoding import MOST_JOINT

_ODD_DATA = (DPSynError, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What data of another shape than a certificate's can raise."""


def unpack(archive: Archive, *, recompute: bool) -> Synopsis:
    """The synopsis in an open file; with ``recompute`` its certificates are computed anew by all ways of counting."""
    manifest = read_manifest(archive.manifest())
    archive.expect(manifest.members)
    schema = _schema(manifest)
    try:
        recodings = [_recoding(entry, archive) for entry in manifest.recodings]
        releases = tuple(
            _release(entry, number, recodings, archive, recompute) for number, entry in enumerate(manifest.releases, 1)
        )
        return Synopsis(schema, releases, _model(manifest.model, schema, recodings, archive))
    except InternalError as error:  # the values check themselves, and here it is the file that is wrong
        raise _damaged(str(error)) from None


def _damaged(what: str) -> SynopsisError:
    return SynopsisError(f"is damaged: {what}; {AGAIN}")


def _schema(manifest: Manifest) -> Schema:
    try:
        return Schema.from_yaml(manifest.schema)
    except SchemaError as error:
        raise _damaged(f"its schema, {error}") from None


# ── recodings ────────────────────────────────────────────────────────────────────────────────────────────────


def _recoding(entry: RecodingEntry, archive: Archive) -> Recoding:
    names = [column.name for column in entry.columns]
    if len(set(names)) < len(names):
        raise _damaged("a recoding has two attributes of one name")
    return Recoding(tuple(_column(column, entry, archive) for column in entry.columns), entry.origin)


def _column(entry: ColumnEntry, recoding: RecodingEntry, archive: Archive) -> RecodedColumn:
    if not entry.sources or len(entry.sources) != len(entry.tables) or max(entry.sources) >= len(recoding.origin):
        raise _damaged(f"the sources of {entry.name!r} are not those of a recoding")
    sizes = [recoding.origin[source][1] for source in entry.sources]
    tables = tuple(_table(name, size, archive) for name, size in zip(entry.tables, sizes, strict=True))
    references = _references(entry, recoding, archive)
    if entry.merged is None:
        return RecodedColumn(entry.name, entry.sources, tables, references=references)
    combinations = math.prod(int(table.max()) + 1 for table in tables)
    if combinations > MOST_JOINT:
        raise _damaged(f"{entry.name!r} has {combinations:,} combinations, more than {MOST_JOINT:,}")
    return RecodedColumn(entry.name, entry.sources, tables, _table(entry.merged, combinations, archive), references)


def _references(entry: ColumnEntry, recoding: RecodingEntry, archive: Archive) -> tuple[Reference | None, ...]:
    """Where sources are expected; what does not fit is refused by the values themselves."""
    if any(r.anchor >= len(recoding.origin) for r in entry.references if r):
        raise _damaged(f"{entry.name!r} is expected by an attribute that there is not")
    return tuple(
        Reference(r.anchor, archive.array(r.expected, "<i8", (recoding.origin[r.anchor][1],)), r.cells) if r else None
        for r in entry.references
    )


def _table(name: str | None, size: int, archive: Archive) -> NDArray[np.int64]:
    """A table of codes from 0 without gaps, so that every code can be drawn apart again."""
    if name is None:
        return archive.identity(size)
    table = archive.array(name, "<i8", (size,))
    if table.min() < 0 or table.max() >= size or not np.bincount(table).all():
        raise _damaged(f"the codes in {name} are not numbered from 0 without gaps")
    return table


def _at(place: int, recodings: Sequence[Recoding]) -> Recoding:
    if place >= len(recodings):
        raise _damaged(f"there is no recoding {place}")
    return recodings[place]


def _shape(clique: Clique, recoding: Recoding) -> tuple[int, ...]:
    sizes = dict(zip(recoding.names, recoding.sizes, strict=True))
    if not clique or len(set(clique)) < len(clique) or not sizes.keys() >= set(clique):
        raise _damaged(f"a marginal of {', '.join(clique) or 'nothing'} does not fit its recoding")
    return tuple(sizes[name] for name in clique)


# ── releases and the model ───────────────────────────────────────────────────────────────────────────────────


def _release(
    entry: ReleaseEntry, number: int, recodings: Sequence[Recoding], archive: Archive, recompute: bool
) -> Release:
    return Release(
        recipe=entry.recipe,
        stages=tuple(_stage(stage, recodings, archive) for stage in entry.stages),
        scores=tuple(
            Scores(s.kind, s.cliques, archive.array(s.values, "<f8", (len(s.cliques),)), s.deviation)
            for s in entry.scores
        ),
        certificate=None if entry.certificate is None else _certificate(entry.certificate, number, recompute),
        source=entry.source,
    )


def _certificate(data: dict[str, Any], number: int, recompute: bool) -> Certificate:
    try:
        return Certificate.from_data(data, recompute=recompute)
    except _ODD_DATA as error:
        raise SynopsisError(
            f"has a certificate, of release {number}, that does not hold ({error}); "
            f"do not rely on its guarantee, and {AGAIN}"
        ) from None


def _stage(entry: StageEntry, recodings: Sequence[Recoding], archive: Archive) -> Stage:
    recoding = _at(entry.recoding, recodings)
    marginals = [
        Marginal(m.clique, archive.array(m.raw, "<i8", _shape(m.clique, recoding)), m.lattice, m.deviation)
        for m in entry.marginals
    ]
    return Stage(recoding, tuple(marginals))


def _model(entry: ModelEntry, schema: Schema, recodings: Sequence[Recoding], archive: Archive) -> Model:
    recoding = _at(entry.recoding, recodings)
    if recoding.origin != tuple((a.name, a.cells) for a in schema.measured if a.coded):
        raise _damaged("its model was made for another schema")
    sizes = dict(recoding.origin)
    if entry.histograms.keys() != sizes.keys():
        raise _damaged("its model has not one histogram for each attribute")
    tables = tuple(
        Estimate(t.clique, archive.array(t.values, "<f8", _shape(t.clique, recoding)), t.variance) for t in entry.tables
    )
    histograms = {name: archive.array(file, "<f8", (sizes[name],)) for name, file in entry.histograms.items()}
    factors = factors_of(schema, recoding, histograms) if entry.fitted else ()
    return Model(
        recoding=recoding,
        tables=tables,
        histograms=histograms,
        total=entry.total,
        fitted=_fitted(entry.fitted, tables, recoding, factors, archive) if entry.fitted else None,
    )


def _fitted(
    entry: FittedEntry, tables: Sequence[Estimate], recoding: Recoding, factors: Sequence[Factor], archive: Archive
) -> Fitted:
    cells = sum(math.prod(_shape(clique, recoding)) for clique in entry.cliques)
    parameters, expected = (archive.array(file, "<f8", (cells,)) for file in (entry.parameters, entry.expected))
    return restored(tables, recoding.names, recoding.sizes, entry.cliques, parameters, expected, factors)
