"""``audit``: attack the installed package on tables that it makes itself."""

from __future__ import annotations

import time
from collections.abc import Sequence

from dpsyn import __version__, notebook
from dpsyn.audits.attacks import NOISE_TESTS, bound_loss, fit_noise, replay_on_neighbors, run_canaries
from dpsyn.audits.cases import CANARY_CASES, AuditCase, replay_cases
from dpsyn.audits.results import FAMILYWISE_ERROR, AuditReport
from dpsyn.errors import UserError, quote_argument
from dpsyn.options import suggest_arguments
from dpsyn.progress import Progress, ignore_progress
from dpsyn.suggestions import suggest_names

DEFAULT_RUNS = 1_000
MIN_RUNS = 20
MAX_RUNS = 10**7

REPLAY_PHASE, CANARY_PHASE = "replaying on neighboring tables", "looking for canaries"


@suggest_arguments
@notebook.show_progress
def audit(
    runs: int = DEFAULT_RUNS, *, replays: int = 2, only: Sequence[str] = (), progress: Progress = ignore_progress
) -> AuditReport:
    """Attack the installed package: does it keep the guarantee that it states?

    Every recipe and every method of the gate is replayed on neighboring tables, and exact answers are compared with
    what was charged; the noise of all runs is compared with its stated distribution; and in what is released, canaries
    are looked for, which gives lower bounds of the privacy loss, each with what it would have found had there been less
    noise. An installation without fault fails with a probability of at most 10⁻⁴.

    >>> report = audit(50, replays=1, only=["measure_laplace"])
    >>> report.passed
    True

    Privacy: an audit reads no data: it makes its tables itself, takes none, and touches no ledger.

    Args:
        runs: the runs on each of two neighboring tables; slow recipes get a part of them. 10,000 show most.
        replays: pairs of neighboring tables on which each program is replayed, for each relation and unit.
        only: names of recipes or methods of the gate, to audit only these.
        progress: called with what is going on.
    """
    for name, number, lowest in (("runs", runs, MIN_RUNS), ("replays", replays, 0)):
        if isinstance(number, bool) or not isinstance(number, int) or not lowest <= number <= MAX_RUNS:
            raise UserError(
                f"{name} is {quote_argument(number)}; give a whole number from {lowest} to {MAX_RUNS:,}. An audit "
                "makes its tables itself and takes no data"
            )
    began = time.monotonic()
    canaries, programs = _select_cases(only)
    findings = []
    for number, cases in enumerate(programs):
        progress(REPLAY_PHASE, number / len(programs))
        findings.append(replay_on_neighbors(cases, range(replays)))
    found = []
    for number, case in enumerate(canaries):
        progress(CANARY_PHASE, number / len(canaries))
        found.append(run_canaries(case, max(MIN_RUNS, round(runs * case.share))))
    tests = len(found) + NOISE_TESTS * sum(len(each.noise) for each in found)
    alpha = FAMILYWISE_ERROR / max(tests, 1)
    return AuditReport(
        version=__version__,
        runs=runs,
        tests=tests,
        replays=tuple(findings),
        noise=tuple(
            fit_noise(each.case.title, mechanism, sample, alpha)
            for each in found
            for mechanism, sample in each.noise.items()
        ),
        bounds=tuple(bound_loss(each, alpha) for each in found),
        seconds=time.monotonic() - began,
    )


def audited_names() -> tuple[str, ...]:
    """What can be audited by itself."""
    return tuple(dict.fromkeys(_short_name(case) for case in (*CANARY_CASES, *replay_cases())))


def _short_name(case: AuditCase) -> str:
    return case.name.removeprefix("recipe ").partition(" with ")[0]


def _select_cases(only: Sequence[str]) -> tuple[list[AuditCase], list[list[AuditCase]]]:
    """The cases for canaries, and those to replay, by program."""
    names = audited_names()
    if isinstance(only, str) or not isinstance(only, Sequence) or not all(isinstance(name, str) for name in only):
        raise UserError(f"only is {quote_argument(only)}; give a list of names, such as ['measure', 'independent']")
    for name in only:
        if name not in names:
            raise UserError(
                f"there is no recipe or method {quote_argument(name)} to audit; {suggest_names(name, names)} An "
                "audit makes its tables itself and takes no data"
            )
    programs: dict[str, list[AuditCase]] = {}
    for case in replay_cases():
        if not only or _short_name(case) in only:
            programs.setdefault(case.name, []).append(case)
    return [case for case in CANARY_CASES if not only or _short_name(case) in only], list(programs.values())
