"""Texts that many objects have: one object, and nothing that is kept for ever."""

from __future__ import annotations

import sys

import pytest

from resources.shared_texts import SHARED_TEXTS, sharing


def text(number: int) -> str:
    return f"web-{number}"


@pytest.mark.parametrize("version", [(3, 11), (3, 12), (3, 13)])
def test_equal_texts_are_one_object(version: tuple[int, int]) -> None:
    shared = sharing(version)
    first = shared(text(1))
    assert shared(text(1)) is first


def test_where_interned_texts_are_never_freed_the_last_ones_are_shared() -> None:
    shared = sharing((3, 12))
    first = shared(text(0))
    before = sys.getrefcount(first)
    for number in range(1, SHARED_TEXTS + 1):
        shared(text(number))
    assert sys.getrefcount(first) < before
