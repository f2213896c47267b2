"""Would the tests notice? Breaks the guarantee on purpose, one line at a time, and runs the tests that should fail.

    python -m bench.mutants [--only WORDS] [--output docs/explanation/mutants.md]

Each mutation of ``bench.mutations`` is applied to a copy of the source. A mutant that no test catches is a guarantee
that nobody checks: the exit code is 1, and a test must be written. The unchanged copy must pass first. A mutation whose
pattern does not match exactly once is an error, so an outdated list is noticed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from bench.measuring import commit
from bench.mutations import MUTATIONS, Mutation
from bench.syntax import PlaceError, change_source

T = TypeVar("T")
R = TypeVar("R")

ROOT = Path(__file__).parents[1]
MAX_PARALLEL = 2
"""Mutants that are tested at the same time."""
TIMEOUT = 300
"""Seconds after which the tests of a mutant are stopped."""
OPTIONS = ("-x", "--check", "-q", "--no-header", "-p", "no:cacheprovider", "--hypothesis-profile=unshrunk")
"""Options of pytest: stop at the first failure, use the same examples every time."""

_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+?::.*?)(?: - .*)?$", re.MULTILINE)


class MutantError(Exception):
    """The experiment itself failed, so it shows nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a mutant: the test that failed, or None if all passed."""

    mutation: Mutation
    caught_by: str | None


def apply_mutation(mutation: Mutation, source: Path) -> str:
    """Break the file of a mutation; the new text."""
    try:
        text = (source / mutation.file).read_text("utf-8")
        return change_source(text, mutation.function, mutation.change)
    except (OSError, PlaceError) as error:
        raise MutantError(
            f"{mutation.name!r} does not fit {mutation.file}: {error}; bring the list in bench/mutations.py up to date"
        ) from error


def copy_tree(tree: Path, copy: Path) -> Path:
    """Copy source and tests, compiled kernels included."""
    for folder in ("src", "tests"):
        shutil.copytree(tree / folder, copy / folder)
    shutil.copy2(tree / "pyproject.toml", copy)
    return copy


def find_failing_test(copy: Path, tests: Sequence[str]) -> str | None:
    """Run tests against a copy; the name of the first that fails, or None."""
    environment = os.environ | {"PYTHONPATH": str(copy / "src")}
    _require_the_copy(copy, environment)
    try:
        done = _run([sys.executable, "-m", "pytest", *OPTIONS, *tests], copy, environment)
    except subprocess.TimeoutExpired:
        raise MutantError(f"{' '.join(tests)} took more than {TIMEOUT} s") from None
    if done.returncode == 0:
        return None
    failed = _FAILED.search(done.stdout)
    if done.returncode != 1 or not failed:
        raise MutantError(f"{' '.join(tests)} did not run:\n{done.stdout}{done.stderr}")
    return failed[1]


def _require_the_copy(copy: Path, environment: dict[str, str]) -> None:
    """Refuse to test anything but the copy, such as the installed package."""
    done = _run([sys.executable, "-c", "import dpsyn; print(dpsyn.__file__)"], copy, environment)
    if not Path(done.stdout.strip()).is_relative_to(copy / "src"):
        raise MutantError(f"instead of the copy this was imported: {done.stdout.strip() or done.stderr}")


def _run(command: list[str], copy: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=copy, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False
    )


def require_green(clean: Path, mutations: Iterable[Mutation]) -> None:
    """Check that the tests pass on the unchanged copy; otherwise their failures would show nothing."""
    files = sorted({test for mutation in mutations for test in mutation.tests})
    for file, failed in zip(files, _map_together(lambda file: find_failing_test(clean, [file]), files), strict=True):
        if failed:
            raise MutantError(f"the unchanged source fails {failed}")
        print(f"unchanged: {file} passes", file=sys.stderr)


def try_mutation(mutation: Mutation, clean: Path) -> Outcome:
    """Mutate a copy of the clean tree and run the tests that should fail."""
    with tempfile.TemporaryDirectory() as folder:
        copy = copy_tree(clean, Path(folder).resolve())
        source = copy / "src" / "dpsyn"
        (source / mutation.file).write_text(apply_mutation(mutation, source), "utf-8")
        outcome = Outcome(mutation=mutation, caught_by=find_failing_test(copy, mutation.tests))
    print(f"{mutation.name}: {outcome.caught_by or 'SURVIVED'}", file=sys.stderr)
    return outcome


def _map_together(work: Callable[[T], R], items: Sequence[T]) -> list[R]:
    with ThreadPoolExecutor(MAX_PARALLEL) as pool:
        return list(pool.map(work, items))


def format_report(outcomes: Sequence[Outcome]) -> str:
    """Format the outcomes as a page of Markdown."""
    caught = sum(outcome.caught_by is not None for outcome in outcomes)
    lines = [
        "# Would the tests notice?",
        "",
        "`python -m bench.mutants` breaks the guarantee in a copy of the source, one line at a time, and runs the "
        "tests that should fail.",
        f"At commit {commit()} they caught {caught} of {len(outcomes)} mutants; the first test that failed is named.",
        "",
        "| what was broken | where | caught by |",
        "|---|---|---|",
        *(_format_row(outcome) for outcome in outcomes),
    ]
    return "\n".join(lines) + "\n"


def _format_row(outcome: Outcome) -> str:
    name = (outcome.caught_by or "**nothing**").removeprefix("tests/").replace("|", "\\|")
    shown = f"`{name}`" if outcome.caught_by else name
    return f"| {outcome.mutation.name} | `{outcome.mutation.file}` | {shown} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="only mutations whose name contains this text")
    parser.add_argument("--output", type=Path, help="write the table to this file as well")
    arguments = parser.parse_args()
    mutations = [mutation for mutation in MUTATIONS if arguments.only in mutation.name]
    for mutation in mutations:
        apply_mutation(mutation, ROOT / "src" / "dpsyn")
    with tempfile.TemporaryDirectory() as folder:
        clean = copy_tree(ROOT, Path(folder).resolve())
        require_green(clean, mutations)
        outcomes = _map_together(lambda mutation: try_mutation(mutation, clean), mutations)
    print(format_report(outcomes))
    if arguments.output:
        arguments.output.write_text(format_report(outcomes), "utf-8")
    sys.exit(any(outcome.caught_by is None for outcome in outcomes))


if __name__ == "__main__":
    main()
