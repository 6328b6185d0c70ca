"""The addresses of one Service that are not advertised, and the one problem for all of them. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from reconcilers.intent.service_addresses import AGGREGATE_TOO_SHORT, Rejection
from reconcilers.model import ObjectRef, Problem
from resources.enumeration import counted
from speaker.nlri import Family, prefix_to_text

MAX_ADDRESSES: Final = 3
"""Addresses that a problem names for each reason."""
MAX_OTHERS: Final = 8
"""Other objects that a problem names."""
MAX_LENGTH: Final = 960
"""Of the reasons that a problem names, in characters: an Event has 1,024 octets."""


class Rejections:
    """The addresses of one object that one route set does not get, and other problems of it there."""

    __slots__ = ("_beyond", "_by_reason", "object", "others", "problems")

    def __init__(self, object_: ObjectRef) -> None:
        self.object = object_
        self._by_reason: dict[Rejection, dict[tuple[Family, bytes], str]] = {}
        """The fields with the addresses."""
        self._beyond: dict[Rejection, int] = {}
        """The number of further addresses beyond a limit, of which none is kept."""
        self.problems: dict[Problem, None] = {}
        """Of the object as a whole."""
        self.others: dict[ObjectRef, None] = {}
        """Other objects that are a reason."""

    def __bool__(self) -> bool:
        """True if there is a problem."""
        return bool(self._by_reason or self.problems)

    def __eq__(self, other: object) -> bool:
        """True if the problems are the same."""
        return isinstance(other, Rejections) and all(
            getattr(self, name) == getattr(other, name) for name in self.__slots__
        )

    __hash__ = None  # type: ignore[assignment]  # it changes

    def add(self, rejection: Rejection, family: Family, nlri: bytes, field: str) -> None:
        """Add the rejection of an address, as its host route, with the field that names it."""
        self._by_reason.setdefault(rejection, {}).setdefault((family, nlri), field)

    def add_beyond(self, rejection: Rejection, family: Family, nlri: bytes, field: str) -> None:
        """Add the rejection of an address beyond a limit: the first are kept, others counted."""
        kept = self._by_reason.setdefault(rejection, {})
        if len(kept) < MAX_ADDRESSES or (family, nlri) in kept:
            kept.setdefault((family, nlri), field)
        else:
            self._beyond[rejection] = self._beyond.get(rejection, 0) + 1

    def united(self, others: Iterable[Rejections]) -> Rejections:
        """Return the rejections of a Service's addresses by several route sets together."""
        united = Rejections(self.object)
        for rejections in (self, *others):
            rejections.add_to(united)
        return united

    def add_to(self, other: Rejections) -> None:
        """Add the rejections of one route set to another set's."""
        for rejection, addresses in self._by_reason.items():
            other._by_reason.setdefault(rejection, {}).update(addresses)
        for rejection, count in self._beyond.items():
            other._beyond[rejection] = max(count, other._beyond.get(rejection, 0))
        other.problems.update(self.problems)
        other.others.update(self.others)

    def problem(self, node: str) -> Problem | None:
        """Return the one problem of a Service for all its rejected addresses; None without any."""
        if not self._by_reason:
            return None
        # In the order of addresses, whatever the order of the route sets.
        reasons = sorted(self._by_reason, key=lambda reason: min(self._by_reason[reason]))
        texts: list[str] = []
        for shown, reason in enumerate(reasons):
            text = self._text(reason, node)
            if sum(map(len, texts)) + len(text) > MAX_LENGTH:
                texts.append(
                    f"{counted(len(reasons) - shown, 'more reason')}: see `waggle explain`"
                )
                break
            texts.append(text)
        fields = {field for addresses in self._by_reason.values() for field in addresses.values()}
        count = sum(map(len, self._by_reason.values())) + sum(self._beyond.values())
        return Problem(
            (self.object, *sorted(self.others)[:MAX_OTHERS]),
            ", ".join(sorted(fields)),
            "; ".join(texts),
            count=count,
            # The length of an aggregate is the administrator's.
            of_tenant=any(reason.reason != AGGREGATE_TOO_SHORT for reason in reasons),
        )

    def _text(self, rejection: Rejection, node: str) -> str:
        """Return a sentence for the addresses with one reason."""
        first, *others = (
            prefix_to_text(family, nlri).partition("/")[0]
            for family, nlri in sorted(self._by_reason[rejection])[:MAX_ADDRESSES]
        )
        by = by_node(node) if rejection.of_node else ""
        text = f"{first} is not advertised{by}: {rejection.message}"
        count = len(self._by_reason[rejection]) + self._beyond.get(rejection, 0) - 1
        if not count:
            return text
        hidden = count - len(others)
        named = ", ".join(others) + (f" and {hidden} more" if hidden else "")
        return f"{text} (the same for {named})"


def by_node(node: str) -> str:
    """Return how a rejection names the node that does not advertise what others may."""
    return f" by node {node}"
