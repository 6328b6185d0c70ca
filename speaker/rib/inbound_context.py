"""Context of the judgement of a received path besides its octets: one value, compared whole.

`speaker.rib.inbound` and its fast path have no other input, so that a setting which they read is one of
these fields. The import policy is none of them: it is applied to the judged paths (`AdjRibIn`).
"""

from __future__ import annotations

from typing import Final

import msgspec

from speaker.negotiated import Negotiated

_WITHOUT_EFFECT: Final = {
    "hold_time": 0,
    "keepalive_time": 0,
    "route_refresh": False,
    "extended_message": False,
    "add_path_send": frozenset(),
    "peer_graceful_restart": None,
    "graceful_notification": False,
    "peer_long_lived": None,
}
"""Negotiated parameters by which no received path is judged, and the values in their place: a peer that
has restarted has new ones."""


class SettingsContext(msgspec.Struct, frozen=True, kw_only=True):
    """The inputs that the configuration decides, beside the parameters of a session."""

    own_asns: frozenset[int]
    """The AS numbers that are a loop in an AS path."""
    allowas_in_origin: bool
    """Whether an AS path that ends with one of ``own_asns`` is no loop."""
    allowas_in: int
    """How often each of ``own_asns`` may be in an AS path that is no loop."""


class ConnectionContext(msgspec.Struct, frozen=True, kw_only=True):
    """The inputs that the connection shows; without a session, that of the last one."""

    own_addresses: frozenset[bytes]
    """Addresses of this router (4 or 16 octets), which are no next hops."""
    peer_is_local: bool
    """Whether the peer is on this host: then its next hops may be loopback addresses."""


class InboundContext(msgspec.Struct, frozen=True):
    """The inputs of the judgement of received paths; equal ones lead to equal paths."""

    session: Negotiated
    """The negotiated parameters, except `_WITHOUT_EFFECT`."""
    settings: SettingsContext
    connection: ConnectionContext


def inbound_context(
    negotiated: Negotiated, settings: SettingsContext, connection: ConnectionContext
) -> InboundContext:
    """Return the context of a session."""
    session = msgspec.structs.replace(negotiated, **_WITHOUT_EFFECT)
    return InboundContext(session, settings, connection)
