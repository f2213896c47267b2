"""From a synopsis to what its file holds: a manifest and arrays."""

from __future__ import annotations

import importlib.metadata
import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn.synopsis.archive import Kind, digest_of
from dpsyn.synopsis.manifest import (
    ColumnEntry,
    FittedEntry,
    Manifest,
    MarginalEntry,
    ModelEntry,
    RecodingEntry,
    ReferenceEntry,
    ReleaseEntry,
    ScoresEntry,
    StageEntry,
    TableEntry,
)
from dpsyn.synopsis.parts import Model, Release, Stage
from dpsyn.synopsis.synopsis import Synopsis
from dpsyn.synthesis import Fitted
from dpsyn.transforms import RecodedColumn, Recoding

MAKERS = ("dpsyn", "numpy", "opendp", "dp-accounting")
"""Whose versions a file records, for whoever wants to compute it again."""


def pack(synopsis: Synopsis) -> tuple[Manifest, Mapping[str, bytes]]:
    """The manifest of a synopsis, and the bytes of its arrays by name."""
    arrays = _Arrays()
    used = [*(stage.recoding for release in synopsis.releases for stage in release.stages), synopsis.model.recoding]
    recodings = list({id(recoding): recoding for recoding in used}.values())
    place_of = {id(recoding): place for place, recoding in enumerate(recodings)}
    manifest = Manifest(
        made_with={name: _version(name) for name in MAKERS},
        schema=synopsis.schema.to_yaml(),
        recodings=tuple(_recoding(recoding, f"recoding-{n}", arrays) for n, recoding in enumerate(recodings, 1)),
        releases=tuple(_release(r, f"release-{n}", place_of, arrays) for n, r in enumerate(synopsis.releases, 1)),
        model=_model(synopsis.model, place_of, arrays),
        members=arrays.digests,
    )
    return manifest, arrays.content


@dataclass(slots=True)
class _Arrays:
    """Arrays on their way into a file; equal ones are kept once, under the name that came first."""

    content: dict[str, bytes] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)
    _names: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, array: NDArray[Any], kind: Kind) -> str:
        """The name under which an array is kept."""
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, np.ascontiguousarray(array, kind), version=(1, 0), allow_pickle=False)
        digest = digest_of(buffer.getvalue())
        known = self._names.setdefault(digest, name)
        if known == name:
            self.content[name], self.digests[name] = buffer.getvalue(), digest
        return known


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:  # run from its source
        return "unknown"


def _recoding(recoding: Recoding, where: str, arrays: _Arrays) -> RecodingEntry:
    columns = tuple(_column(c, f"{where}/column-{n}", arrays) for n, c in enumerate(recoding.columns, 1))
    return RecodingEntry(origin=recoding.origin, columns=columns)


def _column(column: RecodedColumn, where: str, arrays: _Arrays) -> ColumnEntry:
    tables = tuple(
        None if _changes_nothing(table) else arrays.add(f"{where}-source-{n}.npy", table, "<i8")
        for n, table in enumerate(column.tables, 1)
    )
    merged = None if column.merged is None else arrays.add(f"{where}-merged.npy", column.merged, "<i8")
    references = tuple(
        ReferenceEntry(
            anchor=r.anchor, expected=arrays.add(f"{where}-expected-{n}.npy", r.expected, "<i8"), cells=r.cells
        )
        if r
        else None
        for n, r in enumerate(column.references, 1)
    )
    return ColumnEntry(name=column.name, sources=column.sources, tables=tables, merged=merged, references=references)


def _changes_nothing(table: NDArray[np.int64]) -> bool:
    return bool(np.array_equal(table, np.arange(len(table))))


def _release(release: Release, where: str, place_of: Mapping[int, int], arrays: _Arrays) -> ReleaseEntry:
    stages = enumerate(release.stages, 1)
    return ReleaseEntry(
        recipe=release.recipe,
        source=release.source,
        certificate=release.certificate.to_data() if release.certificate else None,
        stages=tuple(_stage(s, f"{where}/stage-{n}", place_of[id(s.recoding)], arrays) for n, s in stages),
        scores=tuple(
            ScoresEntry(
                kind=scores.kind,
                cliques=scores.cliques,
                values=arrays.add(f"{where}/scores-{n}.npy", scores.values, "<f8"),
                deviation=scores.deviation,
            )
            for n, scores in enumerate(release.scores, 1)
        ),
    )


def _stage(stage: Stage, where: str, place: int, arrays: _Arrays) -> StageEntry:
    marginals = tuple(
        MarginalEntry(
            clique=marginal.clique,
            raw=arrays.add(f"{where}/marginal-{n}.npy", marginal.raw, "<i8"),
            lattice=marginal.lattice,
            deviation=marginal.deviation,
        )
        for n, marginal in enumerate(stage.marginals, 1)
    )
    return StageEntry(recoding=place, marginals=marginals)


def _model(model: Model, place_of: Mapping[int, int], arrays: _Arrays) -> ModelEntry:
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
        recoding=place_of[id(model.recoding)],
        tables=tables,
        histograms=histograms,
        total=model.total,
        fitted=_fitted(model.fitted, arrays) if model.fitted else None,
    )


def _fitted(fitted: Fitted, arrays: _Arrays) -> FittedEntry:
    return FittedEntry(
        cliques=fitted.cliques,
        parameters=arrays.add("model/parameters.npy", fitted.parameters, "<f8"),
        expected=arrays.add("model/expected.npy", fitted.expected, "<f8"),
    )
