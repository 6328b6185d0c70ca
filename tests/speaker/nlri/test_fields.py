"""The NLRI fields of a run: what needs prefixes decodes them, and what comes later has the same."""

from __future__ import annotations

import pytest

from speaker.errors import Truncated
from speaker.iana import Afi
from speaker.nlri import NlriFields

TWO = b"\x08\x0a" + b"\x14\xc0\x00\x2f"
ONE = b"\x18\x0a\x01\x02"
DECODED = [[b"\x08\x0a", b"\x14\xc0\x00\x20"], [ONE]]


def test_fields_are_decoded_once_and_their_parts_with_them() -> None:
    fields = NlriFields([TWO, ONE], Afi.IPV4)
    assert [list(prefixes) for prefixes in fields] == DECODED
    assert fields.prefixes(0) == DECODED[0]
    decoded = fields.decoded()
    assert decoded == DECODED
    assert fields.decoded() is decoded
    assert [id(prefixes) for prefixes in fields] == [id(prefixes) for prefixes in decoded]
    assert fields.prefixes(0) is decoded[0]
    part = fields.part(1, 2)
    assert part.data == [ONE]
    assert part.decoded()[0] is decoded[1]


def test_a_part_of_fields_that_nothing_decoded_is_well_formed_alone() -> None:
    fields = NlriFields([TWO, b"\x18\x0a"], Afi.IPV4)
    for act in (fields.decoded, lambda: fields.prefixes(1), fields.part(1, 2).decoded):
        with pytest.raises(Truncated):
            act()
    assert fields.part(0, 1).decoded() == DECODED[:1]
    assert fields.prefixes(0) == DECODED[0]
