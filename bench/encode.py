"""How much does encoding add to reading? And does a large file stream in bounded memory?

    python -m bench.encode

Reads a CSV file of 1 000 000 rows and 20 columns of mixed kinds in two ways, alternately: with ``pyarrow.csv.read_csv``
alone, and with DPSyn to codes. Then streams a Parquet file of 10 000 000 rows in a separate process and prints its peak
memory. The goals: at most 3 times the time of reading alone; less than 1 000 MB.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as papq

from bench.measuring import own_peak_megabytes, peak_megabytes, provenance, ratio
from dpsyn.encoding import Codec
from dpsyn.schema import AnyAttribute, Boolean, Categorical, Datetime, Integer, Real, Schema
from dpsyn.sources import encode_batches, open_source

SEED = 20
LISTS = (2, 5, 9, 16, 42, 100, 700, 2_000)
RANGES = (100, 1_000, 100_000, 10_000_000)


def schema() -> Schema:
    """Nine lists, one of them with a spelling of missing, five integers, three reals, two dates, a boolean."""
    attributes: list[AnyAttribute] = [Categorical(name=f"list{size}", values=_labels(size)) for size in LISTS]
    attributes += [Integer(name=f"whole{high}", low=0, high=high) for high in RANGES]
    attributes += [Real(name=f"real{index}", low=0, high=20_000, decimals=2) for index in range(3)]
    attributes += [
        Integer(name="gaps", low=0, high=5_000, missing=True),
        Categorical(name="marks", values=_labels(12), missing="?"),
        Datetime(name="day", start="2016-01-01", end="2016-12-31"),
        Datetime(name="second", start="2016-01-01", end="2016-12-31", resolution="second"),
        Boolean(name="flag"),
    ]
    return Schema(attributes=tuple(attributes))


def _labels(size: int) -> tuple[str, ...]:
    return tuple(f"value-{index:0{len(str(size))}}" for index in range(size))


def table(rows: int, rng: np.random.Generator) -> pa.Table:
    """Rows for the schema; a tenth of the entries of two columns are missing."""
    columns: dict[str, pa.Array] = {
        f"list{size}": pa.array(_labels(size)).take(pa.array(rng.integers(0, size, rows))) for size in LISTS
    }
    columns |= {f"whole{high}": pa.array(rng.integers(0, high, rows)) for high in RANGES}
    columns |= {f"real{index}": pa.array(np.round(rng.gamma(2, 1000, rows), 2)) for index in range(3)}
    marks = pa.array([*_labels(12), "?"])
    columns["gaps"] = pa.array(rng.integers(0, 5_000, rows), mask=rng.random(rows) < 0.1)
    columns["marks"] = marks.take(pa.array(np.where(rng.random(rows) < 0.1, 12, rng.integers(0, 12, rows))))
    columns["day"] = pa.array(np.datetime64("2016-01-01") + rng.integers(0, 366, rows))
    columns["second"] = pa.array(np.datetime64("2016-01-01T00:00:00") + rng.integers(0, 366 * 86_400, rows))
    columns["flag"] = pa.array(rng.random(rows) < 0.5)
    return pa.table(columns)


def encode(path: Path) -> int:
    """Encode all rows of a file, batch by batch; return the number of rows."""
    return sum(len(codes) for codes in encode_batches(open_source(path), Codec(schema())))


def write_parquet(path: Path, rows: int, part: int = 500_000) -> None:
    """Write a Parquet file part by part, in bounded memory."""
    rng = np.random.default_rng(SEED)
    rows_of_part = table(part, rng)
    with papq.ParquetWriter(path, rows_of_part.schema) as writer:
        for _ in range(rows // part):
            writer.write_table(rows_of_part)
            rows_of_part = table(part, rng)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--stream-rows", type=int, default=10_000_000)
    parser.add_argument("--stream", type=Path, help="only stream this file and print the peak memory in MB")
    options = parser.parse_args()
    if options.stream:
        encode(options.stream)
        print(own_peak_megabytes())
        return
    print(provenance(SEED))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mixed.csv"
        pacsv.write_csv(table(options.rows, np.random.default_rng(SEED)), path)
        encoding, reading, times = ratio(lambda: encode(path), lambda: pacsv.read_csv(path))
        print(
            f"CSV, {options.rows:,} rows × 20 columns: read_csv alone {reading:.2f} s, read and encode {encoding:.2f} s"
        )
        print(f"ratio {times:.2f} (goal: at most 3)")
        large = Path(folder) / "large.parquet"
        write_parquet(large, options.stream_rows)
        peak = peak_megabytes("bench.encode", "--stream", str(large))
        print(
            f"Parquet, {options.stream_rows:,} rows streamed to codes: peak memory {peak:.0f} MB (goal: less than 1000)"
        )


if __name__ == "__main__":
    main()
