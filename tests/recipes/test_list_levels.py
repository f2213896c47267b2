"""Long lists with a public hierarchy: what depends on their groups survives noise that drowns single values."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dpsyn
from dpsyn.accounting import Budget
from dpsyn.encoding import frequency_levels
from dpsyn.private import open_private
from dpsyn.recipes.one_way import divide_by_frequency, measure_one_way
from dpsyn.recipes.resolution import Resolution
from dpsyn.schema import Categorical, derived_cells
from tests.recipes.test_golden_rows import release

ROWS, ZIPS, STATES = 12_000, 600, 20


def schema(zips: int = ZIPS) -> dpsyn.Schema:
    mapping = ", ".join(f"{code}: {code % STATES}" for code in range(zips))
    return dpsyn.Schema.from_yaml(f"""
dpsyn_schema: 1
attributes:
  zip: {{kind: categorical, codes: {zips}}}
  state: {{kind: categorical, codes: {STATES}}}
  plan: {{kind: categorical, codes: 5}}
  kind: {{kind: categorical, codes: 2}}
derive:
  state: {{from: zip, mapping: {{{mapping}}}}}
""")


def table(*, by_state: bool) -> pa.Table:
    """Plans depend on the state, or on the zip code in a way that states do not show."""
    rng = np.random.default_rng(7)
    weights = 1 / (30 + np.arange(ZIPS))
    zips = rng.permutation(ZIPS)[rng.choice(ZIPS, ROWS, p=weights / weights.sum())]
    plan = (zips % STATES if by_state else zips // STATES) % 5
    plan = np.where(rng.random(ROWS) < 0.1, rng.integers(0, 5, ROWS), plan)
    return pa.table({"zip": zips, "state": zips % STATES, "plan": plan, "kind": rng.integers(0, 2, ROWS)})


def distance(one: pd.DataFrame, other: pd.DataFrame, *names: str) -> float:
    shares = [frame.astype(int).value_counts(normalize=True, subset=list(names)) for frame in (one, other)]
    return float(shares[0].sub(shares[1], fill_value=0).abs().sum()) / 2


def shapes(synopsis: dpsyn.Synopsis) -> dict[tuple[str, ...], tuple[int, ...]]:
    return {each.clique: each.values.shape for each in synopsis.model.tables}


def test_what_depends_on_the_state_is_measured_by_states() -> None:
    data = table(by_state=True)
    synopsis = release(data, schema())
    rows = synopsis.generate(ROWS, seed=1).to_pandas()

    assert shapes(synopsis)["zip", "plan"] == (STATES, 5)
    assert distance(data.to_pandas(), rows, "state", "plan") < 0.08  # independent: .7


def test_what_only_single_values_show_is_measured_by_values() -> None:
    data = table(by_state=False)
    synopsis = release(data, schema(), 10.0)
    size = dict(zip(synopsis.model.recoding.names, synopsis.model.recoding.sizes, strict=True))["zip"]

    assert size > 2 * STATES
    assert shapes(synopsis)["zip", "plan"] == (size, 5)


def test_rare_values_are_merged_inside_their_group() -> None:
    synopsis = release(table(by_state=True), schema())
    column = synopsis.model.recoding.columns[synopsis.model.recoding.index_of("zip")]
    states = derived_cells(synopsis.schema, synopsis.schema.derive[0])
    pairs = set(zip(column.tables[0].tolist(), states.tolist(), strict=True))

    assert STATES < column.size < ZIPS
    assert len(pairs) == column.size  # each code is of one state


def test_values_below_a_number_of_rows_are_merged_inside_their_group() -> None:
    recipe = dpsyn.DPSyn(rare_rows=ROWS / 100)  # only a few values have so many; without this, about 170 codes remain
    recoding = dpsyn.measure(table(by_state=True), schema(), 1.0, recipe=recipe).model.recoding

    assert STATES < dict(zip(recoding.names, recoding.sizes, strict=True))["zip"] < 60


def test_a_short_list_has_no_levels() -> None:
    data = table(by_state=True).to_pandas()
    data["zip"] %= 32
    data["state"] = data["zip"] % STATES
    synopsis = release(pa.Table.from_pandas(data, preserve_index=False), schema(32))

    assert shapes(synopsis)["zip", "plan"] == (32, 5)


# ── lists without a hierarchy ────────────────────────────────────────────────────────────────────────────────


def test_levels_by_frequency_show_what_depends_on_the_values_they_tell_apart() -> None:
    counts = np.concatenate([np.full(7, 100.0), np.ones(60)])
    levels = frequency_levels(counts)
    resolution = Resolution({"code": levels}, {"code": 67, "plan": 5}, 20_000, 20_000)

    options = {groups["code"].size: groups for groups in resolution.options(("code", "plan"))}

    assert set(options) == {8, 16, 32, 64, 67}
    assert resolution.kept_share(options[8]) == pytest.approx(700 / 760)
    assert resolution.kept_share(options[67]) == 1
    assert resolution.scored_by_hierarchy(("code", "plan")) is None
    assert resolution.count_parameters(("code", "plan"), (8, 5)) is None  # it has no order


@pytest.mark.parametrize(("epsilon", "offered"), [(0.5, True), (20.0, False)])
def test_lists_whose_pairs_would_be_noise_have_levels_by_frequency(epsilon: float, offered: bool) -> None:
    rng = np.random.default_rng(8)
    names = [f"a{number}" for number in range(10)]
    attributes = (Categorical(name="code", codes=100), *(Categorical(name=name, codes=20) for name in names))
    data = pa.table({"code": rng.integers(0, 100, ROWS)} | {name: rng.integers(0, 20, ROWS) for name in names})
    with open_private(data, dpsyn.Schema(attributes=attributes), Budget.for_guarantee(epsilon, 1e-9)) as private:
        table, rounds = measure_one_way(private, private.budget.rho / 2)
        found = divide_by_frequency(table, rounds, table.recoding, {}, private.budget.rho / 2)

    assert [*found] == (["code"] if offered else [])


def test_a_long_list_keeps_more_values_than_two_of_them_could_have_together() -> None:
    rng = np.random.default_rng(3)
    code = rng.integers(0, 1_500, 60_000)
    data = pa.table({"code": code, "part": code % 40})
    schema = dpsyn.Schema.from_yaml(
        "dpsyn_schema: 1\nattributes:\n"
        "  code: {kind: categorical, codes: 1500}\n  part: {kind: categorical, codes: 40}\n"
    )

    synopsis = release(data, schema, 20.0)
    rows = synopsis.generate(60_000, seed=1).to_pandas()

    assert dict(zip(synopsis.model.recoding.names, synopsis.model.recoding.sizes, strict=True))["code"] > 1_400
    assert (rows["code"].astype(int) % 40 == rows["part"].astype(int)).mean() > 0.8


def test_two_lists_that_are_too_long_together_are_measured_at_a_shorter_level() -> None:
    long = frequency_levels(np.arange(2_000.0, 0.0, -1.0), sizes=(), longest=500)
    resolution = Resolution({"one": long, "other": long}, {"one": 2_000, "other": 2_000, "few": 5}, 20_000, 1_000_000)
    pair = ("one", "other")

    assert long.sizes == (500, 2_000)
    assert long.told_apart[0] < 0.5  # too few for a level that is chosen because of noise
    assert {name: level.size for name, level in resolution.finest(pair).items()} == {"one": 500, "other": 500}
    assert resolution.finest(("one", "few")) == {}
    sizes = {tuple(level.size for level in groups.values()) for groups in resolution.options(pair)}
    assert sizes == {(500, 500), (500, 2_000), (2_000, 500)}
