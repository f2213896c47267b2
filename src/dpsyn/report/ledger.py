"""The account of a dataset in a ledger, as text for the data owner and as plain data."""

from __future__ import annotations

import math
from datetime import datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpsyn.report.numbers import format_count, format_number, format_percent, format_rounded_down, format_rounded_up

if TYPE_CHECKING:
    from dpsyn.accounting import Cap, DatasetAccount, RunAccount

RUN_HEADINGS = ("run", "opened", "budget ε", "budget δ", "measurements", "spent", "state")
"""The columns of ``run_rows``."""

NOT_PRIVATE = "NOT PRIVATE"
"""The mark of runs whose noise came from a test."""


def account_lines(account: DatasetAccount, *, set_cap: str = "with dpsyn ledger set-cap") -> list[str]:
    """What the releases of a dataset protect, its cap or how to set one, and the spent and remaining budget."""
    lines = [f"Protected: {_privacy_unit_text(account)}.", f"Cap: {_cap_text(account.cap, set_cap)}."]
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
            format_time(run.opened_at),
            format_number(float(run.budget.epsilon)),
            format_number(float(run.budget.delta)),
            f"{len(run.measurements):,}",
            format_percent(spent_share(run)),
            _run_state(run),
        )
        for run in account.runs
    ]


def run_notes(account: DatasetAccount, file: str) -> list[str]:
    """What the data owner should know of some runs: open ones may be abandoned, some are not private."""
    notes = [
        f"Run {run.run} is open since {format_time(run.opened_at)} and reserves its whole budget. If no release is "
        f"running, it was abandoned; to free its unspent budget, run:  dpsyn ledger close {file} {run.run}"
        for run in account.runs
        if not run.closed
    ]
    not_private = [run.run for run in account.runs if not run.uses_real_noise]
    if not_private:
        notes.append(
            f"{NOT_PRIVATE}: the noise of {', '.join(not_private)} came from a test; publish nothing made from it."
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
    units = dict.fromkeys(run.privacy_unit.description for run in account.runs)
    return f"against {'; '.join(units)}" if units else "nothing yet, because nothing was released"


def _cap_text(cap: Cap | None, set_cap: str) -> str:
    if cap is None:
        return f"none, so nothing limits the total cost of releases; set one {set_cap}"
    return f"ε = {format_number(cap.epsilon)} at δ = {format_number(float(cap.delta))} for all releases together"


def _spent_text(account: DatasetAccount) -> str:
    delta = _reference_delta(account)
    share = ""
    if account.cap:
        unit = "ρ" if _cap_share(account, account.cap) == _rho_share(account, account.cap) else "ε"
        share = f" and {format_percent(_cap_share(account, account.cap))} of the cap, counted in {unit}"
    open_runs = sum(not run.closed for run in account.runs)
    reserved = f"; {format_count(open_runs, 'open run')} counted with the whole budget" if open_runs else ""
    return f"ε = {format_rounded_up(account.epsilon(delta))} at δ = {format_number(delta)}{share}{reserved}"


def _remaining_text(account: DatasetAccount) -> str:
    left, pure, cap = account.epsilon_left(), account.pure_epsilon_left, account.cap
    if cap is None or not (left or pure):
        return "nothing; a release is refused until the cap is raised or an abandoned run is closed"
    delta, at_zero = format_number(float(cap.delta)), f"up to ε = {format_rounded_down(pure)} at δ = 0"
    if not left:
        return f"one more release can have a budget of {at_zero}"
    words = f"one more release can have a budget of up to ε = {format_rounded_down(left)} at δ = {delta}"
    return f"{words}, or of {at_zero}" if account.runs and pure else words


def _cap_share(account: DatasetAccount, cap: Cap) -> float:
    """The used share of a cap: counted in ρ, or in ε if all releases are pure and that is less."""
    by_rho = _rho_share(account, cap)
    return by_rho if account.pure_epsilon is None else min(by_rho, float(account.pure_epsilon) / cap.epsilon)


def _rho_share(account: DatasetAccount, cap: Cap) -> float:
    """The used share of a cap's ρ or of its δ for thresholds, whichever is larger."""
    return float(max(account.rho / cap.rho, account.delta / cap.threshold_delta))


def _reference_delta(account: DatasetAccount) -> float:
    """The δ at which the spent budget is reported: the cap's, or the largest of a run plus that of thresholds."""
    if account.cap:
        return float(account.cap.delta)
    largest = max((run.budget.delta for run in account.runs), default=0)
    return float(largest + account.delta) or 1e-9


def spent_share(run: RunAccount) -> float:
    """The share of its budget that a run spent: of ε if it is pure, of ρ or of the δ for thresholds otherwise."""
    if run.budget.is_pure:
        from dpsyn.accounting import MeasurementRecord  # it loads numpy, which --help does not need

        costs = [MeasurementRecord.from_data(data).cost for data in run.measurements]
        return float(sum((sum(cost.pure_epsilons) for cost in costs), Fraction(0)) / run.budget.amount)
    rho = run.spent_rho / run.budget.reserved_rho
    return float(max(rho, run.spent_delta / run.budget.threshold_delta) if run.budget.threshold_delta else rho)


def _run_state(run: RunAccount) -> str:
    state = "closed" if run.closed else "open"
    return state if run.uses_real_noise else f"{state}, {NOT_PRIVATE}"


def format_time(time: str) -> str:
    """When something was recorded."""
    return f"{datetime.fromisoformat(time):%Y-%m-%d %H:%M} UTC"
