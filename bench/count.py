"""How fast are marginals counted? Does a large file stream in bounded memory? Is the time linear?

    python -m bench.count [--data FOLDER]

Counts all 595 pairs of a table of 170 254 rows and 35 columns, and alternately with numpy, by one ``bincount`` for each
pair. The table is that in FOLDER (``data.csv.gz`` and ``domain.json``), or a simulated one of the same shape. Then
streams a Parquet file of 10 000 000 rows and 20 columns in a separate process, counts its 190 pairs, and prints its
peak memory. Finally prints the time for several numbers of rows and pairs. The goals: at least 4 times as fast as
numpy; less than 1 500 MB; time proportional to rows and pairs.
"""

from __future__ import annotations

import argparse
import json
import secrets
import tempfile
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench import encode
from bench.measuring import own_peak_megabytes, peak_megabytes, provenance, ratio, seconds
from dpsyn.encoding import Codec, Recoding
from dpsyn.encoding.counter import MarginalCounter
from dpsyn.engines import open_engine
from dpsyn.schema import Categorical, Schema
from dpsyn.sources import encode_batches, open_source

SEED = 35
ROWS = 170_254
# the sizes of the attributes of the American Community Survey extract of 35 columns
SIZES: tuple[int, ...] = (
    *(181, 7, 27, 7, 27, 2, 18, 6, 9, 6, 7, 9, 2, 2, 2, 2, 2, 12, 4, 15, 3, 4, 5, 4, 6, 4, 4),
    *(22, 22, 22, 22, 22, 27, 97, 97),
)


def survey(folder: Path) -> tuple[Any, Schema]:
    """The table and the schema of the survey, or simulated ones."""
    if (folder / "domain.json").is_file():
        sizes = json.loads((folder / "domain.json").read_text())
        return folder / "data.csv.gz", _schema(sizes)
    import pyarrow as pa

    codes = simulate_codes(ROWS, SIZES)
    schema = _schema({f"a{axis}": size for axis, size in enumerate(SIZES)})
    return pa.table({name: codes[:, axis] for axis, name in enumerate(schema.names)}), schema


def _schema(sizes: dict[str, int]) -> Schema:
    return Schema(attributes=tuple(Categorical(name=name, codes=size) for name, size in sizes.items()))


def simulate_codes(rows: int, sizes: tuple[int, ...]) -> NDArray[np.uint8]:
    """Codes with skewed frequencies, as in real tables: half of each column has one of its first few values."""
    rng = np.random.default_rng(SEED)
    codes = np.empty((rows, len(sizes)), np.uint8, order="F")
    for axis, size in enumerate(sizes):
        codes[:, axis] = rng.random(rows) ** 3 * size
    return codes


def compare_with_numpy(folder: Path) -> None:
    data, schema = survey(folder)
    codec = Codec(schema)
    recoding, size = Recoding.fine(codec), codec.fine_sizes
    x = np.asfortranarray(np.concatenate(list(encode_batches(open_source(data), codec))))
    pairs = list(combinations(range(len(size)), 2))
    engine = open_engine(open_source(data), schema, kind="memory", key=secrets.token_bytes(16))

    def count_with_dpsyn() -> object:
        return engine.count(pairs, recoding)

    def count_with_numpy() -> list[NDArray[np.int64]]:
        return [
            np.bincount(x[:, a].astype(np.int64) * size[b] + x[:, b], minlength=size[a] * size[b]) for a, b in pairs
        ]

    compiling = seconds(lambda: MarginalCounter([(0,)], size[:1]).add(x[:1]))
    reading = seconds(count_with_dpsyn)
    recoding_and_counting = seconds(lambda: engine.count(pairs, Recoding.coarse(codec)))
    count_with_dpsyn()
    dpsyn_time, numpy_time, times = ratio(count_with_dpsyn, count_with_numpy)
    tables = zip(engine.count(pairs, recoding), count_with_numpy(), strict=True)
    same = all(np.array_equal(a.ravel(), b) for a, b in tables)
    print(
        f"{len(pairs)} pairs of {len(x):,} rows × {len(size)} columns: "
        f"numpy {numpy_time:.3f} s, DPSyn {dpsyn_time:.4f} s"
    )
    print(f"{1 / times:.1f} times as fast (goal: at least 4); {'equal counts' if same else 'COUNTS DIFFER'}")
    print(
        f"once: load compiled kernels {compiling:.1f} s, read and encode {reading:.2f} s, "
        f"recode {recoding_and_counting - dpsyn_time:.2f} s"
    )


def stream(path: Path) -> None:
    """Count all pairs of a file of ``bench.encode``, and print the seconds and the peak memory."""
    schema = encode.schema()
    recoding = Recoding.coarse(Codec(schema))
    engine = open_engine(open_source(path), schema, kind="stream", key=secrets.token_bytes(16))
    pairs = list(combinations(range(len(recoding.columns)), 2))
    print(seconds(lambda: engine.count(pairs, recoding)), own_peak_megabytes())


def growth() -> None:
    """Print the time for growing numbers of rows and of pairs."""
    sizes = SIZES[:20]
    codes, pairs = simulate_codes(10_000_000, sizes), list(combinations(range(20), 2))
    print("      rows   pairs   seconds   ns for each row and pair")
    grid = [(rows, 190) for rows in (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)]
    for rows, count in [*grid, *((1_000_000, count) for count in (12, 24, 48, 95))]:
        part, cliques = np.asfortranarray(codes[:rows]), pairs[:: 190 // count][:count]
        time = min(seconds(partial(_count, cliques, sizes, part)) for _ in range(3))
        print(f"{rows:>10,}  {len(cliques):>6}  {time:>8.4f}  {time / rows / len(cliques) * 1e9:>8.3f}")


def _count(cliques: list[tuple[int, int]], sizes: tuple[int, ...], codes: NDArray[np.uint8]) -> None:
    counter = MarginalCounter(cliques, sizes)
    counter.add(codes)
    counter.tables()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data" / "acs35")
    parser.add_argument("--stream-rows", type=int, default=10_000_000)
    parser.add_argument("--stream", type=Path, help="only stream this file and print the seconds and the peak in MB")
    options = parser.parse_args()
    if options.stream:
        stream(options.stream)
        return
    print(provenance(SEED))
    compare_with_numpy(options.data)
    growth()
    with tempfile.TemporaryDirectory() as folder:
        large = Path(folder) / "large.parquet"
        encode.write_parquet(large, options.stream_rows)
        elapsed = seconds(lambda: _print_peak_of_stream(large))
        print(f"in {elapsed:.1f} s, which include starting Python and loading kernels")


def _print_peak_of_stream(path: Path) -> None:
    peak = peak_megabytes("bench.count", "--stream", str(path))
    print(f"Parquet, 190 pairs streamed: peak memory {peak:.0f} MB (goal: less than 1500)")


if __name__ == "__main__":
    main()
