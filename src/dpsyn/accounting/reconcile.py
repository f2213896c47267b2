"""Whether a certificate says of its run what the ledger recorded of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from dpsyn.accounting.budget import MeasurementRecord, replay
from dpsyn.accounting.certificate import PRIVACY_FLAG, Certificate, parse_privacy_flag
from dpsyn.errors import DPSynError

if TYPE_CHECKING:
    from dpsyn.accounting.hash_chain import LedgerEntry
    from dpsyn.accounting.ledger import DatasetAccount, RunAccount

COMPARED_KEYS = ("dataset", "guarantee", "privacy_unit", "measurements", "certified_epsilon", "epsilon_bounds")
"""What a certificate states that follows from the ledger; what was declared public is not in there."""

_RELATIVE_TOLERANCE = 1e-6  # as where a certificate is read
_MAX_SHOWN_DIFFERENCES = 3  # differences of one part
_MAX_SHOWN_CHARACTERS = 60


def find_disagreements(
    certificate: Mapping[str, Any], entries: Iterable[LedgerEntry], accounts: Mapping[str, DatasetAccount]
) -> list[str]:
    """Where a certificate, as plain data, and the ledger differ, in sentences; none if it says what was recorded.

    The ledger's own certificate of the run is computed anew, from its promise and all of its draws, and held against
    the other part by part. So nothing that the certificate computed is taken on its word.
    """
    name = certificate.get("run")
    found = next(((dataset, run) for dataset in accounts.values() for run in dataset.runs if run.run == name), None)
    if found is None and certificate.get("ledger_head") is None:
        return []  # one of several releases, which kept no ledger
    if found is None:
        return [f"it is the certificate of run {_format_value(name)}, which this ledger does not know"]
    try:
        expected = _certificate_from_ledger(found[0].dataset, found[1])
    except DPSynError as error:
        return [f"what the ledger recorded of run {name} cannot be certified: {error}"]
    differences = [
        line for part in COMPARED_KEYS for line in _limit_differences(part, certificate.get(part), expected[part])
    ]
    differences += _find_differences(PRIVACY_FLAG, _privacy_flag(certificate), expected[PRIVACY_FLAG])
    if not _is_end_of_run(certificate.get("ledger_head"), [entry for entry in entries if entry.run == name]):
        differences.append("the entry of the ledger that it names is not the end of this run")
    return [f"run {name}: {line}" for line in differences]


def _certificate_from_ledger(dataset: str, run: RunAccount) -> dict[str, Any]:
    account = replay(run.budget, tuple(MeasurementRecord.from_data(data) for data in run.measurements))
    return Certificate.from_account(
        account, run.privacy_unit, dataset=dataset, run=run.run, uses_real_noise=run.uses_real_noise
    ).to_data()


def _privacy_flag(certificate: Mapping[str, Any]) -> bool | None:
    try:
        return parse_privacy_flag(certificate)
    except KeyError:
        return None


def _is_end_of_run(head: Any, entries: list[LedgerEntry]) -> bool:
    """Whether a head is that of a run's last draw or of what came after it: then it covers all draws."""
    after = next((i for i in reversed(range(len(entries))) if entries[i].kind == "measurement"), 0)
    return head in [entry.head.to_data() for entry in entries[after:]]


def _limit_differences(part: str, stated: Any, recorded: Any) -> list[str]:
    lines = [*_find_differences(part, stated, recorded)]
    more = len(lines) - _MAX_SHOWN_DIFFERENCES
    return [*lines[:_MAX_SHOWN_DIFFERENCES], f"{part}: {more} more differences"] if more > 1 else lines


def _find_differences(path: str, stated: Any, recorded: Any) -> Iterator[str]:
    """Where plain data differs from what was recorded; it is walked no deeper than that is."""
    if isinstance(recorded, dict) and isinstance(stated, dict):
        for key in [*recorded, *(key for key in stated if key not in recorded)]:
            yield from _find_differences(f"{path} {key}", stated.get(key), recorded.get(key))
    elif isinstance(recorded, list) and isinstance(stated, list):
        if len(stated) != len(recorded):
            yield f"{path}: it has {len(stated)}, the ledger {len(recorded)}"
        for i, (one, other) in enumerate(zip(stated, recorded, strict=False), start=1):
            yield from _find_differences(f"{path} {i}", one, other)
    elif not _is_same_value(stated, recorded):
        yield f"{path} is {_format_value(stated)} in it and {_format_value(recorded)} by the ledger"


def _is_same_value(stated: Any, recorded: Any) -> bool:
    if isinstance(recorded, float) and isinstance(stated, int | float):
        return recorded * (1 - _RELATIVE_TOLERANCE) <= stated <= recorded * (1 + _RELATIVE_TOLERANCE)
    return type(stated) is type(recorded) and bool(stated == recorded)


def _format_value(value: Any) -> str:
    """A value on a line, whatever somebody put into the file."""
    words = "missing" if value is None else "something else" if isinstance(value, dict | list) else repr(value)
    return words if len(words) <= _MAX_SHOWN_CHARACTERS else f"{words[:_MAX_SHOWN_CHARACTERS]} …"
