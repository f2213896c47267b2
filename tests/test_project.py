"""What surrounds the code: workflows, the version, the citation, the recipe that the guide for contributors adds."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pandas
import pytest
import yaml

import dpsyn
from dpsyn.recipes import registry

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.check
@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("vendor.github-workflows", WORKFLOWS),
        ("vendor.citation-file-format", [ROOT / "CITATION.cff"]),
        ("vendor.github-issue-forms", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml"))),
    ],
)
def test_workflows_forms_and_citation_have_the_form_that_others_expect(schema: str, files: list[Path]) -> None:
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *map(str, files)]
    done = subprocess.run(check, capture_output=True, text=True, check=False)

    assert files
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_run_targets_that_exist_and_have_few_rights(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text("utf-8"))
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    commands = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]

    assert {name for command in commands for name in re.findall(r"\bmake (\w+)", command)} <= targets
    assert workflow["permissions"] == {"contents": "read"}
    assert all("timeout-minutes" in job for job in workflow["jobs"].values())
    assert not re.search(r"\$\{\{\s*github\.event", path.read_text("utf-8")), "a title of an issue would be run"


def test_every_supported_python_is_tested_by_a_workflow() -> None:
    tests = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text("utf-8"))
    versions = tests["jobs"]["fast"]["strategy"]["matrix"]["python"]
    declared = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["project"]["classifiers"]))

    assert versions[0] == PROJECT["project"]["requires-python"].removeprefix(">=")
    assert set(declared) <= set(versions)


def test_version_changelog_and_citation_agree() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    [latest, *_] = re.findall(
        r"^## (\S+), (\d{4}-\d\d-\d\d)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE
    )

    assert latest == (dpsyn.__version__, citation["date-released"])
    assert citation["version"] == dpsyn.__version__


def test_exact_versions_are_within_what_users_may_have() -> None:
    """A constraint for every library that is named, so that CI is repeatable."""
    exact = re.findall(r"^([\w.-]+)==", (ROOT / "constraints.txt").read_text("utf-8"), re.MULTILINE)
    groups = [*PROJECT["project"]["optional-dependencies"].values(), *PROJECT["dependency-groups"].values()]
    named = [
        entry for group in [PROJECT["project"]["dependencies"], *groups] for entry in group if isinstance(entry, str)
    ]

    def normal(name: str) -> str:
        return re.sub(r"[-_.]+", "-", name).lower()

    missing = {normal(re.split(r"[><=\[]", entry)[0]) for entry in named} - set(map(normal, exact))
    assert missing == set()


def test_nothing_that_is_published_names_a_machine_or_a_package_host() -> None:
    texts = {
        path: path.read_text("utf-8", errors="ignore")
        for path in ROOT.rglob("*")
        if path.suffix in (".md", ".toml", ".yml", ".yaml", ".txt", ".ipynb", ".json", ".cff", "")
        and path.is_file()
        and not {
            ".git",
            ".venv",
            "build",
            "dist",
            "tests",
            ".hypothesis",
            ".mypy_cache",
            ".ruff_cache",
            ".cache",
            "demo",
        }
        & set(path.relative_to(ROOT).parts)
        and path.name != ".git"
    }
    pattern = re.compile(r"/root/|/home/\w+/|file:///|pypi\.org|npmjs\.|deb\.debian\.org", re.IGNORECASE)
    found = {str(path.relative_to(ROOT)): match[0] for path, text in texts.items() if (match := pattern.search(text))}

    assert found == {}
    assert len(texts) > 60


def test_the_guide_to_a_recipe_names_every_file_that_lists_recipes() -> None:
    guide = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    section = guide.partition("## How to add a recipe")[2].partition("\n## ")[0]
    source = Path(dpsyn.__file__).parent
    listing = [
        path for path in source.rglob("*.py") if re.search(r"^(RECIPES|BASELINES)\b.* =", path.read_text("utf-8"), re.M)
    ]

    assert len(listing) == 2
    assert [path for path in listing if f"`{path.relative_to(source).as_posix()}`" not in section] == []
    assert "tests.cli.test_command_page" in section


def test_the_recipe_of_the_guide_works_as_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its twenty lines, registered by the line that the guide names, release a table like any other recipe."""
    guide = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    [code] = re.findall(r"^```python\n(.*?)^```", guide, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {"__name__": "dpsyn.recipes.chain"}
    exec(compile(code, "CONTRIBUTING.md", "exec", dont_inherit=True), names)
    chain = names["Chain"]
    monkeypatch.setattr(registry, "RECIPES", {**registry.RECIPES, chain.name: chain})
    schema = dpsyn.Schema(attributes=tuple(dpsyn.Boolean(name=name) for name in "abc"))
    rows = pandas.DataFrame({"a": [True, False] * 300, "b": [True, False] * 300, "c": [True, True, False] * 200})

    synopsis = dpsyn.measure(rows, schema, epsilon=4, recipe="chain")

    [certificate] = synopsis.certificates
    assert certificate is not None
    assert len(code.splitlines()) <= 40
    assert certificate.recipe["name"] == "chain"
    assert len(certificate.account.measurements) == 3 + 2
    table = synopsis.generate(600, seed=1)
    assert (table["a"] == table["b"]).mean() > 0.9
    json.dumps(certificate.to_data())
