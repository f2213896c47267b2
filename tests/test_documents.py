"""The documents are true: their code and commands run, and they list every field of a schema and of a plan."""

from __future__ import annotations

import ast
import importlib
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pyarrow.parquet as parquet
import pytest

import dpsyn
from dpsyn.cli.main import dpsyn as dpsyn_command
from dpsyn.cli.main import run
from dpsyn.plan import Plan
from dpsyn.plan import yaml_io as plan_files
from dpsyn.schema import Schema
from dpsyn.schema.files import ATTRIBUTE_KINDS, RULE_KINDS, SCHEMA_KEY
from dpsyn.schema.ranges import NUMPY_UNITS

ROOT = Path(__file__).parents[1]
DOCS = sorted((ROOT / "docs").glob("*.md"))
README = (ROOT / "README.md").read_text("utf-8")
REFERENCE = (ROOT / "docs" / "schema.md").read_text("utf-8")
PLANS = (ROOT / "docs" / "plans.md").read_text("utf-8")

PAGES = [README, *(page.read_text("utf-8") for page in DOCS if page.name != "plans.md")]
"""The README, then the pages that continue where it ends: with its files, and with its variables in Python.

The page of plans has a table and a schema of its own.
"""

PROGRAMS = {"dpsyn": [sys.executable, "-m", "dpsyn"], "cp": ["cp"]}


def find_blocks(text: str, language: str) -> list[str]:
    """The code blocks of a page in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def find_commands(text: str) -> list[list[str]]:
    """The commands of a page, as words; a command may continue on the next line."""
    lines = "".join(find_blocks(text, "console")).replace("\\\n", " ").splitlines()
    return [shlex.split(line.removeprefix("$ "), comments=True) for line in lines]


@pytest.mark.check
def test_the_python_examples_run(tmp_path: Path) -> None:
    code = "\n".join(block for page in PAGES for block in find_blocks(page, "python"))

    done = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning", "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert "Certified: " in done.stdout
    assert dpsyn.Synopsis.load(tmp_path / "people.dpsyn").rows > 0
    assert len(parquet.read_table(tmp_path / "synthetic.parquet")) == 10_000


@pytest.mark.check
def test_the_commands_run(tmp_path: Path) -> None:
    commands = [command for page in PAGES for command in find_commands(page) if command[0] in PROGRAMS]

    for command in commands:
        words = [*PROGRAMS[command[0]], *command[1:]]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)

        messages = [line for line in done.stderr.splitlines() if not line.startswith("… ")]
        assert (done.returncode, messages) == (0, []), command
    assert len(commands) >= 12


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(line, id=line)
        for page in [README, *(page.read_text("utf-8") for page in DOCS)]
        for line in re.findall(r"`(dpsyn [a-z-]+ [^`…]*)`", page)
    ],
)
def test_commands_in_the_text_have_options_that_exist(line: str) -> None:
    """Commands that are quoted in a sentence are not run, for their files may not exist; their options are parsed."""
    words = shlex.split(line, comments=True)[1:]
    context = click.Context(dpsyn_command)
    command = dpsyn_command.get_command(context, words[0])
    while isinstance(command, click.Group) and words[1:]:
        context, words = click.Context(command, parent=context), words[1:]
        command = command.get_command(context, words[0])

    assert command is not None
    options = {name for parameter in command.params for name in parameter.opts}
    assert {word for word in words[1:] if re.fullmatch(r"--?[a-z][a-z-]*", word)} <= options


def test_the_readme_names_the_two_commands() -> None:
    assert "make demo" in README
    assert "make test" in README


@pytest.mark.parametrize("text", [*find_blocks(README, "yaml"), *find_blocks(REFERENCE, "yaml")])
def test_schemas_in_the_documents_are_valid(text: str) -> None:
    Schema.from_yaml(text)


def test_the_reference_names_every_kind_rule_field_and_resolution() -> None:
    words = {SCHEMA_KEY, *ATTRIBUTE_KINDS, *RULE_KINDS, *Schema.__struct_fields__, "year", "microsecond"}
    for struct in (*ATTRIBUTE_KINDS.values(), *RULE_KINDS.values()):
        words |= set(struct.__struct_encode_fields__) - {"name"}

    missing = [word for word in sorted(words) if not re.search(rf"`{word}`|\b{word}:|rule: {word}\b", REFERENCE)]

    assert missing == []
    assert set(NUMPY_UNITS) >= {"year", "microsecond"}


@pytest.mark.parametrize("text", find_blocks(PLANS, "yaml"))
def test_plans_in_the_documents_are_valid(text: str) -> None:
    Plan.from_yaml(text)


def test_the_commands_of_the_page_of_plans_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under a schema without the name of a dataset or an expected size."""
    monkeypatch.chdir(tmp_path)
    rows = [f"{n % 40 + 20},{'fm'[n % 2]},{n % 7}" for n in range(300)]
    Path("people.csv").write_text("\n".join(["age,sex,street", *rows]), "utf-8")
    for name in ("draft people.csv -o schema.yaml", "approve schema.yaml --all --because book"):
        assert run(["schema", *name.split()]) == 0
    inline = re.findall(r"`(dpsyn explore [^`]*)`", PLANS)
    quoted = [line.replace("sample", "people") for line in inline]
    lines = [*"".join(find_blocks(PLANS, "console")).splitlines(), *quoted]

    for line in lines:
        words = shlex.split(line.removeprefix("$ "), comments=True)

        assert run(words[1:]) == 0, line
    assert len(lines) == 6


def test_the_page_of_plans_names_every_transform_and_field() -> None:
    words = {
        plan_files.KEY,
        *plan_files.TRANSFORMS,
        *Plan.__struct_fields__,
        "of",
        "pairs",
        "join",
        "when",
        "mechanism",
    }
    for struct in plan_files.TRANSFORMS.values():
        words |= set(struct.__struct_encode_fields__)

    missing = [word for word in sorted(words) if not re.search(rf"`{word}\b|\b{word}:", PLANS)]

    assert missing == []


@pytest.mark.parametrize(
    ("plan", "schema"),
    [
        pytest.param(plan, schema, id=f"{plan.parent.name} {schema.stem}")
        for plan in sorted(ROOT.glob("examples/*/plan.yaml"))
        for schema in sorted(plan.parent.glob("schema*.yaml"))
    ],
)
def test_the_plans_of_the_examples_fit_their_schemas(plan: Path, schema: Path) -> None:
    Plan.load(plan, Schema.load(schema))


def test_every_link_between_documents_leads_somewhere() -> None:
    for document in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS):
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text("utf-8")):
            assert (document.parent / target).exists(), f"{document.name} → {target}"


def test_every_public_name_exists_and_is_listed() -> None:
    for name in dpsyn.__all__:
        assert getattr(dpsyn, name) is not None
        assert name in dir(dpsyn)


def test_type_checkers_see_exactly_the_public_names() -> None:
    tree = ast.parse(Path(dpsyn.__file__).read_text("utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module != "__future__"]
    homes = {alias.name: node.module for node in imports for alias in node.names}

    public = [name for name in dpsyn.__all__ if name != "__version__"]
    assert sorted(public) == sorted(set(homes) - {"TYPE_CHECKING", "Any"})
    assert len(public) == len(set(public))
    for name in public:
        assert getattr(importlib.import_module(str(homes[name])), name) is getattr(dpsyn, name)


def test_an_unknown_name_of_the_package_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'syntesize'"):
        dpsyn.syntesize  # noqa: B018 -- the look-up is the act
