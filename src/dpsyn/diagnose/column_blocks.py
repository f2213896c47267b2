"""Blocks of similar columns, such as the questions of a form with the same list of answers.

A draft describes such columns once: the first has the entry, the others refer to it by a YAML alias.

Privacy: part of the draft, which is private.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

MIN_BLOCK_COLUMNS = 3
"""Columns of a block; for fewer, an alias saves nothing."""


class _Guess(Protocol):
    fields: dict[str, Any]
    remark: str


def merge_blocks(guesses: Mapping[str, _Guess]) -> dict[str, str]:
    """Find columns ``question_01``, ``question_02``, … with the same entry; the anchor of each, by name.

    Columns in which some of the answers do not occur get the whole list: all columns of a block were offered it.
    """
    stems: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name, guess in guesses.items():
        if match := re.fullmatch(r"(.*?)[0-9]+[a-z]?", name):
            stems[match[1], guess.fields["kind"]].append(name)
    anchors: dict[str, str] = {}
    for (stem, _), names in stems.items():
        if len(names) >= MIN_BLOCK_COLUMNS:
            _complete_answers([guesses[name] for name in names])
            anchors |= _equal_entries(stem, names, guesses, set(anchors.values()))
    return anchors


def _complete_answers(guesses: Sequence[_Guess]) -> None:
    """Give columns the longest list of answers if theirs are all in it, and the spellings of missing of all."""
    lists = [guess for guess in guesses if "values" in guess.fields]
    if not lists:
        return
    longest = max((guess.fields["values"] for guess in lists), key=len)
    fitting = [guess for guess in lists if set(guess.fields["values"]) <= set(longest)]
    missing = {text for guess in fitting for text in _spellings(guess)}
    if missing & {str(value) for value in longest}:
        return
    fullest = max(fitting, key=lambda guess: (len(_spellings(guess)), len(guess.fields["values"])))
    for guess in fitting:
        guess.fields["values"], guess.remark = longest, fullest.remark
        if missing:
            guess.fields["missing"] = True if missing == {""} else sorted(missing)


def _spellings(guess: _Guess) -> Sequence[str]:
    missing = guess.fields.get("missing", ())
    return [""] if missing is True else missing


def _equal_entries(stem: str, names: Sequence[str], guesses: Mapping[str, _Guess], taken: set[str]) -> dict[str, str]:
    anchor = re.sub(r"[^A-Za-z0-9]+", "_", stem).strip("_") or "column"
    anchors: dict[str, str] = {}
    left = list(names)
    while left:
        first = guesses[left[0]]
        same = [n for n in left if (guesses[n].fields, guesses[n].remark) == (first.fields, first.remark)]
        left = [name for name in left if name not in same]
        if len(same) >= MIN_BLOCK_COLUMNS:
            unused = next(new for new in (f"{anchor}{'_' * i}" for i in range(100)) if new not in taken)
            taken.add(unused)
            anchors |= dict.fromkeys(same, unused)
    return anchors
