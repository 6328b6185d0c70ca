"""The session parameters that v1 and v2 share: addresses, AS numbers, families, graceful restart."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import TypeVar

from reconcilers.model import GracefulRestart, ObjectRef, Problem
from resources.cilium import peerconfig
from speaker.iana import AS_TRANS
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST, Family

FAMILIES = {("ipv4", "unicast"): IPV4_UNICAST, ("ipv6", "unicast"): IPV6_UNICAST}

T = TypeVar("T")


def invalid_host(text: str) -> str | None:
    """Return why a session's address that Cilium's API accepts is that of no host, or None.

    RFC 1122 section 3.2.1.3: 0/8 is this host, 224/4 multicast, 240/4 reserved; RFC 4291 section 2.5.2.
    """
    address = ipaddress.ip_address(text)
    if isinstance(address, ipaddress.IPv4Address):
        is_host = 0 < address.packed[0] < 224
    else:
        is_host = not (address.is_unspecified or address.is_multicast)
    return None if is_host else f"{text} is not the address of a host"


def invalid_asn(asn: int | None) -> str | None:
    """Return why no session can have an AS number that Cilium's API accepts, or None."""
    return f"{asn} is AS_TRANS, which is reserved (RFC 6793)" if asn == AS_TRANS else None


def families(
    ref: ObjectRef, path: str, wanted: Iterable[tuple[str, str, T]], problems: list[Problem]
) -> dict[Family, T]:
    """Return a Cilium session's supported families, each once, with values; problems are appended."""
    supported: dict[Family, T] = {}
    for i, (afi, safi, value) in enumerate(wanted):
        family = FAMILIES.get((afi, safi))
        field = f"{path}[{i}]"
        if family is None:
            text = f"{afi}/{safi} is ignored: only ipv4/unicast and ipv6/unicast are spoken"
            problems.append(Problem((ref,), field, text))
        elif family in supported:
            text = f"{afi}/{safi} is listed twice; the first entry is used"
            problems.append(Problem((ref,), field, text))
        else:
            supported[family] = value
    return supported


def graceful_restart(given: peerconfig.GracefulRestart | None) -> GracefulRestart | None:
    """Return the graceful restart parameters of a Cilium session, or None if it is disabled."""
    if given is None or not given.enabled:
        return None
    return GracefulRestart(given.restart_time_seconds)
