"""Groups of rows as rows of a table and sentences: who is served worse by a synthetic table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dpsyn.report.numbers import format_number

if TYPE_CHECKING:
    from dpsyn.marginals import GroupComparison
    from dpsyn.schema import Schema

SMALL = "small"
"""The flag of a group that cannot be judged."""

GROUP_EXPLANATION = (
    "Within each group, the mean distance of the one-way marginals of other attributes, with its standard error. "
    "Small: the group has few rows, or its error is too large to judge it."
)

_MAX_NAMED = 5
"""Groups that a sentence names."""


def group_headings(floor: str) -> tuple[str, ...]:
    """The columns of ``group_rows``; those between the first and the last are numbers."""
    return ("group", "rows", "synthetic rows", "attributes", "distance", "± error", floor, "")


def group_rows(groups: Sequence[GroupComparison]) -> list[tuple[str, ...]]:
    """A row of text for each group, in the order in which they were asked for."""
    return [
        (
            f"{group.attribute} = {group.group}",
            format_number(round(group.rows)),
            f"{group.synthetic_rows:,}",
            f"{group.attributes:,}",
            f"{group.distance.synthetic:.4f}",
            f"{group.error:.4f}",
            f"{group.distance.floor:.4f}",
            SMALL if group.small else "",
        )
        for group in groups
    ]


def check_declared_groups(schema: Schema) -> None:
    """Refuse groups of a schema that a report cannot list, before anything is spent on one."""
    from dpsyn.marginals.comparison import choose_groups

    choose_groups(None, schema)


def group_lines(groups: Sequence[GroupComparison], by: Sequence[str] = ()) -> list[str]:
    """Who is served worst, which groups are too small to judge, and which attributes have no groups to compare."""
    lines = []
    judged = [group for group in groups if not group.small]
    if len(judged) > 1:
        worst = max(judged, key=lambda group: group.distance.excess)
        lines.append(
            f"Served worst, of the groups that can be judged: {worst.attribute} = {worst.group}, with a distance of "
            f"{worst.distance.synthetic:.4f} ± {worst.error:.4f} ({worst.distance.excess:.4f} above its floor)."
        )
    if small := [f"{group.attribute} = {group.group}" for group in groups if group.small]:
        more = f" and {len(small) - _MAX_NAMED} more" if len(small) > _MAX_NAMED else ""
        lines.append(f"Too small to judge: {', '.join(small[:_MAX_NAMED])}{more}.")
    if missing := [name for name in by if name not in {group.attribute for group in groups}]:
        lines.append(f"No released marginal holds {', '.join(missing)} together with another attribute.")
    return lines
