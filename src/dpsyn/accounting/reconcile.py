"""Compare a certificate with what the ledger recorded about its run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from dpsyn.accounting.budget import MeasurementRecord, replay
from dpsyn.accounting.certificate import (
    PRIVACY_FLAG,
    Certificate,
    RunOutcome,
    find_unknown_keys,
    parse_privacy_flag,
)
from dpsyn.errors import DPSynError

if TYPE_CHECKING:
    from dpsyn.accounting.hash_chain import LedgerEntry
    from dpsyn.accounting.ledger import DatasetAccount, RunAccount

COMPARED_KEYS = (
    "format",
    "dataset",
    "recipe",
    "guarantee",
    "privacy_unit",
    "measurements",
    "certified_epsilon",
    "epsilon_bounds",
    "declared_public",
)
"""The parts of a certificate that follow from the ledger's entries about a run, whether it is closed or not."""

OUTCOME_KEYS = tuple(RunOutcome().to_data())
"""The parts that the ledger records when a run is closed."""

_HEAD_KEYS = {"sequence": 0, "hash": ""}
_RELATIVE_TOLERANCE = 1e-6  # the same as when a certificate is read
_MAX_SHOWN_DIFFERENCES = 3  # of one part
_MAX_SHOWN_CHARACTERS = 60


def why_not_comparable(certificate: Mapping[str, Any] | None, runs: Collection[str]) -> str:
    """Why a release cannot be compared with the ledger of these runs, in words; empty if it can."""
    if certificate is None:
        return "has no certificate, because its numbers were measured in another system"
    if certificate.get("ledger_head") is None and certificate.get("run") not in runs:
        return "names no ledger entry, because its run kept no ledger"
    return ""


def find_disagreements(
    certificate: Mapping[str, Any], entries: Iterable[LedgerEntry], accounts: Mapping[str, DatasetAccount]
) -> list[str]:
    """The differences between a certificate, as plain data, and the ledger, in sentences; none if they agree.

    The certificate of the run is computed again from the ledger, from its budget and all of its measurements, and the
    two are compared part by part. So no computed value of the certificate is trusted.
    """
    name = certificate.get("run")
    recorded = next(((dataset, run) for dataset in accounts.values() for run in dataset.runs if run.run == name), None)
    if recorded is None:
        return [f"it is the certificate of run {_format_value(name)}, which is not in this ledger"]
    try:
        expected = _certificate_from_ledger(recorded[0].dataset, recorded[1])
    except DPSynError as error:
        return [f"the ledger's record of run {name} cannot be certified: {error}"]
    parts = COMPARED_KEYS + (OUTCOME_KEYS if recorded[1].closed else ())
    differences = [line for part in parts for line in _limit_differences(part, certificate.get(part), expected[part])]
    unknown = find_unknown_keys(certificate, expected | {"ledger_head": _HEAD_KEYS})
    differences += _limit(
        [f"{_format_value(key)} is in the certificate, but DPSyn writes no such entry" for key in unknown], "unknown:"
    )
    differences += find_differences(PRIVACY_FLAG, _privacy_flag(certificate), expected[PRIVACY_FLAG])
    if not _is_end_of_run(certificate.get("ledger_head"), [entry for entry in entries if entry.run == name]):
        differences.append("the ledger entry that it names is not the last one of this run")
    return [f"run {name}: {line}" for line in differences]


def _certificate_from_ledger(dataset: str, run: RunAccount) -> dict[str, Any]:
    account = replay(run.budget, tuple(MeasurementRecord.from_data(data) for data in run.measurements))
    return Certificate.from_account(
        account,
        run.privacy_unit,
        dataset=dataset,
        run=run.run,
        uses_real_noise=run.uses_real_noise,
        declared_public=run.declared_public,
        recipe=run.recipe,
        outcome=run.outcome or RunOutcome(),
    ).to_data()


def _privacy_flag(certificate: Mapping[str, Any]) -> bool | None:
    try:
        return parse_privacy_flag(certificate)
    except KeyError:
        return None


def _is_end_of_run(head: Any, entries: list[LedgerEntry]) -> bool:
    """Whether a head is that of a run's last measurement or of a later entry, so that it covers all measurements."""
    last = next((i for i in reversed(range(len(entries))) if entries[i].kind == "measurement"), 0)
    return head in [entry.head.to_data() for entry in entries[last:]]


def _limit_differences(part: str, stated: Any, recorded: Any) -> list[str]:
    return _limit([*find_differences(part, stated, recorded)], f"{part}:")


def _limit(lines: list[str], what: str) -> list[str]:
    more = len(lines) - _MAX_SHOWN_DIFFERENCES
    return [*lines[:_MAX_SHOWN_DIFFERENCES], f"{what} {more} more differences"] if more > 1 else lines


def find_differences(path: str, stated: Any, recorded: Any) -> Iterator[str]:
    """Where plain data differs from what was recorded; only as deep as the recorded data is nested."""
    if isinstance(recorded, dict) and isinstance(stated, dict):
        for key in [*recorded, *(key for key in stated if key not in recorded)]:
            yield from find_differences(f"{path} {key}", stated.get(key), recorded.get(key))
    elif isinstance(recorded, list) and isinstance(stated, list):
        if len(stated) != len(recorded):
            yield f"{path}: {len(stated)} in the certificate, {len(recorded)} in the ledger"
        for i, (one, other) in enumerate(zip(stated, recorded, strict=False), start=1):
            yield from find_differences(f"{path} {i}", one, other)
    elif not _is_same_value(stated, recorded):
        yield f"{path} is {_format_value(stated)} in the certificate and {_format_value(recorded)} in the ledger"


def _is_same_value(stated: Any, recorded: Any) -> bool:
    if isinstance(recorded, float) and isinstance(stated, int | float):
        margin = _RELATIVE_TOLERANCE * abs(recorded)
        return recorded - margin <= stated <= recorded + margin
    return type(stated) is type(recorded) and bool(stated == recorded)


def _format_value(value: Any) -> str:
    """A value in one short line, whatever the file holds."""
    text = "missing" if value is None else "something else" if isinstance(value, dict | list) else repr(value)
    return text if len(text) <= _MAX_SHOWN_CHARACTERS else f"{text[:_MAX_SHOWN_CHARACTERS]} …"
