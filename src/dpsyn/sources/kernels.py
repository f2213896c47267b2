"""Compiled reading of the records of CSV files. Arrays in, arrays out; the caller has checked all arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn.kernels import compile_kernel

Bytes = NDArray[np.uint8]

NEWLINE, RETURN = ord("\n"), ord("\r")

RECORD_START, FIELD_START, PLAIN, LITERAL, QUOTED = range(5)
"""Where a reading is: before a record; before a field; in a field without quotes; in a field whose quotes are ordinary
characters; in a field in quotes."""

MODE, FIELD, CELL_LENGTH, RECORD_OFFSET, IRREGULAR = range(5)
"""The state of a reading: where it is; the number of the field; the bytes of its cell so far; where in the file the
record begins; what is irregular in the record, as bits."""

STATE_WORDS = 5

RAGGED, STRAY_QUOTE, LONG_CELL = range(3)
"""What can be irregular in a record: it has more or fewer fields than the header; a cell begins with a quote but does
not end with one; a cell is too long."""

IRREGULARITIES = 3

_NOT_FOUND, _MALFORMED = -1, -2


@compile_kernel
def _ends_field(byte: int, delimiter: int) -> Any:
    return (byte == delimiter) | (byte == NEWLINE) | (byte == RETURN)


@compile_kernel
def _closing_quote(data: Bytes, start: int, delimiter: int, quote: int, final: bool) -> int:
    """The quote that closes the field at ``start``: the first one that is not doubled; the field must end there."""
    index = start + 1
    while True:
        while index < len(data) and data[index] != quote:
            index += 1
        if index >= len(data) or (index + 1 == len(data) and not final):
            return _NOT_FOUND
        if index + 1 == len(data) or _ends_field(data[index + 1], delimiter):
            return index
        if data[index + 1] != quote:
            return _MALFORMED
        index += 2


@compile_kernel
def end_of_regular_records(data: Bytes, final: bool, delimiter: int, quote: int, width: int, max_cell: int) -> int:
    """The end of the last complete record; 0 if one of the records before it is irregular.

    ``data`` begins with a record, and is the end of the file if ``final``. Otherwise a record is complete if something
    follows its line break.
    """
    index, end = 0, 0
    while index < len(data):
        if width > 1 and (data[index] == NEWLINE or data[index] == RETURN):
            index += 1
            continue
        fields, ended = 0, False
        while not ended:
            fields += 1
            begin = index
            if index < len(data) and data[index] == quote:
                closing = _closing_quote(data, index, delimiter, quote, final)
                if closing == _NOT_FOUND and not final:
                    return end
                if closing < 0:
                    return 0
                index = closing + 1
            else:
                while index < len(data) and not _ends_field(data[index], delimiter):
                    index += 1
            if index + 1 >= len(data) and not final:
                return end
            if index - begin > max_cell:
                return 0
            ended = index >= len(data) or data[index] != delimiter
            index += 1
        if fields != width:
            return 0
        if index < len(data) and data[index] == NEWLINE and data[index - 1] == RETURN:
            index += 1
        end = min(index, len(data))
    return len(data) if final else end


@compile_kernel
def normalize_records(
    data: Bytes,
    offset: int,
    final: bool,
    delimiter: int,
    quote: int,
    width: int,
    max_cell: int,
    lookahead: int,
    state: NDArray[np.int64],
    tally: NDArray[np.int64],
    out: Bytes,
) -> Any:
    """Write the records of a CSV file as well-formed ones with the right number of fields, and cut long cells.

    Any bytes are read. A record ends at a line break outside of quotes. Fields that it lacks are empty, surplus ones
    are left out. Quotes are special around a whole field only; if the closing quote is missing, or is not the end of
    the field, they are ordinary characters. The closing quote is searched in the next ``lookahead`` bytes; if they do
    not contain it, it is taken for granted. A blank line is a record only if the file has one column.

    Args:
        data: the next bytes of the file.
        offset: where in the file they begin.
        final: whether they are the last ones.
        delimiter: the byte between fields.
        quote: the byte around fields.
        width: the number of fields of the header.
        max_cell: the bytes of a cell that are written.
        lookahead: the bytes in which a closing quote is searched.
        state: the state of the reading, kept from call to call; zero at first.
        tally: for everything irregular, the number of records, and where in the file the first one begins.
        out: room for three times the data and ``width`` bytes more.

    Returns:
        The bytes that were read, and the bytes that were written. Bytes that were not read must be given again, with
        more data if none was read. The bytes that were written end with a record, unless they are a part of one.
    """
    mode, field, length = state[MODE], state[FIELD], state[CELL_LENGTH]
    index, written, read, complete = 0, 0, 0, 0  # read and complete are the ends of the last complete record
    while index < len(data) or (final and mode != RECORD_START):
        if mode == RECORD_START:
            if width > 1 and (data[index] == NEWLINE or data[index] == RETURN):
                index += 1
                continue
            if len(out) - written < 3 * (len(data) - index + 1) + width:
                break
            state[RECORD_OFFSET], state[IRREGULAR] = offset + index, 0
            mode, field = FIELD_START, 0
        keep = field < width
        if mode == FIELD_START:
            mode, closing = PLAIN, _NOT_FOUND
            if index < len(data) and data[index] == quote:
                closing = _closing_quote(data, index, delimiter, quote, final)
                if closing == _NOT_FOUND and not final and len(data) - index < lookahead:
                    mode = FIELD_START
                    break
                mode = QUOTED
                if closing == _MALFORMED or (closing == _NOT_FOUND and final):
                    mode = LITERAL
                    state[IRREGULAR] |= 1 << STRAY_QUOTE
            if keep and field:
                out[written] = delimiter
                written += 1
            if keep and mode != PLAIN:
                out[written] = quote
                written += 1
            index += mode == QUOTED
            length = 0
        if mode == QUOTED:
            while index < len(data):
                doubled = data[index] == quote and index + 1 < len(data) and data[index + 1] == quote
                if data[index] == quote and not doubled:
                    break
                if keep and length < max_cell:
                    out[written] = data[index]
                    written += 1
                    if doubled:
                        out[written] = quote
                        written += 1
                length += 1
                index += 1 + doubled
            if index + 1 >= len(data) and not final:
                break
            if keep:
                out[written] = quote
                written += 1
            index = min(index + 1, len(data))
            mode, length = PLAIN, max(length, max_cell)
        while index < len(data) and not _ends_field(data[index], delimiter):
            if keep and length < max_cell:
                out[written] = data[index]
                written += 1
                if mode == LITERAL and data[index] == quote:
                    out[written] = quote
                    written += 1
            length += 1
            index += 1
        if index + 1 >= len(data) and not final:
            break
        if length > max_cell:
            state[IRREGULAR] |= 1 << LONG_CELL
        if keep and mode == LITERAL:
            out[written] = quote
            written += 1
        if index < len(data) and data[index] == delimiter:
            index += 1
            field += 1
            mode = FIELD_START
            continue
        if index + 1 < len(data) and data[index] == RETURN and data[index + 1] == NEWLINE:
            index += 1
        index = min(index + 1, len(data))
        if field + 1 != width:
            state[IRREGULAR] |= 1 << RAGGED
        for _ in range(field + 1, width):
            out[written] = delimiter
            written += 1
        out[written] = NEWLINE
        written += 1
        for kind in range(IRREGULARITIES):
            if state[IRREGULAR] >> kind & 1:
                if tally[kind, 0] == 0:
                    tally[kind, 1] = state[RECORD_OFFSET]
                tally[kind, 0] += 1
        read, complete, mode = index, written, RECORD_START
    if complete:
        mode, written = RECORD_START, complete  # what follows is read again
    else:
        read = index
    state[MODE], state[FIELD], state[CELL_LENGTH] = mode, field, length
    return read, written
