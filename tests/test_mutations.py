"""The mutations that show which tests would notice a broken guarantee still fit the source."""

from __future__ import annotations

import pytest
from bench.mutants import ROOT, mutated
from bench.mutations import MUTATIONS, Mutation


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_mutation_changes_one_place_of_the_source(mutation: Mutation) -> None:
    source = ROOT / "src" / "dpsyn"

    assert mutated(mutation, source) != (source / mutation.file).read_text("utf-8")
    assert all((ROOT / test.partition("::")[0]).exists() for test in mutation.tests)
