"""OVN-Kubernetes' own controller beside the operator: two writers of the same objects.

Its server-side apply leaves an entry in the field managers of RouteAdvertisements. An entry of an
earlier time is left from before; a new or changed entry while the operator watches is a writer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from reconcilers.model import ObjectRef, Problem
from resources.ovnk.kinds import ROUTE_ADVERTISEMENTS
from resources.ovnk.routeadvertisements import RouteAdvertisements

MANAGER: Final = "clustermanager-routeadvertisements-controller"
"""The field manager of OVN-Kubernetes."""


class Seen(NamedTuple):
    """Observations of the other writer: the state from one reading to the next."""

    times: dict[str, str]
    """By UID of RouteAdvertisements: the time of its last write; empty without one."""
    writer: str = ""
    """The RouteAdvertisements that it has written; empty without one."""


def other_writer(
    rows: Iterable[RouteAdvertisements], state: Seen | None
) -> tuple[Seen, Problem | None]:
    """Compare the field managers of all RouteAdvertisements with the reading before.

    The problem is there from the first write of the other controller on: the operator writes nothing.
    """
    before = state or Seen({})
    times: dict[str, str] = {}
    writer = before.writer
    for row in sorted(rows, key=lambda row: row.metadata.name):
        uid = row.metadata.uid
        time = max(
            # Without a time where it has applied the values that are there.
            (
                entry.time or "-"
                for entry in row.metadata.managed_fields
                if entry.manager == MANAGER
            ),
            default="",
        )
        times[uid] = time
        if not writer and state is not None and time > before.times.get(uid, ""):
            writer = row.metadata.name
    return Seen(times, writer), _problem(writer) if writer else None


def _problem(name: str) -> Problem:
    ref = ObjectRef(ROUTE_ADVERTISEMENTS.name, "", name)
    text = (
        f"OVN-Kubernetes ({MANAGER}) writes RouteAdvertisements as well: the operator writes nothing. "
        "Use --ovnk=follow, or switch enable-route-advertisements off in OVN-Kubernetes' cluster "
        "manager and restart the operator"
    )
    return Problem((ref,), "metadata.managedFields", text, category="conflict")
