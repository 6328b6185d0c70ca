"""Events of Services with addresses that no node advertises, or that begin to be advertised.

Pure: Services with selected addresses, and which of these no node advertises, in; occurrences out.
Agents write their statuses some seconds after a change, so that a Service has `GRACE_SECONDS`.
The leader alone reports, and a Service may change to and fro: each Event is of its own time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, final

import msgspec

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


@final
class ServiceEvents:
    """The state of Services from one pass to the next."""

    def __init__(self) -> None:
        self._missing: dict[ObjectRef, float] = {}
        """Services that are not advertised, and the time since when."""
        self._reported: set[ObjectRef] = set()
        """Services with an Event."""
        self._advertised: set[ObjectRef] | None = None
        """Services of the last pass that were advertised; None before the first one."""

    def changes(
        self, selected: Mapping[ObjectRef, SelectedService], now: float
    ) -> Iterator[Occurrence]:
        """Yield an occurrence, for an Event, on each Service whose advertisement has changed.

        The first pass reports no Service that is advertised: it may have been for days.
        """
        before = self._advertised
        self._advertised = {ref for ref, service in selected.items() if not service.missing}
        for ref in [ref for ref in self._missing if ref not in selected]:
            del self._missing[ref]
            self._reported.discard(ref)
        for ref, service in sorted(selected.items()):
            if not service.missing:
                was_missing = self._missing.pop(ref, None) is not None
                self._reported.discard(ref)
                if was_missing or (before is not None and ref not in before):
                    yield _occurrence(service)
                continue
            since = self._missing.setdefault(ref, now)
            if ref not in self._reported and now - since >= GRACE_SECONDS:
                self._reported.add(ref)
                yield _occurrence(service)


def _occurrence(service: SelectedService) -> Occurrence:
    listed = service.missing or service.addresses
    named, others = listed[:MAX_NAMED], len(listed) - MAX_NAMED
    addresses = ", ".join(named) + (f" and {others} more" if others > 0 else "")
    regarding = Regarding(service.ref, "v1", service.uid)
    if not service.missing:
        note = f"advertised: {addresses}"
        return Occurrence(regarding, "Normal", "Advertised", "Advertise", note)
    name = f"{service.ref.namespace}/{service.ref.name}"
    note = (
        f"not advertised by any node: {addresses}; kubectl waggle explain {name} --all-nodes has the "
        "reasons"
    )
    return Occurrence(regarding, "Warning", "NotAdvertised", "Advertise", note)
