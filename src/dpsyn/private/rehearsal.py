"""Rehearsals: programs run again and again on neighboring tables that this module makes itself.

An audit compares what the gate answers for two neighboring tables, exact answers included, and needs thousands of runs.
A rehearsal opens both tables once and gives each run a session of its own: the same gate, engines, charges and noise as
in a release, without a ledger and a journal.

Privacy: a rehearsal returns exact answers, and charges no ledger. So it must never see anybody's rows: it takes the
name of a kind of table, a neighboring relation, a number of rows per unit and a seed, and makes the rows from these. No
table, frame, path or source can be given to it. What it releases is marked as not private all the same.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsyn.accounting import (
    Budget,
    Composition,
    Exponential,
    Gaussian,
    Laplace,
    MechanismCost,
    PartitionSelection,
    PrivacyUnit,
    Run,
)
from dpsyn.accounting.budget import Account
from dpsyn.engines import Engine, open_engine, open_table
from dpsyn.engines.baskets import BasketEngine
from dpsyn.errors import InternalError, UserError, quote_argument
from dpsyn.private.baskets import PrivateBaskets
from dpsyn.private.gate import ReleaseLimits, Session
from dpsyn.private.mechanisms import ChargedAnswer, SystemNoise
from dpsyn.private.session import privacy_unit_of
from dpsyn.private.table import PrivateTable, initial_recoding
from dpsyn.schema import (
    BasketSchema,
    Boolean,
    Categorical,
    Datetime,
    Identifier,
    Integer,
    NeighboringRelation,
    Open,
    Real,
    Schema,
    UnitDeclaration,
)
from dpsyn.sources import open_basket_source

TableKind = Literal[
    "canary", "numbers", "texts", "mixed", "mixed texts", "baskets", "small baskets", "open baskets", "mixed baskets"
]
"""The tables that can be made. All but the mixed ones are worst cases: one unit in a cell of its own."""

Program = Callable[[Any], Any]
"""What is run on a private table or on private baskets: a recipe, or a few questions to the gate."""

Side = Literal[0, 1]
"""Which of two neighboring tables: the one with the canary, or the one without it."""

COMMON_ROWS = 20
"""Rows of a worst case besides the canary."""

_SPENT = 1 - 1e-6
"""The part of a budget that counts as all of it: costs are a little below their shares, because σ is rounded."""


@dataclass(frozen=True, slots=True)
class RehearsedAnswer:
    """An answer of the gate on a table that was made: before noise, its cost, and as released."""

    exact: Any
    cost: Gaussian | Laplace | PartitionSelection | Exponential
    released: Any


@dataclass(frozen=True, slots=True)
class Transcript:
    """What happened in a run.

    Attributes:
        answers: the answers, in their order.
        outcome: what the program returned; None if it was stopped after the last answer.
        charged: what was charged, in its order; without the last answers if the program was stopped.
    """

    answers: tuple[RehearsedAnswer, ...]
    outcome: Any = None
    charged: tuple[MechanismCost, ...] = ()

    @property
    def total(self) -> Composition:
        """What the answers cost together."""
        return Composition.of([answer.cost for answer in self.answers])


class DivergedError(InternalError):
    """A program asked other questions on a neighbor although all released answers were the same: rows leaked."""


class Rehearsal:
    """Two neighboring tables, made and opened once, for any number of runs.

    Args:
        kind: which tables to make.
        neighbors: how they differ: by a unit more, or by another unit.
        max_rows: the rows of a person that are used; None if each row is a unit.
        seed: determines mixed tables.
    """

    def __init__(
        self,
        kind: str,
        *,
        neighbors: NeighboringRelation = "add-remove",
        max_rows: int | None = None,
        seed: int = 0,
    ) -> None:
        if type(kind) is not str or kind not in get_args(TableKind):
            raise UserError(
                f"{quote_argument(kind)} is no kind of table that a rehearsal makes; give one of "
                f"{', '.join(get_args(TableKind))}. A rehearsal takes no data of yours"
            )
        unit = None if max_rows is None else UnitDeclaration(id="person", max_rows=max_rows)
        tables = _make_tables(kind, neighbors, max_rows, np.random.default_rng(seed))
        key = secrets.token_bytes(16)  # the same rows of a person count in both tables
        self.schema: Schema | BasketSchema
        if kind.endswith("baskets"):
            self.schema = baskets = BasketSchema(
                items=None if kind == "open baskets" else _ITEMS, neighbors=neighbors, privacy_unit=unit
            )
            self._engines: list[Any] = [
                BasketEngine(open_basket_source(table, query=None, protect="base rows"), baskets, key)
                for table in tables
            ]
        else:
            self.schema = schema = Schema(attributes=_ATTRIBUTES[kind], neighbors=neighbors, privacy_unit=unit)
            self._engines = [_open_table_engine(table, schema, key) for table in tables]
        self._unit: PrivacyUnit = privacy_unit_of(self.schema)
        for engine in self._engines:
            engine.prepare()

    def run(self, program: Program, budget: Budget, side: Side, *, stop_when_spent: bool = False) -> Transcript:
        """Run a program with the noise of a release; it may be stopped when the whole budget is spent."""
        noise = _RecordedNoise(budget if stop_when_spent else None)
        return self._run(program, budget, side, noise)

    def replay(
        self, program: Program, budget: Budget, side: Side, earlier: Transcript, *, stop: bool = False
    ) -> Transcript:
        """Run a program with the released answers of an earlier run, which may have been on the other table.

        It may be stopped after the last answer. Other questions than in the earlier run are a ``DivergedError``.
        """
        noise = _ReplayedNoise(earlier, stop=stop)
        found = self._run(program, budget, side, noise)
        if len(found.answers) < len(earlier.answers):
            raise DivergedError(f"{len(found.answers)} questions were asked on a neighbor, not {len(earlier.answers)}")
        return found

    def _run(self, program: Program, budget: Budget, side: Side, noise: _RecordedNoise) -> Transcript:
        account = Account(budget=budget)
        run = Run(
            name="rehearsal",
            dataset="",
            privacy_unit=self._unit,
            account=account,
            ledger=None,
            uses_real_noise=False,
        )
        session = Session(run=run, journal=None, mechanisms=noise, limits=ReleaseLimits())
        engine, schema = self._engines[side], self.schema
        table: PrivateTable | PrivateBaskets
        if isinstance(schema, BasketSchema):
            table = PrivateBaskets(session, engine, schema)
        else:
            table = PrivateTable(session, engine, schema, initial_recoding(schema))
        try:
            outcome = program(table)
        except _Finished:
            outcome = None
        charged = tuple(measurement.cost for measurement in run.account.measurements)
        return Transcript(tuple(noise.answers), outcome, charged)


class _Finished(BaseException):  # no error: nothing that handles errors may catch it
    """Ends a run whose further answers nobody needs."""


class _RecordedNoise:
    """The noise of a release; every answer is remembered. With a budget, the run ends when all of it is spent."""

    def __init__(self, budget: Budget | None = None) -> None:
        self.answers: list[RehearsedAnswer] = []
        self._budget, self._noise = budget, SystemNoise()

    def add_noise(self, answers: Sequence[ChargedAnswer]) -> list[NDArray[np.int64]]:
        return self._record(
            [exact for exact, _ in answers], [cost for _, cost in answers], self._noise.add_noise(answers)
        )

    def select_partitions(self, counts: Mapping[str, int], cost: PartitionSelection) -> dict[str, int]:
        released: dict[str, int] = self._record([dict(counts)], [cost], [self._noise.select_partitions(counts, cost)])[
            0
        ]
        return released

    def choose_candidates(self, scores: NDArray[np.int64], cost: Exponential) -> NDArray[np.int64]:
        chosen: NDArray[np.int64] = self._record([scores], [cost], [self._noise.choose_candidates(scores, cost)])[0]
        return chosen

    def _record(self, exact: Sequence[Any], costs: Sequence[Any], released: list[Any]) -> list[Any]:
        self.answers += map(RehearsedAnswer, exact, costs, released)
        if self._budget is not None and _is_spent(self._budget, [answer.cost for answer in self.answers]):
            raise _Finished
        return released


class _ReplayedNoise(_RecordedNoise):
    """The released answers of an earlier run instead of noise."""

    def __init__(self, earlier: Transcript, *, stop: bool) -> None:
        super().__init__()
        self._earlier, self._stop = earlier.answers, stop

    def add_noise(self, answers: Sequence[ChargedAnswer]) -> list[NDArray[np.int64]]:
        return self._repeat([exact for exact, _ in answers], [cost for _, cost in answers])

    def select_partitions(self, counts: Mapping[str, int], cost: PartitionSelection) -> dict[str, int]:
        released: dict[str, int] = self._repeat([dict(counts)], [cost])[0]
        return released

    def choose_candidates(self, scores: NDArray[np.int64], cost: Exponential) -> NDArray[np.int64]:
        chosen: NDArray[np.int64] = self._repeat([scores], [cost])[0]
        return chosen

    def _repeat(self, exact: Sequence[Any], costs: Sequence[MechanismCost]) -> list[Any]:
        start = len(self.answers)
        earlier = self._earlier[start : start + len(costs)]
        if [answer.cost for answer in earlier] != list(costs) or [np.shape(answer.exact) for answer in earlier] != [
            np.shape(each) for each in exact
        ]:
            raise DivergedError(f"question {start + 1} on a neighbor is not the one that was asked before")
        released = [answer.released for answer in earlier]
        self.answers += map(RehearsedAnswer, exact, [answer.cost for answer in earlier], released)
        if self._stop and len(self.answers) == len(self._earlier):
            raise _Finished
        return released


def _is_spent(budget: Budget, costs: Sequence[MechanismCost]) -> bool:
    """Whether nothing of a budget is left that a further answer could cost."""
    total = Composition.of(costs)
    return (
        total.gaussian_rho >= budget.rho * _SPENT
        and sum(total.pure_epsilons) >= sum(budget.pure_epsilons) * _SPENT
        and total.delta >= budget.threshold_delta * _SPENT
    )


def _open_table_engine(table: pa.Table, schema: Schema, key: bytes) -> Engine:
    source = open_table(table, query=None, protect="base rows", kind="memory", syntax=schema.syntax)
    return open_engine(source, schema, kind="memory", key=key)


# ── the tables ───────────────────────────────────────────────────────────────────────────────────────────────

_PERSON = Identifier(name="person")
_MIXED = (
    _PERSON,
    Integer(name="age", low=-1000, high=10**4, missing=True),
    Real(name="weight", low=0, high=200, decimals=1, bins=4),
    Categorical(name="job", codes=6),
    Datetime(name="seen", start="2016-01-01", end="2016-12-31", bins=5, missing=True),
    Boolean(name="ok", missing=True),
)
_ATTRIBUTES: Mapping[str, tuple[Any, ...]] = {
    "canary": (_PERSON, *(Categorical(name=name, codes=2) for name in "abc")),
    "numbers": (_PERSON, Integer(name="age", low=-1000, high=10**4, bins=8)),
    "texts": (_PERSON, Open(name="city"), Categorical(name="a", codes=2)),
    "mixed": _MIXED,
    "mixed texts": (*_MIXED, Open(name="city")),
}
_ITEMS = tuple("abcdefgh")

_MIXED_ENTRIES: Mapping[str, tuple[str | None, ...]] = {
    "age": ("3", "-7", "x", "2500", "", "30"),
    "weight": ("70.5", "0", "abc", "1e9"),
    "job": ("0", "1", "5", "77"),
    "seen": ("2016-02-03", "2016-12-31T10:00:00", "", "bad", None),
    "ok": ("true", "no", ""),
    "city": ("Oslo", "Bergen", "Å", "", None),
}

_Row = Mapping[str, str | None]
_Rows = list[_Row]


def _make_tables(
    kind: str, neighbors: NeighboringRelation, max_rows: int | None, rng: np.random.Generator
) -> tuple[pa.Table, pa.Table]:
    """The table with the canary, and its neighbor."""
    makers: Mapping[str, Callable[..., tuple[_Rows, _Rows, _Rows]]] = {
        "canary": _make_canary,
        "numbers": _make_numbers,
        "texts": _make_texts,
        "mixed": _make_mixed,
        "mixed texts": _make_mixed,
        "baskets": _make_full_basket,
        "small baskets": _make_small_basket,
        "open baskets": _make_open_baskets,
        "mixed baskets": _make_mixed_baskets,
    }
    common, one, other = makers[kind](max_rows or 1, max_rows is not None, rng)
    first, second = [*common, *one], [*common, *(other if neighbors == "replace" else [])]
    names = ("person", "basket", "item") if kind.endswith("baskets") else [a.name for a in _ATTRIBUTES[kind]]
    with_canary, without = (
        pa.table({name: pa.array([row[name] for row in rows], pa.string()) for name in names})
        for rows in (first, second)
    )
    return with_canary, without


def _repeat_row(row: _Row, persons: Sequence[str]) -> _Rows:
    return [{"person": person, **row} for person in persons]


def _common_persons(count: int = COMMON_ROWS) -> list[str]:
    return [f"p{number}" for number in range(count)]


def _make_canary(k: int, _: bool, __: object) -> tuple[_Rows, _Rows, _Rows]:
    """Rows of zeros, and a canary of ones, or another row of zeros in its place: all of a unit is in one cell."""
    zeros, ones = dict.fromkeys("abc", "0"), dict.fromkeys("abc", "1")
    one, other = _repeat_row(ones, ["canary"] * k), _repeat_row(zeros, ["canary"] * k)
    return _repeat_row(zeros, _common_persons()), one, other


def _make_numbers(k: int, _: bool, __: object) -> tuple[_Rows, _Rows, _Rows]:
    small, large = {"age": "0"}, {"age": "5000"}
    one, other = _repeat_row(large, ["canary"] * k), _repeat_row(small, ["canary"] * k)
    return _repeat_row(small, _common_persons()), one, other


def _make_texts(k: int, _: bool, __: object) -> tuple[_Rows, _Rows, _Rows]:
    """Texts that occur once, twice, … , so that some are near a threshold; the canary adds to one of these."""
    common: _Rows = []
    for number in range(1, 25):
        persons = [f"p{number}-{copy}" for copy in range(number)]
        common += _repeat_row({"city": f"city {number:02d}", "a": "0"}, persons)
    one = _repeat_row({"city": "city 12", "a": "1"}, ["canary"] * k)
    return common, one, _repeat_row({"city": "city 24", "a": "0"}, ["canary"] * k)


def _make_mixed(k: int, by_person: bool, rng: np.random.Generator) -> tuple[_Rows, _Rows, _Rows]:
    """Rows of all kinds of entries, unreadable ones included; persons have up to six rows, and some rows no person."""

    def rows(count: int, persons: Sequence[str | None]) -> _Rows:
        drawn = {name: rng.integers(len(entries), size=count) for name, entries in _MIXED_ENTRIES.items()}
        return [
            {
                "person": persons[int(rng.integers(len(persons)))],
                **{name: entries[drawn[name][row]] for name, entries in _MIXED_ENTRIES.items()},
            }
            for row in range(count)
        ]

    most = 6 if by_person else 1
    common = rows(int(rng.integers(0, 25)), ["p1", "p2", "p3", "p4", None])
    one, other = (rows(int(rng.integers(1, most + 1)), ["canary"]) for _ in range(2))
    return common, one, other


def _basket(person: str, basket: str, items: str) -> _Rows:
    return [{"person": person, "basket": basket, "item": item} for item in items]


def _common_baskets() -> _Rows:
    contents = ["a", "ab"] * (COMMON_ROWS // 2)
    return [row for number, items in enumerate(contents) for row in _basket(f"p{number}", f"b{number}", items)]


def _make_full_basket(k: int, _: bool, __: object) -> tuple[_Rows, _Rows, _Rows]:
    """Baskets of one or two items, and one that holds all items; in its place one with an item that is not listed."""
    one, other = ([row for n in range(k) for row in _basket("canary", f"c{n}", items)] for items in ("abcdefgh", "z"))
    return _common_baskets(), one, other


def _make_small_basket(k: int, _: bool, __: object) -> tuple[_Rows, _Rows, _Rows]:
    """As ``_make_full_basket``, but the canary holds one item: then only one support changes."""
    one, other = ([row for n in range(k) for row in _basket("canary", f"c{n}", items)] for items in ("c", "b"))
    return _common_baskets(), one, other


def _make_open_baskets(k: int, _: bool, __: object) -> tuple[_Rows, _Rows, _Rows]:
    """As ``_make_texts``: items in one basket, in two, …; the canary holds two of them."""
    common: _Rows = []
    for number in range(1, 25):
        for copy in range(number):
            common.append({"person": f"p{number}-{copy}", "basket": f"b{number}-{copy}", "item": f"i{number:02d}"})
    one: _Rows = [{"person": "canary", "basket": f"c{n}", "item": item} for n in range(k) for item in ("i12", "i16")]
    return common, one, [{"person": "canary", "basket": f"c{n}", "item": "i24"} for n in range(k)]


def _make_mixed_baskets(k: int, by_person: bool, rng: np.random.Generator) -> tuple[_Rows, _Rows, _Rows]:
    """Random baskets, some with items that are not listed; persons have up to five."""

    def baskets(person: str) -> _Rows:
        rows: _Rows = []
        for number in range(int(rng.integers(1, 6)) if by_person else 1):
            chosen = "".join(rng.choice(list("abcdefghz"), size=rng.integers(1, 9)))
            rows += _basket(person, f"{person}-{number}", chosen)
        return rows

    common = [row for number in range(int(rng.integers(0, 12))) for row in baskets(f"p{number}")]
    return common, baskets("canary"), baskets("canary")
