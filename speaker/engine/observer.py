"""The observer of the sessions of all instances, as a protocol; Loc-RIBs have followers.

An engine without an observer pays one comparison per message. An observer is notified of what has
just happened; it must not change anything, and must not raise: an error in it would be attributed to
the session.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, final

from speaker.engine.established_peer import EstablishedPeer
from speaker.message import Update
from speaker.nlri import Family
from speaker.rib.update_group import UpdateBatch


class Observer(Protocol):
    """Notified of every change, after it."""

    def peer_up(self, established: EstablishedPeer) -> None:
        """A session is Established; its Adj-RIB-In may hold stale routes from before a restart."""

    def peer_down(self, established: EstablishedPeer) -> None:
        """A session has ended, and is no longer among the Established ones of its instance."""

    def update_received(self, established: EstablishedPeer, body: bytes, update: Update) -> None:
        """An UPDATE was processed into the Adj-RIB-In: its body as received, and decoded."""

    def plain_update_received(self, established: EstablishedPeer, body: bytes) -> None:
        """An UPDATE was processed by the fast path: it announces, or withdraws, IPv4 prefixes."""

    def routes_changed(
        self, established: EstablishedPeer, family: Family, keys: Sequence[bytes]
    ) -> None:
        """Routes of an Adj-RIB-In changed without an UPDATE that names them."""

    def policy_changed(self, established: EstablishedPeer) -> None:
        """Another import policy was applied to an Adj-RIB-In."""

    def updates_sent(self, established: EstablishedPeer, batch: UpdateBatch) -> None:
        """UPDATEs were sent on a session."""


@final
class ObserverSlot:
    """The engine's observer, if there is one; shared by all instances and their parts."""

    __slots__ = ("observer",)

    def __init__(self) -> None:
        self.observer: Observer | None = None
