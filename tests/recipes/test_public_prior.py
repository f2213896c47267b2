"""Public rows as a prior: they help where they are right, and do no harm where they are not."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import dpsyn
from dpsyn import LedgerError, SourceError, UserError
from dpsyn.encoding import Codec, Recoding
from dpsyn.inference import describe_trust, shrink_interaction, shrink_one_ways
from dpsyn.inference.public_prior import DISPERSIONS, expect_shares, learn_trust, shrink_marginals
from dpsyn.marginals import Marginal
from dpsyn.public import open_public
from dpsyn.recipes.public_prior import Prior, PublicPair
from tests.recipes.test_golden_rows import release as release_with_seed

BECAUSE = "the test made them up"
SIZES = {"a": 4, "b": 4, "c": 6, "d": 3}
ROWS = 1_500


def people(seed: int, rows: int = ROWS) -> pa.Table:
    """Columns that depend on a common cause; tables with other seeds are of other people."""
    rng = np.random.default_rng(seed)
    cause = rng.random(rows)
    columns = {
        name: np.where(rng.random(rows) < 0.8, cause**2, rng.random(rows) ** 2) * size for name, size in SIZES.items()
    }
    return pa.table({name: column.astype(np.int64) for name, column in columns.items()})


def schema(dataset: str = "") -> dpsyn.Schema:
    lines = [f"  {name}: {{kind: categorical, codes: {size}}}" for name, size in SIZES.items()]
    name = f"dataset: {dataset}\n" if dataset else ""
    return dpsyn.Schema.from_yaml(f"dpsyn_schema: 1\n{name}attributes:\n" + "\n".join(lines))


def distance(one: pa.Table, other: pa.Table) -> float:
    """The mean total variation distance of all pairs."""
    return float(
        np.mean([np.abs(_shares(one, pair) - _shares(other, pair)).sum() / 2 for pair in combinations(SIZES, 2)])
    )


def _shares(table: pa.Table, pair: tuple[str, str]) -> NDArray[np.float64]:
    codes = [table[name].to_numpy().astype(np.int64) for name in pair]
    cells = codes[0] * SIZES[pair[1]] + codes[1]
    return np.bincount(cells, minlength=SIZES[pair[0]] * SIZES[pair[1]]) / len(table)


def release(public: object, epsilon: float = 0.2) -> dpsyn.Synopsis:
    because = None if public is None else BECAUSE
    return release_with_seed(people(1), schema(), epsilon, public=public, public_because=because)


def error(synopsis: dpsyn.Synopsis) -> float:
    return distance(people(1), synopsis.generate(rows=20_000, seed=1, output_format="arrow"))


# ── what a prior does ────────────────────────────────────────────────────────────────────────────────────────


def test_a_release_with_public_rows_is_better_than_without_and_not_worse_than_they_are() -> None:
    public = people(2)
    without, with_public = error(release(None)), error(release(public))

    assert with_public < 0.7 * without
    assert with_public < 1.25 * distance(people(1), public)


def test_public_rows_that_contradict_released_numbers_are_not_followed() -> None:
    reversed_codes = pa.table({name: SIZES[name] - 1 - people(2)[name].to_numpy() for name in SIZES})

    synopsis = release(reversed_codes, epsilon=2.0)

    trust = describe_trust(synopsis.releases[0])
    assert trust is not None
    assert max(trust.one_way.values()) < 0.5
    assert trust.pairs == 0
    assert error(synopsis) < 1.05 * error(release(None, epsilon=2.0))


def test_dependence_that_the_scores_contradict_is_not_followed() -> None:
    """The public rows have the right one-way marginals, but their columns depend on each other the other way around."""
    columns = {name: np.sort(people(2)[name].to_numpy()) for name in SIZES}
    columns["b"], columns["d"] = columns["b"][::-1], columns["d"][::-1]

    synopsis = release(pa.table(columns), epsilon=2.0)

    trust = describe_trust(synopsis.releases[0])
    assert trust is not None
    assert all(part > 0.5 for part in trust.one_way.values())
    followed = synopsis.releases[0].public.pairs  # type: ignore[union-attr]
    kept = {m.clique for m in followed.marginals} if followed else set()
    assert not kept & {("a", "b"), ("b", "c"), ("a", "d"), ("c", "d")}


def test_what_is_trusted_is_said() -> None:
    synopsis = release(people(2))
    trust = describe_trust(synopsis.releases[0])

    assert trust is not None
    assert trust.pairs > 0
    assert "1,500" in trust.description
    assert describe_trust(release(None).releases[0]) is None


def test_public_rows_may_lack_attributes_and_have_others() -> None:
    public = people(2).drop_columns(["d"]).append_column("other", pa.array(["x"] * ROWS))

    synopsis = release(public)

    trust = describe_trust(synopsis.releases[0])
    assert trust is not None
    assert set(trust.one_way) == {"a", "b", "c"}


@pytest.mark.parametrize("options", [{"target": "a"}, {"analyses": ["a, c"]}, {"analyses": ["a, b, c, d"]}])
def test_public_rows_go_with_targets_and_analyses(options: dict[str, object]) -> None:
    synopsis = release_with_seed(people(1), schema(), 1.0, public=people(2), public_because=BECAUSE, **options)

    assert describe_trust(synopsis.releases[0]) is not None


def test_a_synopsis_is_extended_with_public_rows() -> None:
    first = release(people(2))

    second = release_with_seed(people(1), schema(), 0.2, extend=first, public=people(2), public_because=BECAUSE)

    assert [describe_trust(each) is None for each in second.releases] == [False, False]
    assert error(second) < 1.1 * error(first)


@pytest.mark.parametrize("rows", [0, 1])
def test_a_table_of_no_rows_is_released_with_public_rows(rows: int) -> None:
    synopsis = release_with_seed(people(1).slice(0, rows), schema(), 0.2, public=people(2), public_because=BECAUSE)

    assert synopsis.generate(rows=10, seed=1).num_rows == 10


# ── what is stored ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_stored_synopsis_needs_no_public_rows(tmp_path: Path) -> None:
    synopsis = release(people(2))
    synopsis.save(tmp_path / "s.dpsyn")

    loaded = dpsyn.Synopsis.load(tmp_path / "s.dpsyn")

    rows = [each.generate(rows=500, seed=3, output_format="arrow") for each in (synopsis, loaded)]
    assert rows[0].equals(rows[1])
    again = dpsyn.inference.fit_model(loaded.schema, loaded.model.recoding, loaded.releases)
    for one, other in zip(again.tables, synopsis.model.tables, strict=True):
        np.testing.assert_allclose(one.values, other.values)
    assert len(list(loaded.replicates(2, rows=200, seed=1))) == 2
    assert describe_trust(loaded.releases[0]) == describe_trust(synopsis.releases[0])


def test_the_certificate_states_what_was_used_and_why() -> None:
    certificate = release(people(2)).certificates[0]

    assert certificate is not None
    assert certificate.recipe["public"]["because"] == BECAUSE
    assert certificate.recipe["public"]["rows"] == ROWS
    assert certificate.recipe["public"]["digest"] in certificate.text()
    assert BECAUSE in certificate.text()


def test_public_rows_cost_nothing() -> None:
    ones = [release(public).certificates[0] for public in (None, people(2))]

    spent = [float(certificate.account.total.rho) for certificate in ones if certificate]
    assert spent[0] == pytest.approx(spent[1], rel=1e-3)  # lattices of noise round a little
    assert not [m.purpose for c in ones if c for m in c.account.measurements if "public" in m.purpose]


# ── what is refused ──────────────────────────────────────────────────────────────────────────────────────────


def test_public_rows_need_a_reason() -> None:
    with pytest.raises(UserError, match="need a reason"):
        dpsyn.measure(people(1), schema(), epsilon=1, public=people(2))
    with pytest.raises(UserError, match="none are given"):
        dpsyn.measure(people(1), schema(), epsilon=1, public_because=BECAUSE)


def test_recipes_that_make_no_use_of_public_rows_refuse_them() -> None:
    with pytest.raises(UserError, match="makes no use of public rows"):
        dpsyn.measure(people(1), schema(), epsilon=1, recipe="independent", public=people(2), public_because=BECAUSE)


def test_a_public_table_that_does_not_fit_is_refused() -> None:
    with pytest.raises(SourceError, match="has none of the schema's attributes"):
        release(pa.table({"x": [1, 2]}))
    with pytest.raises(SourceError, match="has no rows"):
        release(people(2).slice(0, 0))


@pytest.fixture
def ledger(tmp_path: Path) -> dpsyn.Ledger:
    return dpsyn.Ledger.create(tmp_path / "ledger.db")


def test_an_earlier_release_of_the_same_dataset_is_no_public_data(ledger: dpsyn.Ledger, tmp_path: Path) -> None:
    first = dpsyn.measure(people(1), schema("people"), epsilon=1, recipe="independent", ledger=ledger)
    first.save(tmp_path / "first.dpsyn")

    for public in (first, tmp_path / "first.dpsyn"):
        with pytest.raises(LedgerError, match="--extend"):
            dpsyn.measure(people(1), schema("people"), epsilon=1, ledger=ledger, public=public, public_because=BECAUSE)


def test_the_ledger_knows_a_release_whose_dataset_was_renamed(ledger: dpsyn.Ledger) -> None:
    first = dpsyn.measure(people(1), schema("people"), epsilon=1, recipe="independent", ledger=ledger)
    certificate = first.certificates[0]
    assert certificate is not None
    other = replace(certificate, dataset="others", run="unknown")
    renamed = replace(first, schema=schema("others"), releases=(replace(first.releases[0], certificate=other),))

    with pytest.raises(LedgerError, match="knows the public synopsis"):
        dpsyn.measure(people(1), schema("people"), epsilon=1, ledger=ledger, public=renamed, public_because=BECAUSE)


def test_a_synopsis_about_other_people_is_a_prior_with_its_noise() -> None:
    others = dpsyn.measure(people(2), schema("others"), epsilon=1)

    synopsis = dpsyn.measure(people(1), schema("people"), epsilon=0.2, public=others, public_because=BECAUSE)

    trust = describe_trust(synopsis.releases[0])
    assert trust is not None
    assert 1 < trust.rows < ROWS


def test_the_table_of_a_release_folder_of_the_same_dataset_is_refused(ledger: dpsyn.Ledger, tmp_path: Path) -> None:
    first = dpsyn.measure(people(1), schema("people"), epsilon=1, recipe="independent", ledger=ledger)
    first.write(f"{tmp_path}/release/", seed=1)
    tables = [path for path in (tmp_path / "release").iterdir() if path.suffix in (".csv", ".parquet")]

    for public in (tmp_path / "release", *tables):
        with pytest.raises(LedgerError, match="--extend"):
            dpsyn.measure(people(1), schema("people"), epsilon=1, ledger=ledger, public=public, public_because=BECAUSE)


def test_numbers_whose_cells_are_found_on_the_way_are_compared_cell_by_cell() -> None:
    """One-way rounds divide cells again and again; public rows are counted in those of each round."""
    numbers = dpsyn.Schema.from_yaml(
        "dpsyn_schema: 1\nexpected_size: 3000\nattributes:\n"
        "  pay: {kind: integer, low: 0, high: 99999, missing: true}\n"
        "  born: {kind: datetime, start: 1930-01-01, end: 2020-12-31, missing: true}\n"
        "  group: {kind: categorical, codes: 3}\n"
    )

    def table(seed: int) -> pa.Table:
        rng = np.random.default_rng(seed)
        group = rng.integers(0, 3, 3_000)
        pay = np.minimum(rng.lognormal(9 + group / 3, 0.6), 99_999).astype(int)
        born = np.datetime64("1930-01-01") + (rng.beta(3, 2, 3_000) * 33_000).astype("timedelta64[D]")
        return pa.table(
            {
                "pay": pa.array(pay, mask=rng.random(3_000) < 0.3),
                "born": pa.array(born, mask=rng.random(3_000) < 0.4),
                "group": group,
            }
        )

    synopsis = release_with_seed(table(1), numbers, 1.0, public=table(2), public_because=BECAUSE)

    trust = describe_trust(synopsis.releases[0])
    assert trust is not None
    assert min(trust.one_way.values()) > 0.9
    rows = synopsis.generate(rows=3_000, seed=1, output_format="arrow")
    for name, share in (("pay", 0.3), ("born", 0.4)):
        assert rows[name].null_count / 3_000 == pytest.approx(share, abs=0.03)


# ── the parts ────────────────────────────────────────────────────────────────────────────────────────────────


def test_interactions_that_sampling_explains_are_removed() -> None:
    rng = np.random.default_rng(0)
    independent = rng.multinomial(500, np.full(16, 1 / 16)).reshape(4, 4).astype(float)
    dependent = 100.0 * np.eye(4)

    assert shrink_interaction(independent)[1] < 0.6
    assert shrink_interaction(dependent)[1] > 0.95


def test_counts_move_to_public_ones_by_their_precision() -> None:
    """With a known dispersion, the shrunk count is the mean of both, weighted by inverse variance."""
    counts, total = np.array([300, 200, 500]), 1_000.0
    marginal = Marginal(("a",), np.array([250, 260, 490]), 0, 40.0)
    expected = expect_shares(counts, 1_000.0)
    weights = np.zeros(len(DISPERSIONS) + 2)
    weights[2] = 1.0

    (shrunk,) = shrink_marginals([(marginal, expected)], weights, total)

    spread = expected.spread(total, DISPERSIONS[2])
    means = (marginal.counts / 40.0**2 + total * expected.shares / spread) / (1 / 40.0**2 + 1 / spread)
    np.testing.assert_allclose(shrunk.counts, means, atol=1e-5)
    assert shrunk.std < marginal.std


def test_rounds_share_what_the_public_table_says() -> None:
    """Two noisy marginals and one with their precision together end at the same estimate."""
    counts, total = np.array([300, 200, 500]), 1_000.0
    expected = expect_shares(counts, 1_000.0)
    weights = np.eye(len(DISPERSIONS) + 2)[3]
    twice = [(Marginal(("a",), np.array([250, 260, 490]), 0, 40.0), expected)] * 2
    once = [(Marginal(("a",), np.array([250, 260, 490]), 0, 40.0 / np.sqrt(2)), expected)]

    several, single = (shrink_marginals(evidence, weights, total) for evidence in (twice, once))

    np.testing.assert_allclose(several[0].counts, single[0].counts, atol=1e-4)


def test_only_what_noise_causes_is_stated_as_noise() -> None:
    """Repeated draws of the noise vary by the stated standard deviation, however much or little is kept of them."""
    counts, total = np.array([300, 200, 500]), 1_000.0
    expected, weights = expect_shares(counts, 1_000.0), np.eye(len(DISPERSIONS) + 2)[2]
    rng = np.random.default_rng(3)

    for std in (1.0, 40.0, 2_000.0):
        draws = [
            Marginal(("a",), np.rint(counts * 64 + rng.normal(0, std * 64, 3)).astype(np.int64), 6, std)
            for _ in range(300)
        ]
        shrunk = [shrink_marginals([(marginal, expected)], weights, total)[0] for marginal in draws]
        measured = np.std([each.counts for each in shrunk], axis=0).mean()
        assert measured == pytest.approx(shrunk[0].std, rel=0.15)  # false alarm: 1 in a million; parts differ by 10 %


def test_where_noise_hides_everything_a_release_has_the_shares_of_the_public_rows() -> None:
    public = people(2)
    synopsis = release(public, epsilon=0.01)

    for name, size in SIZES.items():
        shares = np.bincount(public[name].to_numpy(), minlength=size) / ROWS
        found = synopsis.model.histograms[name]
        assert np.abs(found / found.sum() - shares).sum() / 2 < 0.03


def test_public_pairs_are_kept_on_weak_evidence_and_dropped_on_strong(public_pairs: PublicPairs) -> None:
    """A test that can hardly tell does not outweigh that public tables are right as a rule."""
    prior, recoding, pairs = public_pairs
    (strongest, *_) = pairs

    def is_followed(better: float, std: float) -> bool:
        scored = {strongest.clique: (strongest.strength + better, strongest.strength)}
        return prior.trust(recoding, pairs, scored, std, float(ROWS)).pairs is not None

    assert is_followed(better=-0.5 * strongest.strength, std=2 * strongest.strength)
    assert not is_followed(better=-0.5 * strongest.strength, std=0.2 * strongest.strength)


PublicPairs = tuple[Prior, Recoding, list[PublicPair]]


@pytest.fixture
def public_pairs() -> PublicPairs:
    recoding = Recoding.fine(Codec(schema()))
    prior = Prior(open_public(people(2), schema(), BECAUSE), schema())
    margins = {
        name: np.bincount(people(2)[name].to_numpy(), minlength=size).astype(np.float64) for name, size in SIZES.items()
    }
    return prior, recoding, prior.find_pairs(recoding, list(combinations(SIZES, 2)), margins, float(ROWS))


def test_public_pairs_of_numbers_are_smoothed() -> None:
    """A table of 900 cells from 600 rows is mostly sampling; what numbers have in common shows in all of them."""
    rng = np.random.default_rng(2)

    def table(rows: int) -> pa.Table:
        first = rng.normal(size=rows)
        second = 0.8 * first + 0.6 * rng.normal(size=rows)
        return pa.table({n: np.clip(5 * x + 15, 0, 29).astype(int) for n, x in (("a", first), ("b", second))})

    numbers = dpsyn.Schema.from_yaml(
        "dpsyn_schema: 1\nexpected_size: 600\nattributes:\n"
        "  a: {kind: integer, low: 0, high: 29}\n  b: {kind: integer, low: 0, high: 29}\n"
    )
    synopsis = release_with_seed(table(600), numbers, 0.3, public=table(600), public_because=BECAUSE)

    rows = synopsis.generate(rows=5_000, seed=1, output_format="arrow").to_pandas()
    assert rows["a"].corr(rows["b"]) > 0.65  # 0.8 in both tables


def test_trust_follows_agreement() -> None:
    rng, total = np.random.default_rng(1), 10_000.0
    shares = rng.dirichlet(np.ones(10), 12)
    public = [np.rint(5_000 * each).astype(np.int64) for each in shares]

    def trust_in(private: NDArray[np.float64]) -> NDArray[np.float64]:
        noisy = [
            Marginal(("a",), np.rint(total * row + rng.normal(0, 50, 10)).astype(np.int64), 0, 50.0) for row in private
        ]
        pairs = zip(noisy, public, strict=True)
        return learn_trust([[(marginal, expect_shares(c, 5_000.0))] for marginal, c in pairs], total).relevance

    assert trust_in(shares).min() > 0.9
    assert trust_in(shares[:, ::-1]).max() < 0.1


def test_a_release_without_a_prior_stays_as_it_is() -> None:
    synopsis = release(None)

    assert shrink_one_ways(synopsis.releases[0])[0] is synopsis.releases[0]


def test_a_run_is_resumed_with_the_same_public_rows_only(tmp_path: Path) -> None:
    def measure(public: pa.Table, *, resume: bool) -> dpsyn.Synopsis:
        return dpsyn.measure(
            people(1),
            schema(),
            epsilon=1,
            public=public,
            public_because=BECAUSE,
            journal=tmp_path / "run.journal",
            resume=resume,
        )

    first = measure(people(2), resume=False)

    with pytest.raises(dpsyn.JournalError):
        measure(people(3), resume=True)
    again = measure(people(2), resume=True)
    assert (
        again.releases[0].rounds[0].marginals[0].raw.tolist() == first.releases[0].rounds[0].marginals[0].raw.tolist()
    )


def test_a_forecast_tells_what_public_rows_may_bring() -> None:
    expected = dpsyn.forecast(schema(), 0.2, rows=ROWS, public=people(2), releases=4)

    assert expected.public_rows == ROWS
    assert expected.budgets[0].without_public is not None
    assert expected.budgets[0].moderate.two_way < expected.budgets[0].without_public
    assert "1,500 public rows" in str(expected)
    assert dpsyn.forecast(schema(), 0.2, rows=ROWS).public_gain == ""
