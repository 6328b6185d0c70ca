"""The export rules of a session, from its configuration and what was negotiated on it.

Sessions with equal rules are one update group. Next-hop-self (RFC 4271 section 5.1.3) is computed
here, per family; whether a received next hop can be used is `speaker.rib`'s to decide.
"""

from __future__ import annotations

import ipaddress

from speaker.api import PeerConfig
from speaker.iana import IPV4_UNICAST, Afi, Family
from speaker.negotiated import Negotiated
from speaker.nlri import has_prefixes
from speaker.rib.export import ExportRules, NextHop


def export_rules(config: PeerConfig, negotiated: Negotiated, local_address: str) -> ExportRules:
    """Return the export rules of a session.

    ``local_address`` is the session's local address as text, possibly with a zone.
    """
    families = tuple(sorted(negotiated.families))
    own = _packed(local_address)
    export = config.export
    if export == "set" and config.route_set is None:
        export = "none"
    exports_nothing = export == "none"
    return ExportRules(
        export=export,
        route_set=config.route_set if export == "set" else None,
        policy=None if exports_nothing else config.export_policy,
        ebgp=negotiated.ebgp,
        confederation=negotiated.confederation,
        role=negotiated.local_role,
        local_asn=negotiated.local_asn,
        as4=negotiated.as4,
        max_message=negotiated.max_message_size,
        long_lived=negotiated.peer_long_lived is not None,
        families=families,
        add_path=tuple(sorted(negotiated.add_path_send)),
        next_hops=tuple(
            NextHop(
                family,
                b"" if exports_nothing else next_hop(family, own, config, negotiated),
                family != IPV4_UNICAST or len(_mp_or_own(own, config)) == 16,
            )
            for family in families
            if has_prefixes(family)
        ),
    )


def _mp_or_own(own: bytes, config: PeerConfig) -> bytes:
    return own if config.next_hop_ipv4 is None else b"\x00\x00\x00\x00"


def next_hop(family: Family, own: bytes, config: PeerConfig, negotiated: Negotiated) -> bytes:
    """Return the next hop of a family's routes: 4 or 16 octets, or none where there is none.

    ``own`` is the session's local address. IPv6 prefixes over an IPv4 session have the configured
    IPv6 next hop, or the v4-mapped form of ``own``. IPv4 prefixes over an IPv6 session have its
    IPv6 address, only towards a peer with the capability (RFC 8950 section 4).
    """
    if family.afi == Afi.IPV6:
        if config.next_hop_ipv6 is not None:
            return _packed(config.next_hop_ipv6)
        return own if len(own) == 16 else b"\x00" * 10 + b"\xff\xff" + own
    if config.next_hop_ipv4 is not None:
        return _packed(config.next_hop_ipv4)
    if len(own) == 4:
        return own
    return own if family in negotiated.extended_next_hop else b""


def _packed(address: str) -> bytes:
    host, *_ = address.partition("%")
    return ipaddress.ip_address(host).packed
