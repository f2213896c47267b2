"""What a ledger says of a dataset, in words for a steward and as plain data."""

from __future__ import annotations

import math
from datetime import datetime
from typing import TYPE_CHECKING, Any

from dpsyn.report.numbers import format_count, format_number, format_percent, format_rounded_down, format_rounded_up

if TYPE_CHECKING:
    from dpsyn.accounting import Cap, DatasetAccount, RunAccount

RUN_HEADINGS = ("run", "opened", "promised ε", "promised δ", "measurements", "drawn of it", "state")
"""The columns of ``run_rows``."""

NOT_PRIVATE = "NOT PRIVATE"
"""The stamp of runs whose noise came from a test."""


def account_lines(account: DatasetAccount) -> list[str]:
    """Whom the releases of a dataset protect, its cap, what is used of it and what is left."""
    lines = [f"Protected: {_privacy_unit_text(account)}.", f"Cap: {_cap_text(account.cap)}."]
    if account.runs:
        lines.append(f"Used: {_spent_text(account)}.")
    if account.cap:
        lines.append(f"Left: {_remaining_text(account)}.")
    return lines


def run_rows(account: DatasetAccount) -> list[tuple[str, ...]]:
    """A row of text for each run."""
    return [
        (
            run.run,
            _format_time(run.opened_at),
            format_number(float(run.budget.epsilon)),
            format_number(float(run.budget.delta)),
            f"{len(run.measurements):,}",
            format_percent(_spent_share(run)),
            _run_state(run),
        )
        for run in account.runs
    ]


def run_notes(account: DatasetAccount, file: str) -> list[str]:
    """What a steward should know of certain runs: open ones may be abandoned, some are not private."""
    notes = [
        f"Run {run.run} is open since {_format_time(run.opened_at)} and holds its whole promise. If no release is running, it "
        f"was abandoned; what it did not draw is free again after:  dpsyn ledger close {file} {run.run}"
        for run in account.runs
        if not run.closed
    ]
    stamped = [run.run for run in account.runs if not run.uses_real_noise]
    if stamped:
        notes.append(
            f"{NOT_PRIVATE}: the noise of {', '.join(stamped)} came from a test; publish nothing made from it."
        )
    return notes


def account_data(account: DatasetAccount) -> dict[str, Any]:
    """A dataset as plain data for JSON."""
    delta, left = _reference_delta(account), account.epsilon_left()
    used = account.epsilon(delta)
    return {
        "dataset": account.dataset,
        "privacy_unit": account.privacy_unit.to_data() if account.privacy_unit else None,
        "cap": _cap_data(account.cap),
        "used": {
            "rho": float(account.rho),
            "threshold_delta": float(account.delta),
            "epsilon": used if math.isfinite(used) else None,
            "at_delta": delta,
            "share_of_cap": _cap_share(account, account.cap) if account.cap else None,
        },
        "epsilon_left": left,
        "runs": [_run_data(run) for run in account.runs],
    }


def _run_data(run: RunAccount) -> dict[str, Any]:
    return {
        "run": run.run,
        "opened": run.opened_at,
        "closed": run.closed,
        "uses_real_noise": run.uses_real_noise,
        "guarantee": {"epsilon": float(run.budget.epsilon), "delta": float(run.budget.delta)},
        "held": {"rho": float(run.rho), "threshold_delta": float(run.delta)},
        "spent": {"rho": float(run.spent_rho), "threshold_delta": float(run.spent_delta)},
        "measurements": len(run.measurements),
    }


def _cap_data(cap: Cap | None) -> dict[str, float] | None:
    return {"epsilon": cap.epsilon, "delta": float(cap.delta), "rho": float(cap.rho)} if cap else None


def _privacy_unit_text(account: DatasetAccount) -> str:
    ways = dict.fromkeys(run.privacy_unit.description for run in account.runs)
    return f"against {'; '.join(ways)}" if ways else "nobody yet, there was no release"


def _cap_text(cap: Cap | None) -> str:
    if cap is None:
        return "none, so nothing keeps releases from adding up; set one with dpsyn ledger cap"
    return f"ε = {format_number(cap.epsilon)} at δ = {format_number(float(cap.delta))} for all releases together"


def _spent_text(account: DatasetAccount) -> str:
    delta = _reference_delta(account)
    share = f" and {format_percent(_cap_share(account, account.cap))} of the cap, counted in ρ" if account.cap else ""
    held = sum(not run.closed for run in account.runs)
    waiting = f"; {format_count(held, 'open run')} counted with the whole promise" if held else ""
    return f"ε = {format_rounded_up(account.epsilon(delta))} at δ = {format_number(delta)}{share}{waiting}"


def _remaining_text(account: DatasetAccount) -> str:
    left = account.epsilon_left()
    if not left or account.cap is None:
        return "nothing; a release is refused until the cap is raised or an abandoned run is closed"
    return f"one more release may promise up to ε = {format_rounded_down(left)} at δ = {format_number(float(account.cap.delta))}"


def _cap_share(account: DatasetAccount, cap: Cap) -> float:
    """What is used of a cap: of its ρ or of its δ for thresholds, whichever is nearer to the end."""
    return float(max(account.rho / cap.rho, account.delta / cap.threshold_delta))


def _reference_delta(account: DatasetAccount) -> float:
    """The δ at which the use is told: the cap's, or the largest that was promised and that of thresholds."""
    if account.cap:
        return float(account.cap.delta)
    promised = max((run.budget.delta for run in account.runs), default=0)
    return float(promised + account.delta) or 1e-9


def _spent_share(run: RunAccount) -> float:
    """What a run drew of its promise: of ρ or of δ for thresholds, whichever is more."""
    rho = run.spent_rho / run.budget.reserved_rho
    return float(max(rho, run.spent_delta / run.budget.threshold_delta) if run.budget.threshold_delta else rho)


def _run_state(run: RunAccount) -> str:
    state = "closed" if run.closed else "open"
    return state if run.uses_real_noise else f"{state}, {NOT_PRIVATE}"


def _format_time(time: str) -> str:
    return f"{datetime.fromisoformat(time):%Y-%m-%d %H:%M} UTC"
