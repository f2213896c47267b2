"""Does any damaged or malicious file end in something else than one of our errors?

    python -m bench.fuzz --cases 20000 --seed 1
    python -m bench.fuzz --kind synopsis --case 4711 --seed 1        # one case again, with its traceback

Takes a valid file of every kind that DPSyn reads, and other input that people type: conditions, queries, options.
Changes each at random, half of the time its bytes, half of the time its structure: the values of a JSON or YAML
document, the cells and types of a table, the arrays of a synopsis, the lines of a journal. Digests and hashes are then
corrected, so that what lies behind them is reached. Reads the result as the commands do, in this process, and counts
how it ends: refused by a UserError, accepted, or uncaught. An uncaught error, or a case of more than 20 seconds, is
printed with the command that repeats it, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import copy
import gzip
import hashlib
import io
import json
import random
import signal
import sqlite3
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.feather as pafeather
import pyarrow.ipc as paipc
import pyarrow.parquet as papq
import yaml

import dpsyn
from bench.measuring import provenance

MAX_SECONDS = 20
"""A case that takes longer is a failure: every reader is bounded."""

EXAMPLES = Path(__file__).parent.parent / "examples"

SCHEMA = """
dpsyn_schema: 1
dataset: people
expected_size: 60
privacy_unit: {id: person, max_rows: 3}
attributes:
  person: {kind: identifier}
  age: {kind: integer, low: 0, high: 99, bins: [0, 18, 65], spikes: [50], missing: [n/a]}
  height: {kind: real, low: 0.5, high: 2.5, decimals: 2}
  sex: {kind: categorical, values: [F, M], other: F}
  grade: {kind: ordinal, values: [low, mid, high], missing: true}
  works: {kind: boolean}
  adult: {kind: boolean}
  born: {kind: datetime, start: 1990-01-01, end: 2020-12-31, resolution: month}
derive:
  adult: {from: age, mapping: {0..17: false, 18..99: true, missing: false}}
"""

TOKENS = (
    *("", " ", "0", "-1", "1e999", "nan", "null", "true", "~", "9" * 400, "1" + "0" * 30, "0x1F", "1_000", "٣", "½"),
    *(
        "'",
        '"',
        "{",
        "}",
        "[",
        "]",
        ":",
        "- ",
        "&a",
        "*a",
        "!!python/object:os.system",
        "<<",
        "..",
        "|",
        "=",
        "%",
        "\\",
    ),
    *(
        "\n",
        "\r",
        "\r\n",
        "\t",
        "\0",
        "\ufeff",
        "\u202e",
        "\x1b[31m",
        "é",
        "漁",
        "\U0001f600",
        "x" * 5000,
        "2016-02-30",
    ),
    *("../../etc/passwd", "missing", "other", "age", "sex=F", "30..20", "<script>", "=cmd|' /C calc'!A0", "a.b", "@"),
)
"""Texts that readers stumble over."""

VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 2**31, 2**63, 2**70, -(2**63), 10**30, 0.0, -0.5, 1e308, 5e-324, 1.5),
    *(*TOKENS, [], {}, [[]], [None], {"": None}, {"a": {"b": []}}, [1, "a", None], "1/3", "1/0", "0.1", ["age", "age"]),
)
"""Values that a document should not have where another one was."""


# ── changes ──────────────────────────────────────────────────────────────────────────────────────────────────


def change_bytes(data: bytes, rng: random.Random) -> bytes:
    """Flip bits, cut, repeat, move, overwrite or insert, a few times."""
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        begin = rng.randrange(len(data) + 1)
        end = min(len(data), begin + rng.choice((1, 2, 4, 16, 64, 1024)))
        part = data[begin:end]
        replacement = rng.choice(
            (
                lambda part: bytes(byte ^ (1 << rng.randrange(8)) for byte in part[:1]) + part[1:],
                lambda part: b"",
                lambda part: part + part,
                lambda part: rng.randbytes(len(part)),
                lambda part: bytes(len(part)),
                lambda part: b"\xff" * len(part),
                lambda part: rng.choice(TOKENS).encode() + part,
                lambda part: part[::-1],
            )
        )(part)
        data = data[:begin] + replacement + data[end:]
        if rng.random() < 0.05:
            data = data[:begin]
    return data


def change_text(text: str, rng: random.Random) -> str:
    """Put a token into a text, cut it, or repeat some of it."""
    begin = rng.randrange(len(text) + 1)
    end = min(len(text), begin + rng.choice((0, 1, 3, 20)))
    return text[:begin] + rng.choice((*TOKENS, text[begin:end] * 2, "")) + text[end:]


def change_document(document: Any, rng: random.Random) -> Any:
    """Change values, keys and elements of a JSON or YAML document at random places."""
    root = [copy.deepcopy(document)]
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        places = list(_places(root))
        holder, key = rng.choice(places)
        other_holder, other_key = rng.choice(places)
        action = rng.randrange(8)
        if action <= 2:
            holder[key] = copy.deepcopy(rng.choice(VALUES))
        elif action == 3 and holder is not root:
            del holder[key]
        elif action == 4:
            holder[key] = copy.deepcopy(other_holder[other_key])
        elif action == 5 and isinstance(holder, dict):
            holder[rng.choice((*TOKENS, *map(str, holder)))] = holder.pop(key)
        elif action == 6 and isinstance(holder[key], list):
            holder[key] = holder[key] * rng.choice((0, 2, 3)) + [copy.deepcopy(rng.choice(VALUES))]
        elif isinstance(holder[key], str):
            holder[key] = change_text(holder[key], rng)
        elif isinstance(holder[key], int | float) and not isinstance(holder[key], bool):
            holder[key] = rng.choice((-1, 0.5, 2, 1e6)) * holder[key] + rng.choice((-1, 0, 1))
    return root[0]


def _places(node: Any) -> Iterator[tuple[Any, Any]]:
    keys: Sequence[Any] = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
    for key in keys:
        yield node, key
        yield from _places(node[key])


def change_json(data: bytes, rng: random.Random) -> bytes:
    """A JSON document with other values."""
    return json.dumps(change_document(json.loads(data), rng)).encode("utf-8", "surrogatepass")


def change_yaml(data: bytes, rng: random.Random) -> bytes:
    """A YAML document with other values, or other lines."""
    if rng.random() < 0.5:
        return yaml.safe_dump(change_document(yaml.safe_load(data), rng), allow_unicode=True).encode()
    lines = data.decode().splitlines(keepends=True)
    index = rng.randrange(len(lines))
    lines[index] = rng.choice((change_text(lines[index], rng), lines[index] * 2, "", f"  {lines[index]}"))
    return "".join(lines).encode("utf-8", "surrogatepass")


def change_synopsis(data: bytes, rng: random.Random) -> bytes:
    """A synopsis with another manifest or other arrays, whose digests are right."""
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        content = {name: file.read(name) for name in file.namelist()}
    manifest = json.loads(content["manifest.json"])
    arrays = [name for name in content if name != "manifest.json"]
    if rng.random() < 0.5:
        manifest = change_document(manifest, rng)
    for name in rng.sample(arrays, rng.choice((0, 1, 2))):
        content[name] = _change_array(content[name], rng)
    members = manifest.get("members") if isinstance(manifest, dict) else None
    if isinstance(members, dict) and rng.random() < 0.9:
        members |= {name: hashlib.sha256(content[name]).hexdigest() for name in members if name in content}
    content["manifest.json"] = json.dumps(manifest).encode("utf-8", "surrogatepass")
    if rng.random() < 0.1:
        content[rng.choice(("../evil.npy", "extra.npy", "a\0b"))] = b""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, part in content.items():
            file.writestr(name, part)
    return buffer.getvalue()


def _change_array(data: bytes, rng: random.Random) -> bytes:
    if rng.random() < 0.4:
        return change_bytes(data[:128], rng) + data[128:]  # its header
    array = np.load(io.BytesIO(data)).copy()
    if array.size and rng.random() < 0.8:
        extremes = (
            (0, -1, 1, 2**62, -(2**62)) if array.dtype.kind == "i" else (0.0, -1.0, np.nan, np.inf, 1e300, -1e300)
        )
        array.flat[rng.randrange(array.size)] = rng.choice(extremes)
    else:
        array = rng.choice((array[:0], array.ravel(), array.astype(">f4"), np.stack([array, array])))
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, version=(1, 0))
    return buffer.getvalue()


def change_ledger(data: bytes, rng: random.Random) -> bytes:
    """A SQLite file in which a cell of a table has another value."""
    with tempfile.NamedTemporaryFile(suffix=".db") as file:
        Path(file.name).write_bytes(data)
        database = sqlite3.connect(file.name)
        try:
            tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            table = rng.choice(tables)
            columns = [row[1] for row in database.execute(f'PRAGMA table_info("{table}")')]
            column = rng.choice(columns)
            rows = database.execute(f'SELECT rowid, "{column}" FROM "{table}"').fetchall()
            rowid, value = rng.choice(rows) if rows else (1, "")
            new = rng.choice((None, 0, -1, 1e300, b"\xff\xfe", b"", str(value)))
            if isinstance(value, str):
                new = rng.choice((new, change_text(value, rng).replace("\0", ""), _change_json_text(value, rng)))
            sql = rng.choice(
                (
                    f'UPDATE "{table}" SET "{column}" = ? WHERE rowid = {rowid}',
                    f'DELETE FROM "{table}" WHERE ? IS rowid',
                )
            )
            if isinstance(new, bytes) and rng.random() < 0.5:
                sql = sql.replace("?", "CAST(? AS TEXT)")  # text that is not UTF-8
            database.execute(sql, (new,))
            database.commit()
        except (sqlite3.Error, UnicodeError):
            pass  # a constraint of the table; the file is unchanged
        finally:
            database.close()
        return Path(file.name).read_bytes()


def _change_json_text(text: str, rng: random.Random) -> str:
    try:
        return json.dumps(change_document(json.loads(text), rng))
    except ValueError:
        return text[: rng.randrange(len(text) + 1)]


def change_journal(data: bytes, rng: random.Random) -> bytes:
    """A journal with other lines, whose hashes are right."""
    texts = [line.partition(b" ")[2] for line in data.splitlines()]
    index = rng.randrange(len(texts))
    action = rng.randrange(5)
    if action <= 2:
        texts[index] = change_json(texts[index], rng)
    elif action == 3:
        texts.insert(rng.randrange(len(texts) + 1), texts[index])
    else:
        del texts[index]
    lines, digest = [], b""
    for text in texts:
        digest = hashlib.sha256(digest + text).hexdigest().encode()
        lines.append(digest + b" " + text + b"\n")
    return b"".join(lines)


def change_csv(data: bytes, rng: random.Random) -> bytes:
    """A CSV file with other cells, lines and separators."""
    packed = data[:2] == b"\x1f\x8b"
    rows = [line.split(",") for line in (gzip.decompress(data) if packed else data).decode().splitlines()]
    for _ in range(rng.choice((1, 1, 2, 8))):
        row = rng.choice(rows)
        action = rng.randrange(5)
        if action <= 1 and row:
            row[rng.randrange(len(row))] = rng.choice(TOKENS)
        elif action == 2:
            row.append(rng.choice(TOKENS))
        elif action == 3 and row:
            row.pop()
        else:
            rows.insert(rng.randrange(len(rows) + 1), rng.choice(([], [""], list(row), ["x"] * 3000)))
    ends = rng.choice(("\n", "\n", "\r\n", "\r", "\n\n"))
    text = ends.join(rng.choice((",", ",", ",", ";", "\t")).join(row) for row in rows).encode("utf-8", "surrogatepass")
    return gzip.compress(text) if packed else text


def change_table(table: pa.Table, rng: random.Random) -> pa.Table:
    """A table with another column, type, name or cells."""
    index = rng.randrange(table.num_columns)
    name, rows = table.column_names[index], table.num_rows
    odd = (
        pa.array([rng.choice(VALUES[:17]) for _ in range(rows)], pa.float64(), from_pandas=True),
        pa.array([rng.choice(TOKENS) for _ in range(rows)]),
        pa.array([rng.randbytes(3) for _ in range(rows)], pa.binary()),
        pa.array([[1, None]] * rows),
        pa.array([{"a": 1}] * rows),
        pa.array([rng.choice((True, False, None)) for _ in range(rows)]),
        pa.nulls(rows),
        pa.array([2**63 + 5] * rows, pa.uint64()),
        pa.array([-(2**62)] * rows, pa.timestamp("ns")),
        pa.array([1] * rows, pa.duration("s")),
        pa.array([2**40] * rows, pa.time64("us")),
        pa.array(["12345678901234567890.12"] * rows).cast(pa.decimal128(38, 2)),
        pa.array([rng.choice(TOKENS) for _ in range(rows)]).dictionary_encode(),
        pa.array([1.5] * rows, pa.float32()).cast(pa.float16()),
    )
    return rng.choice(
        (
            lambda: table.set_column(index, name, rng.choice(odd)),
            lambda: table.append_column(rng.choice((*TOKENS, name)), rng.choice(odd)),
            lambda: table.drop_columns([name]),
            lambda: table.rename_columns(
                [*table.column_names[:index], rng.choice(TOKENS), *table.column_names[index + 1 :]]
            ),
            lambda: table.slice(0, rng.choice((0, 1))),
            lambda: pa.concat_tables([table] * 3),
            lambda: table.select([]),
        )
    )()


# ── kinds of input ───────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of input.

    Attributes:
        weight: its share of the cases, relative to the others.
        originals: valid files as (name, bytes).
        change: changes the structure of one.
        read: reads a file as the commands do.
        is_file: whether its bytes are changed too, half of the time; otherwise it stands for arguments.
    """

    weight: int
    originals: Sequence[tuple[str, bytes]]
    change: Callable[[bytes, random.Random], bytes]
    read: Callable[[Path], object]
    is_file: bool = True


def make_kinds(folder: Path) -> dict[str, Kind]:
    """Every kind of input, with valid files that a few releases write."""
    schema = dpsyn.Schema.from_yaml(SCHEMA)
    people = _people()
    ledger, journal = folder / "ledger.db", folder / "run.journal"
    release: dict[str, Any] = {"epsilon": 1.0, "recipe": "independent"}
    synopsis = dpsyn.measure(people, schema, ledger=dpsyn.Ledger.create(ledger), **release)
    pairs = dpsyn.measure(people, schema, 1.0)
    for name, saved in (("s.dpsyn", synopsis), ("t.dpsyn", pairs)):
        saved.save(folder / name)
    dpsyn.measure(people, schema, journal=journal, **release)
    interrupted = folder / "interrupted.journal"
    _interrupt(people, schema, interrupted, release)
    synopsis.write_release(folder / "release", synopsis.generate_arrow(20, seed=1))
    [certificate] = synopsis.certificates
    if certificate:
        (folder / "certificate-alone.json").write_text(json.dumps(certificate.to_data()), "utf-8")
    package = json.loads((folder / "release" / "datapackage.json").read_bytes())
    baskets = "".join(f"{i % 5 + 1} {i % 3 + 1} {i % 7 + 1}\n" for i in range(40)).encode()

    def files(*names: str) -> list[tuple[str, bytes]]:
        return [(Path(name).name, (folder / name).read_bytes()) for name in names]

    def resume(path: Path) -> None:
        dpsyn.measure(people, schema, journal=path, resume=True, **release)

    def read_table(path: Path) -> None:
        dpsyn.check_table(schema, str(path))
        dpsyn.draft_schema(str(path))
        dpsyn.estimate_resources(str(path), schema)
        dpsyn.measure(str(path), schema, 1.0, recipe="independent", engine="stream" if len(path.name) % 2 else "memory")

    def read_ledger(path: Path) -> None:
        checked = dpsyn.Ledger(path)
        checked.verify([dpsyn.read_ledger_checkpoint(folder / "s.dpsyn")])
        for account in checked.datasets():
            account.epsilon(1e-9)

    def read_certificate(path: Path) -> None:
        dpsyn.Ledger(ledger).verify([dpsyn.read_ledger_checkpoint(path)])
        document = json.loads(path.read_bytes())
        if isinstance(document, dict) and "releases" not in document:
            dpsyn.Certificate.from_data(document).text()

    def ask(path: Path) -> None:
        texts = path.read_text("utf-8", "surrogateescape").split(" & ")
        where = dpsyn.parse_conditions(texts, schema.names)
        pairs.count(**where)
        pairs.generate(5, where=where, seed=1)

    def query(path: Path) -> None:
        document = json.loads(path.read_bytes())
        if isinstance(document, dict) and isinstance(document.get("names"), list):
            pairs.marginal(
                *document["names"],
                where=document.get("where"),
                cells=document.get("cells", False),
            ).interval(document.get("confidence", 0.9))

    def configure(path: Path) -> None:
        document = json.loads(path.read_bytes())
        if isinstance(document, dict):
            dpsyn.find_recipe(document.get("recipe", "dpsyn"), document.get("options"))
            dpsyn.find_synthesis(document.get("synthesis", "gum"), document.get("synthesis options"))

    def read_synopsis(path: Path) -> None:
        loaded = dpsyn.Synopsis.load(path)
        loaded.generate(5, seed=1)
        loaded.marginal("sex")

    def read_schema(path: Path) -> None:
        loaded = dpsyn.Schema.load(path)
        if dpsyn.Schema.from_yaml(loaded.to_yaml()) != loaded:
            raise AssertionError("a schema that was read is another one after it was written")

    def read_plan(path: Path) -> None:
        colorado = dpsyn.Schema.load(EXAMPLES / "fire" / "schema.yaml")
        dpsyn.Plan.load(path, colorado).predict(colorado, 1.0, rows=1000)

    def table_files(write: Callable[[pa.Table, Any], object], *names: str) -> list[tuple[str, bytes]]:
        originals = []
        for name in names:
            write(people, folder / name)
            originals.append((name, (folder / name).read_bytes()))
        return originals

    def rewritten(read: Callable[[Any], pa.Table], write: Callable[[pa.Table, Any], object]) -> Any:
        def change(data: bytes, rng: random.Random) -> bytes:
            buffer = io.BytesIO()
            try:
                write(change_table(read(io.BytesIO(data)), rng), buffer)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                return change_bytes(data, rng)  # a type that this format does not have
            return buffer.getvalue()

        return change

    csv = io.BytesIO()
    pacsv.write_csv(people, csv, pacsv.WriteOptions(quoting_style="none"))
    conditions = (b"sex=F", b"age=30..39", b"sex=F|M & grade=missing", b"works=true & born=1990-01..1999-12", b"age=50")
    return {
        "synopsis": Kind(4, files("s.dpsyn", "t.dpsyn"), change_synopsis, read_synopsis),
        "ledger": Kind(2, files("ledger.db"), change_ledger, read_ledger),
        "journal": Kind(2, files("run.journal", "interrupted.journal"), change_journal, resume),
        "certificate": Kind(
            2, files("release/certificate.json", "certificate-alone.json"), change_json, read_certificate
        ),
        "schema": Kind(
            4,
            [("schema.yaml", SCHEMA.encode()), ("fire.yaml", (EXAMPLES / "fire" / "schema-text.yaml").read_bytes())],
            change_yaml,
            read_schema,
        ),
        "plan": Kind(2, [("plan.yaml", (EXAMPLES / "fire" / "plan.yaml").read_bytes())], change_yaml, read_plan),
        "metadata": Kind(
            2,
            [
                ("domain.json", b'{"age": 100, "sex": 2, "job": 5}'),
                ("sdv.json", json.dumps(_sdv_metadata()).encode()),
                ("datapackage.json", json.dumps(package).encode()),
            ],
            change_json,
            dpsyn.import_schema,
        ),
        "csv": Kind(
            3,
            [
                ("t.csv", csv.getvalue()),
                ("t.tsv", csv.getvalue().replace(b",", b"\t")),
                ("t.csv.gz", gzip.compress(csv.getvalue())),
            ],
            change_csv,
            read_table,
        ),
        "parquet": Kind(
            2, table_files(papq.write_table, "t.parquet"), rewritten(papq.read_table, papq.write_table), read_table
        ),
        "arrow": Kind(
            2,
            [*table_files(_write_ipc, "t.arrow"), *table_files(pafeather.write_feather, "t.feather")],
            rewritten(lambda source: paipc.open_file(source).read_all(), _write_ipc),
            read_table,
        ),
        "baskets": Kind(
            1,
            [("b.dat", baskets), ("b.dat.gz", gzip.compress(baskets))],
            change_bytes,
            lambda path: dpsyn.frequent_itemsets(str(path), "1..7", 1.0, top=3),
        ),
        "items": Kind(
            1,
            [("items.txt", b"a\nb\nbread and butter\n")],
            lambda data, rng: change_text(data.decode(), rng).encode("utf-8", "surrogatepass"),
            lambda path: dpsyn.frequent_itemsets([["a", "b"]] * 9, path, 1.0, top=3),
        ),
        "conditions": Kind(
            3,
            [("where.txt", text) for text in conditions],
            lambda data, rng: change_text(data.decode(), rng).encode("utf-8", "surrogatepass"),
            ask,
        ),
        "queries": Kind(
            2,
            [("query.json", json.dumps({"names": ["age", "sex"], "where": {"grade": ["low", "mid"]}}).encode())],
            change_json,
            query,
            is_file=False,
        ),
        "options": Kind(2, [("options.json", json.dumps(_OPTIONS).encode())], change_json, configure, is_file=False),
    }


_OPTIONS = {
    "recipe": "privsyn",
    "options": {"rare_rows": "100", "synthesis": "gum", "synthesis.alpha": "0.2", "budget_shares": "1,1,8"},
    "synthesis": "gum",
    "synthesis options": {"rounds": "10", "decay": "exponential", "decay.rate": "0.1"},
}


def _people() -> pa.Table:
    rng = np.random.default_rng(1)
    days = rng.integers(7_400, 18_000, 60)
    return pa.table(
        {
            "person": [f"p{index // 2}" for index in range(60)],
            "age": rng.integers(0, 100, 60),
            "height": rng.uniform(0.5, 2.5, 60).round(2),
            "sex": rng.choice(["F", "M"], 60),
            "grade": rng.choice(["low", "mid", "high"], 60),
            "works": rng.choice(["true", "false"], 60),
            "born": pa.array(days.astype("int32")).cast(pa.date32()),
        }
    )


def _sdv_metadata() -> dict[str, Any]:
    return {
        "METADATA_SPEC_VERSION": "SINGLE_TABLE_V1",
        "primary_key": "id",
        "columns": {
            "id": {"sdtype": "id"},
            "age": {"sdtype": "numerical", "computer_representation": "Int64"},
            "sex": {"sdtype": "categorical"},
            "born": {"sdtype": "datetime", "datetime_format": "%Y-%m-%d"},
        },
    }


def _write_ipc(table: pa.Table, target: Any) -> None:
    with paipc.new_file(target, table.schema) as writer:
        writer.write_table(table)


def _interrupt(people: pa.Table, schema: dpsyn.Schema, journal: Path, release: dict[str, Any]) -> None:
    """Leave the journal of a run that measured everything and was interrupted before its model was fitted."""

    def stop(phase: str, done: float) -> None:
        if "fit" in phase or "model" in phase:
            raise KeyboardInterrupt

    with suppress(KeyboardInterrupt):
        dpsyn.measure(people, schema, journal=journal, progress=stop, **release)


# ── cases ────────────────────────────────────────────────────────────────────────────────────────────────────


def run_case(kind: Kind, rng: random.Random, folder: Path) -> BaseException | None:
    """Read a changed file: the error that refuses it, or None; anything but a UserError is raised."""
    name, data = rng.choice(kind.originals)
    data = (change_bytes if kind.is_file and rng.random() < 0.5 else kind.change)(data, rng)
    path = folder / name
    path.write_bytes(data)
    try:
        with _limit_time(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kind.read(path)
    except dpsyn.UserError as error:
        return error
    finally:
        path.unlink(missing_ok=True)
    return None


@contextmanager
def _limit_time() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TimeoutError(f"more than {MAX_SECONDS} seconds")

    if not hasattr(signal, "SIGALRM"):  # Windows
        yield
        return
    previous = signal.signal(signal.SIGALRM, stop)
    signal.alarm(MAX_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


def fuzz(cases: int, seed: int, only: str | None = None) -> dict[str, Counter[str]]:
    """Run cases of every kind, or of one; prints every uncaught error, and returns how cases ended, by kind."""
    results: dict[str, Counter[str]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder, scratch = Path(name), Path(name) / "scratch"
        scratch.mkdir()
        kinds = {key: kind for key, kind in make_kinds(folder).items() if only in (None, key)}
        for key, kind in kinds.items():
            _require_accepted(key, kind, scratch)
        weight = sum(kind.weight for kind in kinds.values())
        for key, kind in kinds.items():
            ends: Counter[str] = Counter()
            begin = time.perf_counter()
            for case in range(-(-cases * kind.weight // weight)):  # rounded up
                ends["cases"] += 1
                try:
                    error = run_case(kind, random.Random(f"{seed} {key} {case}"), scratch)
                    ends["accepted" if error is None else "refused"] += 1
                except Exception as error:
                    ends["uncaught"] += 1
                    _print_uncaught(key, case, seed, error)
            ends["milliseconds"] = round(1000 * (time.perf_counter() - begin) / ends["cases"])
            results[key] = ends
    return results


def _require_accepted(key: str, kind: Kind, folder: Path) -> None:
    """Check that unchanged files are accepted, so that changes are what is refused."""
    for name, data in kind.originals:
        (folder / name).write_bytes(data)
        try:
            kind.read(folder / name)
        except dpsyn.UserError as error:
            raise SystemExit(f"{key}: {name} is refused as it is: {error}") from None


def _print_uncaught(key: str, case: int, seed: int, error: Exception) -> None:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(frame.filename).name}:{frame.lineno}"
    print(f"uncaught {type(error).__name__} at {where}: python -m bench.fuzz --kind {key} --case {case} --seed {seed}")


def repeat(key: str, case: int, seed: int) -> None:
    """Run one case again; an uncaught error ends in its traceback."""
    with tempfile.TemporaryDirectory() as name:
        kind = make_kinds(Path(name))[key]
        (Path(name) / "scratch").mkdir()
        error = run_case(kind, random.Random(f"{seed} {key} {case}"), Path(name) / "scratch")
    print("accepted" if error is None else f"refused: {error}")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind")
    parser.add_argument("--case", type=int, help="repeat one case of a kind")
    given = parser.parse_args(arguments)
    if given.case is not None:
        repeat(given.kind, given.case, given.seed)
        return 0
    print(provenance(given.seed))
    results = fuzz(given.cases, given.seed, given.kind)
    columns = ("cases", "refused", "accepted", "uncaught", "milliseconds")
    print("\n| kind | " + " | ".join(columns) + " |\n|---|" + "---|" * len(columns))
    total = sum(results.values(), Counter())
    total["milliseconds"] = 0
    for key, ends in (*results.items(), ("together", total)):
        print(f"| {key} | " + " | ".join(f"{ends[column]:,}" for column in columns) + " |")
    return 1 if total["uncaught"] else 0


if __name__ == "__main__":
    sys.exit(main())
