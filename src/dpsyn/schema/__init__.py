"""What is public about a table: attributes, domains, rules, the privacy unit, and schema files."""

from dpsyn.schema.attributes import (
    MISSING,
    Attribute,
    Boolean,
    Categorical,
    Identifier,
    Open,
    Ordinal,
    Value,
    canonical_text,
)
from dpsyn.schema.baskets import BasketSchema, is_item, read_items
from dpsyn.schema.clock import Time, parse_clock
from dpsyn.schema.conditions import AttributeConditions, format_conditions, parse_conditions, select_cells
from dpsyn.schema.constraint_model import compile_constraints, derived_cells
from dpsyn.schema.file_syntax import FileSyntax, NumberSigns
from dpsyn.schema.grid import Grid
from dpsyn.schema.ranges import Datetime, Integer, Ranged, Real, parse_instant
from dpsyn.schema.relations import (
    MAX_JOINT_VALUES,
    AnyRule,
    Derive,
    Impossible,
    JointAttribute,
    NeighboringRelation,
    Order,
    Rule,
    Sum,
    Total,
    UnitDeclaration,
)
from dpsyn.schema.schema import AnyAttribute, Schema
from dpsyn.schema.schema_draft import SchemaDraft

__all__ = [
    "MAX_JOINT_VALUES",
    "MISSING",
    "AnyAttribute",
    "AnyRule",
    "Attribute",
    "AttributeConditions",
    "BasketSchema",
    "Boolean",
    "Categorical",
    "Datetime",
    "Derive",
    "FileSyntax",
    "Grid",
    "Identifier",
    "Impossible",
    "Integer",
    "JointAttribute",
    "NeighboringRelation",
    "NumberSigns",
    "Open",
    "Order",
    "Ordinal",
    "Ranged",
    "Real",
    "Rule",
    "Schema",
    "SchemaDraft",
    "Sum",
    "Time",
    "Total",
    "UnitDeclaration",
    "Value",
    "canonical_text",
    "compile_constraints",
    "derived_cells",
    "format_conditions",
    "is_item",
    "parse_clock",
    "parse_conditions",
    "parse_instant",
    "read_items",
    "select_cells",
]
