"""Which columns of a schema speak of region, sex and wage, by their names."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dpsyn.schema import Ranged, Schema

_REGION = ("region", "city", "county", "district", "state", "province", "puma", "municipality", "canton")
_SEX = ("sex", "gender")
_WAGE = ("incwage", "wage", "wages", "income", "salary", "earnings", "pincp", "pay")


@dataclass(frozen=True, slots=True)
class WageEffect:
    """Wages differ by sex, and by how much differs by region.

    Attributes:
        region: the attribute that names the region.
        sex: the attribute that names the sex.
        wage: the numbers that differ.
    """

    region: str
    sex: str
    wage: str


def wage_effect(schema: Schema) -> WageEffect | None:
    """The three columns, or None if the schema lacks one of them."""
    measured = [attribute for attribute in schema.measured if attribute.coded]
    region = _first([a.name for a in measured if not isinstance(a, Ranged)], _REGION)
    sex = _first([a.name for a in measured if not isinstance(a, Ranged)], _SEX)
    wage = _first([a.name for a in measured if isinstance(a, Ranged)], _WAGE)
    return WageEffect(region, sex, wage) if region and sex and wage else None


def _first(names: list[str], wanted: tuple[str, ...]) -> str | None:
    """The first name that has one of these words in it, the words tried in their order."""
    for word in wanted:
        for name in names:
            if word in re.split(r"[^a-z0-9]+", name.lower()):
                return name
    return None
