"""DPSyn: synthetic tables with a differential-privacy guarantee that can be checked.

>>> import dpsyn
>>> schema = dpsyn.Schema.load("schema.yaml")                        # what is public about the table
>>> synopsis = dpsyn.measure("people.csv", schema, epsilon=1.0)      # noisy counts, paid for
>>> table = synopsis.generate(rows=100_000, seed=7)                  # costs nothing
>>> scores = dpsyn.evaluate("people.csv", table, schema)             # for the steward's eyes only

The names below are the public API; they are loaded when first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from dpsyn.errors import DPSynError

if TYPE_CHECKING:
    from dpsyn.accounting import Cap as Cap
    from dpsyn.accounting import Ledger as Ledger
    from dpsyn.accounting import noise_choices as noise_choices
    from dpsyn.accounting import noise_crossing as noise_crossing
    from dpsyn.accounting import read_witness as read_witness
    from dpsyn.diagnose import PRIVATE as PRIVATE
    from dpsyn.diagnose import AttributeFit as AttributeFit
    from dpsyn.diagnose import Fit as Fit
    from dpsyn.diagnose import check_table as check_table
    from dpsyn.diagnose import draft_schema as draft_schema
    from dpsyn.diagnose import explore_public as explore_public
    from dpsyn.evaluation import evaluate as evaluate
    from dpsyn.plan import Exploration as Exploration
    from dpsyn.plan import Plan as Plan
    from dpsyn.plan import explored as explored
    from dpsyn.recipes import Synthesizer as Synthesizer
    from dpsyn.recipes import frequent_itemsets as frequent_itemsets
    from dpsyn.recipes import measure as measure
    from dpsyn.recipes import reading_plan as reading_plan
    from dpsyn.records import write_table as write_table
    from dpsyn.schema import Schema as Schema
    from dpsyn.schema import parse_where as parse_where
    from dpsyn.schema.approval import approve_schema as approve_schema
    from dpsyn.schema.imports import import_schema as import_schema
    from dpsyn.sources import read_table as read_table
    from dpsyn.synopsis import Synopsis as Synopsis

__version__ = "0.1.0.dev0"

_HOMES = {
    "PRIVATE": "dpsyn.diagnose",
    "AttributeFit": "dpsyn.diagnose",
    "Cap": "dpsyn.accounting",
    "Exploration": "dpsyn.plan",
    "Fit": "dpsyn.diagnose",
    "Ledger": "dpsyn.accounting",
    "Plan": "dpsyn.plan",
    "Schema": "dpsyn.schema",
    "Synopsis": "dpsyn.synopsis",
    "Synthesizer": "dpsyn.recipes",
    "approve_schema": "dpsyn.schema.approval",
    "check_table": "dpsyn.diagnose",
    "draft_schema": "dpsyn.diagnose",
    "evaluate": "dpsyn.evaluation",
    "explore_public": "dpsyn.diagnose",
    "explored": "dpsyn.plan",
    "frequent_itemsets": "dpsyn.recipes",
    "import_schema": "dpsyn.schema.imports",
    "measure": "dpsyn.recipes",
    "noise_choices": "dpsyn.accounting",
    "noise_crossing": "dpsyn.accounting",
    "parse_where": "dpsyn.schema",
    "read_witness": "dpsyn.accounting",
    "read_table": "dpsyn.sources",
    "reading_plan": "dpsyn.recipes",
    "write_table": "dpsyn.records",
}

__all__ = ["DPSynError", "__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'dpsyn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
