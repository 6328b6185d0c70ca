"""Route leak detection by roles and the Only to Customer attribute, inbound (RFC 9234 section 5).

The outbound rules are in `speaker.rib.export`.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from speaker.attribute import PathAttributes
from speaker.iana import Role

_FROM_BELOW: Final = frozenset({Role.PROVIDER, Role.ROUTE_SERVER})
"""Our roles towards a customer and a client of our route server."""
_FROM_ABOVE: Final = frozenset({Role.CUSTOMER, Role.PEER, Role.ROUTE_SERVER_CLIENT})
"""Our roles towards a provider, a peer and a route server."""


def check_route_leak(
    role: int, peer_asn: int, attributes: PathAttributes
) -> tuple[str | None, PathAttributes]:
    """Return why a received route is a leak, or None; and its attributes with OTC where it is due.

    ``role`` is our role towards the peer.
    """
    otc = attributes.otc
    if otc is None:
        if role in _FROM_ABOVE:
            return None, replace(attributes, otc=peer_asn)
        return None, attributes
    if role in _FROM_BELOW or (role == Role.PEER and otc != peer_asn):
        return f"route leak: Only to Customer is AS {otc} (RFC 9234)", attributes
    return None, attributes


def may_have_otc_attached(role: int | None, peer_asn: int, attributes: PathAttributes) -> bool:
    """Return whether `check_route_leak`, with this role, may have attached OTC; or the peer has."""
    return role in _FROM_ABOVE and attributes.otc == peer_asn
