"""The documents are true: their code and commands run, and they list every field of a schema and of a plan."""

from __future__ import annotations

import ast
import doctest
import fcntl
import importlib
import inspect
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import click
import pandas
import pyarrow.parquet as parquet
import pytest
from bench.utility import list_peers

import dpsyn
from dpsyn.assessment import candidates, criteria
from dpsyn.cli.main import dpsyn as dpsyn_command
from dpsyn.cli.main import run
from dpsyn.demo import people, people_schema
from dpsyn.plan import Plan
from dpsyn.plan import yaml_io as plan_files
from dpsyn.private import PrivateTable
from dpsyn.private.distances import DistanceGate
from dpsyn.schema import Schema
from dpsyn.schema.files import ATTRIBUTE_KINDS, RULE_KINDS, SCHEMA_KEY
from dpsyn.schema.ranges import NUMPY_UNITS
from tests import test_types

ROOT = Path(__file__).parents[1]
SOURCE = Path(dpsyn.__file__).parent
PAGES = {"README.md": ROOT / "README.md", **{page.name: page for page in sorted((ROOT / "docs").rglob("*.md"))}}
TEXTS = {name: page.read_text("utf-8") for name, page in PAGES.items()}
README, REFERENCE, PLANS, GLOSSARY = (TEXTS[name] for name in ("README.md", "schema.md", "plans.md", "glossary.md"))

MAX_README_LINES = 150
"""A newcomer reads all of it; the rest is in docs/."""


def find_blocks(text: str, language: str) -> list[str]:
    """The code blocks of a page in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def find_commands(text: str) -> list[list[str]]:
    """The commands of a page, as words; a command may continue on the next line."""
    lines = "".join(find_blocks(text, "console")).replace("\\\n", " ").splitlines()
    return [shlex.split(line.removeprefix("$ "), comments=True) for line in lines]


# ── code, commands and files that the pages show ─────────────────────────────────────────────────────────────


@pytest.mark.check
def test_the_example_of_the_readme_runs(tmp_path: Path) -> None:
    """In a process of its own, as a newcomer would run it."""
    done = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning", "-c", "\n".join(find_blocks(README, "python"))],
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
@pytest.mark.parametrize(
    "page", [name for name, text in TEXTS.items() if name != "README.md" and find_blocks(text, "python")]
)
def test_the_examples_of_a_page_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of a page are one program, which needs no other page."""
    monkeypatch.chdir(tmp_path)
    code = compile("\n".join(find_blocks(TEXTS[page], "python")), page, "exec")

    exec(code, {"__name__": "__main__"})


@pytest.fixture(scope="module")
def readme_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the README's commands ran, as programs: once, also where several processes run the tests."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    done = shared / "readme"
    with (shared / "readme.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            folder = tmp_path_factory.mktemp("readme")
            run_programs(README, folder)
            shutil.copytree(folder, done)
    return done


def run_programs(text: str, folder: Path) -> None:
    """Run the commands of a page as programs; each must succeed without a warning."""
    programs = {"dpsyn": [sys.executable, "-m", "dpsyn"], "cp": ["cp"]}
    commands = [command for command in find_commands(text) if command[0] in programs]
    for command in commands:
        words = [*programs[command[0]], *command[1:]]
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)

        assert (done.returncode, find_messages(done.stderr)) == (0, []), command
    assert len(commands) >= 10


@pytest.mark.check
def test_the_commands_of_the_readme_run(readme_folder: Path) -> None:
    assert dpsyn.Synopsis.load(readme_folder / "people.dpsyn").rows > 0
    assert (readme_folder / "release").is_dir()


@pytest.mark.check
@pytest.mark.parametrize(
    "page",
    [name for name, text in TEXTS.items() if name not in ("README.md", "tutorial.md") and find_commands(text)],
)
def test_the_commands_of_a_page_run(
    page: str,
    readme_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """In a copy of the folder that the README's commands left behind: no page needs another one."""
    monkeypatch.chdir(shutil.copytree(readme_folder, tmp_path / "folder"))
    run_commands(page, capfd)


def run_commands(page: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Run the commands of a page in the working folder; each must succeed without a warning."""
    for command in find_commands(TEXTS[page]):
        assert command[0] == "dpsyn", f"{page}: {command}"
        code = run(command[1:])

        assert (code, find_messages(capfd.readouterr().err)) == (0, []), f"{page}: {command}"


@pytest.mark.check
def test_the_commands_of_the_tutorial_run_in_an_empty_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The story needs nothing but DPSyn, and its conclusion is about what the newspaper asks."""
    monkeypatch.chdir(tmp_path)
    run_commands("tutorial.md", capfd)

    assert dpsyn.verify("story/published/", Path("story/office.key.pub")).verdict == "verified"
    assert len(find_commands(TEXTS["tutorial.md"])) == 9


@pytest.mark.check
def test_the_script_for_schedulers_releases_once_however_often_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    dpsyn.write_table(people(rows=500), "people.parquet", synthetic=False)
    people_schema().save("schema.yaml")
    assert run(["ledger", "new", "ledger.db", "--dataset", "demo-people", "--epsilon", "4", "--delta", "1e-8"]) == 0
    assert run(["keys", "new", "steward.key"]) == 0
    [script] = find_blocks(TEXTS["pipelines.md"], "bash")
    Path("release.sh").write_text(script, "utf-8")
    Path("dpsyn").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m dpsyn "$@"\n', "utf-8")
    Path("dpsyn").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    capfd.readouterr()

    for _ in range(2):
        done = subprocess.run(["bash", "release.sh"], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

    assert json.loads(Path("releases/2026-11.verified.json").read_text("utf-8"))["verdict"] == "verified"
    assert run(["ledger", "show", "ledger.db", "--json"]) == 0
    [dataset] = json.loads(capfd.readouterr().out)
    assert len(dataset["runs"]) == 1


@pytest.mark.check
def test_the_commands_of_the_contest_run_at_small_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the example: with 300 rows and one ε, in a folder where ``examples`` is."""
    monkeypatch.chdir(tmp_path)
    Path("examples").symlink_to(ROOT / "examples")
    commands = find_commands((ROOT / "examples" / "contest" / "README.md").read_text("utf-8"))
    smaller = {"20000": "300", "0.3,1,8": "2"}
    for command in commands:
        words = [smaller.get(word, word) for word in command]
        if words[0] == "dpsyn":
            assert run(words[1:]) == 0, command
        else:
            subprocess.run([sys.executable, *words[1:]], check=True)

    ranking = json.loads(Path("ranking.json").read_text("utf-8"))
    assert len(commands) == 3
    assert {entry["name"] for entry in ranking["submissions"]} == {"automatic", "privsyn", "independent"}
    assert all(table["certified"] for entry in ranking["submissions"] for table in entry["tables"])


def find_messages(stderr: str) -> list[str]:
    """What a command printed besides its progress: warnings and errors."""
    return [line for line in stderr.splitlines() if not line.startswith("… ")]


@pytest.mark.parametrize(
    "line",
    [pytest.param(line, id=line) for text in TEXTS.values() for line in re.findall(r"`(dpsyn [a-z-]+ [^`…]*)`", text)],
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


def test_the_readme_is_short_and_names_the_two_commands() -> None:
    assert len(README.splitlines()) <= MAX_README_LINES
    assert "make demo" in README
    assert "make test" in README


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(block, id=f"{page} {number}")
        for page, text in TEXTS.items()
        for number, block in enumerate(find_blocks(text, "yaml"), 1)
    ],
)
def test_schemas_plans_criteria_and_candidates_in_the_documents_are_valid(text: str, tmp_path: Path) -> None:
    if text.startswith(plan_files.KEY):
        Plan.from_yaml(text)
    elif text.startswith(criteria.KEY):
        criteria.Criteria.from_yaml(text, people_schema())
    elif text.startswith(candidates.KEY):
        (tmp_path / "c.yaml").write_text(text, "utf-8")
        candidates.load_candidates([tmp_path / "c.yaml"], people_schema())
    else:
        Schema.from_yaml(text)


def test_the_reference_names_every_kind_rule_field_and_resolution() -> None:
    words = {SCHEMA_KEY, *ATTRIBUTE_KINDS, *RULE_KINDS, *Schema.__struct_fields__, "year", "microsecond"}
    for struct in (*ATTRIBUTE_KINDS.values(), *RULE_KINDS.values()):
        words |= set(struct.__struct_encode_fields__) - {"name"}

    missing = [word for word in sorted(words) if not re.search(rf"`{word}`|\b{word}:|rule: {word}\b", REFERENCE)]

    assert missing == []
    assert set(NUMPY_UNITS) >= {"year", "microsecond"}


def test_the_commands_of_the_page_of_plans_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under a schema without the name of a dataset or an expected size."""
    monkeypatch.chdir(tmp_path)
    rows = [f"{n % 40 + 20},{'fm'[n % 2]},{n % 7}" for n in range(300)]
    Path("people.csv").write_text("\n".join(["age,sex,street", *rows]), "utf-8")
    for name in ("draft people.csv -o schema.yaml", "approve schema.yaml --all --as-drafted --because book"):
        assert run(["schema", *name.split()]) == 0
    Path("schema.yaml").write_text(Path("schema.yaml").read_text("utf-8").replace("dataset: people", ""), "utf-8")
    inline = re.findall(r"`(dpsyn explore [^`]*)`", PLANS)
    quoted = [line.replace("sample", "people") for line in inline]
    lines = [*"".join(find_blocks(PLANS, "console")).splitlines(), *quoted]

    for line in lines:
        words = shlex.split(line.removeprefix("$ "), comments=True)

        assert run(words[1:]) == 0, line
    assert len(lines) == 6


def test_the_page_of_the_gate_lists_every_answer_of_a_private_table() -> None:
    """What ``PrivateTable`` and ``DistanceGate`` define; what these inherit keeps the books and releases nothing."""
    members = {**vars(DistanceGate), **vars(PrivateTable)}
    answers = {name for name, value in members.items() if inspect.isfunction(value) and name[0] != "_"}
    paragraph = next(part for part in TEXTS["gate.md"].split("\n\n") if part.startswith("`measure`"))

    assert set(re.findall(r"`(\w+)`", paragraph)) == answers - {"recode"}


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


def find_cells(page: str, first: str) -> list[list[str]]:
    """The rows of a page's table, as cells, whose first cell matches a pattern."""
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in TEXTS[page].splitlines() if "|" in line]
    return [row for row in rows if re.fullmatch(first, row[0])]


def test_the_crossings_of_the_page_of_the_budget_are_those_of_the_formulas() -> None:
    rows = find_cells("budget.md", r"[\d.]+, 1e-\d+")

    assert len(rows) == 4
    for budget, figure, *crossings in rows:
        epsilon, delta = (float(part) for part in budget.split(","))
        for method, shown in zip(("loose", "zcdp", "exact"), crossings, strict=True):
            added, replaced = (
                dpsyn.laplace_gaussian_crossover(epsilon, delta, method, neighbors=neighbors)  # type: ignore[arg-type]
                for neighbors in ("add-remove", "replace")
            )
            assert shown == f"{added:.1f} ({replaced:.1f})"
        assert int(figure) == round(dpsyn.laplace_gaussian_crossover(epsilon, delta, "loose"))


def test_the_page_of_utility_has_every_result_of_another_system() -> None:
    assert len(list_peers()) > 20
    assert "\n".join(list_peers()) in TEXTS["utility.md"]


def test_the_marginals_at_constant_error_of_the_page_of_theory_are_those_of_the_formulas() -> None:
    rows = [[int(cell.replace(" ", "")) for cell in row] for row in find_cells("theory.md", r"1[ 0]{8,}")]

    assert len(rows) == 4
    for count, *marginals in rows:
        assert marginals == [dpsyn.max_marginals(1, delta, 1e-5 * count) for delta in (0, 1e-9, count**-2)]


PAPER = TEXTS["paper.md"]


def test_the_page_of_the_paper_has_every_item_once_and_counts_their_marks() -> None:
    rows = find_cells("paper.md", r"\d+")
    counted = re.search(r"Of (\d+) items, (\d+) work, (\d+) are explained, and none is missing", PAPER)

    assert [int(row[0]) for row in rows] == list(range(1, 141))
    assert counted is not None
    marks = Counter(row[3] for row in rows)
    assert set(marks) == {"works", "explained"}
    shown = [int(number) for number in counted.groups()]
    assert shown == [len(rows), marks["works"], marks["explained"]]
    unexplained = [row[0] for row in rows if row[3] != "works" and len(row) < 5]
    assert unexplained == []


@pytest.mark.parametrize("span", sorted({span for span in re.findall(r"`([^`\n]+)`", PAPER) if "--set" in span}))
def test_the_options_in_the_page_of_the_paper_are_accepted(span: str) -> None:
    """By the recipe that is named beside them, or by some recipe."""
    named = re.search(r"--recipe (\S+)", span)
    options = dict(text.split("=", 1) for text in re.findall(r"--set (\S+)", span))

    def accepts(recipe: str) -> bool:
        try:
            dpsyn.find_recipe(recipe, options)
        except dpsyn.UserError:
            return False
        return True

    assert any(accepts(recipe) for recipe in ([named[1]] if named else dpsyn.RECIPES))


def test_the_page_of_the_paper_names_files_and_public_names_that_exist() -> None:
    spans = set(re.findall(r"`([^`\n]+)`", PAPER))
    files = {span for span in spans if re.fullmatch(r"[\w./-]+/([\w-]+\.(py|yaml|json|csv|md))?", span)}
    benches = {f"bench/{name}.py" for span in spans for name in re.findall(r"python -m bench\.(\w+)", span)}
    names = {span.removeprefix("dpsyn.") for span in spans if re.fullmatch(r"dpsyn\.\w+", span)} - {"dpsyn"}

    missing = [name for name in files | benches if not ((ROOT / name).exists() or (SOURCE / name).exists())]
    assert missing == []
    assert names <= set(dpsyn.__all__)
    assert len(files) > 40
    assert len(names) > 5


# ── the map of the pages ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "document", [*PAGES.values(), ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"], ids=lambda p: p.name
)
def test_every_link_between_documents_leads_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text("utf-8")):
        assert (document.parent / target).exists(), f"{document.name} → {target}"


def test_the_picture_of_the_way_names_commands_and_options_that_exist_and_needs_nothing_from_elsewhere() -> None:
    picture = (ROOT / "docs" / "way.svg").read_text("utf-8")
    context = click.Context(dpsyn_command)
    named = [words.split() for words in re.findall(r'class="code"[^>]*>([^<]+)<', picture)]

    assert len(named) >= 9
    for name, *rest in named:
        command = dpsyn_command.get_command(context, name)
        assert command is not None, name
        options = {option for parameter in command.params for option in parameter.opts}
        inner = getattr(command, "commands", {})
        assert all(word in options or word in inner or word == "·" for word in rest), (name, rest)
    assert "prefers-color-scheme: dark" in picture
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|@import|@font-face|<image", picture)


def test_every_page_is_linked_from_another() -> None:
    targets = {
        target for text in TEXTS.values() for target in re.findall(r"\]\([\w./-]*?([\w-]+\.md)(?:#[^)]*)?\)", text)
    }

    assert set(TEXTS) - {"README.md", "index.md"} <= targets


def find_glossary_entries() -> list[tuple[str, str]]:
    """The terms of the glossary, each with its last column: where the concept is in the source."""
    rows = [line.strip("| ").split(" | ") for line in GLOSSARY.splitlines() if line.startswith("| ")]
    return [(row[0], row[-1]) for row in rows if row[0] != "term"]


def test_the_glossary_defines_each_term_once() -> None:
    terms = [term for term, _ in find_glossary_entries()]

    assert len(terms) > 50
    assert len(terms) == len(set(terms))


@pytest.mark.parametrize(("term", "where"), find_glossary_entries())
def test_a_term_of_the_glossary_is_where_it_says(term: str, where: str) -> None:
    paths = re.findall(r"`([^`]+)`", where)

    assert paths or where == "–", term
    for path in paths:
        assert (SOURCE / path.split("/")[0] / "__init__.py").is_file(), f"{term}: no package {path}"
        assert (SOURCE / path).exists(), f"{term}: no {path}"


CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text("utf-8")


def test_the_table_of_packages_lists_all_of_them() -> None:
    listed = [
        name
        for row in re.findall(r"^\| (`.*?) \|", CONTRIBUTING, re.MULTILINE)
        for name in re.findall(r"`([\w./]+)`", row)
    ]
    packages = {f"{path.parent.name}/" for path in SOURCE.glob("*/__init__.py")}
    modules = {path.name for path in SOURCE.glob("*.py")} - {"__init__.py", "__main__.py"}

    assert sorted(listed) == sorted(packages | modules)


# ── the types of columns ─────────────────────────────────────────────────────────────────────────────────────


def test_the_document_shows_how_every_type_comes_back() -> None:
    shown = TEXTS["types.md"].partition(test_types.START)[2].partition(test_types.END)[0]
    expected = test_types.make_document_table()
    if int(pandas.__version__.split(".")[0]) < 3:  # its texts and timestamps had other types by default
        shown, expected = ("### polars" + text.partition("### polars")[2] for text in (shown, expected))

    assert shown == expected, "python -m tests.test_types writes the table"


# ── the examples in docstrings, and the public names ─────────────────────────────────────────────────────────


def find_modules_with_examples() -> list[str]:
    """The modules of dpsyn with an example in a docstring, by their dotted names."""
    paths = [path for path in sorted(SOURCE.rglob("*.py")) if ">>> " in path.read_text("utf-8")]
    return [".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__") for path in paths]


@pytest.mark.parametrize("name", find_modules_with_examples())
def test_the_examples_of_a_module_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

    result = doctest.testmod(importlib.import_module(name), optionflags=flags, raise_on_error=False)

    assert result.attempted > 0
    assert result.failed == 0, "the examples that failed are printed above"


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
