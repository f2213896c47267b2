"""Would the audit notice? Breaks noise and sensitivities on purpose, one at a time, and runs the audit alone.

    python -m bench.audit_mutants [--only WORDS] [--output docs/how-to/audit.md]

Each of 20 mutations is applied to a copy of the source, and the audit of that copy must report a fault. No test of the
project runs. Mutations that the gate itself would refuse, such as noise below OpenDP's own privacy map, are planted
where it cannot notice. The audit is the reduced one, with 100 runs a side, and stops at the first fault. The unchanged
copy must pass. The exit code is 1 if fewer than ``MIN_FOUND`` are found.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench.audit import replace_between
from bench.measuring import commit
from bench.mutants import ROOT, MutantError, apply_mutation, copy_tree
from bench.mutations import MUTATIONS, Mutation
from bench.syntax import Replace

if TYPE_CHECKING:
    from dpsyn.audits.cases import AuditCase

MIN_FOUND = 18
RUNS = 100
TESTS = 200
"""At least as many tests as the whole audit makes, so that stopping early finds no more than going on."""
BEGIN, END = "<!-- mutants: begin -->", "<!-- mutants: end -->"

_OWN = tuple(
    Mutation(
        name=name,
        file="private/mechanisms.py",
        function="_add_noise_to_chunk",
        change=Replace("return np.array(M(V), T)", f"noise = np.array(M(V), T) - V\nreturn V + {noise}"),
        tests=(),
    )
    for name, noise in (
        ("noise is a tenth too small", "noise * 9 // 10"),
        ("noise is a fifth too small", "noise * 4 // 5"),
        ("noise is a quarter too large", "noise * 5 // 4"),
        ("noise is never negative", "np.abs(noise)"),
        ("noise is cut at a thousand steps", "np.clip(noise, -1000, 1000)"),
    )
)
_KNOWN = (
    "empty cells get no noise",
    "all cells of a chunk get the same noise",
    "all answers of a question get the noise of the first",
    "noise comes from a seed",
    "scores are released without noise",
    "baskets: the scale of selections is halved",
    "values below the threshold are listed",
    "the threshold is lower by k",
    "a replaced unit is charged like a removed one",
    "k rows of a person are charged as √k",
    "many scores are charged as one",
    "InDif is charged as if a row changed it by 1",
    "choices by distance are charged as monotone",
    "baskets: all items of a basket are charged as one",
    "one row too many is counted in memory",
)
PLANTED = (*_OWN, *(mutation for name in _KNOWN for mutation in MUTATIONS if mutation.name == name))


def attack() -> str:
    """Audit the package that is imported, part by part; the first fault, or an empty text."""
    from dpsyn.audits.attacks import bound_loss, fit_noise, replay_on_neighbors, run_canaries
    from dpsyn.audits.cases import METHODS, RECIPE_CASES, replay_cases
    from dpsyn.audits.results import FAMILYWISE_ERROR

    alpha = FAMILYWISE_ERROR / TESTS

    def find_canaries(cases: Sequence[AuditCase]) -> str:
        for case in cases:
            found = run_canaries(case, RUNS if case.share == 1 else RUNS // 4)
            bound = bound_loss(found, alpha)
            parts = [fit_noise(case.title, name, sample, alpha) for name, sample in found.noise.items()]
            if faults := [*bound.faults, *(fault for part in parts for fault in part.faults)]:
                return f"{case.title}: {faults[0]}"
        return ""

    if fault := find_canaries(METHODS):
        return fault
    for case in replay_cases():
        replayed = replay_on_neighbors([case], [0])
        if replayed.faults:
            return f"replay of {replayed.name}: {replayed.faults[0]}"
    return find_canaries(RECIPE_CASES)


def audit_copy(copy: Path) -> str:
    """Audit a copy of the source in a process of its own; the first fault, or an empty text."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(copy / "src"), str(ROOT)])}
    done = subprocess.run(
        [sys.executable, "-m", "bench.audit_mutants", "--attack", str(copy)],
        cwd=copy,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 1) or (done.returncode == 1 and not done.stdout.strip()):
        raise MutantError(f"the audit did not run:\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


def try_mutation(mutation: Mutation) -> str:
    """Break a copy of the source and audit it."""
    with tempfile.TemporaryDirectory() as folder:
        copy = copy_tree(ROOT, Path(folder).resolve())
        source = copy / "src" / "dpsyn"
        (source / mutation.file).write_text(apply_mutation(mutation, source), "utf-8")
        began = time.monotonic()
        fault = audit_copy(copy)
    print(f"{mutation.name}: {fault or 'SURVIVED'} ({time.monotonic() - began:.0f} s)", file=sys.stderr, flush=True)
    return fault


def format_report(outcomes: dict[str, str]) -> str:
    """The table of the page."""
    found = sum(map(bool, outcomes.values()))
    return "\n".join(
        [
            f"`python -m bench.audit_mutants` at commit {commit()}: the audit alone found {found} of {len(outcomes)}.",
            "",
            "| what was broken | the first fault that the audit reports |",
            "|---|---|",
            *(f"| {name} | {fault.replace('|', chr(92) + '|') or '**none**'} |" for name, fault in outcomes.items()),
        ]
    )


def main() -> int:
    """Plant the mutants."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="only mutations whose name contains this text")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--attack", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.attack:
        import dpsyn

        if not Path(dpsyn.__file__).is_relative_to(options.attack):
            print(f"instead of the copy {dpsyn.__file__} was imported", file=sys.stderr)
            return 2
        fault = attack()
        print(fault)
        return 1 if fault else 0
    planted = [mutation for mutation in PLANTED if options.only in mutation.name]
    with tempfile.TemporaryDirectory() as folder:
        if not options.only and (fault := audit_copy(copy_tree(ROOT, Path(folder).resolve()))):
            raise MutantError(f"the unchanged source has a fault: {fault}")
    outcomes = {mutation.name: try_mutation(mutation) for mutation in planted}
    text = format_report(outcomes)
    if options.output:
        options.output.write_text(replace_between(options.output.read_text("utf-8"), BEGIN, END, text), "utf-8")
    print(text)
    return 0 if sum(map(bool, outcomes.values())) >= min(MIN_FOUND, len(planted)) else 1


if __name__ == "__main__":
    sys.exit(main())
