"""The journal of a running release: every noisy answer is on disk before it is used.

A run that was interrupted is resumed from it. Stored answers are given again, without paying and without a look at the
rows, as long as the run asks the same questions in the same order; a recipe does, because all that it decides on its
way follows from released answers. What was paid for and is not stored was lost, and has to be paid for again.

Privacy: the file holds released numbers and public facts only. The key by which a person's rows are chosen is not among
them: a resumed run draws a new one, because the sensitivity of each answer holds whatever the key is. Without a ledger
the journal is also where payments are written down, so an older copy of it must not take its place; with a ledger that
says what was paid, and answers that it does not know of are refused.
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
"""Noisy numbers, or the texts that were listed."""


class JournalRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="record"):
    """A line of the file, as JSON."""


class JournalHeader(JournalRecord, frozen=True, kw_only=True, tag="run"):
    """The first line: which run it is, and what must be the same when it is resumed.

    Attributes:
        run: its name, under which a ledger knows it.
        dataset: the dataset it draws from.
        schema: a hash of the schema.
        recipe: a text that stands for the recipe and its options.
        budget: what it may spend.
        privacy_unit: whom it protects.
        ledger: whether a ledger records what it pays; if not, this file does.
        uses_real_noise: whether its noise is the real one.
        format: the version of the file format.
    """

    run: str
    dataset: str
    schema: str
    recipe: str
    budget: dict[str, Any]
    privacy_unit: dict[str, Any]
    ledger: bool
    uses_real_noise: bool
    format: Literal[1] = 1


class ChargeRecord(JournalRecord, frozen=True, kw_only=True, tag="charge"):
    """A draw that was paid for, in a run without a ledger."""

    measurement: dict[str, Any]


class AnswerRecord(JournalRecord, frozen=True, kw_only=True, tag="answer"):
    """An answer: to which draw, to which question, with which noise; numbers in a shape, or texts."""

    measurement: dict[str, Any]
    question: str
    uses_real_noise: bool
    shape: tuple[int, ...] = ()
    numbers: bytes = b""
    texts: tuple[str, ...] | None = None

    @property
    def answer(self) -> ReleasedAnswer:
        """The answer as it was given."""
        if self.texts is not None:
            return self.texts
        return np.frombuffer(self.numbers, "<i8").astype(np.int64).reshape(self.shape)


class EndRecord(JournalRecord, frozen=True, kw_only=True, tag="end"):
    """The run asked all its questions; ``ledger_head`` is the ledger's last entry about it before it was closed."""

    ledger_head: dict[str, Any] | None


class Journal:
    """An open journal, which no other process can use meanwhile; made by ``create`` or ``resume``.

    Attributes:
        path: the file.
        header: its first line.
        charged_measurements: the draws that it says were paid for; none if a ledger does.
        lost_measurements: the draws that were paid for and whose answers are not stored; ``reconcile`` finds them.
        ended: whether the run asked all its questions.
        ledger_head: the ledger's last entry about the run before it was closed, if it ended.
        uses_real_noise: whether all noise in it, and all to come, is the real one.
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
        """Begin a journal where there is none."""
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
        """Open the journal of an interrupted run; refused if that was given anything else than is expected now."""
        if not os.path.isfile(path):
            raise JournalError(f"there is no interrupted run to resume at {path}; start one without --resume")
        lines = AppendLog.reopen(path)
        try:
            records = [parse_record(text, path) for text in lines.texts]
            header = records[0]
            if not isinstance(header, JournalHeader):
                raise JournalError(f"{path} does not begin with the header of a run; remove it to start anew")
            _require_same_run(header, expected, path)
            return cls(lines, header, records, uses_real_noise=expected.uses_real_noise)
        except BaseException:
            lines.release()
            raise

    def reconcile(self, charged: Sequence[MeasurementRecord]) -> None:
        """Find what was paid for and lost; an answer that was not paid for is a LedgerError."""
        left = Counter(charged)
        left.subtract(MeasurementRecord.from_data(record.measurement) for record in self._answers)
        if min(left.values(), default=0) < 0:
            raise LedgerError(
                f"{self.path} holds answers that run {self.header.run} did not pay for: the record of its payments was "
                "cut or replaced. Bring that back, or remove the journal to start and pay anew"
            )
        self.lost_measurements = tuple(left.elements())

    def take_answers(self, measurements: Sequence[MeasurementRecord], question: object) -> list[ReleasedAnswer]:
        """The answers to as many of these draws as are stored, from the first on.

        It is a JournalError if the next answer is one to another question, and if none could be stored any more: so
        nothing is paid in vain.
        """
        with self._lock:
            self._log.require_open()
            records = list(islice(self._answers, len(measurements)))
            asked = hash_question(question) if records else ""
            for draw, record in zip(measurements, records, strict=False):
                if (record.measurement, record.question) != (draw.to_data(), asked):
                    raise self._other_question_error(draw, record)
            for _ in records:
                self._answers.popleft()
        return [record.answer for record in records]

    def record_charges(self, measurements: Sequence[MeasurementRecord]) -> None:
        """Write down that draws are paid for; only when this has returned may they happen."""
        self._append([ChargeRecord(measurement=draw.to_data()) for draw in measurements])

    def store_answers(
        self, measurements: Sequence[MeasurementRecord], question: object, answers: Sequence[ReleasedAnswer]
    ) -> None:
        """Store answers; only when this has returned may they be used."""
        asked = hash_question(question)
        self._append(
            [self._answer_record(draw, asked, answer) for draw, answer in zip(measurements, answers, strict=True)]
        )

    def finish(self, ledger_head: LedgerHead | None) -> None:
        """Write down that the run asked all its questions, and let go of the file; a second call does nothing."""
        if not self.ended:
            self._append([EndRecord(ledger_head=ledger_head.to_data() if ledger_head else None)])
            self.ended = True
        self.release()

    def release(self) -> None:
        """Let go of the file, so that the run can be resumed."""
        self._log.release()

    def discard(self) -> None:
        """Let go of the file and remove it: nothing was paid."""
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
            f"the run asks other questions than before it was interrupted: {measurement.purpose}, where {self.path} holds the "
            f"answer to {record.measurement['purpose']}, or to the same with other details. Nothing was paid. Resume it with "
            "the DPSyn that began it, or remove the journal to start and pay anew"
        )

    def _append(self, records: Sequence[JournalRecord]) -> None:
        self._log.append([msgspec.json.encode(record) for record in records])


def discard_journal(path: Path) -> None:
    """Remove the journal of a run, once all that was made of its answers is safely written."""
    remove_log(path)


def refuse_existing_journal(path: Path) -> None:
    """Refuse a new run where there is a journal: what was paid for would be lost."""
    if os.path.lexists(path):
        raise JournalError(
            f"an interrupted run left {path}, unless it is still going on: go on with --resume, or remove it to start "
            "and pay anew; its promise stays reserved until dpsyn ledger close gives it back"
        )


def hash_question(question: object) -> str:
    """A hash of what is asked: numbers, texts, arrays of whole numbers, and sequences of all these."""
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
        raise JournalError(f"{path} was written by another DPSyn than this one; resume the run with that") from None


_SAME_WHEN_RESUMED = {
    "schema": "the schema",
    "recipe": "the recipe",
    "budget": "the budget",
    "dataset": "the name of the dataset",
    "privacy_unit": "whom it protects",
    "ledger": "whether there is a ledger",
}
"""What must be the same when a run is resumed, in words."""


def _require_same_run(header: JournalHeader, expected: JournalHeader, path: Path) -> None:
    differ = [words for fact, words in _SAME_WHEN_RESUMED.items() if getattr(header, fact) != getattr(expected, fact)]
    if differ:
        raise JournalError(
            f"{path} belongs to a run for which something was different: {', '.join(differ)}. Resume it with what it "
            "was given at first, or remove the journal to start and pay anew"
        )
