"""In a schema file the key is the name; a name inside the entry is refused, for it would be ignored."""

from __future__ import annotations

import pytest

from dpsyn.errors import SchemaError
from dpsyn.schema import Schema

SCHEMA = """\
dpsyn_schema: 1
attributes:
  a: {{kind: categorical, codes: 2{attribute}}}
  b: {{kind: categorical, codes: 2}}
derive:
  b: {{from: a, mapping: {{0: 0, 1: 1}}{derive}}}
rules:
  - {{rule: total, count: 7{rule}}}
"""


@pytest.mark.parametrize(("place", "line"), [("attribute", 3), ("derive", 6), ("rule", 8)])
def test_a_name_inside_an_entry_is_refused(place: str, line: int) -> None:
    text = SCHEMA.format(**{"attribute": "", "derive": "", "rule": "", place: ", name: c"})

    with pytest.raises(SchemaError, match=f"^line {line}: .*: there is no field 'name'"):
        Schema.from_yaml(text)


def test_the_key_is_the_name() -> None:
    text = SCHEMA.format(attribute="", derive="", rule="")

    schema = Schema.from_yaml(text)

    assert (schema.names, schema.derive[0].name) == (("a", "b"), "b")
