"""The import map is a test: the table of the design, checked against every import of every file.

The map carries the privacy argument: what post-processes cannot reach private rows. The checker is tried below
on small trees that break each rule, so that it cannot pass by looking at nothing.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest

import dpsyn

SOURCE = Path(dpsyn.__file__).parent

BASE = {"errors", "suggestions", "atomic_files", "release_files", "progress", "options", "kernels", "notebook"}
"""Modules that every package may import."""

API = "the public API"
"""What ``dpsyn/__init__.py`` offers."""

MAP: dict[str, set[str]] = {
    "errors": set(),
    "suggestions": set(),
    "atomic_files": {"errors"},
    "release_files": {"errors", "suggestions", "atomic_files"},
    "progress": set(),
    "options": {"errors", "suggestions"},
    "notebook": {"errors", "progress"},
    "kernels": set(),
    "schema": set(),
    "accounting": set(),
    "signatures": set(),
    "marginals": {"schema"},
    "encoding": {"schema", "marginals"},
    "constraints": {"schema", "marginals", "encoding"},
    "inference": {"schema", "accounting", "marginals", "encoding", "constraints"},
    "selection": {"schema", "accounting", "marginals", "inference"},
    "sampling": {"schema", "marginals", "encoding", "constraints", "inference"},
    "query": {"schema", "marginals", "encoding", "constraints", "inference", "sampling"},
    "analysis": {"schema", "encoding", "inference", "query"},
    "synopsis": {
        *("schema", "accounting", "marginals", "encoding", "constraints", "inference", "sampling", "query"),
        "analysis",  # replicates are pooled, and answers come from them
        "signatures",  # a release folder is signed when it is written
    },
    "verification": {"accounting", "signatures", "synopsis"},
    "plan": {"schema", "accounting", "marginals", "encoding", "inference", "selection", "synopsis"},
    "sources": {"schema", "encoding"},
    "engines": {"schema", "encoding", "sources"},
    "private": {"engines", "sources", "schema", "accounting", "marginals", "encoding"},
    "public": {"schema", "accounting", "marginals", "encoding", "sources", "synopsis"},  # public rows, never private
    "recipes": {
        "private",
        "public",
        "plan",
        "schema",
        "accounting",
        "marginals",
        "encoding",
        "inference",
        "selection",
        "query",
        "synopsis",
    },
    "itemsets": {"private", "schema", "accounting", "marginals", "encoding", "inference", "selection", "synopsis"},
    "assessment": {
        *("private", "sources", "schema", "accounting", "marginals", "encoding"),
        *("recipes", "plan", "synopsis"),  # candidates are released before one of them is chosen
    },
    "diagnose": {"schema", "marginals", "encoding", "constraints", "sources", "plan"},
    "evaluation": {"schema", "marginals", "encoding", "sources"},
    "forecasts": {
        *("schema", "accounting", "marginals", "encoding", "inference", "selection", "synopsis", "plan"),
        *("simulation", "recipes", "public"),  # recipes run on simulated tables, in ``simulated_releases`` alone
    },
    "contest": {"schema", "accounting", "marginals", "encoding", "simulation", "evaluation", "synopsis"},
    "audits": {
        *("private", "recipes", "itemsets"),  # programs are rehearsed on tables that the gate makes itself
        *("schema", "accounting", "marginals", "encoding", "inference", "plan"),
    },
    "report": {
        "audits",
        "contest",
        "forecasts",
        "evaluation",
        "assessment",
        "accounting",
        "marginals",
        "schema",
        "inference",
        "query",
        "itemsets",
        "synopsis",
    },
    "demo": {"schema", "encoding"},
    "simulation": {"schema", "encoding", "constraints"},
    "app": {
        *(API, "report", "forecasts", "demo"),
        "diagnose",  # the first rows of a table, in a private part of a page
    },
    "cli": {API, "report", "demo", "simulation", "forecasts", "app"},
    "__main__": {"cli"},
}
MAP[API] = set(MAP) - {"app", "cli", "private", "engines", "__main__"}

VERSION = "__version__"
"""A constant of ``dpsyn/__init__.py`` that every package may import: importing it loads nothing more."""

PRIVATE_SIDE = {"sources", "engines", "private"}
POST_PROCESSING = {
    "marginals", "encoding", "constraints", "inference", "selection", "sampling", "query", "analysis", "synopsis",
    "signatures", "verification", "plan",
}  # fmt: skip

HOMES: dict[str, tuple[str, ...]] = {
    "numba": ("kernels.py", "*/kernels.py"),
    "pyarrow": tuple(
        f"{package}/*"
        for package in (
            "encoding",
            "sources",
            "engines",
            "private",
            "diagnose",
            "evaluation",
            "sampling",
            "query",
            "analysis",
            "itemsets",
            "assessment",
            "synopsis",
            "public",
            "demo",
            "constraints",
            "simulation",
            "forecasts",
            "contest",
        )
    ),
    **dict.fromkeys(
        [f"pyarrow.{reader}" for reader in ("csv", "parquet", "ipc", "dataset", "feather", "json", "orc", "fs")],
        ("sources/*", "encoding/writers.py"),
    ),
    "duckdb": ("sources/*", "encoding/dataframes.py"),
    "pyreadstat": ("sources/statistical_files.py", "encoding/office_writers.py", "atomic_files.py"),
    "python_calamine": ("sources/spreadsheet.py",),
    "xlsxwriter": ("encoding/office_writers.py", "atomic_files.py"),
    "sqlglot": ("sources/sql_reader.py",),
    "adbc_driver_postgresql": ("sources/postgresql.py",),
    "pyspark": ("engines/spark.py",),
    "opendp": ("private/mechanisms.py",),
    "cryptography": ("signatures/keys.py",),
    "dp_accounting": ("accounting/*",),
    **dict.fromkeys(["plotly", "altair", "seaborn", "bokeh", "kaleido"], ("report/*",)),
    "matplotlib": ("report/*", "notebook.py"),
    "IPython": ("notebook.py",),
    "vl_convert": ("report/charts.py",),
    **dict.fromkeys(["jinja2", "markupsafe"], ("report/html_page.py",)),
    "sklearn": ("evaluation/*", "recipes/synthesizer.py"),
    "click": ("cli/*",),
    **dict.fromkeys(["starlette", "uvicorn"], ("app/*",)),
    "rich": ("cli/*", "report/*"),
    "yaml": ("schema/*",),
}
"""Heavy libraries and the files that may import them."""

ONE_FILE_EACH = ("scipy.*", "networkx", "ortools", "highspy", "cvxpy", "clarabel", "osqp")
"""Solvers and graph libraries: in the one file that needs them, besides ``accounting`` and ``audits``, which need
distribution functions throughout."""

PICKLES = ("pickle", "_pickle", "cPickle", "cloudpickle", "dill", "joblib", "marshal", "shelve")
NAMELESS = re.compile(r"_?(utils?|utilities|commons?|helpers?|managers?|misc)")
MAX_LINES = 600
ONE_FILE = {"signatures/verify_release.py": 950}
"""The stand-alone verifier is one file on purpose: readers take it away from here."""


# ── the checker ──────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Module:
    """A source file: its place below ``dpsyn`` and what it imports, as dotted names with their lines."""

    path: str
    tree: ast.Module
    lines: int

    @property
    def package(self) -> str:
        """The first folder, or the name of a file that lies in none; ``__init__.py`` is the public API."""
        if self.path == "__init__.py":
            return API
        return self.path.split("/")[0].removesuffix(".py")

    def imports(self) -> tuple[tuple[str, int], ...]:
        """Every import wherever it stands: in functions, for type checkers only, by name at run time."""
        return _list_imports(self)

    def find_imports(self) -> Iterator[tuple[str, int]]:
        nodes = list(ast.walk(self.tree))
        dynamic = any(_is_dynamic_import(node) for node in nodes)
        for node in nodes:
            if isinstance(node, ast.Import):
                yield from ((alias.name, node.lineno) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                origin = self._origin(node)
                yield from ((f"{origin}.{alias.name}", node.lineno) for alias in node.names)
            elif dynamic and isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield from ((name, node.lineno) for name in self._module_names(node.value))
        yield from self._through_pyarrow(nodes)

    def _origin(self, node: ast.ImportFrom) -> str:
        """The module that ``from … import`` names, dots resolved."""
        if not node.level:
            return node.module or ""
        here = ["dpsyn", *self.path.split("/")[:-1]]
        above = here[: len(here) - node.level + 1]
        return ".".join([*above, *([node.module] if node.module else [])])

    def _module_names(self, text: str) -> Iterator[str]:
        """A text that could be the name of a module, in a file that imports modules by name."""
        if re.fullmatch(r"\.\w+(\.\w+)*", text) and text.split(".")[1] in MAP:
            yield f"dpsyn{text}"
        elif re.fullmatch(r"dpsyn(\.\w+)+", text) or text.split(".")[0] in {*HOMES, *PICKLES}:
            yield text

    def _through_pyarrow(self, nodes: list[ast.AST]) -> Iterator[tuple[str, int]]:
        """``pa.csv`` where ``pa`` is pyarrow."""
        names = {
            alias.asname or alias.name
            for node in nodes
            if isinstance(node, ast.Import)
            for alias in node.names
            if alias.name == "pyarrow"
        }
        for node in nodes:
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in names:
                yield f"pyarrow.{node.attr}", node.lineno


@cache  # many tests ask for the imports of the same files
def _list_imports(module: Module) -> tuple[tuple[str, int], ...]:
    return tuple(module.find_imports())


def _is_dynamic_import(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return called in ("import_module", "__import__", "find_spec")


def modules_of(root: Path) -> list[Module]:
    """Every source file below a folder."""
    return [
        _parse_module(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8"))
        for path in sorted(root.rglob("*.py"))
    ]


@cache
def _parse_module(path: str, text: str) -> Module:
    return Module(path, ast.parse(text), len(text.splitlines()))


def breaches(root: Path) -> list[str]:
    """Every broken rule, as ``file:line: what is wrong``."""
    modules = modules_of(root)
    found = []
    for module in modules:
        found += [f"{module.path}:{line}: {what}" for line, what in (*_file_breaches(module), *_pickles(module))]
        for name, line in module.imports():
            found += [
                f"{module.path}:{line}: {what}" for what in (*_map_breaches(module, name), *_strays(module, name))
            ]
    return sorted({*found, *_shared_solvers(modules)})


def _file_breaches(module: Module) -> Iterator[tuple[int, str]]:
    if module.package not in MAP:
        yield 1, f"{module.package} is not in the import map"
    if module.lines > (most := ONE_FILE.get(module.path, MAX_LINES)):
        yield module.lines, f"more than {most} lines; split it"
    for part in module.path.removesuffix(".py").split("/"):
        if NAMELESS.fullmatch(part):
            yield 1, f"{part!r} says nothing about what is in it; name it by what it does"


def _map_breaches(module: Module, name: str) -> Iterator[str]:
    top, _, rest = name.partition(".")
    if top != "dpsyn" or rest == VERSION:
        return
    target = rest.split(".")[0]
    if target not in MAP:
        target = API  # a name that __init__.py offers; a package that is not in the map is reported by itself
    base = set() if module.package in BASE else BASE
    if target not in {module.package} | base | MAP.get(module.package, set()):
        yield f"{module.package} must not import {target}"


def _strays(module: Module, name: str) -> Iterator[str]:
    for library, homes in HOMES.items():
        inside = name == library or name.startswith(f"{library}.")
        if inside and not any(fnmatch(module.path, home) for home in homes):
            yield f"{library} belongs in {' or '.join(homes)}"


def _pickles(module: Module) -> Iterator[tuple[int, str]]:
    for name, line in module.imports():
        if name.split(".")[0] in PICKLES:
            yield line, "pickle is not allowed: loading one runs code"
    for node in ast.walk(module.tree):
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            if not (isinstance(node.value, ast.Constant) and node.value.value is False):
                yield node.value.lineno, "pickle is not allowed: say allow_pickle=False"
        elif isinstance(node, ast.Attribute) and node.attr in ("read_pickle", "to_pickle"):
            yield node.lineno, "pickle is not allowed: loading one runs code"


def _shared_solvers(modules: list[Module]) -> Iterator[str]:
    users: dict[str, set[str]] = defaultdict(set)
    for module in modules:
        for name, _ in module.imports():
            top, _, rest = name.partition(".")
            library = f"scipy.{rest.split('.')[0]}" if top == "scipy" else top
            if module.package not in ("accounting", "audits") and any(
                fnmatch(library, known) for known in ONE_FILE_EACH
            ):
                users[library].add(module.path)
    for library, places in users.items():
        if len(places) > 1:
            yield f"{library} is imported by {', '.join(sorted(places))}; one file is its home"


# ── the project ──────────────────────────────────────────────────────────────────────────────────────────────


def test_every_file_of_the_project_keeps_the_rules() -> None:
    found = breaches(SOURCE)

    assert found == []


def test_the_checker_sees_the_files_and_imports_of_the_project() -> None:
    modules = {module.path: module for module in modules_of(SOURCE)}

    assert {"__init__.py", "errors.py", "atomic_files.py", "schema/schema.py", "schema/files.py"} <= set(modules)
    assert "dpsyn.errors.SchemaError" in [name for name, _ in modules["schema/files.py"].imports()]
    assert "dpsyn.schema.yaml_io" in [name for name, _ in modules["schema/schema.py"].imports()]
    assert "yaml" in [name for name, _ in modules["schema/yaml_io.py"].imports()]


def test_no_way_through_the_map_leads_from_post_processing_to_private_rows() -> None:
    reached = {package: _reachable(package) for package in POST_PROCESSING}

    assert {package: names & PRIVATE_SIDE for package, names in reached.items()} == {
        package: set() for package in reached
    }


def test_only_the_callers_of_the_gate_import_it_and_only_the_gate_imports_engines() -> None:
    callers = {"recipes", "itemsets", "assessment", "audits"}
    assert {package for package, targets in MAP.items() if "private" in targets} == callers
    assert {package for package, targets in MAP.items() if "engines" in targets} == {"private"}


def test_of_the_recipes_only_measure_and_the_synthesizer_know_the_synopsis() -> None:
    users = {
        module.path
        for module in modules_of(SOURCE)
        if module.package == "recipes" and any(name.startswith("dpsyn.synopsis") for name, _ in module.imports())
    }

    assert users == {"recipes/_measure.py", "recipes/synthesizer.py"}


def test_audits_and_rehearsals_read_no_table_that_they_did_not_make() -> None:
    """They see exact answers and charge no ledger: nothing that opens data may be imported, or take what was given."""
    modules = {module.path: module for module in modules_of(SOURCE)}
    audits = [module for path, module in modules.items() if path.startswith("audits/")]
    imported = {name for module in audits for name, _ in module.imports()}
    rehearsal = modules["private/rehearsal.py"].tree
    opened = [
        ast.unparse(node.args[0])
        for node in ast.walk(rehearsal)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("open_table", "open_basket_source")
    ]

    assert not {name for name in imported if name.startswith(("dpsyn.sources", "dpsyn.engines"))}
    assert not imported & {
        "dpsyn.private.open_private",
        "dpsyn.private.open_baskets",
        "dpsyn.recipes.measure",
        "pathlib.Path",
    }
    assert opened == ["table", "table"]


def test_of_the_forecasts_only_simulated_releases_run_recipes() -> None:
    users = {
        module.path
        for module in modules_of(SOURCE)
        if module.package == "forecasts" and any(name.startswith("dpsyn.recipes") for name, _ in module.imports())
    }

    assert users == {"forecasts/simulated_releases.py"}


def _reachable(package: str) -> set[str]:
    seen: set[str] = set()
    waiting = [package]
    while waiting:
        new = MAP[waiting.pop()] - seen
        seen |= new
        waiting += new
    return seen


# ── the checker, on trees that break a rule ──────────────────────────────────────────────────────────────────


def plant(root: Path, files: dict[str, str]) -> Path:
    """Write a small source tree."""
    for place, text in files.items():
        path = root / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


@pytest.mark.parametrize(
    ("place", "text", "complaint"),
    [
        pytest.param("schema/a.py", "import dpsyn.encoding", "schema must not import encoding", id="plain"),
        pytest.param(
            "schema/a.py", "import dpsyn.encoding.codec as c", "schema must not import encoding", id="renamed"
        ),
        pytest.param("schema/a.py", "from dpsyn import encoding", "schema must not import encoding", id="from"),
        pytest.param("schema/a.py", "from dpsyn.encoding import x", "schema must not import encoding", id="from below"),
        pytest.param("schema/a.py", "from ..encoding import x", "schema must not import encoding", id="relative"),
        pytest.param("schema/a.py", "from .. import encoding", "schema must not import encoding", id="bare relative"),
        pytest.param("schema/b/a.py", "from ...encoding import x", "schema must not import encoding", id="two up"),
        pytest.param(
            "inference/a.py",
            "def f():\n    from dpsyn.sources import read",
            "a.py:2: inference must not import sources",
            id="in a function",
        ),
        pytest.param(
            "inference/a.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from dpsyn.private import PrivateTable",
            "a.py:3: inference must not import private",
            id="for type checkers",
        ),
        pytest.param(
            "inference/a.py",
            "import importlib\nimportlib.import_module('dpsyn.engines.memory')",
            "inference must not import engines",
            id="by name",
        ),
        pytest.param(
            "inference/a.py",
            "from importlib import import_module\nimport_module('.engines', 'dpsyn')",
            "inference must not import engines",
            id="by relative name",
        ),
        pytest.param("inference/a.py", "__import__('dpsyn.engines')", "inference must not import engines", id="dunder"),
        pytest.param("recipes/a.py", "import dpsyn.engines", "recipes must not import engines", id="recipes engines"),
        pytest.param("recipes/a.py", "import dpsyn.sources", "recipes must not import sources", id="recipes sources"),
        pytest.param("selection/a.py", "from dpsyn import Schema", "selection must not import the public", id="api"),
        pytest.param("selection/a.py", "import dpsyn", "selection must not import the public API", id="whole api"),
        pytest.param("cli/a.py", "import dpsyn.private", "cli must not import private", id="cli"),
        pytest.param("demo/a.py", "import dpsyn.sources", "demo must not import sources", id="demo"),
        pytest.param("errors.py", "import dpsyn.atomic_files", "errors must not import atomic_files", id="errors"),
        pytest.param(
            "atomic_files.py", "import dpsyn.schema", "atomic_files must not import schema", id="atomic files"
        ),
        *(
            pytest.param("__init__.py", f"import dpsyn.{p}", f"the public API must not import {p}", id=f"api {p}")
            for p in ("app", "cli", "private", "engines")
        ),
        pytest.param(
            "__init__.py",
            "import importlib\n_HOMES = {'main': 'dpsyn.cli.main'}\ndef __getattr__(n): importlib.import_module(n)",
            "__init__.py:2: the public API must not import cli",
            id="api by table",
        ),
    ],
)
def test_an_import_against_the_map_is_reported(tmp_path: Path, place: str, text: str, complaint: str) -> None:
    tree = plant(tmp_path, {place: text})

    found = breaches(tree)

    assert len(found) == 1
    assert found[0].startswith(place)
    assert complaint in found[0]


@pytest.mark.parametrize(
    ("place", "text", "complaint"),
    [
        ("inference/gum/gradual_update.py", "import numba", "numba belongs in"),
        ("inference/not_kernels.py", "from numba import njit", "numba belongs in"),
        ("selection/a.py", "import pyarrow as pa", "pyarrow belongs in"),
        ("encoding/codec.py", "import pyarrow.csv", "pyarrow.csv belongs in"),
        ("encoding/codec.py", "from pyarrow import parquet as pq", "pyarrow.parquet belongs in"),
        ("encoding/codec.py", "from pyarrow.dataset import dataset", "pyarrow.dataset belongs in"),
        ("diagnose/a.py", "from pyarrow import feather", "pyarrow.feather belongs in"),
        ("engines/a.py", "import pyarrow as pa\npa.ipc.open_stream('x')", "a.py:2: pyarrow.ipc belongs in"),
        ("engines/a.py", "import duckdb", "duckdb belongs in"),
        ("engines/memory.py", "def f():\n    import pyspark.sql", "memory.py:2: pyspark belongs in"),
        ("private/gate.py", "import opendp.prelude as dp", "opendp belongs in"),
        ("private/gate.py", "from dp_accounting import pld", "dp_accounting belongs in"),
        ("evaluation/a.py", "import matplotlib.pyplot", "matplotlib belongs in"),
        ("cli/compare_noise.py", "import altair", "altair belongs in"),
        ("cli/compare_noise.py", "import vl_convert", "vl_convert belongs in"),
        ("report/charts.py", "def f():\n    from jinja2 import Environment", "jinja2 belongs in"),
        ("evaluation/b.py", "import plotly.express", "plotly belongs in"),
        ("report/a.py", "import sklearn.ensemble", "sklearn belongs in"),
        ("report/a.py", "import click", "click belongs in"),
        ("cli/a.py", "import uvicorn", "uvicorn belongs in"),
        ("recipes/a.py", "from rich.progress import Progress", "rich belongs in"),
        ("recipes/privsyn.py", "import yaml", "yaml belongs in"),
        ("synopsis/a.py", "import importlib\nimportlib.import_module('numba')", "numba belongs in"),
        ("synopsis/a.py", "import pickle", "pickle is not allowed"),
        ("synopsis/a.py", "def f():\n    from pickle import loads", "a.py:2: pickle is not allowed"),
        ("synopsis/a.py", "import cloudpickle", "pickle is not allowed"),
        ("synopsis/a.py", "import joblib", "pickle is not allowed"),
        ("synopsis/a.py", "import numpy as np\nnp.load('x', allow_pickle=True)", "a.py:2: pickle is not allowed"),
        ("sources/a.py", "import pandas as pd\npd.read_pickle('x')", "a.py:2: pickle is not allowed"),
        ("synopsis/a.py", "x = 1\n" * 601, "more than 600 lines"),
        ("synopsis/utils.py", "", "says nothing"),
        ("synopsis/common/a.py", "", "says nothing"),
        ("synopsis/_helpers.py", "", "says nothing"),
        ("synopsis/manager.py", "", "says nothing"),
        ("magic/__init__.py", "", "magic is not in the import map"),
        ("magic.py", "", "magic is not in the import map"),
    ],
)
def test_a_broken_rule_is_reported_once_with_its_place(tmp_path: Path, place: str, text: str, complaint: str) -> None:
    tree = plant(tmp_path, {place: text})

    found = breaches(tree)

    assert len(found) == 1
    assert found[0].startswith(place)
    assert complaint in found[0]


def test_a_solver_in_two_files_is_reported(tmp_path: Path) -> None:
    tree = plant(
        tmp_path, {"inference/mcf.py": "import scipy.sparse", "selection/cover.py": "from scipy import sparse"}
    )

    found = breaches(tree)

    assert found == ["scipy.sparse is imported by inference/mcf.py, selection/cover.py; one file is its home"]


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("schema/a.py", "from dpsyn.errors import SchemaError\nfrom dpsyn.atomic_files import write_text"),
        ("schema/a.py", "from dpsyn.schema import b\nfrom . import c\nfrom .d import e"),
        ("atomic_files.py", "from dpsyn.errors import OutputError"),
        ("inference/gum/kernels.py", "import numba"),
        ("encoding/writers.py", "import pyarrow.parquet as pq\nimport pyarrow.csv"),
        ("encoding/codec.py", "import pyarrow as pa\nimport pyarrow.compute as pc\npa.table({})"),
        ("sources/text.py", "import pyarrow.csv\nimport duckdb"),
        ("engines/spark.py", "from pyspark.sql import DataFrame"),
        ("private/mechanisms.py", "import opendp.prelude"),
        ("accounting/conversion.py", "from scipy import special, optimize\nimport dp_accounting"),
        ("inference/mcf.py", "from scipy import sparse"),
        ("schema/yaml_io.py", "import yaml"),
        ("recipes/privsyn.py", "from dpsyn.private import PrivateTable"),
        ("report/charts.py", "import altair\nimport rich\nfrom dpsyn import __version__"),
        ("cli/main.py", "import click\nimport rich\nimport dpsyn\nfrom dpsyn import Schema\nfrom dpsyn.demo import x"),
        ("__init__.py", "from dpsyn.recipes import measure\nfrom dpsyn.schema import Schema"),
        ("synopsis/serialization/synopsis_file.py", "import numpy as np\nnp.load('x', allow_pickle=False)"),
        ("synopsis/serialization/synopsis_file.py", "x = 1\n" * 600),
        (
            "synopsis/serialization/synopsis_file.py",
            "SUFFIX = '.csv'\nWORD = 'dpsyn.private'  # no import, only a text",
        ),
    ],
)
def test_what_the_rules_allow_is_not_reported(tmp_path: Path, place: str, text: str) -> None:
    tree = plant(tmp_path, {place: text})

    found = breaches(tree)

    assert found == []
