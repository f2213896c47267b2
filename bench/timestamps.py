"""What survives of timestamps: the hour of the day, the weekday, the month, and what depends on the hour.

A table of one column of minute timestamps over four years, with a daily and a weekly pattern, and others: a category
that follows the hour, one that follows the weekday, independent categories and numbers. The distances of a release
from the table are printed, as means of some releases with standard errors.

    python -m bench.timestamps --rows 10000 --columns 4 --releases 3
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time

import numpy as np
import pandas as pd

import dpsyn
from dpsyn.schema import AnyAttribute

START, DAYS = np.datetime64("2021-01-01"), 1461
DAILY = np.array([2, 1, 1, 1, 1, 2, 4, 8, 12, 11, 9, 8, 7, 8, 8, 8, 9, 12, 10, 8, 6, 5, 4, 3], float)
WEEKLY = np.array([17, 18, 17, 17, 19, 8, 4], float)
KINDS = ("night", "morning", "day", "evening")


def make_table(rows: int, columns: int, seed: int) -> pd.DataFrame:
    """A table whose first column is ``admitted``."""
    rng = np.random.default_rng(seed)
    dates = START + np.arange(DAYS)
    weekday = (dates.astype(np.int64) + 3) % 7
    trend = 1 + 0.4 * np.sin(np.arange(DAYS) / 365.25 * 2 * np.pi) + np.arange(DAYS) / DAYS
    weights = WEEKLY[weekday] * trend
    day = rng.choice(DAYS, rows, p=weights / weights.sum())
    hour = rng.choice(24, rows, p=DAILY / DAILY.sum())
    weekend = weekday[day] >= 5
    hour = np.where(weekend & (rng.random(rows) < 0.5), rng.integers(10, 22, rows), hour)
    minute = np.where(rng.random(rows) < 0.4, rng.integers(0, 4, rows) * 15, rng.integers(0, 60, rows))
    admitted = (dates[day].astype("datetime64[m]") + hour * 60 + minute).astype("datetime64[s]")
    quarter = np.where(rng.random(rows) < 0.85, hour // 6, rng.integers(0, 4, rows))
    table: dict[str, object] = {"admitted": admitted, "kind": np.array(KINDS)[quarter]}
    table["staff"] = np.where(weekend ^ (rng.random(rows) < 0.1), "weekend", "week")
    for number in range(3, columns):
        if number % 2:
            table[f"x{number}"] = rng.integers(0, 5, rows).astype(str)
        else:
            table[f"x{number}"] = np.rint(rng.gamma(3, 20, rows) + 10 * quarter).astype(int).clip(0, 999)
    return pd.DataFrame(table)[list(table)[:columns]]


def make_schema(table: pd.DataFrame) -> dpsyn.Schema:
    """The public schema of such a table."""
    attributes: list[AnyAttribute] = []
    for name in table:
        if name == "admitted":
            attributes.append(dpsyn.Datetime(name=name, start="2021-01-01", end="2024-12-31", resolution="minute"))
        elif name == "kind":
            attributes.append(dpsyn.Categorical(name=name, values=KINDS))
        elif name == "staff":
            attributes.append(dpsyn.Categorical(name=name, values=("week", "weekend")))
        elif table[name].dtype == object:
            attributes.append(dpsyn.Categorical(name=str(name), values=tuple("01234")))
        else:
            attributes.append(dpsyn.Integer(name=str(name), low=0, high=999))
    return dpsyn.Schema(attributes=tuple(attributes))


def views(table: pd.DataFrame) -> dict[str, pd.Series]:
    """What is compared: frequencies of parts of the timestamp, alone and with another column."""
    when = pd.to_datetime(table["admitted"])
    parts = {"hour": when.dt.hour, "weekday": when.dt.day_of_week, "month": when.dt.strftime("%Y-%m")}
    pairs = {
        "weekday x hour": [parts["weekday"], parts["hour"]],
        "hour x kind": [parts["hour"], table["kind"]] if "kind" in table else [],
        "weekday x staff": [parts["weekday"], table["staff"]] if "staff" in table else [],
        "month x kind": [parts["month"], table["kind"]] if "kind" in table else [],
    }
    keys = {name: [part] for name, part in parts.items()} | {name: found for name, found in pairs.items() if found}
    return {name: table.groupby(found).size() / len(table) for name, found in keys.items()}


def distances(real: pd.DataFrame, synthetic: pd.DataFrame) -> dict[str, float]:
    """Total variation distances of the views."""
    other = views(synthetic)
    return {name: float(view.sub(other[name], fill_value=0).abs().sum() / 2) for name, view in views(real).items()}


def main() -> None:
    """Release and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--columns", type=int, default=4)
    parser.add_argument("--releases", type=int, default=3)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--recipe", default="dpsyn")
    arguments = parser.parse_args()
    os.environ.setdefault("DPSYN_STATE_DIR", tempfile.mkdtemp())
    found = []
    began = time.process_time()
    for seed in range(arguments.releases):
        table = make_table(arguments.rows, arguments.columns, seed)
        synopsis = dpsyn.measure(
            table, make_schema(table), epsilon=arguments.epsilon, delta=1e-9, recipe=arguments.recipe
        )
        found.append(distances(table, synopsis.generate(seed=seed, output_format="pandas")))
    seconds = (time.process_time() - began) / arguments.releases
    frame = pd.DataFrame(found)
    errors = frame.std() / np.sqrt(len(frame))
    shown = "  ".join(f"{name} {mean:.3f}±{errors[name]:.3f}" for name, mean in frame.mean().items())
    print(f"{arguments.rows} rows, {arguments.columns} columns: {shown}  ({seconds:.0f} s)")


if __name__ == "__main__":
    main()
