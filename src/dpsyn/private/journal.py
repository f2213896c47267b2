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

from dpsyn.accounting import Draw, Head
from dpsyn.errors import JournalError, LedgerError
from dpsyn.private.lines import Lines, remove

Answer = NDArray[np.int64] | tuple[str, ...]
"""Noisy numbers, or the texts that were listed."""


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="record"):
    """A line of the file, as JSON."""


class Header(Record, frozen=True, kw_only=True, tag="run"):
    """The first line: which run it is, and what must be the same when it is resumed.

    Attributes:
        run: its name, under which a ledger knows it.
        dataset: the dataset it draws from.
        schema: a hash of the schema.
        plan: a text that stands for the recipe and its options.
        budget: what it may spend.
        protection: whom it protects.
        ledger: whether a ledger records what it pays; if not, this file does.
        private: whether its noise is the real one.
        format: the version of the file format.
    """

    run: str
    dataset: str
    schema: str
    plan: str
    budget: dict[str, Any]
    protection: dict[str, Any]
    ledger: bool
    private: bool
    format: Literal[1] = 1


class Payment(Record, frozen=True, kw_only=True, tag="payment"):
    """A draw that was paid for, in a run without a ledger."""

    draw: dict[str, Any]


class Stored(Record, frozen=True, kw_only=True, tag="answer"):
    """An answer: to which draw, to which question, with which noise; numbers in a shape, or texts."""

    draw: dict[str, Any]
    question: str
    private: bool
    shape: tuple[int, ...] = ()
    numbers: bytes = b""
    texts: tuple[str, ...] | None = None

    @property
    def answer(self) -> Answer:
        """The answer as it was given."""
        if self.texts is not None:
            return self.texts
        return np.frombuffer(self.numbers, "<i8").astype(np.int64).reshape(self.shape)


class End(Record, frozen=True, kw_only=True, tag="end"):
    """The run asked all its questions; ``head`` is the ledger's last entry about it before it was closed."""

    head: dict[str, Any] | None


class Journal:
    """An open journal, which no other process can use meanwhile; made by ``create`` or ``resume``.

    Attributes:
        path: the file.
        header: its first line.
        paid: the draws that it says were paid for; none if a ledger does.
        lost: the draws that were paid for and whose answers are not stored; ``reconcile`` finds them.
        ended: whether the run asked all its questions.
        head: the ledger's last entry about the run before it was closed, if it ended.
        noise_is_private: whether all noise in it, and all to come, is the real one.
    """

    def __init__(self, lines: Lines, header: Header, records: Sequence[Record], *, private: bool) -> None:
        answers = [record for record in records if isinstance(record, Stored)]
        ends = [record for record in records if isinstance(record, End)]
        self.path, self.header = lines.path, header
        self.paid = tuple(Draw.from_data(record.draw) for record in records if isinstance(record, Payment))
        self.lost: tuple[Draw, ...] = ()
        self.ended = bool(ends)
        self.head = Head(**ends[0].head) if ends and ends[0].head else None
        self.noise_is_private = private and header.private and all(answer.private for answer in answers)
        self._lines, self._stored, self._private = lines, deque(answers), private
        self._lock = threading.Lock()

    @classmethod
    def create(cls, path: Path, header: Header) -> Journal:
        """Begin a journal where there is none."""
        refuse_left_behind(path)
        journal = cls(Lines.create(path), header, (), private=header.private)
        try:
            journal._append([header])
        except BaseException:
            journal.discard()
            raise
        return journal

    @classmethod
    def resume(cls, path: Path, expected: Header) -> Journal:
        """Open the journal of an interrupted run; refused if that was given anything else than is expected now."""
        if not os.path.isfile(path):
            raise JournalError(f"there is no interrupted run to resume at {path}; start one without --resume")
        lines = Lines.reopen(path)
        try:
            records = [record_of(text, path) for text in lines.texts]
            header = records[0]
            if not isinstance(header, Header):
                raise JournalError(f"{path} does not begin with the header of a run; remove it to start anew")
            _require_same(header, expected, path)
            return cls(lines, header, records, private=expected.private)
        except BaseException:
            lines.release()
            raise

    def reconcile(self, paid: Sequence[Draw]) -> None:
        """Find what was paid for and lost; an answer that was not paid for is a LedgerError."""
        left = Counter(paid)
        left.subtract(Draw.from_data(record.draw) for record in self._stored)
        if min(left.values(), default=0) < 0:
            raise LedgerError(
                f"{self.path} holds answers that run {self.header.run} did not pay for: the record of its payments was "
                "cut or replaced. Bring that back, or remove the journal to start and pay anew"
            )
        self.lost = tuple(left.elements())

    def stored(self, draws: Sequence[Draw], question: object) -> list[Answer]:
        """The answers to as many of these draws as are stored, from the first on.

        It is a JournalError if the next answer is one to another question, and if none could be stored any more: so
        nothing is paid in vain.
        """
        with self._lock:
            self._lines.opened()
            records = list(islice(self._stored, len(draws)))
            asked = fingerprint(question) if records else ""
            for draw, record in zip(draws, records, strict=False):
                if (record.draw, record.question) != (draw.to_data(), asked):
                    raise self._other_question(draw, record)
            for _ in records:
                self._stored.popleft()
        return [record.answer for record in records]

    def pay(self, draws: Sequence[Draw]) -> None:
        """Write down that draws are paid for; only when this has returned may they happen."""
        self._append([Payment(draw=draw.to_data()) for draw in draws])

    def store(self, draws: Sequence[Draw], question: object, answers: Sequence[Answer]) -> None:
        """Store answers; only when this has returned may they be used."""
        asked = fingerprint(question)
        self._append([self._answer(draw, asked, answer) for draw, answer in zip(draws, answers, strict=True)])

    def finish(self, head: Head | None) -> None:
        """Write down that the run asked all its questions, and let go of the file; a second call does nothing."""
        if not self.ended:
            self._append([End(head=head.to_data() if head else None)])
            self.ended = True
        self.release()

    def release(self) -> None:
        """Let go of the file, so that the run can be resumed."""
        self._lines.release()

    def discard(self) -> None:
        """Let go of the file and remove it: nothing was paid."""
        self._lines.remove()

    def _answer(self, draw: Draw, question: str, answer: Answer) -> Stored:
        if isinstance(answer, tuple):
            return Stored(draw=draw.to_data(), question=question, private=self._private, texts=answer)
        shape, numbers = answer.shape, answer.astype("<i8").tobytes()
        return Stored(draw=draw.to_data(), question=question, private=self._private, shape=shape, numbers=numbers)

    def _other_question(self, draw: Draw, record: Stored) -> JournalError:
        return JournalError(
            f"the run asks other questions than before it was interrupted: {draw.purpose}, where {self.path} holds the "
            f"answer to {record.draw['purpose']}, or to the same with other details. Nothing was paid. Resume it with "
            "the DPSyn that began it, or remove the journal to start and pay anew"
        )

    def _append(self, records: Sequence[Record]) -> None:
        self._lines.append([msgspec.json.encode(record) for record in records])


def discard_journal(path: Path) -> None:
    """Remove the journal of a run, once all that was made of its answers is safely written."""
    remove(path)


def refuse_left_behind(path: Path) -> None:
    """Refuse a new run where there is a journal: what was paid for would be lost."""
    if os.path.lexists(path):
        raise JournalError(
            f"an interrupted run left {path}, unless it is still going on: go on with --resume, or remove it to start "
            "and pay anew; its promise stays reserved until dpsyn ledger close gives it back"
        )


def fingerprint(question: object) -> str:
    """A hash of what is asked: numbers, texts, arrays of whole numbers, and sequences of all these."""
    digest = hashlib.sha256()
    _add(digest, question)
    return digest.hexdigest()


def _add(digest: Any, part: object) -> None:
    if isinstance(part, np.ndarray):
        digest.update(repr(part.shape).encode() + part.astype("<i8").tobytes())
    elif isinstance(part, list | tuple):
        digest.update(b"[")
        for inner in part:
            _add(digest, inner)
        digest.update(b"]")
    else:
        digest.update(repr(part).encode() + b",")


def record_of(text: bytes, path: Path) -> Record:
    """Read a line of a journal back."""
    try:
        return msgspec.json.decode(text, type=Header | Payment | Stored | End)
    except msgspec.DecodeError:
        raise JournalError(f"{path} was written by another DPSyn than this one; resume the run with that") from None


_FACTS = {
    "schema": "the schema",
    "plan": "the plan",
    "budget": "the budget",
    "dataset": "the name of the dataset",
    "protection": "whom it protects",
    "ledger": "whether there is a ledger",
}
"""What must be the same when a run is resumed, in words."""


def _require_same(header: Header, expected: Header, path: Path) -> None:
    differ = [words for fact, words in _FACTS.items() if getattr(header, fact) != getattr(expected, fact)]
    if differ:
        raise JournalError(
            f"{path} belongs to a run for which something was different: {', '.join(differ)}. Resume it with what it "
            "was given at first, or remove the journal to start and pay anew"
        )
