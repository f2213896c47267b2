"""The journal of a running release: every noisy answer is on disk before it is used.

An interrupted run is resumed from it. Stored answers are returned again, without a charge and without reading rows, as
long as the run asks the same questions in the same order. A recipe does so, because all of its decisions follow from
released answers. Answers that were charged but not stored are lost; measuring them again is charged again.

Privacy: the file holds released numbers and public facts only. The key that chooses the rows of a privacy unit is not
stored: a resumed run generates a new one, because the sensitivity of each answer holds for every key. Without a ledger
the charges are recorded in the journal, so it must not be replaced by an older copy. With a ledger the charges are
recorded there, and answers without a charge in the ledger are refused.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections import Counter, deque
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from dpsyn.accounting import LedgerHead, MeasurementRecord
from dpsyn.errors import JournalError, LedgerError
from dpsyn.private.append_log import AppendLog, remove_log

ReleasedAnswer = NDArray[np.int64] | tuple[str, ...]
"""Noisy numbers, or the keys that partition selection listed."""


class JournalRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="record"):
    """One line of the file, in JSON."""


class JournalHeader(JournalRecord, frozen=True, kw_only=True, tag="run"):
    """The first line: the name of the run, and what must be the same when it is resumed.

    Attributes:
        run: the name of the run, which also identifies it in the ledger.
        dataset: the name of the dataset.
        schema: a hash of the schema.
        recipe: what identifies the recipe, as plain JSON data.
        budget: the privacy budget.
        privacy_unit: the privacy unit and the neighboring relation.
        ledger: whether a ledger records the charges; if not, this file does.
        uses_real_noise: whether the noise comes from the operating system.
        format: the version of the file format.
    """

    run: str
    dataset: str
    schema: str
    recipe: dict[str, Any]
    budget: dict[str, Any]
    privacy_unit: dict[str, Any]
    ledger: bool
    uses_real_noise: bool
    format: Literal[1] = 1


class ChargeRecord(JournalRecord, frozen=True, kw_only=True, tag="charge"):
    """A measurement that was charged, in a run without a ledger."""

    measurement: dict[str, Any]


class AnswerRecord(JournalRecord, frozen=True, kw_only=True, tag="answer"):
    """An answer, with its measurement, question and kind of noise: numbers with their shape, or texts."""

    measurement: dict[str, Any]
    question: str
    uses_real_noise: bool
    shape: tuple[int, ...] = ()
    numbers: bytes = b""
    texts: tuple[str, ...] | None = None

    @property
    def answer(self) -> ReleasedAnswer:
        """The answer as it was released."""
        if self.texts is not None:
            return self.texts
        return np.frombuffer(self.numbers, "<i8").astype(np.int64).reshape(self.shape)


class EndRecord(JournalRecord, frozen=True, kw_only=True, tag="end"):
    """The run is complete; ``ledger_head`` is the ledger's last entry about it before it was closed."""

    ledger_head: dict[str, Any] | None


class Journal:
    """An open journal, locked for this process; made by ``create`` or ``resume``.

    Attributes:
        path: the file.
        header: its first line.
        charged_measurements: the measurements whose charges it records; none if a ledger records them.
        lost_measurements: the measurements that were charged and whose answers are not stored; set by ``reconcile``.
        ended: whether the run is complete.
        ledger_head: the ledger's last entry about the run before it was closed, if it is complete.
        uses_real_noise: whether all noise, stored and to come, is from the operating system.
    """

    def __init__(
        self, log: AppendLog, header: JournalHeader, records: Sequence[JournalRecord], *, uses_real_noise: bool
    ) -> None:
        answers = [record for record in records if isinstance(record, AnswerRecord)]
        ends = [record for record in records if isinstance(record, EndRecord)]
        self.path, self.header = log.path, header
        self.charged_measurements = tuple(
            MeasurementRecord.from_data(record.measurement) for record in records if isinstance(record, ChargeRecord)
        )
        self.lost_measurements: tuple[MeasurementRecord, ...] = ()
        self.ended = bool(ends)
        self.ledger_head = LedgerHead(**ends[0].ledger_head) if ends and ends[0].ledger_head else None
        self.uses_real_noise = (
            uses_real_noise and header.uses_real_noise and all(answer.uses_real_noise for answer in answers)
        )
        self._log, self._answers, self._uses_real_noise = log, deque(answers), uses_real_noise
        self._lock = threading.Lock()

    @classmethod
    def create(cls, path: Path, header: JournalHeader) -> Journal:
        """Begin a journal in a new file."""
        refuse_existing_journal(path)
        journal = cls(AppendLog.create(path), header, (), uses_real_noise=header.uses_real_noise)
        try:
            journal._append([header])
        except BaseException:
            journal.discard()
            raise
        return journal

    @classmethod
    def resume(cls, path: Path, expected: JournalHeader) -> Journal:
        """Open the journal of an interrupted run; refused if the run had another header than ``expected``."""
        if not os.path.isfile(path):
            raise JournalError(f"there is no interrupted run to resume at {path}; start one without --resume")
        log = AppendLog.reopen(path)
        try:
            records = [parse_record(text, path) for text in log.texts]
            header = records[0]
            if not isinstance(header, JournalHeader):
                raise JournalError(f"{path} does not begin with the header of a run; remove it to start a new run")
            _require_same_run(header, expected, path)
            return cls(log, header, records, uses_real_noise=expected.uses_real_noise)
        except BaseException:
            log.release()
            raise

    def reconcile(self, charged: Sequence[MeasurementRecord]) -> None:
        """Find the lost answers, which were charged and not stored; an answer without a charge is a LedgerError."""
        lost = Counter(charged)
        lost.subtract(MeasurementRecord.from_data(record.measurement) for record in self._answers)
        if min(lost.values(), default=0) < 0:
            raise LedgerError(
                f"{self.path} holds answers that were not charged to run {self.header.run}: the record of its charges "
                "was cut or replaced. Restore that record, or remove the journal and start a new run"
            )
        self.lost_measurements = tuple(lost.elements())

    def take_answers(self, measurements: Sequence[MeasurementRecord], question: object) -> list[ReleasedAnswer]:
        """The stored answers to these measurements, from the first on, as many as there are.

        It is a JournalError if the next stored answer belongs to another question, or if no answer can be stored any
        more. So nothing is charged for an answer that would be lost.
        """
        with self._lock:
            self._log.require_open()
            records = list(islice(self._answers, len(measurements)))
            digest = hash_question(question) if records else ""
            for measurement, record in zip(measurements, records, strict=False):
                if (record.measurement, record.question) != (measurement.to_data(), digest):
                    raise self._other_question_error(measurement, record)
            for _ in records:
                self._answers.popleft()
        return [record.answer for record in records]

    def record_charges(self, measurements: Sequence[MeasurementRecord]) -> None:
        """Record the charges of measurements; only when this returns may they happen."""
        self._append([ChargeRecord(measurement=measurement.to_data()) for measurement in measurements])

    def store_answers(
        self, measurements: Sequence[MeasurementRecord], question: object, answers: Sequence[ReleasedAnswer]
    ) -> None:
        """Store answers; only when this returns may they be used."""
        digest = hash_question(question)
        pairs = zip(measurements, answers, strict=True)
        self._append([self._answer_record(measurement, digest, answer) for measurement, answer in pairs])

    def finish(self, ledger_head: LedgerHead | None) -> None:
        """Record that the run is complete, and close the file; a second call does nothing."""
        if not self.ended:
            self._append([EndRecord(ledger_head=ledger_head.to_data() if ledger_head else None)])
            self.ended = True
        self.release()

    def release(self) -> None:
        """Close the file, so the run can be resumed."""
        self._log.release()

    def discard(self) -> None:
        """Close the file and remove it, because nothing was charged."""
        self._log.remove()

    def _answer_record(self, measurement: MeasurementRecord, question: str, answer: ReleasedAnswer) -> AnswerRecord:
        if isinstance(answer, tuple):
            return AnswerRecord(
                measurement=measurement.to_data(),
                question=question,
                uses_real_noise=self._uses_real_noise,
                texts=answer,
            )
        shape, numbers = answer.shape, answer.astype("<i8").tobytes()
        return AnswerRecord(
            measurement=measurement.to_data(),
            question=question,
            uses_real_noise=self._uses_real_noise,
            shape=shape,
            numbers=numbers,
        )

    def _other_question_error(self, measurement: MeasurementRecord, record: AnswerRecord) -> JournalError:
        return JournalError(
            f"the run asks other questions than before it was interrupted: now {measurement.purpose}, while "
            f"{self.path} holds the answer to {record.measurement['purpose']}, or to the same with other details. "
            "Nothing was charged. Resume the run with the version of DPSyn that began it, or remove the journal and "
            "start a new run"
        )

    def _append(self, records: Sequence[JournalRecord]) -> None:
        self._log.append([msgspec.json.encode(record) for record in records])


def discard_journal(path: Path) -> None:
    """Remove the journal of a run, once everything made from its answers is written."""
    remove_log(path)


def refuse_existing_journal(path: Path) -> None:
    """Refuse a new run if the journal exists already: its answers, which were charged, would be lost."""
    if os.path.lexists(path):
        raise JournalError(
            f"{path} is the journal of a run that was interrupted or is still active: continue it with --resume, or "
            "remove the journal and start a new run; its budget stays reserved until dpsyn ledger close returns it"
        )


def hash_question(question: object) -> str:
    """A hash of a question: numbers, texts, arrays of whole numbers, and sequences of these."""
    digest = hashlib.sha256()
    _update_digest(digest, question)
    return digest.hexdigest()


def _update_digest(digest: Any, part: object) -> None:
    if isinstance(part, np.ndarray):
        digest.update(repr(part.shape).encode() + part.astype("<i8").tobytes())
    elif isinstance(part, list | tuple):
        digest.update(b"[")
        for inner in part:
            _update_digest(digest, inner)
        digest.update(b"]")
    else:
        digest.update(repr(part).encode() + b",")


def parse_record(text: bytes, path: Path) -> JournalRecord:
    """Read a line of a journal back."""
    try:
        return msgspec.json.decode(text, type=JournalHeader | ChargeRecord | AnswerRecord | EndRecord)
    except msgspec.DecodeError:
        raise JournalError(
            f"{path} was written by another version of DPSyn; resume the run with that version"
        ) from None


_SAME_WHEN_RESUMED = {
    "schema": "the schema",
    "recipe": "the recipe",
    "budget": "the budget",
    "dataset": "the name of the dataset",
    "privacy_unit": "the privacy unit",
    "ledger": "whether there is a ledger",
}
"""The fields of a header that must be the same when a run is resumed, in words."""


def _require_same_run(header: JournalHeader, expected: JournalHeader, path: Path) -> None:
    differences = [
        words + (f" ({_differing_keys(header.recipe, expected.recipe)})" if field == "recipe" else "")
        for field, words in _SAME_WHEN_RESUMED.items()
        if getattr(header, field) != getattr(expected, field)
    ]
    if differences:
        raise JournalError(
            f"{path} belongs to a run with other arguments; different: {', '.join(differences)}. Resume the run with "
            "the arguments it was started with, or remove the journal and start a new run"
        )


def _differing_keys(one: dict[str, Any], other: dict[str, Any]) -> str:
    return ", ".join(
        key for key in {**one, **other} if one.get(key) != other.get(key) or (key in one) != (key in other)
    )
