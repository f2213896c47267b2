"""The full audit, as a table for the documents.

    python -m bench.audit [--runs 16000] [--others 1000] [--output docs/how-to/audit.md] [--scores FILE]

The cases named in ``FOCUS`` get ``--runs`` runs on each of two neighboring tables, the others ``--others``, of which
slow recipes get a part; everything is replayed on ten pairs of neighboring tables. The tables take the place of those
in the page, between its two markers. ``--scores`` keeps the log-likelihood ratios, for ``bench.audit_peers``. The exit
code is 1 if a fault is found.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.measuring import commit
from dpsyn import AuditReport, __version__
from dpsyn.audits._audit import MIN_RUNS
from dpsyn.audits.attacks import NOISE_TESTS, CanaryRuns, bound_loss, fit_noise, replay_on_neighbors, run_canaries
from dpsyn.audits.cases import CANARY_CASES, AuditCase, replay_cases
from dpsyn.audits.results import FAMILYWISE_ERROR
from dpsyn.report import audit_report

FOCUS = ("measure", "score_predictions", "recipe independent", "recipe direct")
"""What bounds should come near to their claims for, by title."""

REPLAYED_PAIRS = 10
BEGIN, END = "<!-- audit: begin -->", "<!-- audit: end -->"


def run_audit(runs: int, others: int, pairs: int) -> tuple[AuditReport, list[CanaryRuns]]:
    """The report, and the runs behind its bounds."""
    began = time.monotonic()
    programs: dict[str, list[AuditCase]] = {}
    for case in replay_cases():
        programs.setdefault(case.name, []).append(case)
    replays = []
    for name, cases in programs.items():
        replays.append(replay_on_neighbors(cases, range(pairs)))
        print(f"replayed {name}: {replays[-1].faults or 'no fault'}", file=sys.stderr, flush=True)
    found = []
    for case in CANARY_CASES:
        number = runs if case.title in FOCUS else max(MIN_RUNS, round(others * case.share))
        started = time.monotonic()
        found.append(run_canaries(case, number))
        print(f"{case.title}: {number} runs in {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    tests = len(found) + NOISE_TESTS * sum(len(each.noise) for each in found)
    alpha = FAMILYWISE_ERROR / tests
    noise = [fit_noise(each.case.title, name, sample, alpha) for each in found for name, sample in each.noise.items()]
    report = AuditReport(
        version=__version__,
        runs=runs,
        tests=tests,
        replays=tuple(replays),
        noise=tuple(noise),
        bounds=tuple(bound_loss(each, alpha) for each in found),
        seconds=time.monotonic() - began,
    )
    return report, found


def format_report(report: AuditReport) -> str:
    """The tables of the page."""
    ratios = [fit.ratio for fit in report.noise if fit.ratio is not None]
    smallest = min(p for fit in report.noise for p in fit.p_values.values())
    lines = [
        f"`python -m bench.audit` at commit {commit()}, {report.seconds / 60:.0f} minutes. {report.verdict}",
        "",
        "### Canaries",
        "",
        *_format_table(audit_report.BOUND_HEADINGS, audit_report.bound_rows(report), 2),
        "",
        "### Replay",
        "",
        *_format_table(audit_report.REPLAY_HEADINGS[:-1], [row[:-1] for row in audit_report.replay_rows(report)], 1),
        "",
        "### Noise",
        "",
        f"{sum(fit.values for fit in report.noise):,} values of {len(report.noise)} mechanisms; standard deviations "
        f"are {min(ratios):.3f} to {max(ratios):.3f} of the stated ones, and the smallest of "
        f"{NOISE_TESTS * len(report.noise)} "
        f"p-values is {smallest:.2g} (a fault is below {FAMILYWISE_ERROR / report.tests:.1g}).",
        "",
        *_format_table(audit_report.NOISE_HEADINGS, audit_report.noise_rows(report), 2),
    ]
    return "\n".join(lines)


def _format_table(headings: Sequence[str], rows: Iterable[Sequence[str]], texts: int) -> list[str]:
    marks = ["---"] * texts + ["---:"] * (len(headings) - texts)
    return ["| " + " | ".join(row) + " |" for row in (headings, marks, *(map(_escape, row) for row in rows))]


def _escape(cell: str) -> str:
    return cell.replace("|", "\\|").replace("*", "\\*")


def replace_between(page: str, begin: str, end: str, text: str) -> str:
    """A page with another text between two markers."""
    before, rest = page.split(begin, 1)
    return f"{before}{begin}\n{text}\n{end}{rest.split(end, 1)[1]}"


def main() -> int:
    """Run the audit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=16_000)
    parser.add_argument("--others", type=int, default=1_000)
    parser.add_argument("--pairs", type=int, default=REPLAYED_PAIRS)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--scores", type=Path)
    options = parser.parse_args()
    report, found = run_audit(options.runs, options.others, options.pairs)
    if options.scores:
        arrays: dict[str, Any] = {}
        for each, bound in zip(found, report.bounds, strict=True):
            arrays[f"{bound.name}|claim"] = np.array([bound.claim, bound.measure == "μ"])
            for side, scores in zip(("with", "without"), each.scores, strict=True):
                arrays[f"{bound.name}|{side}"] = scores[:, 0]
        np.savez(options.scores, **arrays)
    text = format_report(report)
    if options.output:
        options.output.write_text(replace_between(options.output.read_text("utf-8"), BEGIN, END, text), "utf-8")
    print(text)
    return 0 if report.passed else 1


if __name__ == "__main__":
    sys.exit(main())
