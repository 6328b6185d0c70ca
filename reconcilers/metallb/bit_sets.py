"""Sets of numbered things as integers, a bit for each: thousands intersect in one operation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import compress
from typing import Final, TypeVar

T = TypeVar("T")
ROWS_AT_ONCE: Final = 512
"""Rows whose digits are in memory while sets are transposed."""


def bits_of(numbers: Iterable[int]) -> int:
    """Return some numbers as a bit set: an integer with a bit for each."""
    bits = 0
    for number in numbers:
        bits |= 1 << number
    return bits


def members(bits: int) -> Iterator[int]:
    """Iterate over the numbers of a bit set, the smallest first."""
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


def first(bits: int) -> int:
    """Return the smallest number of a bit set; -1 if it is empty."""
    return (bits & -bits).bit_length() - 1


def following(bits: int, number: int) -> int:
    """Return the smallest number of a bit set above a given number, or the smallest of all."""
    return first(bits >> number + 1 << number + 1 or bits)


def chosen(items: Sequence[T], bits: int) -> Iterator[T]:
    """Iterate over the items whose numbers are in a bit set: for sets with many of them."""
    # The digits of the number, the first item at the end.
    return compress(items, map(int, f"{bits:b}"[::-1]))


def transposed(rows: Sequence[int], width: int) -> list[int]:
    """Return a bit set for each number below ``width``: the rows (bit sets) that have it."""
    columns = [0] * width
    for begin in range(0, len(rows), ROWS_AT_ONCE):
        some = rows[begin : begin + ROWS_AT_ONCE]
        # The last digit of a row is number 0; the first row comes last, so that it is bit 0.
        digits = "".join(f"{row:0{width}b}" for row in reversed(some)) if width else ""
        for number in range(width):
            columns[number] |= int(digits[width - 1 - number :: width], 2) << begin
    return columns
