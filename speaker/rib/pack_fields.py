"""Prefixes into NLRI fields of a limited size, prefix by prefix.

This is the slow path of `speaker.rib.pack_fast_path.fill_fields`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate


class AttributesTooLong(ValueError):  # noqa: N818  named after the event
    """Attributes that leave no room for a prefix in the largest message of a session."""


def fill_fields_one_by_one(nlri: Sequence[bytes], room: int) -> list[bytes]:
    """Join prefixes in wire form into fields of at most ``room`` octets, as few and full as possible.

    Raises `AttributesTooLong` for a prefix that is larger than ``room``.
    """
    field = b"".join(nlri)
    fields: list[bytes] = []
    ends = list(accumulate(map(len, nlri)))
    first = 0
    start = 0
    while first < len(nlri):
        last = bisect_right(ends, start + room)
        if last == first:
            raise AttributesTooLong(f"{room} octets are left for a prefix of {len(nlri[first])}")
        fields.append(field[start : ends[last - 1]])
        start = ends[last - 1]
        first = last
    return fields
