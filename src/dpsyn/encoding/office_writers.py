"""Writes tables as Excel, SPSS or Stata files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from dpsyn.errors import MissingExtraError, OutputError

MAX_EXCEL_ROWS = 1_048_575
"""Rows of a sheet below the names of its columns."""


class ExcelWriter:
    """Writes batches to one sheet of an Excel file."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        try:
            import xlsxwriter
        except ImportError:
            raise MissingExtraError("xlsxwriter", "office", "writing an Excel file") from None
        options = {"constant_memory": True, "strings_to_formulas": False, "strings_to_urls": False,
                   "strings_to_numbers": False, "nan_inf_to_errors": True}  # fmt: skip
        self._book = xlsxwriter.Workbook(str(path), options)
        self._sheet = self._book.add_worksheet()
        self._formats = [self._format(kind) for kind in schema.types]
        self._row = 1
        for column, name in enumerate(schema.names):
            self._sheet.write_string(0, column, name)

    def _format(self, kind: pa.DataType) -> Any:
        if pa.types.is_date(kind):
            return self._book.add_format({"num_format": "yyyy-mm-dd"})
        if pa.types.is_timestamp(kind):
            return self._book.add_format({"num_format": "yyyy-mm-dd hh:mm:ss"})
        return self._book.add_format({"num_format": "hh:mm:ss"}) if pa.types.is_time(kind) else None

    def __enter__(self) -> ExcelWriter:
        return self

    def __exit__(self, *failure: object) -> None:
        self._book.close()

    def write_batch(self, batch: pa.RecordBatch) -> None:
        """Write more rows."""
        if self._row + batch.num_rows > MAX_EXCEL_ROWS + 1:
            raise OutputError(f"an Excel sheet holds {MAX_EXCEL_ROWS:,} rows; write more of them as .csv or .parquet")
        for cells in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            for column, cell in enumerate(cells):
                if cell is not None:
                    self._sheet.write(self._row, column, cell, self._formats[column])
            self._row += 1


class StatisticalFileWriter:
    """Collects batches and writes them as an SPSS or a Stata file, which cannot be written in parts."""

    def __init__(self, path: Path, schema: pa.Schema, kind: str) -> None:
        try:
            import polars
            import pyreadstat
        except ImportError:
            raise MissingExtraError("pyreadstat and polars", "office", "writing a file of SPSS or Stata") from None
        self._from_arrow: Any = polars.from_arrow
        self._write = pyreadstat.write_sav if kind == "sav" else pyreadstat.write_dta
        self._error: type[Exception] = pyreadstat.PyreadstatError
        self._path, self._schema, self._batches = path, schema, [schema.empty_table().to_batches()]

    def __enter__(self) -> StatisticalFileWriter:
        return self

    def write_batch(self, batch: pa.RecordBatch) -> None:
        """Keep more rows."""
        self._batches.append([batch])

    def __exit__(self, kind: object, *failure: object) -> None:
        if kind is not None:
            return
        table = pa.Table.from_batches([batch for part in self._batches for batch in part], self._schema)
        try:
            self._write(self._from_arrow(table), str(self._path))
        except self._error as error:
            names = "; names of columns must begin with a letter and have no spaces" if "name" in str(error) else ""
            raise OutputError(f"{self._path.name} cannot be written as this format{names}") from None
