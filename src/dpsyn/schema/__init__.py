"""What is public about a table: attributes, domains, rules, the unit of privacy, and their files."""

from dpsyn.schema.attributes import (
    MISSING,
    Attribute,
    Boolean,
    Categorical,
    Identifier,
    Open,
    Ordinal,
    Value,
    text_of,
)
from dpsyn.schema.baskets import BasketSchema, is_item, items_of
from dpsyn.schema.constraints import constraints_of
from dpsyn.schema.grid import Grid
from dpsyn.schema.ranges import Datetime, Integer, Ranged, Real, parse_instant
from dpsyn.schema.relations import (
    MOST_COMBINATIONS,
    AnyRule,
    Derive,
    Impossible,
    Neighbours,
    Order,
    Recode,
    Rule,
    Sum,
    Total,
    Unit,
)
from dpsyn.schema.schema import AnyAttribute, Schema
from dpsyn.schema.where import parse_where, select_cells, where_in_words

__all__ = [
    "MISSING",
    "MOST_COMBINATIONS",
    "AnyAttribute",
    "AnyRule",
    "Attribute",
    "BasketSchema",
    "Boolean",
    "Categorical",
    "Datetime",
    "Derive",
    "Grid",
    "Identifier",
    "Impossible",
    "Integer",
    "Neighbours",
    "Open",
    "Order",
    "Ordinal",
    "Ranged",
    "Real",
    "Recode",
    "Rule",
    "Schema",
    "Sum",
    "Total",
    "Unit",
    "Value",
    "constraints_of",
    "is_item",
    "items_of",
    "parse_instant",
    "parse_where",
    "select_cells",
    "text_of",
    "where_in_words",
]
