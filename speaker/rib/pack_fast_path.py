"""Fast path for filling NLRI fields: prefixes that fit one field, and prefixes of one length.

The slow path is `speaker.rib.pack_fields.fill_fields_one_by_one`, with equal fields and equal errors
(tests/speaker/rib/test_pack.py). One change has few prefixes, and the prefixes of Services and of most
full tables have one length, so the slow path is rare.
"""

from __future__ import annotations

from collections.abc import Sequence

from speaker.rib.pack_fields import fill_fields_one_by_one


def fill_fields(nlri: Sequence[bytes], room: int) -> list[bytes]:
    """Join prefixes in wire form into fields of at most ``room`` octets, as few and full as possible.

    Raises `AttributesTooLong` for a prefix that is larger than ``room``.
    """
    field = b"".join(nlri)
    if len(field) <= room:
        return [field] if nlri else []
    sizes = set(map(len, nlri))
    if len(sizes) == 1 and (size := sizes.pop()) <= room:
        step = room - room % size
        return [field[start : start + step] for start in range(0, len(field), step)]
    return fill_fields_one_by_one(nlri, room)
