"""A public table in the codes of a private one's schema: its rows are known, so counts of them are exact and free."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsyn.accounting import Ledger
from dpsyn.encoding import Codec, Codes, Recoding, check_structure, contingency_table
from dpsyn.encoding.entry_parser import count_texts
from dpsyn.errors import InternalError, LedgerError, SourceError, UserError, quote_argument
from dpsyn.marginals import Clique
from dpsyn.release_files import find_synopsis, is_release
from dpsyn.schema import Schema
from dpsyn.sources import Source, is_same_table, list_table_files, open_declared
from dpsyn.suggestions import format_names
from dpsyn.synopsis import Synopsis

MAX_SYNOPSIS_ROWS = 50_000
"""Rows that are sampled from a synopsis that is a prior; more would say nothing more."""

MIN_ROWS = 1.0
"""The least number of rows that a noisy table stands for."""

SYNOPSIS_SUFFIX = ".dpsyn"

EXTEND_INSTEAD = (
    "An earlier release of the same dataset is not public data: together the two cost what only their ledger adds up. "
    "Combine them with --extend (in Python: extend=)"
)


@dataclass(frozen=True, eq=False)
class PublicTable:
    """Rows that are public, declared so by someone.

    Attributes:
        label: what messages call the table.
        table: its columns that the schema has.
        rows: the number of rows; fewer if they are known with noise.
        digest: the SHA-256 of the file, or of the codes of the rows if they are no file.
        because: who declares it public, and why.
        schema_digest: the SHA-256 of the schema that the table was read by, if it has one of its own.
    """

    label: str
    table: pa.Table
    rows: float
    digest: str
    because: str
    schema_digest: str | None = None
    _codes: dict[int, tuple[Schema, Codec, Codes]] = field(default_factory=dict, repr=False)

    def attributes(self, schema: Schema) -> tuple[str, ...]:
        """The modeled attributes of a schema that the table has."""
        columns = [name for name in self.table.column_names if name in schema.names]
        return tuple(part for name in columns for part in schema.parts_of(name))

    def to_data(self) -> dict[str, Any]:
        """What identifies the table, for journal and certificate."""
        return {
            "digest": self.digest,
            "rows": self.table.num_rows,
            "attributes": self.table.column_names,
            "because": self.because,
            **({"schema": self.schema_digest} if self.schema_digest else {}),
        }

    def declare(self) -> str:
        """What a certificate states about the table."""
        columns = self.table.num_columns
        read_by = f", read by a schema of its own, SHA-256 {self.schema_digest}" if self.schema_digest else ""
        return (
            f"a public table was used as a prior: {self.table.num_rows:,} rows of {columns} "
            f"{'attribute' if columns == 1 else 'attributes'}, SHA-256 {self.digest}{read_by}; it is declared public, "
            f"and to hold none of the private rows, because: {self.because}"
        )

    def count(self, schema: Schema, recoding: Recoding, clique: Clique) -> NDArray[np.int64] | None:
        """The public counts of a marginal; None if the table lacks an attribute."""
        columns, own = [recoding.columns[recoding.index_of(name)] for name in clique], set(self.attributes(schema))
        for column in columns:
            anchors = [coding.anchor for coding in column.difference_codings if coding]
            if not {recoding.origin[source][0] for source in (*column.sources, *anchors)} <= own:
                return None
        codec, fine = self._encode(schema)
        if codec.domain != recoding.origin:
            raise InternalError("public rows are counted in other cells than they were encoded in")
        return contingency_table([column.apply(fine) for column in columns], [column.size for column in columns])

    def _encode(self, schema: Schema) -> tuple[Codec, Codes]:
        """The fine codes of all rows, with their codec; those of attributes that the table lacks mean nothing."""
        known = self._codes.get(id(schema))
        if known is None:
            codec, table = Codec(schema), self.table
            for name in codec.columns:
                if name not in table.column_names:
                    table = table.append_column(name, pa.nulls(table.num_rows, pa.string()))
            known = (schema, codec, codec.encode(table))
            self._codes.clear()  # cells may have been divided; the earlier ones are not needed again
            self._codes[id(schema)] = known
        return known[1:]


def refuse_private_table(data: Any, public: Any) -> None:
    """Refuse the private table, or a part of it, as a public one; a copy of it is not recognized.

    Privacy: a comparison of contents would make the release depend on rows.
    """
    if public is not None and is_same_table(data, public):
        raise UserError(
            "the public rows are the private table itself, or a part of it; give rows that are public and of other "
            "people, or leave out public="
        )


def open_public(
    data: Any, schema: Schema, because: str | None, ledger: Ledger | None = None, *, own_schema: Schema | None = None
) -> PublicTable:
    """Open public rows, or a synopsis about other people, as a prior for a table of a schema.

    Columns that the schema has not are left out, and it may lack some that the schema has. Cells are read as the schema
    declares them, or as the public table's own schema does: attributes that this one derives count as columns.

    Args:
        data: whatever can be measured, or a synopsis or its path.
        schema: the schema of the private table.
        because: who declares the rows public, and why; required.
        ledger: if it knows the synopsis as a release of the same dataset, that is refused.
        own_schema: how the public table is written, if not as the private one.
    """
    if because is not None and not isinstance(because, str):
        raise UserError(f"public_because is {quote_argument(because)}; give a text")
    because = (because or "").strip()
    if not because:
        raise UserError(
            "public rows need a reason, which the certificate repeats: who declares them public, and why they hold "
            "none of the private rows (--public-because, or public_because=)"
        )
    synopses = _find_synopses(data)
    for synopsis in synopses:
        _refuse_own_release(synopsis, schema, ledger)
    if isinstance(data, Synopsis) or _is_synopsis_path(data):
        if own_schema is not None:
            raise UserError("a public synopsis holds its schema; leave out --public-schema (public_schema=)")
        return _from_synopsis(synopses[0], data, schema, because)
    source = open_declared(data, own_schema or schema)
    table, schema_digest = _read_columns(source, schema, own_schema), None
    if own_schema is not None:
        schema_digest = hashlib.sha256(own_schema.to_yaml().encode()).hexdigest()
    return PublicTable(source.label, table, float(table.num_rows), _digest(source, table), because, schema_digest)


def _is_synopsis_path(data: Any) -> bool:
    """Whether it is the path of a synopsis, or of the folder of a release."""
    return isinstance(data, str | os.PathLike) and (Path(data).suffix == SYNOPSIS_SUFFIX or is_release(Path(data)))


def _find_synopses(data: Any) -> list[Synopsis]:
    """The synopsis that is given, or those in the release folders of the files of a given table, links followed."""
    if isinstance(data, Synopsis):
        return [data]
    if _is_synopsis_path(data):
        return [Synopsis.load(data)]
    above = [
        parent for path in list_table_files(data) for parent in path.parents[:2]
    ]  # parts have a folder of their own
    return [Synopsis.load(find_synopsis(folder)) for folder in dict.fromkeys(above) if is_release(folder)]


def _refuse_own_release(synopsis: Synopsis, schema: Schema, ledger: Ledger | None) -> None:
    """Refuse a synopsis of the same dataset, by its name or by what the ledger recorded under it."""
    certificates = [certificate for certificate in synopsis.certificates if certificate is not None]
    if schema.dataset and schema.dataset in {synopsis.schema.dataset, *(c.dataset for c in certificates)}:
        raise LedgerError(
            f"the public synopsis is a release of the dataset {schema.dataset!r} itself. {EXTEND_INSTEAD}"
        )
    if ledger is None or not ledger.path.exists():
        return
    runs = [run for dataset in ledger.datasets() if dataset.dataset == schema.dataset for run in dataset.runs]
    answers = {str(m.get("answer_hash", "")) for run in runs for m in run.measurements} - {""}
    names = {run.run for run in runs}
    for certificate in certificates:
        own = {measurement.answer_hash for measurement in certificate.account.measurements}
        if certificate.run in names or own & answers:
            raise LedgerError(
                f"the ledger {ledger.path} knows the public synopsis as release {certificate.run} of the dataset "
                f"{schema.dataset!r}. {EXTEND_INSTEAD}"
            )


def _read_columns(source: Source, schema: Schema, own_schema: Schema | None = None) -> pa.Table:
    """The columns of a source that the schema has; its other columns are left out."""
    found = read = source.schema.names
    if own_schema is not None:
        check_structure(own_schema, source.schema, source.label)
        read = [attribute.name for attribute in own_schema.measured_attributes]
        found = [*read, *(derive.name for derive in own_schema.derive)]
    measured = [attribute.name for attribute in schema.measured_attributes]
    names = [name for name in measured if found.count(name) == 1]
    if not names:
        raise SourceError(
            f"the public table {source.label} has none of the schema's attributes; it has {format_names(found)}, and "
            f"the schema {format_names(measured)}"
        )
    batches = list(source.batches(names if own_schema is None else read))
    table = pa.Table.from_batches(batches) if batches else None
    if table is None or not table.num_rows:
        raise SourceError(f"the public table {source.label} has no rows; leave it out, or give another one")
    return table if own_schema is None else _read_values(table, own_schema).select(names)


def _read_values(table: pa.Table, schema: Schema) -> pa.Table:
    """The values of a table that is written as a schema declares, with those that the schema derives."""
    table = table.combine_chunks()
    for attribute in schema.open_attributes:
        texts = count_texts(table.column(attribute.name).chunk(0), attribute)
        schema = schema.with_discovered_values(attribute.to_categorical(sorted(texts)))
    codec = Codec(schema)
    steps = {name: column.codes for name, column in zip(codec.names, codec.read_steps(table), strict=True)}
    return codec.decode(codec.encode(table), np.random.default_rng(0), steps=steps)


def _digest(source: Source, table: pa.Table) -> str:
    """The SHA-256 of the one file of a source, or of the names and codes of its columns."""
    paths = list(getattr(source, "paths", ()))
    digest = hashlib.sha256()
    if len(paths) == 1 and Path(paths[0]).is_file():
        with Path(paths[0]).open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
        return digest.hexdigest()
    for name in table.column_names:
        digest.update(name.encode() + b"\0")
        for value in table.column(name).to_pylist():
            digest.update(repr(value).encode() + b"\0")
    return digest.hexdigest()


def _from_synopsis(synopsis: Synopsis, data: Any, schema: Schema, because: str) -> PublicTable:
    """Rows sampled from a synopsis about other people. They stand for fewer rows, because their tables have noise.

    A share q of m rows has the variance q/m by sampling; a table of k cells with noise of variance σ² adds σ²/m², which
    is that of q/m′ on average if 1/m′ = 1/m + kσ²/m².
    """
    rows = max(synopsis.rows, 1)
    noise = [table.variance * table.values.size / rows**2 for table in synopsis.model.tables]
    effective = max(MIN_ROWS, 1 / (1 / rows + float(np.median(noise)) if noise else 1 / rows))
    sampled = synopsis.generate_arrow(min(rows, MAX_SYNOPSIS_ROWS), seed=0)
    source = open_declared(sampled, schema)
    source.label = str(data) if _is_synopsis_path(data) else "the given synopsis"
    digest = hashlib.sha256()
    if _is_synopsis_path(data):
        digest.update(find_synopsis(Path(data)).read_bytes())
    else:
        for certificate in synopsis.certificates:
            digest.update((certificate.outcome.contents_hash if certificate else "imported").encode())
    return PublicTable(source.label, _read_columns(source, schema), effective, digest.hexdigest(), because)
