"""A JSON object with a long list, read while it arrives: the answers of an agent and of a router."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any


class StreamedList:
    """The items of an answer, in one pass; `head` and `rest` are its other members.

    The answer is compact JSON, as the agent and the router encode it: no space around the items. Of
    the list no more is kept than one piece of the answer. An object without the list has no items.
    """

    def __init__(self, pieces: Iterable[str], member: str, broken: Exception) -> None:
        """Read the answer up to the list ``member``; ``broken`` is raised if it is not complete.

        Raises what ``pieces`` raises.
        """
        self._pieces = iter(pieces)
        self._broken = broken
        self._member = member
        # A quotation mark within a text is escaped: this is no part of one.
        mark = f'"{member}":['
        text = ""
        for piece in self._pieces:
            text += piece
            if mark in text:
                break
        before, separator, behind = text.partition(mark)
        self.head = self._others(f"{before}{mark}]}}" if separator else text)
        """The members before the list."""
        self.rest: dict[str, Any] = {}
        """The members behind it, once all items are read."""
        self._text = behind if separator else "]}"

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield each item once it is complete."""
        decode = json.JSONDecoder().raw_decode
        while not self._text.startswith("]"):
            position = 0
            while self._text[position : position + 1] in ("{", ","):
                try:
                    item, end = decode(self._text, position + (self._text[position] == ","))
                except ValueError:
                    break  # the rest of this item is still to arrive
                yield item
                position = end
            self._text = self._text[position:]
            if not self._text.startswith("]"):
                self._text += self._next()
        self._text += "".join(self._pieces)
        self.rest = self._others(f'{{"{self._member}":[{self._text}')

    def _next(self) -> str:
        try:
            return next(self._pieces)
        except StopIteration:
            raise self._broken from None

    def _others(self, text: str) -> dict[str, Any]:
        try:
            envelope = json.loads(text)
        except ValueError:
            raise self._broken from None
        if not isinstance(envelope, dict):
            raise self._broken
        return {key: value for key, value in envelope.items() if key != self._member}
