"""Schema files: what is written reads back, and an error names its line."""

from __future__ import annotations

from hypothesis import given

from dpsyn.schema import Schema
from tests.strategies import schemas


@given(schemas())
def test_a_schema_reads_back_from_its_own_text_as_the_same_schema(schema: Schema) -> None:
    text = schema.to_yaml()

    again = Schema.from_yaml(text)

    assert again == schema
