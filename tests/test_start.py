"""The package starts fast: heavy libraries are loaded only when they are needed."""

from __future__ import annotations

import json
import subprocess
import sys

HEAVY = {
    "altair",
    "dp_accounting",
    "duckdb",
    "matplotlib",
    "numba",
    "opendp",
    "pandas",
    "plotly",
    "polars",
    "pyarrow",
    "pyspark",
    "scipy",
    "sklearn",
    "vl_convert",
}


def loaded_by(code: str) -> set[str]:
    """The top-level modules that are loaded in a fresh interpreter after running some code."""
    report = f"{code}\nimport json, sys\nprint(json.dumps(sorted({{name.split('.')[0] for name in sys.modules}})))"
    done = subprocess.run([sys.executable, "-c", report], capture_output=True, text=True, check=True, timeout=60)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_importing_the_package_loads_no_heavy_library() -> None:
    loaded = loaded_by("import dpsyn")

    assert "dpsyn" in loaded
    assert loaded & HEAVY == set()


def test_reading_a_schema_loads_no_heavy_library() -> None:
    loaded = loaded_by(
        "from dpsyn.schema import Schema\n"
        "Schema.from_yaml('dpsyn_schema: 1\\nattributes:\\n  age: {kind: integer, low: 0, high: 99}\\n')"
    )

    assert "yaml" in loaded
    assert loaded & HEAVY == set()


def test_a_heavy_library_that_is_loaded_is_detected() -> None:
    loaded = loaded_by("import pyarrow")

    assert "pyarrow" in loaded
