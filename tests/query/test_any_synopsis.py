"""Whatever a synopsis holds, merged or joint columns, few marginals or none, a query has an answer or an error."""

from __future__ import annotations

import json

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsyn.encoding import Codec
from dpsyn.errors import UserError
from dpsyn.inference.measurements import MeasurementRound, Release
from dpsyn.marginals import Marginal
from dpsyn.synopsis import Synopsis
from tests.strategies import schemas
from tests.synopsis.synopses import _model, _shape, recodings_of


@st.composite
def usual_synopses(draw: st.DrawFn) -> Synopsis:
    """Synopses with the numbers of real tables: any schema, any recodings, any marginals."""
    schema = draw(schemas(max_attributes=3).filter(lambda schema: any(a.coded for a in schema.measured_attributes)))
    codec, rng = Codec(schema), np.random.default_rng(draw(st.integers(0, 2**32)))
    recodings = draw(st.lists(recodings_of(codec, rng), min_size=1, max_size=3))
    rounds = []
    for recoding in draw(st.lists(st.sampled_from(recodings), max_size=3)):
        cliques = [(name,) for name in recoding.names] + ([recoding.names[:2]] if max(recoding.sizes) < 100 else [])
        marginals = [
            Marginal(clique, rng.integers(-(2**12), 2**20, _shape(recoding, clique)), 10, draw(st.floats(0.01, 1e4)))
            for clique in draw(st.lists(st.sampled_from(cliques), max_size=3, unique=True))
        ]
        rounds.append(MeasurementRound(recoding, tuple(marginals)))
    release = Release(tuple(rounds))
    return Synopsis(schema, (release,), _model(draw(st.sampled_from(recodings)), codec, rng))


@settings(max_examples=60)
@given(usual_synopses(), st.data())
def test_a_query_has_an_answer_or_a_user_error(synopsis: Synopsis, data: st.DataObject) -> None:
    names = [attribute.name for attribute in synopsis.schema.measured_attributes if attribute.coded]
    chosen = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
    labels = synopsis.schema[chosen[0]].labels()
    where = {chosen[0]: data.draw(st.sampled_from(labels))} if data.draw(st.booleans()) else {}

    try:
        answer = synopsis.marginal(*chosen, where=where, cells=data.draw(st.booleans()))
    except UserError:
        return

    assert (answer.counts >= 0).all()
    assert np.isfinite(answer.counts).all()
    assert (answer.standard_errors >= 0).all()
    assert answer.counts.shape == tuple(len(values) for values in answer.labels)
    json.dumps(answer.to_data(), allow_nan=False)
