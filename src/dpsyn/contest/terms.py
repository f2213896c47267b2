"""The terms of a contest on generated data, and its folder.

``public`` is for the contestants: the terms, the schema and a development table. ``hidden`` stays with the organizer
until the end: the seed and the evaluation table, a second sample of the same distribution. ``submissions`` collects
synthetic versions of the evaluation table.

The process that makes the tables is public (``dpsyn.simulation``); the seed selects one distribution. The terms contain
a hash of the seed. So once the seed is published, anyone can make both tables again and see that neither was chosen
later.
"""

from __future__ import annotations

import hashlib
import math
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path

import msgspec

from dpsyn.atomic_files import atomic_folder, write_text
from dpsyn.encoding import write_table
from dpsyn.errors import UserError, quote_argument
from dpsyn.evaluation import IncomeColumns
from dpsyn.evaluation.nist_contest import PAPER, find_preset
from dpsyn.schema import Schema
from dpsyn.schema.files import read_bytes
from dpsyn.simulation import Simulation, simulate

CONTEST_FORMAT = 1
"""The version of the file of terms."""

DEFAULT_EPSILONS = (0.3, 1.0, 8.0)
"""Low, middle and high, as in the contest's third match."""

SEED_BITS = 128
"""A seed that nobody can guess by trying."""

TABLE_SUFFIXES = ("csv", "parquet")

_TERMS, _SCHEMA, _SEED = "public/contest.json", "public/schema.yaml", "hidden/seed.json"
SUBMISSIONS_FOLDER = "submissions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """The public terms of a contest.

    Attributes:
        rows: the number of rows of the evaluation table.
        development_rows: the number of rows of the development table.
        epsilons: the ε at which a contestant submits a table, ascending.
        delta: the largest δ.
        preset: the metrics: ``paper`` or ``match3``; see ``dpsyn.evaluate``.
        income_columns: the columns of the Gini index and gender gap; None leaves that metric out.
        seed_hash: the SHA-256 of the hidden seed.
        format: the version of the file of terms.
    """

    rows: int
    development_rows: int
    epsilons: tuple[float, ...]
    delta: float
    preset: str
    income_columns: IncomeColumns | None
    seed_hash: str
    format: int = CONTEST_FORMAT

    def __post_init__(self) -> None:
        find_preset(self.preset)
        if min(self.rows, self.development_rows) < 1:
            raise UserError(f"tables of {self.rows:,} and {self.development_rows:,} rows: give at least 1 row each")
        if not self.epsilons or not all(0 < epsilon < math.inf for epsilon in self.epsilons):
            raise UserError(f"the ε are {quote_argument(list(self.epsilons))}; give positive numbers")
        if list(self.epsilons) != sorted(set(self.epsilons)):
            raise UserError(f"the ε are {quote_argument(list(self.epsilons))}; give each once, the smallest first")
        if not 0 <= self.delta < 1:
            raise UserError(f"δ is {quote_argument(self.delta)}; give a number from 0 to below 1")

    @classmethod
    def load(cls, folder: str | Path) -> Contest:
        """Read the terms of a contest from its folder."""
        path = Path(folder) / _TERMS
        if not path.exists():
            raise UserError(f"{folder} is not the folder of a contest: there is no {_TERMS} in it")
        try:
            contest = msgspec.json.decode(read_bytes(path), type=cls)
        except (msgspec.DecodeError, RecursionError):
            raise UserError(f"{path} does not hold the terms of a contest") from None
        if contest.format != CONTEST_FORMAT:
            raise UserError(f"{path} has format {contest.format}; this version of dpsyn reads {CONTEST_FORMAT}")
        return contest


def make_contest(
    schema: Schema | str | Path,
    folder: str | Path,
    *,
    rows: int | None = None,
    development_rows: int | None = None,
    epsilons: Sequence[float] = DEFAULT_EPSILONS,
    delta: float | None = None,
    preset: str = PAPER.name,
    income_columns: IncomeColumns | None = None,
    suffix: str = "csv",
    seed: int | None = None,
) -> Contest:
    """Make the folder of a contest: terms, schema and development table to publish; seed and evaluation table to hide.

    Both tables are samples of one distribution, which the hidden seed selects among those that the public process of
    ``dpsyn.simulation`` can make. No real row is involved.

    Args:
        schema: what is public about the tables, or the path of its file.
        folder: where to write; it must not exist, or be empty.
        rows: the number of rows of the evaluation table; by default the expected size in the schema.
        development_rows: that of the development table; by default the same.
        epsilons: the ε at which a contestant submits a table.
        delta: the largest δ; by default 1/rows², as in the NIST contest.
        preset: the metrics: ``paper`` or ``match3``.
        income_columns: the columns of the Gini index and gender gap; without them that metric is left out.
        suffix: the format of the tables: ``csv`` or ``parquet``.
        seed: for examples and tests. By default it is random and too long to be guessed.

    Returns:
        The terms, as ``Contest.load(folder)`` reads them again.
    """
    schema = Schema.coerce(schema)
    rows = schema.expected_size if rows is None else rows
    if rows is None:
        raise UserError("the schema has no expected_size; give the number of rows")
    if suffix not in TABLE_SUFFIXES:
        raise UserError(f"the format is {quote_argument(suffix)}; give {' or '.join(TABLE_SUFFIXES)}")
    for name in income_columns.names if income_columns else ():
        if name not in {attribute.name for attribute in schema.modeled_attributes}:
            raise UserError(f"there is no column {quote_argument(name)} to compare in the schema; name another one")
    seed = secrets.randbits(SEED_BITS) if seed is None else seed
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise UserError(f"the seed is {quote_argument(seed)}; give a whole number from 0")
    contest = Contest(
        rows=rows,
        development_rows=rows if development_rows is None else development_rows,
        epsilons=_sort_epsilons(epsilons),
        delta=max(rows, 1) ** -2 if delta is None else delta,
        preset=preset,
        income_columns=income_columns,
        seed_hash=_hash_seed(seed),
    )
    schema = msgspec.structs.replace(schema, expected_size=rows)
    development, evaluation = (simulate_table(contest, schema, seed, name) for name in ("development", "evaluation"))
    with atomic_folder(Path(folder)) as made:
        for part in ("public", "hidden", SUBMISSIONS_FOLDER):
            (made / part).mkdir()
        write_text(made / _TERMS, msgspec.json.format(msgspec.json.encode(contest), indent=2).decode() + "\n")
        schema.save(made / _SCHEMA)
        write_table(development.batches(), made / "public" / f"development.{suffix}", synthetic=True)
        write_table(evaluation.batches(), made / "hidden" / f"evaluation.{suffix}", synthetic=True)
        write_text(made / _SEED, f'{{"seed": {seed}}}\n', private=True)
    return contest


def _sort_epsilons(epsilons: Sequence[float]) -> tuple[float, ...]:
    if not all(isinstance(epsilon, Real) for epsilon in epsilons):
        raise UserError(f"the ε are {quote_argument(epsilons)}; give positive numbers")
    return tuple(sorted(map(float, epsilons)))


def load_schema(folder: str | Path) -> Schema:
    """The schema of a contest's tables."""
    return Schema.load(Path(folder) / _SCHEMA)


def load_seed(folder: str | Path, contest: Contest) -> int:
    """The hidden seed of a contest; refused if the terms do not contain its hash."""
    path = Path(folder) / _SEED
    if not path.exists():
        raise UserError(f"{folder} has no {_SEED}; submissions are scored where the hidden seed is")
    try:
        seed = msgspec.json.decode(read_bytes(path), type=dict[str, int])["seed"]
    except (msgspec.DecodeError, KeyError, RecursionError):
        raise UserError(f"{path} does not hold the seed of a contest") from None
    if _hash_seed(seed) != contest.seed_hash:
        raise UserError(f"{path} holds another seed than the one whose hash is in {_TERMS}; restore both files")
    return seed


def simulate_table(contest: Contest, schema: Schema, seed: int, name: str) -> Simulation:
    """The ``development`` or the ``evaluation`` table: samples of one process, each with a seed of its own."""
    rows = contest.development_rows if name == "development" else contest.rows
    return simulate(schema, rows, derive_seed(seed, "process"), row_seed=derive_seed(seed, name))


def derive_seed(seed: int, purpose: str) -> int:
    """The seed for one purpose, from which neither the hidden seed nor that of another purpose can be computed."""
    return int.from_bytes(hashlib.sha256(f"{purpose} {seed}".encode()).digest()[: SEED_BITS // 8])


def _hash_seed(seed: int) -> str:
    return hashlib.sha256(f"{seed}".encode()).hexdigest()
