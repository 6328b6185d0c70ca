"""Long answers are read while they arrive, in whatever pieces."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from cells.api.streamed_list import StreamedList

BROKEN = ConnectionError("half an answer")
ITEMS = [{"prefix": f"10.0.{n}.0/24", "note": '},{"],"items":['} for n in range(5)]


def encode(answer: dict[str, Any]) -> str:
    """Encode as the agent and the router do."""
    return json.dumps(answer, separators=(",", ":")) + "\n"


def cut(text: str, size: int) -> Iterator[str]:
    """Yield a text in pieces."""
    return (text[start : start + size] for start in range(0, len(text), size))


@pytest.mark.parametrize("size", [1, 7, 64, 100_000])
@pytest.mark.parametrize("items", [ITEMS, []])
@pytest.mark.parametrize("rest", [{}, {"truncated": True}, {"notes": ['"items":[']}])
def test_pieces_of_any_size_give_the_items_and_the_other_members(
    size: int, items: list[Any], rest: dict[str, Any]
) -> None:
    head = {"kind": "RouteList", "problems": ['"items":[']}
    text = encode({**head, "items": items, **rest})
    found = StreamedList(cut(text, size), "items", BROKEN)
    assert found.head == head
    assert list(found) == items
    assert found.rest == rest


def test_an_item_is_there_before_the_next_piece() -> None:
    text = encode({"items": ITEMS})
    at = text.index('},{"prefix') + 10
    reads = []

    def pieces() -> Iterator[str]:
        yield text[:at]
        reads.append(1)
        yield text[at:]

    found = iter(StreamedList(pieces(), "items", BROKEN))
    assert next(found) == ITEMS[0]
    assert not reads
    assert list(found) == ITEMS[1:]


def test_an_object_without_the_list_has_no_items() -> None:
    found = StreamedList(cut(encode({"ok": False, "error": "no"}), 3), "routes", BROKEN)
    assert list(found) == []
    assert found.head == {"ok": False, "error": "no"}


def test_half_an_answer_is_an_error_wherever_it_ends() -> None:
    text = encode({"kind": "x", "items": ITEMS[:2], "truncated": True}).rstrip()
    for end in range(len(text)):
        with pytest.raises(ConnectionError, match="half an answer"):
            list(StreamedList(cut(text[:end], 5), "items", BROKEN))
    with pytest.raises(ConnectionError):
        list(StreamedList(["[1]"], "items", BROKEN))
