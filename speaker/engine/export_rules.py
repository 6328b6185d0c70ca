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


def export_rules(
    config: PeerConfig,
    negotiated: Negotiated,
    local_address: str,
    interface_address: str | None = None,
) -> ExportRules:
    """Return the export rules of a session.

    ``local_address`` is the session's local address as text, possibly with a zone;
    ``interface_address`` the first address of the other IP version on its interface.
    """
    families = tuple(sorted(negotiated.families))
    export = config.export
    if export == "set" and config.route_set is None:
        export = "none"
    exports_nothing = export == "none"
    own = _packed(local_address)
    on_interface = b"" if interface_address is None else _packed(interface_address)
    hops = {
        family: next_hop(family, own, config, negotiated, on_interface)
        for family in families
        if has_prefixes(family)
    }
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
                b"" if exports_nothing else hop,
                family != IPV4_UNICAST or len(hop) == 16,
            )
            for family, hop in hops.items()
        ),
    )


def next_hop(
    family: Family,
    own: bytes,
    config: PeerConfig,
    negotiated: Negotiated,
    on_interface: bytes = b"",
) -> bytes:
    """Return the next hop of a family's routes: 4 or 16 octets, or none where there is none.

    ``own`` is the session's local address, ``on_interface`` one of the other IP version on its
    interface. In this order: the configured next hop; ``own`` if it is of the family, and for IPv4
    prefixes towards a peer with the capability (RFC 8950 section 4); for IPv4 ``on_interface``, as
    FRR, and then the default of the configuration; for IPv6 the default first, as an interface has no
    primary IPv6 address: the kernel's first one is the latest, which may move to another host.
    Without any of them IPv6 prefixes have the IPv4-mapped form of ``own``, and IPv4 prefixes none.
    """
    is_ipv6 = family.afi == Afi.IPV6
    size = 16 if is_ipv6 else 4
    configured = config.next_hop_ipv6 if is_ipv6 else config.next_hop_ipv4
    if configured is not None:
        return _packed(configured)
    if len(own) == size or family in negotiated.extended_next_hop:
        return own
    if len(on_interface) != size:
        on_interface = b""
    if not is_ipv6:
        return on_interface or _default(config.default_next_hop_ipv4)
    return (
        _default(config.default_next_hop_ipv6) or on_interface or b"\x00" * 10 + b"\xff\xff" + own
    )


def _default(address: str | None) -> bytes:
    return b"" if address is None else _packed(address)


def _packed(address: str) -> bytes:
    host, *_ = address.partition("%")
    return ipaddress.ip_address(host).packed
