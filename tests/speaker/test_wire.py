"""Bounds-checked reading."""

from __future__ import annotations

import pytest

from speaker.errors import Truncated
from speaker.wire import Reader


def test_fields_are_read_in_order() -> None:
    reader = Reader(b"\1\0\2\0\0\0\3rest")
    assert (reader.u8(), reader.u16(), reader.u32(), reader.remaining) == (1, 2, 3, 4)
    assert reader.rest() == b"rest"
    assert reader.take(0) == b""


def test_reading_beyond_the_end_is_truncated() -> None:
    reader = Reader(b"\1")
    with pytest.raises(Truncated, match="2 octets needed, 1 left"):
        reader.u16()
    with pytest.raises(Truncated):
        reader.take(-1)
    assert reader.u8() == 1
