from __future__ import annotations

import pyarrow as pa

from dpsyn.diagnose import check_table
from dpsyn.schema import Schema


def test_rows_that_break_a_rule_are_counted_rule_by_rule() -> None:
    schema = Schema.from_yaml(
        "dpsyn_schema: 1\nattributes:\n  a: {kind: integer, low: 0, high: 9}\n  b: {kind: integer, low: 0, high: 9}\n"
        "rules:\n  - {rule: order, attributes: [a, b]}\n  - {rule: impossible, where: {a: 0..3, b: 9}}\n"
        "  - {rule: total, count: 4}\n"
    )

    fit = check_table(schema, pa.table({"a": [1, 5, 6, 7], "b": [9, 4, 6, 2]}))

    assert fit.broken == {1: 2, 2: 1}
    assert fit.skipped == ("rule 3",)
