"""Whether a certificate says of its run what the ledger recorded of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from dpsyn.accounting.account import Draw, replay
from dpsyn.accounting.certificate import STAMP, Certificate, stamped_private
from dpsyn.errors import DPSynError

if TYPE_CHECKING:
    from dpsyn.accounting.chain import Entry
    from dpsyn.accounting.ledger import DatasetAccount, RunAccount

PARTS = ("dataset", "promise", "protection", "draws", "certified_epsilon", "figures")
"""What a certificate states that follows from the ledger; what was declared public is not in there."""

_SAME_FIGURE = 1e-6  # as where a certificate is read
_MOST_SHOWN = 3  # differences of one part
_MOST_LETTERS = 60


def disagreements(
    certificate: Mapping[str, Any], entries: Iterable[Entry], known: Mapping[str, DatasetAccount]
) -> list[str]:
    """Where a certificate, as plain data, and the ledger differ, in sentences; none if it says what was recorded.

    The ledger's own certificate of the run is computed anew, from its promise and all of its draws, and held against
    the other part by part. So nothing that the certificate computed is taken on its word.
    """
    name = certificate.get("run")
    found = next(((dataset, run) for dataset in known.values() for run in dataset.runs if run.run == name), None)
    if found is None and certificate.get("ledger_head") is None:
        return []  # one of several releases, which kept no ledger
    if found is None:
        return [f"it is the certificate of run {_shown(name)}, which this ledger does not know"]
    try:
        expected = _certified(found[0].dataset, found[1])
    except DPSynError as error:
        return [f"what the ledger recorded of run {name} cannot be certified: {error}"]
    differences = [line for part in PARTS for line in _few(part, certificate.get(part), expected[part])]
    differences += _differences(STAMP, _stamped(certificate), expected[STAMP])
    if not _names_its_end(certificate.get("ledger_head"), [entry for entry in entries if entry.run == name]):
        differences.append("the entry of the ledger that it names is not the end of this run")
    return [f"run {name}: {line}" for line in differences]


def _certified(dataset: str, run: RunAccount) -> dict[str, Any]:
    account = replay(run.budget, tuple(Draw.from_data(data) for data in run.draws))
    return Certificate.of(
        account, run.protection, dataset=dataset, run=run.run, noise_is_private=run.noise_is_private
    ).to_data()


def _stamped(certificate: Mapping[str, Any]) -> bool | None:
    try:
        return stamped_private(certificate)
    except KeyError:
        return None


def _names_its_end(head: Any, entries: list[Entry]) -> bool:
    """Whether a head is that of a run's last draw or of what came after it: then it covers all draws."""
    after = next((i for i in reversed(range(len(entries))) if entries[i].kind == "draw"), 0)
    return head in [entry.head.to_data() for entry in entries[after:]]


def _few(part: str, stated: Any, recorded: Any) -> list[str]:
    lines = [*_differences(part, stated, recorded)]
    more = len(lines) - _MOST_SHOWN
    return [*lines[:_MOST_SHOWN], f"{part}: {more} more differences"] if more > 1 else lines


def _differences(place: str, stated: Any, recorded: Any) -> Iterator[str]:
    """Where plain data differs from what was recorded; it is walked no deeper than that is."""
    if isinstance(recorded, dict) and isinstance(stated, dict):
        for key in [*recorded, *(key for key in stated if key not in recorded)]:
            yield from _differences(f"{place} {key}", stated.get(key), recorded.get(key))
    elif isinstance(recorded, list) and isinstance(stated, list):
        if len(stated) != len(recorded):
            yield f"{place}: it has {len(stated)}, the ledger {len(recorded)}"
        for i, (one, other) in enumerate(zip(stated, recorded, strict=False), start=1):
            yield from _differences(f"{place} {i}", one, other)
    elif not _same(stated, recorded):
        yield f"{place} is {_shown(stated)} in it and {_shown(recorded)} by the ledger"


def _same(stated: Any, recorded: Any) -> bool:
    if isinstance(recorded, float) and isinstance(stated, int | float):
        return recorded * (1 - _SAME_FIGURE) <= stated <= recorded * (1 + _SAME_FIGURE)
    return type(stated) is type(recorded) and bool(stated == recorded)


def _shown(value: Any) -> str:
    """A value on a line, whatever somebody put into the file."""
    words = "missing" if value is None else "something else" if isinstance(value, dict | list) else repr(value)
    return words if len(words) <= _MOST_LETTERS else f"{words[:_MOST_LETTERS]} …"
