"""DPSyn: synthetic tables with a differential-privacy guarantee that can be checked.

>>> import dpsyn
>>> from dpsyn.demo import people, people_schema
>>> synopsis = dpsyn.measure(people(rows=500), people_schema(), epsilon=1.0)    # noisy marginals; spends the budget
>>> table = synopsis.generate(rows=100, seed=7)                                # free, as often as you like
>>> synopsis.count(sex="female").source                                        # any count, with an error bar
'covered'

The names below are the public API: every function that users call, every type that these return, and every error.
They are loaded when first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from dpsyn.errors import (
    BudgetError,
    DocumentError,
    DPSynError,
    InternalError,
    JournalError,
    LedgerError,
    MissingExtraError,
    OutputError,
    PlanError,
    QueryError,
    SchemaError,
    SignatureError,
    SourceError,
    SynopsisError,
    UserError,
)

if TYPE_CHECKING:
    from dpsyn.accounting import Budget as Budget
    from dpsyn.accounting import Cap as Cap
    from dpsyn.accounting import Certificate as Certificate
    from dpsyn.accounting import DatasetAccount as DatasetAccount
    from dpsyn.accounting import Ledger as Ledger
    from dpsyn.accounting import LedgerCheckpoint as LedgerCheckpoint
    from dpsyn.accounting import LedgerHead as LedgerHead
    from dpsyn.accounting import LedgerVerification as LedgerVerification
    from dpsyn.accounting import NoiseChoice as NoiseChoice
    from dpsyn.accounting import PrivacyUnit as PrivacyUnit
    from dpsyn.accounting import RunAccount as RunAccount
    from dpsyn.accounting import RunOutcome as RunOutcome
    from dpsyn.accounting import compare_noise_mechanisms as compare_noise_mechanisms
    from dpsyn.accounting import laplace_gaussian_crossover as laplace_gaussian_crossover
    from dpsyn.accounting import max_marginals as max_marginals
    from dpsyn.analysis import Conclusion as Conclusion
    from dpsyn.analysis import Pooled as Pooled
    from dpsyn.analysis import ReplicatesRecord as ReplicatesRecord
    from dpsyn.analysis import pool as pool
    from dpsyn.analysis import pool_results_file as pool_results_file
    from dpsyn.assessment import Choice as Choice
    from dpsyn.assessment import Criteria as Criteria
    from dpsyn.assessment import CriterionResult as CriterionResult
    from dpsyn.assessment import GroupDistance as GroupDistance
    from dpsyn.assessment import ReleasedDistance as ReleasedDistance
    from dpsyn.assessment import ReleasedEvaluation as ReleasedEvaluation
    from dpsyn.assessment import ReleasedFigure as ReleasedFigure
    from dpsyn.assessment import choose as choose
    from dpsyn.assessment import release_evaluation as release_evaluation
    from dpsyn.audits._audit import audit as audit
    from dpsyn.audits.results import AuditReport as AuditReport
    from dpsyn.audits.results import BoundFinding as BoundFinding
    from dpsyn.audits.results import NoiseFinding as NoiseFinding
    from dpsyn.audits.results import ReplayFinding as ReplayFinding
    from dpsyn.contest import Contest as Contest
    from dpsyn.contest import ContestRanking as ContestRanking
    from dpsyn.contest import SubmissionScore as SubmissionScore
    from dpsyn.contest import SubmissionScores as SubmissionScores
    from dpsyn.contest import make_contest as make_contest
    from dpsyn.contest import score_submissions as score_submissions
    from dpsyn.diagnose import PRIVATE_NOTICE as PRIVATE_NOTICE
    from dpsyn.diagnose import AttributeCheck as AttributeCheck
    from dpsyn.diagnose import OpenCheck as OpenCheck
    from dpsyn.diagnose import SchemaCheck as SchemaCheck
    from dpsyn.diagnose import UnitCheck as UnitCheck
    from dpsyn.diagnose import check_table as check_table
    from dpsyn.diagnose import draft_schema as draft_schema
    from dpsyn.diagnose import explore_public_data as explore_public_data
    from dpsyn.encoding import write_table as write_table
    from dpsyn.evaluation import Evaluation as Evaluation
    from dpsyn.evaluation import IncomeColumns as IncomeColumns
    from dpsyn.evaluation import evaluate as evaluate
    from dpsyn.forecasts.results import AttributeForecast as AttributeForecast
    from dpsyn.forecasts.results import ExpectedErrors as ExpectedErrors
    from dpsyn.forecasts.results import Forecast as Forecast
    from dpsyn.forecasts.results import ForecastAtEpsilon as ForecastAtEpsilon
    from dpsyn.forecasts.simulated_releases import forecast as forecast
    from dpsyn.inference import GUM as GUM
    from dpsyn.inference import MCF as MCF
    from dpsyn.inference import ConstantDecay as ConstantDecay
    from dpsyn.inference import ExponentialDecay as ExponentialDecay
    from dpsyn.inference import Gibbs as Gibbs
    from dpsyn.inference import LinearDecay as LinearDecay
    from dpsyn.inference import SquareRootDecay as SquareRootDecay
    from dpsyn.inference import StepDecay as StepDecay
    from dpsyn.itemsets import AssociationRule as AssociationRule
    from dpsyn.itemsets import FrequentItemsets as FrequentItemsets
    from dpsyn.itemsets import Itemset as Itemset
    from dpsyn.itemsets import frequent_itemsets as frequent_itemsets
    from dpsyn.marginals import Estimate as Estimate
    from dpsyn.options import Option as Option
    from dpsyn.options import list_options as list_options
    from dpsyn.plan import Exploration as Exploration
    from dpsyn.plan import Plan as Plan
    from dpsyn.plan import PredictedMarginal as PredictedMarginal
    from dpsyn.query import Answer as Answer
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
    from dpsyn.recipes import ResourceEstimate as ResourceEstimate
    from dpsyn.recipes import Synthesizer as Synthesizer
    from dpsyn.recipes import estimate_resources as estimate_resources
    from dpsyn.recipes import find_recipe as find_recipe
    from dpsyn.recipes import find_synthesis as find_synthesis
    from dpsyn.recipes import measure as measure
    from dpsyn.report.release_report import publishable_report as publishable_report
    from dpsyn.schema import Boolean as Boolean
    from dpsyn.schema import Categorical as Categorical
    from dpsyn.schema import Datetime as Datetime
    from dpsyn.schema import FileSyntax as FileSyntax
    from dpsyn.schema import Identifier as Identifier
    from dpsyn.schema import Integer as Integer
    from dpsyn.schema import Open as Open
    from dpsyn.schema import Ordinal as Ordinal
    from dpsyn.schema import Real as Real
    from dpsyn.schema import Schema as Schema
    from dpsyn.schema import SchemaDraft as SchemaDraft
    from dpsyn.schema import Time as Time
    from dpsyn.schema import parse_conditions as parse_conditions
    from dpsyn.schema.approval import Approval as Approval
    from dpsyn.schema.approval import DraftEntry as DraftEntry
    from dpsyn.schema.approval import approve_schema as approve_schema
    from dpsyn.schema.importers import import_schema as import_schema
    from dpsyn.selection import AllViews as AllViews
    from dpsyn.selection import CoveringViews as CoveringViews
    from dpsyn.selection import RandomViews as RandomViews
    from dpsyn.signatures import PublicKey as PublicKey
    from dpsyn.signatures import SigningKey as SigningKey
    from dpsyn.signatures import verifier_source as verifier_source
    from dpsyn.sources import read_table as read_table
    from dpsyn.synopsis import ReleaseComparison as ReleaseComparison
    from dpsyn.synopsis import Replicates as Replicates
    from dpsyn.synopsis import Synopsis as Synopsis
    from dpsyn.synopsis import read_ledger_checkpoint as read_ledger_checkpoint
    from dpsyn.verification import Verification as Verification
    from dpsyn.verification import VerificationCheck as VerificationCheck
    from dpsyn.verification import sign as sign
    from dpsyn.verification import verify as verify

__version__ = "0.1.0"

_EXPORTS = {
    "dpsyn.accounting": (
        "Budget",
        "Cap",
        "Certificate",
        "DatasetAccount",
        "Ledger",
        "LedgerCheckpoint",
        "LedgerHead",
        "LedgerVerification",
        "NoiseChoice",
        "PrivacyUnit",
        "RunAccount",
        "RunOutcome",
        "compare_noise_mechanisms",
        "laplace_gaussian_crossover",
        "max_marginals",
    ),
    "dpsyn.analysis": (
        "Conclusion",
        "Pooled",
        "ReplicatesRecord",
        "pool",
        "pool_results_file",
    ),
    "dpsyn.assessment": (
        "Choice",
        "Criteria",
        "CriterionResult",
        "GroupDistance",
        "ReleasedDistance",
        "ReleasedEvaluation",
        "ReleasedFigure",
        "choose",
        "release_evaluation",
    ),
    "dpsyn.audits._audit": ("audit",),
    "dpsyn.audits.results": (
        "AuditReport",
        "BoundFinding",
        "NoiseFinding",
        "ReplayFinding",
    ),
    "dpsyn.contest": (
        "Contest",
        "ContestRanking",
        "SubmissionScore",
        "SubmissionScores",
        "make_contest",
        "score_submissions",
    ),
    "dpsyn.diagnose": (
        "PRIVATE_NOTICE",
        "AttributeCheck",
        "OpenCheck",
        "SchemaCheck",
        "UnitCheck",
        "check_table",
        "draft_schema",
        "explore_public_data",
    ),
    "dpsyn.encoding": ("write_table",),
    "dpsyn.evaluation": (
        "Evaluation",
        "IncomeColumns",
        "evaluate",
    ),
    "dpsyn.forecasts.results": (
        "AttributeForecast",
        "ExpectedErrors",
        "Forecast",
        "ForecastAtEpsilon",
    ),
    "dpsyn.forecasts.simulated_releases": ("forecast",),
    "dpsyn.inference": (
        "GUM",
        "MCF",
        "ConstantDecay",
        "ExponentialDecay",
        "Gibbs",
        "LinearDecay",
        "SquareRootDecay",
        "StepDecay",
    ),
    "dpsyn.marginals": ("Estimate",),
    "dpsyn.itemsets": (
        "AssociationRule",
        "FrequentItemsets",
        "Itemset",
        "frequent_itemsets",
    ),
    "dpsyn.options": (
        "Option",
        "list_options",
    ),
    "dpsyn.plan": (
        "Exploration",
        "Plan",
        "PredictedMarginal",
    ),
    "dpsyn.query": ("Answer",),
    "dpsyn.recipes": (
        "MWEM",
        "RECIPES",
        "AdaptiveSelection",
        "Direct",
        "DPSyn",
        "Explore",
        "Fourier",
        "Independent",
        "Planned",
        "PriView",
        "PrivSyn",
        "Recipe",
        "ResourceEstimate",
        "Synthesizer",
        "estimate_resources",
        "find_recipe",
        "find_synthesis",
        "measure",
    ),
    "dpsyn.report.release_report": ("publishable_report",),
    "dpsyn.schema": (
        "Boolean",
        "Categorical",
        "Datetime",
        "FileSyntax",
        "Identifier",
        "Integer",
        "Open",
        "Ordinal",
        "Real",
        "Schema",
        "SchemaDraft",
        "Time",
        "parse_conditions",
    ),
    "dpsyn.schema.approval": (
        "Approval",
        "DraftEntry",
        "approve_schema",
    ),
    "dpsyn.schema.importers": ("import_schema",),
    "dpsyn.selection": (
        "AllViews",
        "CoveringViews",
        "RandomViews",
    ),
    "dpsyn.signatures": (
        "PublicKey",
        "SigningKey",
        "verifier_source",
    ),
    "dpsyn.sources": ("read_table",),
    "dpsyn.synopsis": (
        "ReleaseComparison",
        "Replicates",
        "Synopsis",
        "read_ledger_checkpoint",
    ),
    "dpsyn.verification": (
        "Verification",
        "VerificationCheck",
        "sign",
        "verify",
    ),
}
"""The public names by the module they are loaded from."""

_HOMES = {name: module for module, names in _EXPORTS.items() for name in names}

__all__ = [
    "GUM",
    "MCF",
    "MWEM",
    "PRIVATE_NOTICE",
    "RECIPES",
    "AdaptiveSelection",
    "AllViews",
    "Answer",
    "Approval",
    "AssociationRule",
    "AttributeCheck",
    "AttributeForecast",
    "AuditReport",
    "Boolean",
    "BoundFinding",
    "Budget",
    "BudgetError",
    "Cap",
    "Categorical",
    "Certificate",
    "Choice",
    "Conclusion",
    "ConstantDecay",
    "Contest",
    "ContestRanking",
    "CoveringViews",
    "Criteria",
    "CriterionResult",
    "DPSyn",
    "DPSynError",
    "DatasetAccount",
    "Datetime",
    "Direct",
    "DocumentError",
    "DraftEntry",
    "Estimate",
    "Evaluation",
    "ExpectedErrors",
    "Exploration",
    "Explore",
    "ExponentialDecay",
    "FileSyntax",
    "Forecast",
    "ForecastAtEpsilon",
    "Fourier",
    "FrequentItemsets",
    "Gibbs",
    "GroupDistance",
    "Identifier",
    "IncomeColumns",
    "Independent",
    "Integer",
    "InternalError",
    "Itemset",
    "JournalError",
    "Ledger",
    "LedgerCheckpoint",
    "LedgerError",
    "LedgerHead",
    "LedgerVerification",
    "LinearDecay",
    "MissingExtraError",
    "NoiseChoice",
    "NoiseFinding",
    "Open",
    "OpenCheck",
    "Option",
    "Ordinal",
    "OutputError",
    "Plan",
    "PlanError",
    "Planned",
    "Pooled",
    "PredictedMarginal",
    "PriView",
    "PrivSyn",
    "PrivacyUnit",
    "PublicKey",
    "QueryError",
    "RandomViews",
    "Real",
    "Recipe",
    "ReleaseComparison",
    "ReleasedDistance",
    "ReleasedEvaluation",
    "ReleasedFigure",
    "ReplayFinding",
    "Replicates",
    "ReplicatesRecord",
    "ResourceEstimate",
    "RunAccount",
    "RunOutcome",
    "Schema",
    "SchemaCheck",
    "SchemaDraft",
    "SchemaError",
    "SignatureError",
    "SigningKey",
    "SourceError",
    "SquareRootDecay",
    "StepDecay",
    "SubmissionScore",
    "SubmissionScores",
    "Synopsis",
    "SynopsisError",
    "Synthesizer",
    "Time",
    "UnitCheck",
    "UserError",
    "Verification",
    "VerificationCheck",
    "__version__",
    "approve_schema",
    "audit",
    "check_table",
    "choose",
    "compare_noise_mechanisms",
    "draft_schema",
    "estimate_resources",
    "evaluate",
    "explore_public_data",
    "find_recipe",
    "find_synthesis",
    "forecast",
    "frequent_itemsets",
    "import_schema",
    "laplace_gaussian_crossover",
    "list_options",
    "make_contest",
    "max_marginals",
    "measure",
    "parse_conditions",
    "pool",
    "pool_results_file",
    "publishable_report",
    "read_ledger_checkpoint",
    "read_table",
    "release_evaluation",
    "score_submissions",
    "sign",
    "verifier_source",
    "verify",
    "write_table",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    hint = "; use measure(data, schema, epsilon=1).generate()" if name == "synthesize" else ""
    raise AttributeError(f"module 'dpsyn' has no attribute {name!r}{hint}")


def __dir__() -> list[str]:
    return sorted(__all__)
