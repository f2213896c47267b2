from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from dpsyn.demo import people_schema
from dpsyn.encoding import Codec
from dpsyn.errors import UserError
from dpsyn.schema import Schema
from dpsyn.simulation import simulate
from dpsyn.simulation._simulate import CHUNK_ROWS

WORKERS = Schema.from_yaml(
    """
dpsyn_schema: 1
privacy_unit: {id: person, max_rows: 3}
attributes:
  person: {kind: identifier}
  region: {kind: categorical, values: [north, south, west]}
  sex: {kind: categorical, values: [f, m]}
  age: {kind: integer, low: 0, high: 99}
  group: {kind: ordinal, values: [minor, adult]}
  street: {kind: open, missing: true}
  moved: {kind: datetime, start: 2000-01-01, end: 2020-12-31, missing: true}
  height: {kind: real, low: 0, high: 2.5, decimals: 2, missing: true}
  wage: {kind: integer, low: 0, high: 999999, spikes: [999998]}
derive:
  group: {from: age, mapping: {0..17: minor}, otherwise: adult}
"""
)


def test_a_seed_of_rows_changes_the_rows_and_not_the_distribution() -> None:
    """The distributions of two samples of one process differ by sampling error, those of two processes by far more."""
    one, same, other = (
        simulate(WORKERS, 4_000, seed, row_seed=row_seed).table() for seed, row_seed in ((1, 5), (1, 6), (2, 5))
    )

    assert one != same
    assert one == simulate(WORKERS, 4_000, 1, row_seed=5).table()
    assert simulate(WORKERS, 50, 1, row_seed=1).table() == simulate(WORKERS, 50, 1).table()
    shares = [
        np.array([pc.sum(pc.equal(table.column("region"), region)).as_py() for region in ("north", "south", "west")])
        for table in (one, same, other)
    ]
    sampling = 4.5 * np.sqrt(2 * 4_000 * 0.25)  # of a difference of two counts; beyond it once in 150 000 times
    assert np.abs(shares[0] - shares[1]).max() < sampling < np.abs(shares[0] - shares[2]).max()


def test_the_same_seed_makes_the_same_table_and_another_seed_another() -> None:
    one, again, other = (simulate(WORKERS, 500, seed).table() for seed in (1, 1, 2))

    assert one.equals(again)
    assert not one.equals(other)


def test_a_longer_table_begins_with_the_rows_of_a_shorter_one_of_whole_chunks() -> None:
    short, long = simulate(WORKERS, CHUNK_ROWS, 1).table(), simulate(WORKERS, CHUNK_ROWS + 10, 1).table()

    assert long.num_rows == CHUNK_ROWS + 10
    assert long.slice(0, CHUNK_ROWS).equals(short)


def test_every_column_of_the_schema_is_there_and_its_values_are_in_the_domain() -> None:
    made = simulate(WORKERS, 3_000, 5)
    table = made.table()

    assert tuple(table.column_names) == WORKERS.names
    codec = Codec(made.schema)
    for attribute, column in zip(codec.attributes, codec.column_codecs, strict=True):
        fates = column.read(table.column(attribute.name).combine_chunks()).statuses
        assert set(np.unique(fates)) <= ({0, 1} if attribute.has_missing else {0})


def test_derived_columns_follow_from_their_source() -> None:
    table = simulate(WORKERS, 3_000, 5).table()

    expected = ["minor" if age < 18 else "adult" for age in table.column("age").to_pylist()]
    assert table.column("group").to_pylist() == expected


def test_a_person_has_as_many_rows_as_the_unit_allows_at_most() -> None:
    ids = simulate(WORKERS, 3_000, 5).table().column("person").to_numpy()

    counts = np.unique(ids, return_counts=True)[1]
    assert counts.max() == 3
    assert len(counts) > 1_000


def test_declared_spikes_and_zero_hold_a_visible_share_of_rows() -> None:
    wages = simulate(WORKERS, 3_000, 5).table().column("wage").to_numpy()

    assert np.mean(wages == 999998) > 0.005
    assert np.mean(wages == 0) > 0.005


def test_some_columns_are_empty_together_more_often_than_by_chance() -> None:
    table = simulate(people_schema(), 20_000, 3).table()

    empty = [table.column(name).is_null().to_numpy() for name in table.column_names if table.column(name).null_count]
    apart = [np.mean(a & b) - np.mean(a) * np.mean(b) for n, a in enumerate(empty) for b in empty[:n]]
    assert max(apart) > 0.02


def test_the_wage_gap_between_sexes_differs_by_region() -> None:
    table = simulate(WORKERS, 30_000, 11).table().filter(pa.compute.field("wage") < 999998)
    region, sex = (np.array(table.column(name).to_pylist()) for name in ("region", "sex"))
    ranks = np.argsort(np.argsort(table.column("wage").to_numpy())) / table.num_rows

    gaps = [
        ranks[(region == r) & (sex == "m")].mean() - ranks[(region == r) & (sex == "f")].mean()
        for r in ("north", "south", "west")
    ]
    assert max(gaps) - min(gaps) > 0.05


def test_interactions_of_two_and_three_are_stronger_than_chance() -> None:
    strength = simulate(people_schema(), 20_000, 3).strength()

    assert strength.rows == 20_000
    assert strength.pairs > 3 * strength.chance_pairs
    assert strength.triples > 1.3 * strength.chance_triples
    assert strength.strongest_pair >= strength.pairs
    assert strength.strongest_triple >= strength.triples


def test_no_rows_are_a_table_with_all_columns() -> None:
    table = simulate(WORKERS, 0, 5).table()

    assert (table.num_rows, tuple(table.column_names)) == (0, WORKERS.names)


@pytest.mark.parametrize(("rows", "seed"), [(-1, 0), (10**11, 0), (1, -1)])
def test_impossible_numbers_are_refused(rows: int, seed: int) -> None:
    with pytest.raises(UserError, match="give a"):
        simulate(WORKERS, rows, seed)
