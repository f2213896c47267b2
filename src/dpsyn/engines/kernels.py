"""Compiled keyed hashing and contribution bounding. Arrays in, arrays out; the caller has checked all arguments.

Codes are given as *columns*: attributes × rows, each attribute contiguous. Indices and hashes are unsigned 64-bit
integers: numba checks signed ones for negative values, and converts a mix of signed and unsigned ones to floats.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn.kernels import compile_kernel

Columns = NDArray[Any]
HashWords = NDArray[np.uint64]


# ── SipHash-2-4 (Aumasson and Bernstein 2012) ────────────────────────────────────────────────────────────────


@compile_kernel
def _rotate_left(word: Any, bits: int) -> Any:
    return (word << np.uint64(bits)) | (word >> np.uint64(64 - bits))


@compile_kernel
def _round(a: Any, b: Any, c: Any, d: Any) -> Any:
    a = a + b
    b = _rotate_left(b, 13) ^ a
    a = _rotate_left(a, 32)
    c = c + d
    d = _rotate_left(d, 16) ^ c
    a = a + d
    d = _rotate_left(d, 21) ^ a
    c = c + b
    b = _rotate_left(b, 17) ^ c
    c = _rotate_left(c, 32)
    return a, b, c, d


@compile_kernel
def _begin(key: HashWords) -> Any:
    return (
        key[0] ^ np.uint64(0x736F6D6570736575),
        key[1] ^ np.uint64(0x646F72616E646F6D),
        key[0] ^ np.uint64(0x6C7967656E657261),
        key[1] ^ np.uint64(0x7465646279746573),
    )


@compile_kernel
def _absorb(state: Any, word: Any) -> Any:
    a, b, c, d = state
    d = d ^ word
    a, b, c, d = _round(a, b, c, d)
    a, b, c, d = _round(a, b, c, d)
    return a ^ word, b, c, d


@compile_kernel
def _finish(state: Any) -> Any:
    a, b, c, d = state
    c = c ^ np.uint64(0xFF)
    for _ in range(4):
        a, b, c, d = _round(a, b, c, d)
    return a ^ b ^ c ^ d


@compile_kernel
def hash_texts(data: NDArray[np.uint8], ends: NDArray[np.int64], key: HashWords, hashes: HashWords) -> None:
    """The hash of every text; text ``i`` is ``data[ends[i]:ends[i+1]]``."""
    for text in range(len(hashes)):
        begin, end = ends[text], ends[text + 1]
        whole = begin + (end - begin) // 8 * 8
        state = _begin(key)
        for position in range(begin, whole, 8):
            word = np.uint64(0)
            for byte in range(8):
                word |= np.uint64(data[position + byte]) << np.uint64(8 * byte)
            state = _absorb(state, word)
        word = np.uint64((end - begin) & 0xFF) << np.uint64(56)
        for byte in range(end - whole):
            word |= np.uint64(data[whole + byte]) << np.uint64(8 * byte)
        hashes[text] = _finish(_absorb(state, word))


@compile_kernel
def hash_rows(columns: Columns, words: HashWords, key: HashWords, hashes: HashWords) -> None:
    """The hash of every row: its codes, two in each word, then ``words`` (words × rows)."""
    length = np.uint64(8 * ((len(columns) + 1) // 2 + len(words)) & 0xFF)
    for row in range(len(hashes)):
        state = _begin(key)
        for axis in range(0, len(columns), 2):
            word = np.uint64(columns[axis, row])
            if axis + 1 < len(columns):
                word |= np.uint64(columns[axis + 1, row]) << np.uint64(32)
            state = _absorb(state, word)
        for index in range(len(words)):
            state = _absorb(state, words[index, row])
        hashes[row] = _finish(_absorb(state, length << np.uint64(56)))


# ── contribution bounding ─────────────────────────────────────────────────────────────────────────────────────────────


@compile_kernel
def keep_rows(
    keys: HashWords,
    units: HashWords,
    buckets: NDArray[np.int64],
    shift: int,
    limits: HashWords,
    below: NDArray[np.int64],
    ties: NDArray[np.int64],
    mask: NDArray[np.bool_],
) -> None:
    """Mark the rows whose priority is below the limit of their unit, or equal to it while ``ties`` last.

    ``keys`` is three × rows: the two words of the unit's hash, and the priority. ``units`` is two × units, ascending;
    those whose first word begins with the bits of bucket ``b`` are ``buckets[b] … buckets[b+1]−1``. ``below`` and
    ``ties`` are the numbers of rows of each unit that may still be marked; they are counted down.
    """
    for row in range(len(mask)):
        bucket = np.intp(keys[0, row] >> np.uint64(shift))
        for unit in range(buckets[bucket], buckets[bucket + 1]):
            if units[0, unit] != keys[0, row] or units[1, unit] != keys[1, row]:
                continue
            if keys[2, row] < limits[unit] and below[unit] > 0:
                below[unit] -= 1
                mask[row] = True
            elif keys[2, row] == limits[unit] and ties[unit] > 0:
                ties[unit] -= 1
                mask[row] = True
            break
