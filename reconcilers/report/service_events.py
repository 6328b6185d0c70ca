"""Events of Services with addresses that no node advertises, or that begin to be advertised.

Pure: Services with selected addresses, and which of these no node advertises, in; occurrences out. Each
address of a Service is followed on its own; addresses that change at once have one Event.
Agents write their statuses some seconds after a change, so that an address has `GRACE_SECONDS`.
The leader alone reports, and a Service may change to and fro: each Event is of its own time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, final

import msgspec
from msgspec.structs import replace

from reconcilers.model import ObjectRef
from reconcilers.report.events import Occurrence, Regarding

GRACE_SECONDS: Final = 60.0
MAX_NAMED: Final = 4
"""Addresses that an Event names."""


class SelectedService(msgspec.Struct, frozen=True):
    """A Service with addresses that objects of a dialect select for advertisement."""

    ref: ObjectRef
    uid: str
    addresses: tuple[str, ...]
    missing: tuple[str, ...] = ()
    """The addresses that no node advertises."""


class ServiceChange(msgspec.Struct, frozen=True):
    """Addresses of a Service that begin to be advertised, or that no node advertises."""

    ref: ObjectRef
    uid: str
    advertised: bool
    addresses: tuple[str, ...]


class _Followed(msgspec.Struct):
    """The addresses of a Service from one pass to the next."""

    advertised: set[str] = msgspec.field(default_factory=set)
    missing: dict[str, float] = msgspec.field(default_factory=dict)
    """Since when no node advertises an address."""
    reported: set[str] = msgspec.field(default_factory=set)
    """Missing addresses with an Event."""


@final
class ServiceEvents:
    """The state of Services of one dialect from one pass to the next."""

    def __init__(self) -> None:
        self._followed: dict[ObjectRef, _Followed] | None = None
        """Services of the last pass; None before the first one."""

    def changes(
        self, selected: Mapping[ObjectRef, SelectedService], now: float
    ) -> Iterator[ServiceChange]:
        """Yield what has changed of each Service: begun addresses, and missing ones.

        The first pass reports no address that is advertised: it may have been for days.
        """
        first, before = self._followed is None, self._followed or {}
        self._followed = {ref: before.get(ref) or _Followed() for ref in selected}
        for ref, service in sorted(selected.items()):
            yield from _changes(self._followed[ref], service, now, first=first)


def _changes(
    followed: _Followed, service: SelectedService, now: float, *, first: bool
) -> Iterator[ServiceChange]:
    missing = {text: followed.missing.get(text, now) for text in service.missing}
    advertised = {text for text in service.addresses if text not in missing}
    begun = set() if first else advertised - followed.advertised
    overdue = {text for text, since in missing.items() if now - since >= GRACE_SECONDS}
    reported = followed.reported & missing.keys()
    followed.advertised, followed.missing = advertised, missing
    followed.reported = reported | overdue
    for addresses, of in ((overdue if overdue - reported else (), False), (begun, True)):
        if addresses:
            named = tuple(text for text in service.addresses if text in addresses)
            yield ServiceChange(service.ref, service.uid, of, named)


def occurrences(changes: Iterable[ServiceChange]) -> Iterator[Occurrence]:
    """Yield one occurrence for a Service and transition, of whatever dialects the changes are."""
    merged: dict[tuple[ObjectRef, bool], ServiceChange] = {}
    for change in changes:
        known = merged.setdefault((change.ref, change.advertised), change)
        addresses = tuple(dict.fromkeys((*known.addresses, *change.addresses)))
        merged[change.ref, change.advertised] = replace(known, addresses=addresses)
    yield from map(_occurrence, merged.values())


def _occurrence(change: ServiceChange) -> Occurrence:
    named, others = change.addresses[:MAX_NAMED], len(change.addresses) - MAX_NAMED
    addresses = ", ".join(named) + (f" and {others} more" if others > 0 else "")
    regarding = Regarding(change.ref, "v1", change.uid)
    if change.advertised:
        note = f"advertised: {addresses}"
        return Occurrence(regarding, "Normal", "Advertised", "Advertise", note)
    name = f"{change.ref.namespace}/{change.ref.name}"
    note = (
        f"not advertised by any node: {addresses}; kubectl waggle explain {name} --all-nodes has the "
        "reasons"
    )
    return Occurrence(regarding, "Warning", "NotAdvertised", "Advertise", note)
