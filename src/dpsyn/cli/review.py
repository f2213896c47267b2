"""The entries of a draft on the terminal: as a table, and one after the other with questions.

Privacy: a draft shows values of rows, so this is for the data owner.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

import dpsyn
from dpsyn.cli import output
from dpsyn.report.numbers import format_count
from dpsyn.suggestions import format_names

if TYPE_CHECKING:
    from dpsyn import DraftEntry, SchemaDraft

MAX_DECLARATION = 90
"""Characters of a declaration in a table; a review shows all of it."""

MAX_NAMES = 12
"""Names of entries in a sentence."""

_CHOICES = "[a]ccept, [e]dit, [l]eave out, [s]kip, [q]uit"


def show_summary(draft: SchemaDraft, target: str) -> None:
    """Print what a draft recognized, what needs a person and why, and what to do next."""
    to_stderr = target == "-"
    questions = format_count(len(set(draft.questions.values())), "question")
    need_you = f"{len(draft.questions)} need you" + f" ({questions})" * bool(draft.questions)
    counts = f"{draft.recognized} recognized, {need_you}, {len(draft.left_out)} left out"
    lines = [f"{format_count(draft.columns, 'column')}: {counts}."]
    for heading, reasons in (("Need you:", draft.questions), ("Left out:", draft.left_out)):
        names: dict[str, list[str]] = {}
        for name, reason in reasons.items():
            names.setdefault(reason, []).append(name)
        lines += [heading] * bool(reasons) + [f"  {format_names(names[reason], 4)}: {reason}" for reason in names]
    lines += ["Proposed relations, for you to judge:"] * bool(draft.proposals)
    lines += [f"  {proposal}" for proposal in draft.proposals]
    lines += [f"Note: {note}" for note in draft.notes]
    if not to_stderr:
        lines += [
            f"Next: write into {target} about how many rows the table has (expected_size: a public estimate), then",
            f"  dpsyn schema review {shlex.quote(target)}",
        ]
    for line in lines:
        output.print_line(line, to_stderr=to_stderr or line.startswith("Note: "))


def show_entries(entries: Sequence[DraftEntry]) -> None:
    """Print what entries of a draft declare, one row per entry."""
    rows = [(format_title(entry), _shorten(entry.declaration), _note(entry)) for entry in entries]
    if rows:
        output.print_table("", ("entry", "declares", "note"), rows)


def show_left(left: Sequence[DraftEntry], file: str) -> None:
    """Print which entries an approval has left, and how to go on."""
    remarks = [format_title(entry) for entry in left if entry.remark]
    unchanged = [format_title(entry) for entry in left if not entry.remark]
    path = shlex.quote(file)
    if remarks:
        output.print_line(f"Left, because their remark is open: {format_names(remarks, MAX_NAMES)}.")
        output.print_line(
            f"  Answer them one by one: dpsyn schema review {path}. Or correct the entries in the file and remove each "
            "remark. Or approve entries as they are: name them with --despite-remarks."
        )
    if unchanged:
        output.print_line(
            f"Left, because they are exactly as they were read off the data: {format_names(unchanged, MAX_NAMES)}."
        )
        output.print_line(
            "  Write what is possible, not what occurs. If a public source agrees with the draft, add --as-drafted."
        )


def ask_for_each_kind(entries: Sequence[DraftEntry]) -> tuple[str, ...]:
    """Ask for a separate yes where one is needed; the titles of the entries that may be approved."""
    plain = [entry for entry in entries if not entry.remark and not entry.unchanged]
    unchanged = [entry for entry in entries if not entry.remark and entry.unchanged]
    if unchanged:
        count = format_count(len(unchanged), "entry")
        question = f"{count} exactly as read off the data: does your public source say the same?"
        plain += unchanged if click.confirm(question, default=False) else []
    for entry in entries:
        if entry.remark:
            output.print_line(f"{format_title(entry)}: {entry.remark}")
            plain += [entry] if click.confirm("Approve it as it is?", default=False) else []
    return tuple(entry.title for entry in plain)


def walk_through(file: str, because: str) -> None:
    """Show every entry that is not approved, and do what the answer says; each answer is saved at once."""
    if not output.can_ask():
        raise click.UsageError(
            "a review asks questions, so it needs a terminal; without one, edit the file and use dpsyn schema approve"
        )
    entries = dpsyn.SchemaDraft.load(file).entries()
    for number, listed in enumerate(entries, start=1):
        title = _find_title(file, listed)
        if not title:
            continue
        output.print_line(f"\n{number} of {len(entries)}  {format_title(listed)}")
        answer = _ask_about(file, title)
        while answer == "e":
            _edit(file, title)
            answer = _ask_about(file, title)
        if answer == "q":
            return
        if answer == "a":
            because = click.prompt("Why is it public?", default=because or None)
            yes = {"as_drafted": True, "despite_remarks": True}
            dpsyn.approve_schema(file, title, because=because, **yes)
        elif answer == "l":
            _leave_out(file, title)


def _find_title(file: str, listed: DraftEntry) -> str:
    """The title that an entry has now; empty if it was approved or left out together with another one.

    Relations are found by what they say, because rules are numbered anew when one is left out.
    """
    entries = dpsyn.SchemaDraft.load(file).entries()
    relation = listed.relation
    same = (e.title for e in entries if (e.relation == relation if relation else e.title == listed.title))
    return next(same, "")


def _ask_about(file: str, title: str) -> str:
    (entry, *_) = dpsyn.SchemaDraft.load(file).entries(title)
    for key, value in entry.fields.items():
        output.print_line(f"  {key}: {value if isinstance(value, str | int | float) else _flow(value)}")
    if entry.remark:
        output.print_line(f"  Remark: {entry.remark}")
    elif entry.unchanged:
        output.print_line("  Exactly as it was read off the data; is this what is possible?")
    choice = click.Choice(["a", "e", "l", "s", "q"])
    answer: str = click.prompt(_CHOICES, type=choice, show_choices=False)
    return answer


def _edit(file: str, title: str) -> None:
    """Ask for fields until an empty line, and save them if the entry is valid."""
    output.print_line("  One field per line, such as  high: 120  or  values: [a, b]  or  spikes:  to remove it.")
    output.print_line("  An empty line ends.")
    lines = []
    while line := click.prompt("  field", default="", show_default=False):
        lines.append(line)
    if lines:
        _update(file, lambda draft: draft.edit(title, "\n".join(lines)), "Not saved")


def _leave_out(file: str, title: str) -> None:
    _update(file, lambda draft: draft.leave_out(title), "Not left out")


def _update(file: str, change: Callable[[SchemaDraft], SchemaDraft], failure: str) -> None:
    """Change the draft in a file, or print why that is not possible; this is a private look, so it shows values."""
    try:
        dpsyn.SchemaDraft.update(file, change)
    except dpsyn.SchemaError as error:
        output.print_line(f"  {failure}: {error.private_details or error}")


def format_title(entry: DraftEntry) -> str:
    """The title of an entry; for columns that share one, the first and the last."""
    if len(entry.names) == 1:
        return entry.title
    return f"{entry.names[0]} … {entry.names[-1]} ({len(entry.names)} columns)"


def _note(entry: DraftEntry) -> str:
    return f"remark: {entry.remark}" if entry.remark else "as read off the data" if entry.unchanged else ""


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_DECLARATION else f"{text[: MAX_DECLARATION - 1]}…"


def _flow(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
