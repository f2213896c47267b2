"""Small synopses for tests, their content for comparison, and Hypothesis strategies that generate them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import islice
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpsyn.accounting import (
    Budget,
    Certificate,
    Gaussian,
    Laplace,
    LedgerHead,
    MeasurementRecord,
    PrivacyUnit,
    Run,
    hash_answer,
)
from dpsyn.encoding import Codec, Grouping, Recoding
from dpsyn.inference import MeasurementRound, Model, Release, Scores
from dpsyn.inference.gibbs import GibbsModel, restore_model
from dpsyn.marginals import Clique, Estimate, Marginal
from dpsyn.schema import Boolean, Categorical, Integer, Schema
from dpsyn.synopsis import Synopsis
from tests.strategies import schemas, texts

SCHEMA = Schema(
    attributes=(
        Integer(name="age", low=0, high=99, bins=(0, 18, 65)),
        Categorical(name="sex", values=("F", "M"), missing=True),
        Categorical(name="job", codes=5),
        Boolean(name="employed"),
    ),
    dataset="people",
    expected_size=1000,
)

HEAD = LedgerHead(7, "0123456789abcdef" * 4)


@cache
def certificate(*, private: bool = True, with_pure_step: bool = False, head: LedgerHead | None = None) -> Certificate:
    """A certificate of three marginals."""
    pure = ["0.1"] if with_pure_step else []
    budget = Budget.for_guarantee(1, 1e-9, pure_epsilons=pure)
    run = Run.open(
        budget,
        PrivacyUnit(),
        dataset="people",
        uses_real_noise=private,
        declared_public=["age: 0 to 99", "sex: code book 2024"],
    )
    for purpose, rho in zip(("age, sex", "job", "employed"), budget.split_rho([2, 1, 1]), strict=True):
        run.charge(f"marginal of {purpose}", Gaussian.for_rho(rho, 1))
    if with_pure_step:
        run.charge("marginal of sex", Laplace.for_epsilon(budget.pure_epsilons[0], 1))
    run.ledger_head = head
    return run.certificate()


def synopsis(*certificates: Certificate | None, seed: int = 0) -> Synopsis:
    """A synopsis of one release for each certificate; without one it is an imported release."""
    rng, codec = np.random.default_rng(seed), Codec(SCHEMA)
    coarse = Recoding.coarse(codec)
    merged = coarse.join("work", ["job", "employed"]).merge("work", Grouping(np.arange(10) // 3))
    releases = [
        Release(
            rounds=(
                MeasurementRound(coarse, (_marginal(coarse, ("age", "sex"), rng), _marginal(coarse, ("job",), rng))),
                MeasurementRound(merged, (_marginal(merged, ("work",), rng),)),
            ),
            scores=(Scores("distance", (("age", "sex"), ("sex", "job")), rng.normal(size=2), 3.5),),
            source="" if each else "the statistics office",
        )
        for each in certificates
    ]
    certified = tuple(certify(release, each) for release, each in zip(releases, certificates, strict=True))
    return Synopsis(SCHEMA, certified, _model(merged, codec, rng))


def synopsis_without_numbers(certificate: Certificate) -> Synopsis:
    """A synopsis with a certificate as it is; what was measured is not part of it."""
    made = synopsis(None)
    return Synopsis(made.schema, (Release((), certificate=certificate),), made.model)


def _marginal(recoding: Recoding, clique: Clique, rng: np.random.Generator) -> Marginal:
    return Marginal(clique, rng.integers(-(2**20), 2**40, _shape(recoding, clique)), 8, 4.0)


def certify(release: Release, template: Certificate | None) -> Release:
    """The release with a certificate like the template that records its marginals and scores, and with their noise."""
    if template is None:
        return release
    budget, marginals = template.account.budget, [m for each in release.rounds for m in each.marginals]
    run = Run.open(
        budget,
        template.privacy_unit,
        dataset=template.dataset,
        uses_real_noise=template.uses_real_noise,
        declared_public=template.declared_public,
    )
    run.name, run.ledger_head = template.run, template.ledger_head
    numbers = [1] * len(marginals) + [max(len(each.cliques), 1) for each in release.scores] or [1]
    costs = [
        Gaussian.for_rho(rho, number)  # a row changes each of several scores
        for rho, number in zip(budget.split_rho([1] * len(numbers)), numbers, strict=True)
    ]
    noisy = [replace(m, lattice=cost.lattice, std=cost.std) for m, cost in zip(marginals, costs, strict=False)]
    scores = [
        replace(each, values=np.rint(each.values * 2.0**cost.lattice) / 2.0**cost.lattice, std=cost.std)
        for each, cost in zip(release.scores, costs[len(marginals) :], strict=False)
    ]
    answers = [(f"marginal of {', '.join(m.clique)}", m.raw) for m in noisy]
    answers += [
        ("distances", (each.values * 2.0**cost.lattice).astype(np.int64))
        for each, cost in zip(scores, costs[len(marginals) :], strict=False)
    ]
    for (purpose, answer), cost in zip(answers, costs, strict=False):
        run.charge_all([MeasurementRecord(purpose=purpose, cost=cost, answer_hash=hash_answer(answer))])
    for step in budget.pure_epsilons:
        run.charge("marginal of sex", Laplace.for_epsilon(step, 1))
    remaining = iter(noisy)
    rounds = [replace(each, marginals=tuple(islice(remaining, len(each.marginals)))) for each in release.rounds]
    certificate = run.certificate()
    return replace(release, rounds=tuple(rounds), scores=tuple(scores), certificate=certificate)


def _shape(recoding: Recoding, clique: Clique) -> tuple[int, ...]:
    return tuple(recoding.sizes[recoding.index_of(name)] for name in clique)


def _model(recoding: Recoding, codec: Codec, rng: np.random.Generator) -> Model:
    pairs = [recoding.names[at : at + 2] for at in range(0, len(recoding.names), 2)]
    tables = tuple(Estimate(pair, rng.exponential(9.0, _shape(recoding, pair)), float(rng.random())) for pair in pairs)
    return Model(
        recoding=recoding,
        tables=tables,
        histograms={name: rng.exponential(2.0, size) for name, size in codec.domain},
        total=float(rng.exponential(1e4)),
        distribution=_distribution(recoding, tables, rng) if rng.random() < 0.5 else None,
    )


def _distribution(recoding: Recoding, tables: tuple[Estimate, ...], rng: np.random.Generator) -> GibbsModel:
    cliques: list[tuple[tuple[str, ...], dict[str, NDArray[np.int64]]]] = [(table.clique[::-1], {}) for table in tables]
    cells = sum(table.values.size for table in tables)
    return restore_model(tables, recoding.names, recoding.sizes, cliques, rng.normal(size=cells), rng.random(cells))


# ── any synopsis ─────────────────────────────────────────────────────────────────────────────────────────────


@st.composite
def synopses(draw: st.DrawFn) -> Synopsis:
    """Synopses of any schema: merged and joined recodings, several releases, every kind of certificate."""
    schema = draw(schemas(max_attributes=3).filter(lambda schema: any(a.coded for a in schema.measured_attributes)))
    codec, rng = Codec(schema), np.random.default_rng(draw(st.integers(0, 2**32)))
    recodings = draw(st.lists(recodings_of(codec, rng), min_size=1, max_size=3))
    releases = draw(st.lists(_releases(recodings, rng), max_size=2))
    return Synopsis(schema, tuple(releases), _model(draw(st.sampled_from(recodings)), codec, rng))


@st.composite
def recodings_of(draw: st.DrawFn, codec: Codec, rng: np.random.Generator) -> Recoding:
    """Cells or bins, some attributes merged, some joined."""
    recoding = draw(st.sampled_from([Recoding.fine(codec), Recoding.coarse(codec)]))
    if len(recoding.names) > 1 and max(recoding.sizes) < 100 and draw(st.booleans()):
        recoding = recoding.join(draw(texts()) + "+", recoding.names[:2])
    for name, size in zip(recoding.names, recoding.sizes, strict=True):
        if draw(st.booleans()):
            groups = int(rng.integers(1, min(size, 50) + 1))
            labels = np.concatenate([np.arange(groups), rng.integers(0, groups, size - groups)])
            recoding = recoding.merge(name, Grouping(rng.permutation(labels)))
    return recoding


@st.composite
def _releases(draw: st.DrawFn, recodings: list[Recoding], rng: np.random.Generator) -> Release:
    certificates = [None, certificate(), certificate(private=False), certificate(with_pure_step=True, head=HEAD)]
    rounds = []
    for recoding in draw(st.lists(st.sampled_from(recodings), max_size=2)):
        cliques = [(name,) for name in recoding.names] + ([recoding.names[:2]] if max(recoding.sizes) < 100 else [])
        marginals = [
            Marginal(
                clique,
                rng.integers(-(2**62), 2**62, _shape(recoding, clique)),
                draw(st.integers(0, 1000)),
                draw(st.floats(1e-300, 1e300)),
            )
            for clique in draw(st.lists(st.sampled_from(cliques), max_size=3, unique=True))
        ]
        rounds.append(MeasurementRound(recoding, tuple(marginals)))
    scored = draw(st.lists(st.lists(texts(), max_size=2).map(tuple), max_size=3))
    release = Release(
        rounds=tuple(rounds),
        scores=(Scores(draw(texts()), tuple(scored), rng.normal(size=len(scored)), draw(st.floats(0, 1e9))),),
        source=draw(texts()),
    )
    return certify(release, draw(st.sampled_from(certificates)))


# ── equality ─────────────────────────────────────────────────────────────────────────────────────────────────


def content(synopsis: Synopsis) -> Any:
    """The content of a synopsis as plain data that can be compared."""
    return [synopsis.schema, [_release_content(release) for release in synopsis.releases], _model_content(synopsis)]


def _release_content(release: Release) -> Any:
    rounds = [
        [
            _recoding_content(each.recoding),
            [(m.clique, _bytes(m.raw), m.lattice, m.std) for m in each.marginals],
        ]
        for each in release.rounds
    ]
    scores = [(s.kind, s.cliques, _bytes(s.values), s.std) for s in release.scores]
    return [release.title, release.source, release.certificate, rounds, scores]


def _model_content(synopsis: Synopsis) -> Any:
    model = synopsis.model
    tables = [(table.clique, _bytes(table.values), table.variance) for table in model.tables]
    histograms = {name: _bytes(weights) for name, weights in model.histograms.items()}
    distribution = model.distribution and (
        model.distribution.cliques,
        _bytes(model.distribution.parameters),
        _bytes(model.distribution.expected_shares),
    )
    return [_recoding_content(model.recoding), tables, histograms, model.total, distribution, model.synthesis]


def _recoding_content(recoding: Recoding) -> Any:
    columns = [
        (c.name, c.sources, [_bytes(t) for t in c.tables], None if c.merged is None else _bytes(c.merged))
        for c in recoding.columns
    ]
    return [recoding.origin, columns]


def _bytes(array: np.ndarray[Any, Any]) -> tuple[str, tuple[int, ...], bytes]:
    return array.dtype.str, array.shape, array.tobytes()
