"""Who watches the sessions and routes of instances from outside, as a protocol.

An instance without an observer pays one comparison per message. What an observer is told is what has
just happened; it must not change anything, and must not raise: an error in it would be taken for one
in the session.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from speaker.message import Update
from speaker.nlri import Family
from speaker.rib.loc_rib import Change
from speaker.rib.update_group import UpdateBatch

if TYPE_CHECKING:
    from speaker.engine.instance import EstablishedPeer, Instance


class Observer(Protocol):
    """Told of everything once it has happened."""

    def peer_up(self, member: EstablishedPeer) -> None:
        """A session is Established; its Adj-RIB-In may hold routes from before a restart."""

    def peer_down(self, member: EstablishedPeer) -> None:
        """A session has ended, and has left the members of its instance."""

    def update_received(self, member: EstablishedPeer, body: bytes, update: Update) -> None:
        """An UPDATE has been filed in the Adj-RIB-In: its body as it came, and as it was read."""

    def plain_update_received(self, member: EstablishedPeer, body: bytes) -> None:
        """An UPDATE has been filed as it came: it announces, or withdraws, IPv4 prefixes alone."""

    def routes_changed(
        self, member: EstablishedPeer, family: Family, keys: Sequence[bytes]
    ) -> None:
        """Routes of an Adj-RIB-In have changed without an UPDATE that names them."""

    def policy_changed(self, member: EstablishedPeer) -> None:
        """Another import policy has been applied to an Adj-RIB-In."""

    def updates_sent(self, member: EstablishedPeer, told: UpdateBatch) -> None:
        """A session has been sent UPDATEs."""

    def loc_rib_changed(
        self, instance: Instance, changes: Mapping[Family, Sequence[Change]]
    ) -> None:
        """Best paths of an instance have changed."""
