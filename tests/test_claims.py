"""The register of claims: every number that the README claims is in it, and each claim still stands in its document."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
CLAIMS: list[dict[str, Any]] = tomllib.loads((ROOT / "docs" / "claims.toml").read_text("utf-8"))["claim"]

NO_CLAIMS = re.compile(
    r"\(USENIX Security 2021\)|\(SIGMOD 2014\)|\(VLDB 2012\)"  # the papers
    r"|Apache-2\.0|Python 3\.11 or newer"
    r"|steps? \d(?: and \d)?",  # of the five commands above it
    re.IGNORECASE,
)


def read_prose(text: str) -> str:
    """A document without code, the targets of links, and white space that only breaks lines."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"\]\([^)]*\)", "]", re.sub(r"`[^`]*`", "", text))
    return " ".join(text.replace("[", "").replace("]", "").split())


def normalize(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"{claim['file']} {claim['text'][:30]}")
def test_a_claim_stands_in_its_document_and_names_a_command_that_exists(claim: dict[str, Any]) -> None:
    text = (ROOT / claim["file"]).read_text("utf-8")

    assert set(claim) == {"file", "text", "command", "commit", "releases"}
    assert normalize(claim["text"]) in normalize(text) or claim["text"] in read_prose(text)
    assert re.fullmatch(r"[0-9a-f]{7,40}", claim["commit"])
    assert claim["releases"] >= 1
    words = shlex.split(claim["command"])
    if words[:2] == ["python", "-m"]:
        assert (ROOT / f"{words[2].replace('.', '/')}.py").exists()
    else:
        assert words[0] in ("make", "dpsyn")


def test_every_number_in_the_prose_of_the_readme_is_a_registered_claim() -> None:
    prose = read_prose((ROOT / "README.md").read_text("utf-8"))
    for claim in CLAIMS:
        if claim["file"] == "README.md":
            prose = prose.replace(normalize(claim["text"]), "")

    left = re.findall(r".{0,40}\d[\d .,]*.{0,20}", NO_CLAIMS.sub("", prose))

    assert left == []


def test_the_commits_of_claims_and_of_figures_in_the_documents_are_in_the_history() -> None:
    """Where there is a history: an archive has none, and a shallow clone not all of it."""
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        return
    shallow = subprocess.run(
        [git, "rev-parse", "--is-shallow-repository"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    if shallow.stdout.strip() == "true":
        return
    texts = [path.read_text("utf-8") for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]]
    named = {commit for text in texts for commit in re.findall(r"\b(?:commits?|at|of|largest)\s([0-9a-f]{7})\b", text)}
    commits = sorted({claim["commit"] for claim in CLAIMS} | named)
    unknown = [
        commit
        for commit in commits
        if subprocess.run(
            [git, "cat-file", "-e", f"{commit}^{{commit}}"], cwd=ROOT, capture_output=True, check=False
        ).returncode
    ]

    assert len(named) > 20
    assert unknown == []
