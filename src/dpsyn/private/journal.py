"""The journal of a running release: every noisy answer is on disk before it is used.

An interrupted run is resumed from it. Stored answers are returned again, without a charge and without reading rows, as
long as the run asks the same questions in the same order. A recipe does so, because all of its decisions follow from
released answers.

**An answer is stored and charged at the same moment.** Without a ledger, the line with the answer is its charge. With
a ledger, the answer is first written to the journal *sealed*, that is, encrypted with a random key that is nowhere
else; then the ledger records the charge and the key in one transaction. So an answer can be read exactly if it was
charged: whenever the process dies, and whichever disk is full, nothing that was charged is lost, and nothing that was
not charged can be read. Only a journal that is damaged, or replaced by an older copy, lacks answers that were charged.

Privacy: the file holds released numbers and public facts only. A sealed answer that was never charged reveals its
public size at most; lists of values are padded. The key that chooses the rows of a privacy unit is not stored: a
resumed run generates a new one, because the sensitivity of each answer holds for every key. Without a ledger the
journal must not be replaced by an older copy. With a ledger, the journal names the ledger entries that it relies on,
so an older copy of the ledger is detected.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from dpsyn.accounting import (
    LedgerHead,
    MeasurementRecord,
    MechanismCost,
    ReleasedAnswer,
    RunOutcome,
    hash_answer,
)
from dpsyn.errors import DPSynError, JournalError
from dpsyn.private.append_log import AppendLog, remove_log

_T = TypeVar("_T")

KEY_BYTES = 32
"""The length of the random key of a sealed answer."""

MIN_TEXT_BYTES = 1 << 12
"""Lists of values are padded to this length or to a larger power of two, so a sealed one hides how long it is."""


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
        query: the query whose answer is the table; empty if there is none.
        source: what tells the table from another one: its files, their sizes and times, or its columns.
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
    query: str = ""
    source: dict[str, Any] = {}
    format: Literal[2] = 2


class AnswerRecord(JournalRecord, frozen=True, kw_only=True, tag="answer"):
    """An answer. Without a ledger this line is also its charge; with a ledger it is sealed.

    Attributes:
        measurement: what the recipe asked for.
        charged: what was charged; it differs from ``measurement`` in a run that lost answers, see ``Reduction``.
        question: a hash of the question.
        uses_real_noise: whether the noise of this answer came from the operating system.
        shape: the shape of an answer of numbers; None for a list of values.
        content: the numbers, or the values in JSON; encrypted if there is a seal.
        seal: the SHA-256 of the key, by which the ledger's key is found; empty if the answer is not sealed.
        ledger_head: the ledger's last entry about the run when this line was written.
    """

    measurement: dict[str, Any]
    charged: dict[str, Any]
    question: str
    uses_real_noise: bool
    shape: tuple[int, ...] | None
    content: bytes
    seal: str = ""
    ledger_head: LedgerHead | None = None

    def open_answer(self, key: bytes | None = None) -> StoredAnswer:
        """The answer as it was released; a sealed one needs its key."""
        content = self.content if key is None else _encrypt(self.content, key)
        answer = _decode_answer(content, self.shape)
        return StoredAnswer(
            planned=MeasurementRecord.from_data(self.measurement),
            charged=replace(MeasurementRecord.from_data(self.charged), answer_hash=hash_answer(answer)),
            question=self.question,
            answer=answer,
        )


class EndRecord(JournalRecord, frozen=True, kw_only=True, tag="end"):
    """The run is complete.

    Attributes:
        ledger_head: the ledger's last entry about the run before it was closed.
        outcome: what the ledger records when the run is closed.
    """

    ledger_head: LedgerHead | None
    outcome: RunOutcome


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """An answer that a journal holds: what was asked, what was charged for it, and the answer itself."""

    planned: MeasurementRecord
    charged: MeasurementRecord
    question: str
    answer: ReleasedAnswer


class Journal:
    """An open journal, locked for this process; made by ``create`` or ``resume``.

    Attributes:
        path: the file.
        header: its first line.
        charged_measurements: the measurements whose charges it records; none if a ledger records them.
        planned_costs: what the stored answers would have cost if none had been lost.
        lost_measurements: the measurements that were charged and whose answers are not stored; set by ``unseal``.
        ledger_heads: the entries that the ledger had when the lines were written.
        ended: whether the run is complete.
        ledger_head: the ledger's last entry about the run before it was closed, if it is complete.
        outcome: what the ledger records when the run is closed, if it is complete.
        uses_real_noise: whether all noise, stored and to come, is from the operating system.
        holds_answers: whether answers were written to it, or may have been; the ledger knows which were charged.
    """

    def __init__(
        self, log: AppendLog, header: JournalHeader, records: Sequence[JournalRecord], *, uses_real_noise: bool
    ) -> None:
        answers = [record for record in records if isinstance(record, AnswerRecord)]
        ends = [record for record in records if isinstance(record, EndRecord)]
        self.path, self.header = log.path, header
        self.lost_measurements: tuple[MeasurementRecord, ...] = ()
        self.ended = bool(ends)
        self.ledger_head = ends[0].ledger_head if ends else None
        self.outcome = ends[0].outcome if ends else RunOutcome()
        heads = [*(record.ledger_head for record in answers), *(record.ledger_head for record in ends)]
        self.ledger_heads = tuple(head for head in heads if head)
        self.uses_real_noise = (
            uses_real_noise and header.uses_real_noise and all(answer.uses_real_noise for answer in answers)
        )
        self._log, self._uses_real_noise = log, uses_real_noise
        self.holds_answers = bool(answers)
        self._sealed = {record.seal: record for record in answers if record.seal}
        self._answers = deque(record.open_answer() for record in answers if not record.seal)
        self.charged_measurements = tuple(stored.charged for stored in self._answers)
        self.planned_costs: tuple[MechanismCost, ...] = tuple(stored.planned.cost for stored in self._answers)
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
            return _read_strictly(lambda: cls(log, header, records, uses_real_noise=expected.uses_real_noise), path)
        except BaseException:
            log.release()
            raise

    def unseal(self, charged: Sequence[MeasurementRecord], keys: Sequence[str]) -> None:
        """Open the answers whose charges and keys the ledger recorded, and find those that are lost.

        Sealed answers without a key were never charged: their run was interrupted before. They stay unreadable.
        """
        found: list[StoredAnswer] = []
        lost: list[MeasurementRecord] = []
        for measurement, key in zip(charged, keys, strict=True):
            record = self._sealed.get(hashlib.sha256(key.encode()).hexdigest())
            if record is None:
                lost.append(measurement)
                continue
            stored = _read_strictly(lambda r=record, k=key: r.open_answer(bytes.fromhex(k)), self.path)  # type: ignore[misc]
            if stored.charged != measurement:
                raise JournalError(
                    f"{self.path} holds another answer to {measurement.purpose} than the ledger recorded; restore the "
                    "journal from a backup, or remove it and start a new run"
                )
            found.append(stored)
        self._answers = deque(found)
        self.planned_costs = tuple(stored.planned.cost for stored in found)
        self.lost_measurements = tuple(lost)

    def take_answers(self, measurements: Sequence[MeasurementRecord], question: object) -> list[StoredAnswer | None]:
        """The stored answers to these measurements, in their order; None where there is none.

        It is a JournalError if the next stored answer belongs to another question, or if no answer can be stored any
        more. So nothing is charged for an answer that would be lost. In a run that lost answers, the question may be
        one that was left out before, so there the gate calls ``require_no_more_answers``.
        """
        with self._lock:
            self._log.require_open()
            digest = hash_question(question) if self._answers else ""
            found = [self._take_answer(measurement, digest) for measurement in measurements]
        if None in found and not self.lost_measurements:
            self.require_no_more_answers(measurements[found.index(None)], found[found.index(None) :])
        return found

    def _take_answer(self, measurement: MeasurementRecord, digest: str) -> StoredAnswer | None:
        stored = self._answers[0] if self._answers else None
        if stored is None or (stored.planned, stored.question) != (measurement, digest):
            return None
        return self._answers.popleft()

    def require_no_more_answers(
        self, measurement: MeasurementRecord, following: Sequence[StoredAnswer | None] = ()
    ) -> None:
        """Refuse to measure while answers to later questions are stored: the run asks others than before."""
        stored = next((answer for answer in following if answer), self._answers[0] if self._answers else None)
        if stored:
            raise self._other_question_error(measurement, stored)

    def store_answers(self, answers: Sequence[StoredAnswer]) -> None:
        """Store answers in a run without a ledger; this is also their charge. When it returns they may be used."""
        self.holds_answers = True
        self._append([self._answer_record(stored) for stored in answers])

    def store_sealed(self, answers: Sequence[StoredAnswer], ledger_head: LedgerHead | None) -> list[str]:
        """Store answers that nobody can read before the ledger records the keys, which are returned."""
        self.holds_answers = True
        keys = [secrets.token_bytes(KEY_BYTES) for _ in answers]
        self._append([self._answer_record(stored, key, ledger_head) for stored, key in zip(answers, keys, strict=True)])
        return [key.hex() for key in keys]

    def finish(self, ledger_head: LedgerHead | None, outcome: RunOutcome) -> None:
        """Record that the run is complete, and close the file; a second call does nothing."""
        if not self.ended:
            self._append([EndRecord(ledger_head=ledger_head, outcome=outcome)])
            self.ended = True
        self.release()

    def release(self) -> None:
        """Close the file, so the run can be resumed."""
        self._log.release()

    def discard(self) -> None:
        """Close the file and remove it, because nothing was charged."""
        self._log.remove()

    def _answer_record(
        self, stored: StoredAnswer, key: bytes | None = None, ledger_head: LedgerHead | None = None
    ) -> AnswerRecord:
        shape, content = _encode_answer(stored.answer)
        return AnswerRecord(
            measurement=stored.planned.to_data(),
            charged=replace(stored.charged, answer_hash="").to_data(),  # the hash of a sealed answer could be guessed
            question=stored.question,
            uses_real_noise=self._uses_real_noise,
            shape=shape,
            content=content if key is None else _encrypt(content, key),
            seal="" if key is None else hashlib.sha256(key.hex().encode()).hexdigest(),
            ledger_head=ledger_head,
        )

    def _other_question_error(self, measurement: MeasurementRecord, stored: StoredAnswer) -> JournalError:
        return JournalError(
            f"the run asks other questions than before it was interrupted: now {measurement.purpose}, while "
            f"{self.path} holds the answer to {stored.planned.purpose}, or to the same with other details. "
            "Nothing was charged. Resume the run with the version of DPSyn that began it, or remove the journal and "
            "start a new run"
        )

    def _append(self, records: Sequence[JournalRecord]) -> None:
        self._log.append([msgspec.json.encode(record) for record in records])


def _encode_answer(answer: ReleasedAnswer) -> tuple[tuple[int, ...] | None, bytes]:
    """The shape and the bytes of an answer."""
    if isinstance(answer, tuple):
        text = msgspec.json.encode(answer)
        return None, text.ljust(max(MIN_TEXT_BYTES, 1 << len(text).bit_length()))
    return answer.shape, answer.astype("<i8").tobytes()


def _decode_answer(content: bytes, shape: tuple[int, ...] | None) -> ReleasedAnswer:
    if shape is None:
        return msgspec.json.decode(content, type=tuple[str, ...])
    return np.frombuffer(content, "<i8").astype(np.int64).reshape(shape)


def _encrypt(content: bytes, key: bytes) -> bytes:
    """Encrypt or decrypt bytes with a key that is used once: XOR with the stream that SHAKE-256 expands it to."""
    stream = np.frombuffer(hashlib.shake_256(key).digest(len(content)), np.uint8)
    encrypted: NDArray[np.uint8] = np.frombuffer(content, np.uint8) ^ stream
    return encrypted.tobytes()


def _read_strictly(read: Callable[[], _T], path: Path) -> _T:
    """Read parts of a journal; a JournalError if they are not as DPSyn writes them, although their hashes are right."""
    try:
        return read()
    except JournalError:
        raise
    except (DPSynError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
        raise JournalError(
            f"{path} is not as this version of DPSyn writes it; resume the run with the version that began it, or "
            "remove the journal and start a new run"
        ) from None


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
        return msgspec.json.decode(text, type=JournalHeader | AnswerRecord | EndRecord)
    except (msgspec.DecodeError, UnicodeDecodeError):
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
    "query": "the query",
    "source": "the table (its files, their sizes or their times of change, or its columns)",
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
