"""The terms of a contest on generated data, and its folder.

``public`` is for the contestants: the terms, the schema and a development table. ``hidden`` stays with the organizer
until the end: the seed and the evaluation table, a second sample of the same distribution. ``submissions`` collects
synthetic versions of the evaluation table.

The process that makes the tables is public (``dpsyn.simulation``); the seed selects one distribution. The terms contain
a commitment: one hash of the seed, of all terms and of the schema. So once the seed is published, anyone can make both
tables again and see that neither they nor the terms were chosen later.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import secrets
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path

import msgspec
import pyarrow as pa

from dpsyn.accounting import MAX_UNASKED_EPSILON
from dpsyn.atomic_files import atomic_folder, write_text
from dpsyn.encoding import write_table
from dpsyn.errors import SourceError, UserError, quote_argument
from dpsyn.evaluation import IncomeColumns
from dpsyn.evaluation.nist_contest import PAPER, find_preset
from dpsyn.evaluation.reader import open_tables
from dpsyn.options import check_seed
from dpsyn.schema import Schema
from dpsyn.schema.files import read_bytes
from dpsyn.simulation import Simulation, simulate
from dpsyn.suggestions import suggest_names

CONTEST_FORMAT = 1
"""The version of the file of terms."""

DEFAULT_EPSILONS = (0.3, 1.0, 8.0)
"""Low, middle and high, as in the contest's third match."""

MIN_ROWS = 100
"""The smallest number of rows of a table; scores of smaller ones are chance, and δ = 1/rows² is no guarantee."""

SEED_BITS = 128
"""A seed that nobody can guess by trying."""

TABLE_SUFFIXES = ("csv", "parquet")

_TERMS, _SCHEMA, _SEED = "public/contest.json", "public/schema.yaml", "hidden/seed.json"
_TABLES = {"development": "public/development", "evaluation": "hidden/evaluation"}
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
        commitment: the SHA-256 of the hidden seed, all other terms and the schema.
        format: the version of the file of terms.
    """

    rows: int
    development_rows: int
    epsilons: tuple[float, ...]
    delta: float
    preset: str
    income_columns: IncomeColumns | None
    commitment: str
    format: int = CONTEST_FORMAT

    def __post_init__(self) -> None:
        find_preset(self.preset)
        if min(self.rows, self.development_rows) < MIN_ROWS:
            raise UserError(
                f"tables of {self.rows:,} and {self.development_rows:,} rows are too small for a contest; give at "
                f"least {MIN_ROWS} rows each"
            )
        if not self.epsilons or not all(0 < epsilon < math.inf for epsilon in self.epsilons):
            raise UserError(f"the ε are {quote_argument(list(self.epsilons))}; give positive numbers")
        if list(self.epsilons) != sorted(set(self.epsilons)):
            raise UserError(f"the ε are {quote_argument(list(self.epsilons))}; give each once, the smallest first")
        for epsilon in self.epsilons:
            if float(self.format_epsilon(epsilon)) != epsilon:
                raise UserError(
                    f"ε = {epsilon!r} has more than 6 significant digits, too many for the name of a file; give "
                    f"{self.format_epsilon(epsilon)}"
                )
        if not 0 <= self.delta < 1:
            raise UserError(f"δ is {quote_argument(self.delta)}; give a number from 0 to below 1")

    @staticmethod
    def format_epsilon(epsilon: float) -> str:
        """An ε as the names of submissions hold it, such as ``0.3``, ``8`` and ``1e-05``."""
        return f"{epsilon:g}"

    def file_names(self) -> tuple[str, ...]:
        """The names of submissions, such as ``NAME-epsilon-0.3.csv``, by ascending ε."""
        return tuple(f"NAME-epsilon-{self.format_epsilon(epsilon)}.csv" for epsilon in self.epsilons)

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
        except UserError as error:
            raise UserError(f"{path}: {error}") from None
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
        known = [attribute.name for attribute in schema.modeled_attributes]
        if name not in known:
            raise UserError(
                f"there is no column {quote_argument(name)} to compare in the schema; {suggest_names(name, known)}"
            )
    seed = secrets.randbits(SEED_BITS) if seed is None else seed
    check_seed(seed)
    terms = Contest(
        rows=rows,
        development_rows=rows if development_rows is None else development_rows,
        epsilons=_sort_epsilons(epsilons),
        delta=max(rows, 1) ** -2 if delta is None else delta,
        preset=preset,
        income_columns=income_columns,
        commitment="",
    )
    if large := [Contest.format_epsilon(epsilon) for epsilon in terms.epsilons if epsilon > MAX_UNASKED_EPSILON]:
        warnings.warn(
            f"ε = {', '.join(large)} is above {MAX_UNASKED_EPSILON}, and such a guarantee protects nobody; dpsyn "
            "releases a table at it with --allow-large-epsilon only",
            UserWarning,
            stacklevel=2,
        )
    schema = msgspec.structs.replace(schema, expected_size=rows)
    contest = dataclasses.replace(terms, commitment=_commit(terms, schema, seed))
    development, evaluation = (simulate_table(contest, schema, seed, name) for name in ("development", "evaluation"))
    with atomic_folder(Path(folder)) as made:
        for part in ("public", SUBMISSIONS_FOLDER):
            (made / part).mkdir()
        (made / "hidden").mkdir(0o700)
        write_text(made / _TERMS, msgspec.json.format(msgspec.json.encode(contest), indent=2).decode() + "\n")
        schema.save(made / _SCHEMA)
        write_table(development.batches(), made / f"{_TABLES['development']}.{suffix}", synthetic=True)
        hidden = made / f"{_TABLES['evaluation']}.{suffix}"
        write_table(evaluation.batches(), hidden, synthetic=True)
        hidden.chmod(0o600)
        write_text(made / _SEED, f'{{"seed": {seed}}}\n', private=True)
    return contest


def _sort_epsilons(epsilons: Sequence[float]) -> tuple[float, ...]:
    if not all(isinstance(epsilon, Real) for epsilon in epsilons):
        raise UserError(f"the ε are {quote_argument(epsilons)}; give positive numbers")
    return tuple(sorted(map(float, epsilons)))


def load_contest(folder: str | Path) -> tuple[Contest, Schema, int]:
    """The terms of a contest, its schema and its hidden seed; refused if any of them was changed."""
    contest, schema, seed = Contest.load(folder), Schema.load(Path(folder) / _SCHEMA), _load_seed(folder)
    if _commit(contest, schema, seed) != contest.commitment:
        raise UserError(
            f"{_TERMS}, {_SCHEMA} or {_SEED} in {folder} was changed after the contest was made: the SHA-256 of seed, "
            f"terms and schema is not the commitment in {_TERMS}. Restore the three files, or make another contest"
        )
    return contest, schema, seed


def _load_seed(folder: str | Path) -> int:
    path = Path(folder) / _SEED
    if not path.exists():
        raise UserError(f"{folder} has no {_SEED}; submissions are scored where the hidden seed is")
    try:
        return msgspec.json.decode(read_bytes(path), type=dict[str, int])["seed"]
    except (msgspec.DecodeError, KeyError, RecursionError):
        raise UserError(f"{path} does not hold the seed of a contest") from None


def _commit(contest: Contest, schema: Schema, seed: int) -> str:
    """One hash of the seed, all terms and the schema; comments and spaces in their files do not count."""
    terms = msgspec.to_builtins(dataclasses.replace(contest, commitment=""))
    text = json.dumps({"seed": seed, "terms": terms, "schema": schema.to_yaml()}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def simulate_table(contest: Contest, schema: Schema, seed: int, name: str) -> Simulation:
    """The ``development`` or the ``evaluation`` table: samples of one process, each with a seed of its own."""
    rows = contest.development_rows if name == "development" else contest.rows
    return simulate(schema, rows, derive_seed(seed, "process"), row_seed=derive_seed(seed, name))


def find_changed_tables(folder: str | Path, tables: Mapping[str, pa.Table], schema: Schema) -> list[str]:
    """The files of tables whose rows are not those that the seed makes; a table without a file is not missed."""
    files = [(f"{_TABLES[name]}.{suffix}", table) for name, table in tables.items() for suffix in TABLE_SUFFIXES]
    return [
        file
        for file, table in files
        if (Path(folder) / file).exists() and not _holds_table(Path(folder) / file, table, schema)
    ]


def _holds_table(path: Path, table: pa.Table, schema: Schema) -> bool:
    """Whether a file holds the rows of a table; both are read from files, so that types are inferred alike."""
    with tempfile.TemporaryDirectory() as scratch:
        again = Path(scratch) / path.name
        write_table(table, again, synthetic=True)
        try:
            sources = open_tables(path, again, schema)
            first, second = (pa.Table.from_batches(source.batches(source.schema.names)) for source in sources)
        except (SourceError, ValueError):  # it is no table, or it has no rows
            return False
        return bool(first.equals(second))


def derive_seed(seed: int, purpose: str) -> int:
    """The seed for one purpose, from which neither the hidden seed nor that of another purpose can be computed."""
    return int.from_bytes(hashlib.sha256(f"{purpose} {seed}".encode()).digest()[: SEED_BITS // 8])
