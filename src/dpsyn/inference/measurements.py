"""The content of a synopsis as values: releases, which cost privacy, and the model inferred from them.

A *release* is one run of a recipe: the noisy marginals and scores that left the private table, and the certificate of
their cost. The *model* is post-processing: consistent tables, and how rows are synthesized from them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from dpsyn.accounting import Certificate, Gaussian, Laplace, MeasurementRecord, PrivacyUnit, hash_answer
from dpsyn.encoding import Recoding
from dpsyn.errors import InternalError, UserError, quote_argument
from dpsyn.inference.gibbs import GibbsModel
from dpsyn.inference.methods import SYNTHESIS_METHODS, Gibbs, Synthesis
from dpsyn.marginals import Clique, Estimate, Marginal
from dpsyn.options import find_option_object
from dpsyn.schema import Schema

DEFAULT_SYNTHESIS: Synthesis = Gibbs()

FOURIER_COEFFICIENT = "Fourier coefficient"
"""The kind of numbers that are, for a set of binary attributes, the number of rows with an even number of ones among
them minus that of the others; for no attributes, the number of rows."""

DEPENDENCE = "dependence"
"""The kind of InDif scores, each of which a row changes by at most 4."""

IMPORTED_TITLE = "imported"
"""The title of a release without a certificate: its numbers were measured in another system."""


def parse_synthesis(synthesis: Synthesis | str) -> Synthesis:
    """The options of a synthesis method; a name stands for the method with its defaults."""
    if isinstance(synthesis, str):
        return find_option_object(synthesis, SYNTHESIS_METHODS, "synthesis method", {})
    if not isinstance(synthesis, Synthesis):
        raise UserError(
            f"{quote_argument(synthesis)} is not a synthesis method; give one of {', '.join(SYNTHESIS_METHODS)}, or an "
            "object such as GUM()"
        )
    return synthesis


@dataclass(frozen=True, slots=True, eq=False)
class MeasurementRound:
    """Marginals that were measured under one recoding.

    Attributes:
        recoding: the attributes, and how their codes follow from the fine codes of the schema.
        marginals: noisy counts over those codes.
    """

    recoding: Recoding
    marginals: tuple[Marginal, ...]

    def __post_init__(self) -> None:
        sizes = dict(zip(self.recoding.names, self.recoding.sizes, strict=True))
        for marginal in self.marginals:
            if marginal.raw.shape != tuple(sizes.get(name) for name in marginal.clique):
                raise InternalError(f"the marginal of {', '.join(marginal.clique)} does not fit its recoding")


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """Noisy numbers about sets of attributes: scores by which marginals were selected, or Fourier coefficients.

    Attributes:
        kind: what was scored, such as ``dependence``; ``FOURIER_COEFFICIENT`` if the numbers are coefficients.
        cliques: the attributes that each number is about.
        values: the released scores.
        std: the standard deviation of their noise.
    """

    kind: str
    cliques: tuple[Clique, ...]
    values: NDArray[np.float64]
    std: float

    def __post_init__(self) -> None:
        if self.values.shape != (len(self.cliques),):
            raise InternalError(f"{len(self.cliques)} cliques have scores of shape {self.values.shape}")
        self.values.setflags(write=False)

    @property
    def are_distances(self) -> bool:
        """Whether they show how far tables are from a model; coefficients are observations of the tables themselves."""
        return self.kind != FOURIER_COEFFICIENT


@dataclass(frozen=True, slots=True, eq=False)
class PublicTables:
    """What public rows answer to the questions that a release asked, and how they depend on each other.

    Attributes:
        rows: the number of public rows; fewer if they are known with noise.
        counts: for each marginal of each round its public counts, or None if the public rows lack an attribute.
        pairs: public counts of pairs, whose dependence the model follows where it was not measured; their standard
            deviations are those of a prediction of the private table by them, in public rows.
    """

    rows: float
    counts: tuple[tuple[NDArray[np.int64] | None, ...], ...]
    pairs: MeasurementRound | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Release:
    """One measurement of a private table: every number that left it.

    Attributes:
        rounds: the marginals, in the order in which they were measured.
        scores: the scores by which they were selected.
        certificate: what the numbers cost; None if they were measured in another system, so their guarantee is not
            verified here.
        source: who measured imported numbers and how, in the words of the person who imported them.
        public: what public rows answer to the same questions, if they were given as a prior.
    """

    rounds: tuple[MeasurementRound, ...]
    scores: tuple[Scores, ...] = ()
    certificate: Certificate | None = None
    source: str = ""
    public: PublicTables | None = None

    def __post_init__(self) -> None:
        if self.public is None:
            return
        asked = [[marginal.raw.shape for marginal in each.marginals] for each in self.rounds]
        answered = [[None if c is None else c.shape for c in of_round] for of_round in self.public.counts]
        fits = [len(of_round) for of_round in asked] == [len(of_round) for of_round in answered] and all(
            shape in (None, of_marginal)
            for of_round, of_public in zip(asked, answered, strict=True)
            for of_marginal, shape in zip(of_round, of_public, strict=True)
        )
        if not fits or not self.public.rows > 0:
            raise InternalError("the public counts of a release do not fit its marginals")

    @property
    def recipe(self) -> Mapping[str, Any]:
        """The recipe and its options, as the certificate records them; empty for imported numbers."""
        return self.certificate.recipe if self.certificate else {}

    @property
    def title(self) -> str:
        """What reports call the release: ``recipe`` and its name; ``imported`` for imported numbers."""
        return IMPORTED_TITLE if self.certificate is None else f"recipe {self.recipe.get('name', 'unknown')}"

    @property
    def has_laplace_noise(self) -> bool:
        """Whether some of its numbers have Laplace noise; False for imported numbers, of which it is not known."""
        measurements = self.certificate.account.measurements if self.certificate else ()
        return any(isinstance(measurement.cost, Laplace) for measurement in measurements)

    def require_recorded(self, schema: Schema) -> None:
        """Check that every marginal and all scores are answers that the certificate records, each of another one.

        It is an InternalError if not: the number was not charged, or it was changed after it was released. What gives
        the numbers their meaning, the attributes of the schema and the recodings, must be what the certificate states.
        Imported numbers have no certificate, so there is nothing to check.
        """
        if self.certificate is None:
            return
        stated = self.certificate.outcome.contents_hash
        if stated and stated != hash_contents(schema, self.rounds, self.scores):
            raise InternalError(
                "an attribute of the schema, a recoding or the name of a marginal is not the one that the certificate "
                "records; it was changed after the release"
            )
        unused = list(self.certificate.account.measurements)
        for marginal in (m for each in self.rounds for m in each.marginals):
            name = ", ".join(marginal.clique)
            _take_record(unused, name, f"the marginal of {name}", marginal.raw, marginal.lattice, marginal.std)
        for scores in self.scores:
            cost = _take_record_of_scores(unused, scores)
            _require_score_sensitivity(scores, cost, self.certificate.privacy_unit)


def hash_contents(schema: Schema, rounds: Sequence[MeasurementRound], scores: Sequence[Scores]) -> str:
    """The SHA-256 of what gives released numbers their meaning, without the numbers, which have hashes of their own.

    It covers the attributes of the schema, what is derived from them, the recodings, and the attributes of each
    marginal and score. Constraints and the expected size are not covered: a later release may change them.
    """
    digest = hashlib.sha256(json.dumps(list_attributes(schema)).encode())
    recodings: dict[int, str] = {}
    for each in rounds:
        recoding = recodings.setdefault(id(each.recoding), _hash_recoding(each.recoding))
        digest.update(msgspec.json.encode([recoding, [marginal.clique for marginal in each.marginals]]))
    for one in scores:
        digest.update(msgspec.json.encode([one.kind, one.cliques]))
    return digest.hexdigest()


def list_attributes(schema: Schema) -> list[Any]:
    """The attributes of a schema and what is derived from them, as plain data in one form, for their hash.

    A synopsis file holds them beside the text of the schema, so that the hash can be computed without DPSyn.
    """
    attributes: list[Any] = _canonical(msgspec.to_builtins([schema.attributes, schema.derive]))
    return attributes


def _canonical(data: Any) -> Any:
    """Plain data in one form for all that are equal: 100.0 and 100 are the same bound, in whatever order keys are."""
    if isinstance(data, dict):
        return sorted(([_canonical(key), _canonical(value)] for key, value in data.items()), key=json.dumps)
    if isinstance(data, list | tuple):
        return [_canonical(part) for part in data]
    return int(data) if isinstance(data, float) and data.is_integer() else data


def _hash_recoding(recoding: Recoding) -> str:
    digest = hashlib.sha256(msgspec.json.encode(recoding.origin))
    for column in recoding.columns:
        differences = [d and [d.anchor, d.modulus, _hash_codes(d.expected_codes)] for d in column.difference_codings]
        tables = [_hash_codes(table) for table in column.tables]
        merged = column.merged is not None and _hash_codes(column.merged)
        digest.update(msgspec.json.encode([column.name, column.sources, tables, merged, differences]))
    return digest.hexdigest()


def _hash_codes(codes: NDArray[np.int64]) -> str:
    return hashlib.sha256(codes.astype("<i8").tobytes()).hexdigest()


def _require_score_sensitivity(scores: Scores, cost: Gaussian | Laplace, unit: PrivacyUnit) -> None:
    """Refuse scores whose noise is for fewer or less sensitive ones: a row changes each of them, InDif scores by 4."""
    each, number = unit.score_sensitivity(4 if scores.kind == DEPENDENCE else 1), len(scores.cliques)
    enough = (
        cost.sensitivity_squared >= number * each**2
        if isinstance(cost, Gaussian)
        else cost.sensitivity >= number * each
    )
    if not enough:
        raise InternalError(f"the noise of {number} scores of {scores.kind} is for a smaller sensitivity than theirs")


def _take_record_of_scores(unused: list[MeasurementRecord], scores: Scores) -> Gaussian | Laplace:
    """Remove the record of scores, whose lattice is that of the record."""
    lattices = {m.cost.lattice for m in unused if isinstance(m.cost, Gaussian | Laplace) and m.cost.std == scores.std}
    for lattice in lattices or {0}:
        raw = scores.values * 2.0**lattice
        if (raw == np.rint(raw)).all() and np.abs(raw).max(initial=0) < 2**62:
            return _take_record(unused, "", f"scores of {scores.kind}", raw.astype(np.int64), lattice, scores.std)
    raise _unrecorded_error(f"scores of {scores.kind}")


def _take_record(
    unused: list[MeasurementRecord], name: str, what: str, raw: NDArray[np.int64], lattice: int, std: float
) -> Gaussian | Laplace:
    """Remove the record of an answer: the one with its hash, its noise, and the names of its attributes."""
    digest = hash_answer(raw)
    for position, record in enumerate(unused):
        noise = record.cost
        if not isinstance(noise, Gaussian | Laplace) or (noise.lattice, noise.std) != (lattice, std):
            continue
        if record.answer_hash == digest and name in record.purpose:
            del unused[position]
            return noise
    raise _unrecorded_error(what)


def _unrecorded_error(what: str) -> InternalError:
    return InternalError(
        f"{what} is not an answer that the certificate records; it was changed, or nothing was charged for it"
    )


def iterate_marginals(releases: Iterable[Release]) -> Iterator[tuple[Recoding, Marginal]]:
    """Every marginal of the releases, with the recoding it was measured under."""
    return ((each.recoding, m) for release in releases for each in release.rounds for m in each.marginals)


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """The distribution that rows are sampled from. It is inferred from releases, so it costs no privacy.

    Attributes:
        recoding: the attributes of the tables, as functions of the fine codes.
        tables: consistent non-negative counts of equal totals; every attribute is in at least one of them. A table may
            count attributes at a coarser level than the recoding; then another one has the attribute itself.
        histograms: weights of the fine codes of each attribute, by which merged codes are split into fine ones.
        total: the estimated number of rows.
        distribution: the fitted maximum entropy model; None if rows are fitted to the tables each time they are
            sampled (GUM, MCF), or if all attributes are independent.
        synthesis: how rows are synthesized unless ``generate`` is given another method.
    """

    recoding: Recoding
    tables: tuple[Estimate, ...]
    histograms: Mapping[str, NDArray[np.float64]]
    total: float
    distribution: GibbsModel | None = None
    synthesis: Synthesis = DEFAULT_SYNTHESIS

    def __post_init__(self) -> None:
        self.recoding.require_decodable()
        sizes = dict(zip(self.recoding.names, self.recoding.sizes, strict=True))
        for table in self.tables:
            known = dict(zip(table.clique, table.values.shape, strict=True))
            known |= {name: len(group_of) for name, group_of in table.levels.items()}
            if any(sizes.get(name) != size for name, size in known.items()):
                raise InternalError(f"the table of {', '.join(table.clique)} does not fit its recoding")
        if {name for table in self.tables for name in table.clique if name not in table.levels} != set(sizes):
            raise InternalError("an attribute is in no table of the model")
        if {name: weights.shape for name, weights in self.histograms.items()} != {
            name: (size,) for name, size in self.recoding.origin
        }:
            raise InternalError("a model has a histogram of every attribute, over its fine codes")
        if {index for column in self.recoding.columns for index in column.sources} != {*range(len(self.histograms))}:
            raise InternalError("an attribute is not in the recoding of the model, so its codes would be lost")
        if self.distribution and (self.distribution.names, self.distribution.layout.sizes) != (
            self.recoding.names,
            self.recoding.sizes,
        ):
            raise InternalError("the fitted distribution of a model is of other attributes")
        arrays = [*(table.values for table in self.tables), *self.histograms.values(), np.array([self.total])]
        if not all(np.isfinite(array).all() and (array >= 0).all() for array in arrays):
            raise InternalError("a model consists of finite numbers that are not negative")


class PreviousReleases(Protocol):
    """Earlier releases of a table and the model inferred from them, on which a recipe builds; a ``Synopsis`` is one."""

    @property
    def releases(self) -> tuple[Release, ...]:
        """What was measured, the oldest release first."""

    @property
    def model(self) -> Model:
        """The model inferred from the releases."""
