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
    from dpsyn.accounting import compare_noise_mechanisms as compare_noise_mechanisms
    from dpsyn.accounting import laplace_gaussian_crossover as laplace_gaussian_crossover
    from dpsyn.accounting import read_ledger_checkpoint as read_ledger_checkpoint
    from dpsyn.diagnose import PRIVATE_NOTICE as PRIVATE_NOTICE
    from dpsyn.diagnose import AttributeCheck as AttributeCheck
    from dpsyn.diagnose import SchemaCheck as SchemaCheck
    from dpsyn.diagnose import check_table as check_table
    from dpsyn.diagnose import draft_schema as draft_schema
    from dpsyn.diagnose import explore_public_data as explore_public_data
    from dpsyn.encoding import write_table as write_table
    from dpsyn.evaluation import Evaluation as Evaluation
    from dpsyn.evaluation import IncomeColumns as IncomeColumns
    from dpsyn.evaluation import evaluate as evaluate
    from dpsyn.inference import GUM as GUM
    from dpsyn.inference import MCF as MCF
    from dpsyn.inference import Gibbs as Gibbs
    from dpsyn.itemsets import frequent_itemsets as frequent_itemsets
    from dpsyn.options import Option as Option
    from dpsyn.options import list_options as list_options
    from dpsyn.plan import Exploration as Exploration
    from dpsyn.plan import Plan as Plan
    from dpsyn.plan import explore_synopsis as explore_synopsis
    from dpsyn.recipes import MWEM as MWEM
    from dpsyn.recipes import RECIPES as RECIPES
    from dpsyn.recipes import AdaptiveSelection as AdaptiveSelection
    from dpsyn.recipes import Direct as Direct
    from dpsyn.recipes import DPSyn as DPSyn
    from dpsyn.recipes import Explore as Explore
    from dpsyn.recipes import Fourier as Fourier
    from dpsyn.recipes import Independent as Independent
    from dpsyn.recipes import Planned as Planned
    from dpsyn.recipes import PriView as PriView
    from dpsyn.recipes import PrivSyn as PrivSyn
    from dpsyn.recipes import Recipe as Recipe
    from dpsyn.recipes import Synthesizer as Synthesizer
    from dpsyn.recipes import estimate_resources as estimate_resources
    from dpsyn.recipes import find_recipe as find_recipe
    from dpsyn.recipes import find_synthesis as find_synthesis
    from dpsyn.recipes import measure as measure
    from dpsyn.schema import Schema as Schema
    from dpsyn.schema import parse_conditions as parse_conditions
    from dpsyn.schema.approval import approve_schema as approve_schema
    from dpsyn.schema.importers import import_schema as import_schema
    from dpsyn.sources import read_table as read_table
    from dpsyn.synopsis import ReleaseComparison as ReleaseComparison
    from dpsyn.synopsis import Synopsis as Synopsis

__version__ = "0.1.0.dev0"

_HOMES = {
    "RECIPES": "dpsyn.recipes",
    "find_recipe": "dpsyn.recipes",
    "find_synthesis": "dpsyn.recipes",
    "Recipe": "dpsyn.recipes",
    "DPSyn": "dpsyn.recipes",
    "PrivSyn": "dpsyn.recipes",
    "PriView": "dpsyn.recipes",
    "Planned": "dpsyn.recipes",
    "Independent": "dpsyn.recipes",
    "Explore": "dpsyn.recipes",
    "Direct": "dpsyn.recipes",
    "Fourier": "dpsyn.recipes",
    "MWEM": "dpsyn.recipes",
    "AdaptiveSelection": "dpsyn.recipes",
    "Gibbs": "dpsyn.inference",
    "GUM": "dpsyn.inference",
    "MCF": "dpsyn.inference",
    "list_options": "dpsyn.options",
    "Option": "dpsyn.options",
    "PRIVATE_NOTICE": "dpsyn.diagnose",
    "AttributeCheck": "dpsyn.diagnose",
    "Cap": "dpsyn.accounting",
    "Evaluation": "dpsyn.evaluation",
    "Exploration": "dpsyn.plan",
    "IncomeColumns": "dpsyn.evaluation",
    "SchemaCheck": "dpsyn.diagnose",
    "Ledger": "dpsyn.accounting",
    "Plan": "dpsyn.plan",
    "ReleaseComparison": "dpsyn.synopsis",
    "Schema": "dpsyn.schema",
    "Synopsis": "dpsyn.synopsis",
    "Synthesizer": "dpsyn.recipes",
    "approve_schema": "dpsyn.schema.approval",
    "check_table": "dpsyn.diagnose",
    "draft_schema": "dpsyn.diagnose",
    "evaluate": "dpsyn.evaluation",
    "explore_public_data": "dpsyn.diagnose",
    "explore_synopsis": "dpsyn.plan",
    "frequent_itemsets": "dpsyn.itemsets",
    "import_schema": "dpsyn.schema.importers",
    "measure": "dpsyn.recipes",
    "compare_noise_mechanisms": "dpsyn.accounting",
    "laplace_gaussian_crossover": "dpsyn.accounting",
    "parse_conditions": "dpsyn.schema",
    "read_ledger_checkpoint": "dpsyn.accounting",
    "read_table": "dpsyn.sources",
    "estimate_resources": "dpsyn.recipes",
    "write_table": "dpsyn.encoding",
}

__all__ = ["DPSynError", "__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'dpsyn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
