"""The documents say what is true: their code runs, and nothing that a schema can say is left out."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as parquet
import pytest

import dpsyn
from dpsyn.cli.main import run
from dpsyn.plan import Plan
from dpsyn.plan import yaml_io as plan_files
from dpsyn.schema import Schema
from dpsyn.schema.files import ATTRIBUTE_KINDS, RULE_KINDS, SCHEMA_KEY
from dpsyn.schema.ranges import NUMPY_UNITS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
REFERENCE = (ROOT / "docs" / "schema.md").read_text("utf-8")


def blocks(text: str, language: str) -> list[str]:
    found = re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert found
    return found


@pytest.mark.check
def test_the_example_of_the_readme_runs(tmp_path: Path) -> None:
    code = "\n".join(blocks(README, "python"))

    done = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning", "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert "Certified: the guarantee holds." in done.stdout
    assert dpsyn.Synopsis.load(tmp_path / "people.dpsyn").rows > 0
    assert len(parquet.read_table(tmp_path / "synthetic.parquet")) == 10_000


@pytest.mark.check
def test_the_commands_of_the_readme_run(tmp_path: Path) -> None:
    lines = [line for block in blocks(README, "console") for line in block.splitlines()]
    commands = [shlex.split(line.removeprefix("$ "), comments=True) for line in lines]
    programs = {"dpsyn": [sys.executable, "-m", "dpsyn"], "cp": ["cp"]}
    known = [command for command in commands if command[0] in programs]

    for command in known:
        words = [*programs[command[0]], *command[1:]]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)

        told = [line for line in done.stderr.splitlines() if not line.startswith("… ")]
        assert (done.returncode, told) == (0, []), command
    assert len(known) >= 12


def test_the_readme_names_the_two_commands() -> None:
    assert "make demo" in README
    assert "make test" in README


@pytest.mark.parametrize("text", blocks(README, "yaml") + blocks(REFERENCE, "yaml"))
def test_schemas_in_the_documents_are_valid(text: str) -> None:
    Schema.from_yaml(text)


def test_the_reference_names_every_kind_rule_field_and_resolution() -> None:
    words = {SCHEMA_KEY, *ATTRIBUTE_KINDS, *RULE_KINDS, *Schema.__struct_fields__, "year", "microsecond"}
    for struct in (*ATTRIBUTE_KINDS.values(), *RULE_KINDS.values()):
        words |= set(struct.__struct_encode_fields__) - {"name"}

    missing = [word for word in sorted(words) if not re.search(rf"`{word}`|\b{word}:|rule: {word}\b", REFERENCE)]

    assert missing == []
    assert set(NUMPY_UNITS) >= {"year", "microsecond"}


PLANS = (ROOT / "docs" / "plans.md").read_text("utf-8")


@pytest.mark.parametrize("text", blocks(PLANS, "yaml"))
def test_plans_in_the_documents_are_valid(text: str) -> None:
    Plan.from_yaml(text)


def test_the_commands_of_the_document_of_plans_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After those of the README: under a schema without the name of a dataset, or an expected size."""
    monkeypatch.chdir(tmp_path)
    rows = [f"{n % 40 + 20},{'fm'[n % 2]},{n % 7}" for n in range(300)]
    Path("people.csv").write_text("\n".join(["age,sex,street", *rows]), "utf-8")
    for name in ("draft people.csv -o schema.yaml", "approve schema.yaml --all --because book"):
        assert run(["schema", *name.split()]) == 0
    inline = re.findall(r"`(dpsyn explore [^`]*)`", PLANS)
    lines = [*"".join(blocks(PLANS, "console")).splitlines(), *(line.replace("sample", "people") for line in inline)]

    for line in lines:
        words = shlex.split(line.removeprefix("$ "), comments=True)

        assert run(words[1:]) == 0, line
    assert len(lines) == 6


def test_the_document_of_plans_names_every_transform_and_field() -> None:
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
    for document in (
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "docs" / "schema.md",
        ROOT / "docs" / "plans.md",
    ):
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text("utf-8")):
            assert (document.parent / target).exists(), f"{document.name} → {target}"


def test_every_public_name_exists_and_is_listed() -> None:
    for name in dpsyn.__all__:
        assert getattr(dpsyn, name) is not None
        assert name in dir(dpsyn)
    assert len(dpsyn.__all__) <= 28


def test_an_unknown_name_of_the_package_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'syntesize'"):
        dpsyn.syntesize
