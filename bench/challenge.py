"""Who preserves most? Every table of a folder through DPSyn and the systems that install from the package index.

    python -m bench.challenge run [--data ../shared/data] [--judges ../shared/bench] [--work build/challenge]
        [--tables nltcs insurance] [--systems dpsyn "opendp mst"] [--epsilon 1] [--releases 1] [--minutes 30]
    python -m bench.challenge report [--work build/challenge] [--plot FILE.png]

A table is a folder with ``data.csv.gz`` (or ``train.csv.gz``) and what is public about it: ``domain.json``, the number
of values of each coded column, judged by ``evaluate.py``; or ``columns.json``, real types, judged by ``mixed.py``.
Systems are other people's programs, each in a virtual environment of its own with the newest version that the index
has; the programs that call them are in ``bench/challengers``. They get codes: numbers of real types in 32 public ranges
of equal width, from which their rows are drawn back uniformly. δ = 1e-9, one row added or removed; systems that account
in zCDP get the ρ of the tight conversion. Each run is a process with a time limit; failures and time-outs are results,
too. Results are lines of JSON in the work folder, and what is there is not run again, so that a long run can be
interrupted. ``report`` prints one table and draws one picture.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
import traceback
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pandas as pd

import dpsyn
from bench import mixed, utility
from bench.measuring import commit, load_judge
from dpsyn.accounting.conversion import epsilon_for

DELTA = 1e-9
SEED = 20
RANGES = 32
"""Ranges of a number for systems that take codes only."""
CHALLENGERS = Path(__file__).with_name("challengers")

Line = dict[str, Any]


@dataclass(frozen=True, slots=True)
class System:
    """Another system: what to install, and which program calls which of its methods."""

    requirement: str
    program: str
    method: str


SYSTEMS = {
    "dpsyn": None,
    "dpsyn target": None,
    "dpsyn independent": None,
    "dpmm mst": System("dpmm", "run_dpmm.py", "mst"),
    "dpmm aim": System("dpmm", "run_dpmm.py", "aim"),
    "opendp mst": System("opendp[mbi] pandas", "run_opendp.py", "mst"),
    "opendp aim": System("opendp[mbi] pandas", "run_opendp.py", "aim"),
    "smartnoise mst": System("smartnoise-synth", "run_smartnoise.py", "mst"),
    "smartnoise aim": System("smartnoise-synth", "run_smartnoise.py", "aim"),
}
"""By name; after dpsyn a recipe, or the word that the column to predict is declared. mbi itself, whose inference the
last four use, is a library without mechanisms of its own."""


class Coded:
    """A table of integer codes, as it is on disk."""

    def __init__(self, folder: Path, judges: Path) -> None:
        self.table, self.judge = utility.Table.load(folder), judges / "evaluate.py"
        names = [attribute.name for attribute in self.table.schema]
        self.codes = pd.DataFrame(self.table.codes, columns=names)
        self.sizes = dict(zip(names, self.table.sizes, strict=True))
        target: tuple[str | None, Sequence[str]] = utility.TARGETS.get(self.table.name, (None, ()))
        self.target, self.dropped = target

    def score(self, rows: pd.DataFrame) -> Line:
        """The figures of ``evaluate.py``."""
        codes, synthetic = self.table.codes, rows[list(self.sizes)].to_numpy().astype(np.int64)
        names, sizes = list(self.sizes), list(self.sizes.values())
        return dict(load_judge(self.judge).score(codes, synthetic, names, sizes, self.target, self.dropped))

    def release(self, epsilon: float, recipe: dpsyn.Recipe) -> pd.DataFrame:
        """Rows of DPSyn."""
        synopsis = dpsyn.measure(self.codes, self.table.schema, epsilon=epsilon, delta=DELTA, recipe=recipe)
        return pd.DataFrame(synopsis.generate(len(self.codes), output_format="pandas"))

    def decode(self, codes: pd.DataFrame) -> pd.DataFrame:
        """Rows from codes: the same."""
        return codes


class Typed:
    """A table of real types; other systems get its numbers in ranges."""

    def __init__(self, folder: Path, judges: Path) -> None:
        self.columns = json.loads((folder / "columns.json").read_text())
        path = next(path for path in (folder / "data.csv.gz", folder / "train.csv.gz") if path.exists())
        self.real, self.judge = mixed.read_table(path, self.columns), load_judge(judges / "mixed.py")
        self.schema = mixed.build_schema(self.columns)
        self.target = next((name for name in mixed.TARGETS if name in self.columns), None)
        values = {name: c["values"] for name, c in self.columns.items() if c["kind"] == "categorical"}
        self.sizes = {name: len(values[name]) if name in values else RANGES for name in self.columns}
        encoded = {name: self._encode(name, values.get(name)) for name in self.columns}
        self.codes = pd.DataFrame(encoded)

    def _encode(self, name: str, values: Sequence[str] | None) -> Any:
        if values is not None:
            return self.real[name].map({value: code for code, value in enumerate(values)}).fillna(0).astype(np.int64)
        low, high = self.columns[name]["low"], self.columns[name]["high"]
        shares = (self.real[name].to_numpy().astype(float) - low) / (high - low)
        return np.clip((shares * RANGES).astype(np.int64), 0, RANGES - 1)

    def score(self, rows: pd.DataFrame) -> Line:
        """The figures of ``mixed.py``."""
        figures: Line = dict(self.judge.Judge(self.real, self.columns, mixed.SEED).scores(rows))
        if self.target is not None:
            figures["score"] = self.judge.learned(rows, self.real, self.columns, self.target, mixed.SEED)
        return figures

    def release(self, epsilon: float, recipe: dpsyn.Recipe) -> pd.DataFrame:
        """Rows of DPSyn, from the real types."""
        synopsis = dpsyn.measure(self.real, self.schema, epsilon=epsilon, delta=DELTA, recipe=recipe)
        rows = pd.DataFrame(synopsis.generate(len(self.real), output_format="pandas"))
        for name, column in self.columns.items():
            if column["kind"] == "categorical":
                rows[name] = rows[name].astype(object)
        return rows

    def decode(self, codes: pd.DataFrame) -> pd.DataFrame:
        """Rows from codes: values of categories, and numbers uniformly in their range."""
        random, rows = np.random.default_rng(SEED), {}
        for name, column in self.columns.items():
            code = codes[name].to_numpy().astype(np.int64)
            if column["kind"] == "categorical":
                rows[name] = np.array(column["values"], dtype=object)[code]
                continue
            width = (column["high"] - column["low"]) / RANGES
            numbers = column["low"] + width * (code + random.random(len(code)))
            rows[name] = np.round(numbers, 0 if column["kind"] == "integer" else column.get("decimals") or 3)
        return pd.DataFrame(rows)


def find_tables(data: Path) -> dict[str, Path]:
    """The folders that hold a table and what is public about it, by name."""
    described = sorted([*data.rglob("domain.json"), *data.rglob("columns.json")])
    folders = [path.parent for path in described]
    return {f.name: f for f in folders if (f / "data.csv.gz").exists() or (f / "train.csv.gz").exists()}


def find_rho(epsilon: float) -> float:
    """The largest ρ that keeps (ε, δ) by the tight conversion of zCDP."""
    low, high = 0.0, epsilon
    for _ in range(20):  # a short binary fraction: OpenDP adds up parts of it in floating point
        middle = (low + high) / 2
        low, high = (middle, high) if epsilon_for(middle, DELTA, "zcdp") <= epsilon else (low, middle)
    return low


def install(system: System, work: Path, limit: float) -> Path:
    """The interpreter of a virtual environment with the system; a failure is a RuntimeError."""
    folder = work / "venvs" / system.requirement.partition("[")[0]
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        words = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        words += system.requirement.split()
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=limit)
        if done.returncode:
            raise RuntimeError(f"does not install: {last_line(done.stderr)}")
        (folder / "ready").touch()
    return python


def run_system(system: System, table: Coded | Typed, epsilon: float, work: Path, limit: float) -> pd.DataFrame:
    """Rows of another system, in a process of its own."""
    python = install(system, work, limit)
    source, domain, output = (work / name for name in ("table.csv", "domain.json", "synthetic.csv"))
    output.unlink(missing_ok=True)
    table.codes.to_csv(source, index=False)
    domain.write_text(json.dumps(table.sizes), "utf-8")
    program = str((CHALLENGERS / system.program).resolve())
    words = [source, domain, epsilon, DELTA, find_rho(epsilon), system.method, output]
    done = subprocess.run(
        [str(python.absolute()), program, *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        timeout=limit,
        env={**os.environ, "PYTHONPATH": "", "OMP_NUM_THREADS": "1"},
    )
    if done.returncode or not output.exists():
        raise RuntimeError(f"failed: {last_line(done.stderr)}")
    codes = pd.read_csv(output)[list(table.sizes)]
    codes = codes.fillna(codes.mode().iloc[0])  # OpenDP counts what is in no key, too, and noise makes rows of it
    return table.decode(codes.clip(lower=0, upper=pd.Series(table.sizes) - 1, axis=1))


def last_line(text: str) -> str:
    """What a program said last: mostly its error."""
    lines = [line.strip() for line in text.splitlines() if len(line.strip()) > 5]
    return lines[-1][:200].replace("|", "/") if lines else "no message"


def find_own(name: str, target: str | None) -> dpsyn.Recipe:
    """A recipe of DPSyn by the name of the system; without a column to predict, none can be declared."""
    if name == "dpsyn target":
        if target is None:
            raise RuntimeError("no column to predict")
        return dpsyn.DPSyn(target=target)
    return dpsyn.Independent() if name == "dpsyn independent" else dpsyn.DPSyn()


def run_once(name: str, table: Coded | Typed, epsilon: float, work: Path, limit: float) -> Line:
    """One release by one system: figures, seconds and memory, or why there are none."""
    system = SYSTEMS[name]
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    own = time.process_time()
    try:
        if system is None:
            rows = table.release(epsilon, find_own(name, table.target))
        else:
            rows = run_system(system, table, epsilon, work, limit)
    except subprocess.TimeoutExpired:
        return {"status": f"no result in {limit / 60:g} minutes"}
    except RuntimeError as error:
        return {"status": str(error)}
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime + time.process_time() - own
    figures = {figure: round(float(value), 5) for figure, value in table.score(rows).items() if value is not None}
    return {"status": "done", "cpu": round(spent, 1), "wall": round(time.perf_counter() - start, 1), **figures}


def run(chosen: argparse.Namespace) -> None:
    """Run what is not in the results yet, table by table."""
    chosen.work.mkdir(parents=True, exist_ok=True)
    results, tables = chosen.work / "results.jsonl", find_tables(chosen.data)
    unknown = [*set(chosen.tables or ()) - set(tables), *set(chosen.systems or ()) - set(SYSTEMS)]
    if unknown or not tables:
        raise SystemExit(f"unknown: {unknown}; tables are {list(tables)}, systems {list(SYSTEMS)}")
    finished = {(line["table"], line["epsilon"], line["system"], line["release"]) for line in read(results)}
    for name in chosen.tables or tables:
        folder = tables[name]
        pending = [key for key in list_runs(name, chosen) if key not in finished]
        if not pending:
            continue
        table = (Coded if (folder / "domain.json").exists() else Typed)(folder, chosen.judges)
        for _, epsilon, system, release in pending:
            try:
                line = run_once(system, table, epsilon, chosen.work, 60 * chosen.minutes)
            except Exception as error:
                traceback.print_exc()
                line = {"status": f"failed: {type(error).__name__}"}
            key = {"table": name, "epsilon": epsilon, "system": system, "release": release, "commit": commit()}
            with results.open("a", encoding="utf-8") as file:
                file.write(json.dumps({**key, **line}) + "\n")
            print(f"{name}, ε = {epsilon:g}, {system}: {line['status']}, two-way {line.get('tvd2', '–')}", flush=True)


def list_runs(name: str, chosen: argparse.Namespace) -> Iterator[tuple[str, float, str, int]]:
    """What to run of a table: every ε, system and release."""
    for epsilon in chosen.epsilon:
        for system in chosen.systems or SYSTEMS:
            for release in range(1, chosen.releases + 1):
                yield name, epsilon, system, release


def read(results: Path) -> list[Line]:
    """The lines of the results; none if there is no file yet."""
    return [json.loads(line) for line in results.read_text("utf-8").splitlines()] if results.exists() else []


def report(chosen: argparse.Namespace) -> None:
    """One table, the best two-way distance of each cell in bold, and one picture."""
    groups: dict[tuple[str, float], dict[str, list[Line]]] = defaultdict(lambda: defaultdict(list))
    for line in read(chosen.work / "results.jsonl"):
        groups[line["table"], line["epsilon"]][line["system"]].append(line)
    figures = ("tvd1", "tvd2", "tvd3", "nist_density", "nist_range", "auc", "spearman", "score", "cpu")
    print("| table | ε | system | releases | " + " | ".join(figures) + " |")
    print("|---" * (4 + len(figures)) + "|")
    reasons: set[str] = set()
    for (table, epsilon), systems in sorted(groups.items()):
        done = {name: [line for line in lines if line["status"] == "done"] for name, lines in systems.items()}
        best = min((mean(line["tvd2"] for line in lines) for lines in done.values() if lines), default=None)
        for name, lines in systems.items():
            if not done[name]:
                status, _, reason = lines[-1]["status"].partition(": ")
                print(f"| {table} | {epsilon:g} | {name} | 0 | {status} |" + " |" * (len(figures) - 1))
                reasons |= {f"- {name}, {table}: {reason}"} if reason else set()
                continue
            cells = [format_mean([line[f] for line in done[name] if f in line]) for f in figures]
            if mean(line["tvd2"] for line in done[name]) == best:
                cells[1] = f"**{cells[1]}**"
            print(f"| {table} | {epsilon:g} | {name} | {len(done[name])} | " + " | ".join(cells) + " |")
    print("\n" + "\n".join(sorted(reasons)))
    if chosen.plot:
        draw(groups, chosen.plot)


def format_mean(values: list[float]) -> str:
    """A mean with as many digits as tell something; empty without values."""
    if not values:
        return ""
    return f"{mean(values):,.0f}".replace(",", " ") if mean(values) >= 1000 else f"{mean(values):.4g}"


def draw(groups: dict[tuple[str, float], dict[str, list[Line]]], path: Path) -> None:
    """Two-way distances of every system, one row of points for each table and ε."""
    from matplotlib import pyplot

    keys = sorted(groups, reverse=True)
    figure, axes = pyplot.subplots(figsize=(8, 1.2 + 0.45 * len(keys)))
    for name, marker in zip(SYSTEMS, "ohs^vDP*X", strict=True):
        points = []
        for place, key in enumerate(keys):
            distances = [line["tvd2"] for line in groups[key].get(name, []) if line["status"] == "done"]
            points += [(mean(distances), place)] if distances else []
        if points:
            axes.plot(*zip(*points, strict=True), marker, label=name, color="black" if name == "dpsyn" else None)
    axes.set_yticks(range(len(keys)), [f"{table}, ε = {epsilon:g}" for table, epsilon in keys])
    axes.set_xscale("log")
    axes.set_xlabel("mean total variation distance of all two-way marginals (less is better)")
    axes.grid(axis="y", alpha=0.3)
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    figure.savefig(path, dpi=110, bbox_inches="tight")
    pyplot.close(figure)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run systems, or print the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run", help="run what is not in the results yet")
    runs.add_argument("--data", type=Path, default=Path("../shared/data"))
    runs.add_argument("--judges", type=Path, default=Path("../shared/bench"), help="evaluate.py and mixed.py")
    runs.add_argument("--tables", nargs="+", metavar="NAME")
    runs.add_argument("--systems", nargs="+", metavar="NAME")
    runs.add_argument("--epsilon", nargs="+", type=float, default=[1.0])
    runs.add_argument("--releases", type=int, default=1)
    runs.add_argument("--minutes", type=float, default=30.0, help="the longest time of one run, and of an installation")
    reports = commands.add_parser("report", help="one table, one picture")
    reports.add_argument("--plot", type=Path)
    for command in (runs, reports):
        command.add_argument("--work", type=Path, default=Path("build/challenge"))
    chosen = parser.parse_args(arguments)
    {"run": run, "report": report}[chosen.command](chosen)


if __name__ == "__main__":
    main()
