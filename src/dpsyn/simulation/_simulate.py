"""Rows of a random process, a chunk at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from dpsyn.constraints import repair_rows
from dpsyn.encoding import Codec, Codes, narrowest_dtype
from dpsyn.errors import UserError
from dpsyn.schema import Identifier, Impossible, Schema, Total, canonical_text
from dpsyn.simulation.process import Process, random_process
from dpsyn.simulation.strength import InteractionStrength, measure_interactions

CHUNK_ROWS = 1 << 15
"""Rows that are made together. A chunk is a function of the seed and its number, so that memory stays the same however
many rows there are, and the first rows of a longer table are those of a shorter one."""

MAX_SIMULATED_ROWS = 10**10

OPEN_VALUE_COUNT = 60
"""Values that are made up for an attribute without a public list of them."""


@dataclass(frozen=True, eq=False)
class Simulation:
    """A made-up table that was not made yet: rows come out of ``batches`` as they are needed.

    Attributes:
        schema: what the table keeps to; open attributes have made-up values.
        rows: how many.
        seed: decides the distribution and the rows.
        process: the distribution.
    """

    schema: Schema
    rows: int
    seed: int
    process: Process

    @cached_property
    def _codec(self) -> Codec:
        return Codec(self.schema)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows, in batches of the same columns; at least one batch."""
        for number in range(max(1, -(-self.rows // CHUNK_ROWS))):
            yield self._batch(number)

    def table(self) -> pa.Table:
        """All rows at once."""
        return pa.Table.from_batches(list(self.batches()))

    def strength(self) -> InteractionStrength:
        """How strongly attributes hang together, measured on the first rows."""
        random = np.random.default_rng([self.seed, 1, 0])
        codes, _ = repair_rows(self.schema, self._codes(0, self._chunk_rows(0), random), random)
        return measure_interactions([column.astype(np.int64) for column in codes.T], self.seed)

    def _chunk_rows(self, number: int) -> int:
        return min(CHUNK_ROWS, self.rows - number * CHUNK_ROWS)

    def _codes(self, number: int, rows: int, random: np.random.Generator) -> Codes:
        codes = np.empty((rows, len(self._codec.names)), narrowest_dtype(max(self._codec.fine_sizes)), order="F")
        for place, column in enumerate(self.process.sample(rows, random)):
            codes[:, place] = column
        return codes

    def _batch(self, number: int) -> pa.RecordBatch:
        rows, random = self._chunk_rows(number), np.random.default_rng([self.seed, 1, number])
        codes, steps = repair_rows(self.schema, self._codes(number, rows, random), random)
        decoded = self._codec.decode(
            codes, random, steps={self._codec.names[place]: own for place, own in steps.items()}
        )
        columns = {name: decoded.column(name).combine_chunks() for name in decoded.column_names}
        for attribute in self.schema:
            if isinstance(attribute, Identifier):
                columns[attribute.name] = self._identifiers(attribute, number, rows, random)
        return pa.RecordBatch.from_pydict({name: columns[name] for name in self.schema.names})

    def _identifiers(self, attribute: Identifier, number: int, rows: int, random: np.random.Generator) -> pa.Array:
        """Numbers of rows; those of the unit name persons, each with as many rows as it may have at most."""
        first, unit = number * CHUNK_ROWS, self.schema.privacy_unit
        if unit is None or unit.id != attribute.name or unit.max_rows == 1:
            return pa.array(np.arange(first, first + rows))
        begins = random.random(rows) < 2 / (unit.max_rows + 1)
        begins[:1] = True
        since = np.arange(rows) - np.maximum.accumulate(np.where(begins, np.arange(rows), 0))
        return pa.array(first + np.cumsum(begins | (since % unit.max_rows == 0)))


def simulate(schema: Schema, rows: int, seed: int) -> Simulation:
    """A made-up table of a schema: realistic in kind, random in everything else.

    The process is public and stands in ``process.py``; whoever does not know the seed knows nothing about the table
    beyond its schema. The same seed gives the same table. It is nobody's data, so it may be used for anything.
    """
    if not 0 <= rows <= MAX_SIMULATED_ROWS:
        raise UserError(f"{rows:,} rows were asked for; give a number from 0 to {MAX_SIMULATED_ROWS:,}")
    if seed < 0:
        raise UserError(f"the seed is {seed}; give a whole number from 0")
    known = _fill_open_attributes(schema)
    return Simulation(known, rows, seed, random_process(known, seed))


def _fill_open_attributes(schema: Schema) -> Schema:
    """The schema with made-up values for open attributes, those that rules name among them."""
    for attribute in schema.open_attributes:
        named = [
            text
            for rule in schema.rules
            if isinstance(rule, Impossible | Total)
            for text in _values_in_rule(rule, attribute.name)
        ]
        made = [f"{attribute.name} {number}" for number in range(1, OPEN_VALUE_COUNT + 1)]
        schema = schema.with_discovered_values(attribute.to_categorical(list(dict.fromkeys([*named, *made]))))
    return schema


def _values_in_rule(rule: Impossible | Total, name: str) -> list[str]:
    """The values of an attribute that a rule has in its condition."""
    given = dict(rule.where).get(name, ())
    return [canonical_text(value) for value in (given if isinstance(given, tuple) else (given,))]
