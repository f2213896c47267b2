"""The package starts fast: heavy libraries are loaded only when they are needed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dpsyn
from dpsyn.encoding import kernels

HEAVY = {
    "altair",
    "cryptography",
    "dp_accounting",
    "duckdb",
    "jinja2",
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
    "starlette",
    "uvicorn",
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


# ── installations that cannot be written ─────────────────────────────────────────────────────────────────────

UNCACHED = """
from dpsyn.cli.main import run
from dpsyn.encoding import kernels
from dpsyn.inference import is_first_run
assert type(kernels.{kernel}._cache).__name__ == {cache!r}, kernels.{kernel}._cache
assert is_first_run()
assert run(["schema", "check", "schema.yaml", "people.csv"]) == 0
"""


@pytest.fixture
def read_only(tmp_path: Path) -> dict[str, str]:
    """The environment of a container: the package, the home and the user's cache are where nothing can be written.

    A file where a folder should be made keeps even the superuser from making it.
    """
    copied = tmp_path / "site" / "dpsyn"
    shutil.copytree(Path(dpsyn.__file__).parent, copied, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [copied, *(path for path in copied.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").touch()
    (tmp_path / "schema.yaml").write_text("dpsyn_schema: 1\nattributes:\n  age: {kind: integer, low: 0, high: 99}\n")
    (tmp_path / "people.csv").write_text("age\n" + "17\n" * 50)
    nowhere = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "USERPROFILE", "LOCALAPPDATA"), "/dev/null/nowhere")
    environment = {**os.environ, **nowhere, "PYTHONPATH": str(copied.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("NUMBA_CACHE_DIR", None)
    return environment


@pytest.mark.check
@pytest.mark.parametrize("cache_folder", [None, "cache"])
def test_a_read_only_installation_without_a_home_runs(
    tmp_path: Path, read_only: dict[str, str], cache_folder: str | None
) -> None:
    if cache_folder:
        read_only["NUMBA_CACHE_DIR"] = str(tmp_path / cache_folder)
    kernel = next(name for name, value in vars(kernels).items() if hasattr(value, "signatures"))
    code = UNCACHED.format(kernel=kernel, cache="FunctionCache" if cache_folder else "NullCache")

    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=read_only, capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (0, "")
    assert bool(cache_folder) == (tmp_path / "cache").exists()
