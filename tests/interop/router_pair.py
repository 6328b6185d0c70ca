"""Two routers on a cable, one session for each kind of address, and what each has of the other.

For the drivers' own proof, and for the speaker in the place of one of the two.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from tests.support.netns import Link
from tests.support.routers import FAMILIES, PeerSettings, Router, RouterSettings

LEFT, RIGHT = ("10.98.0.1", "fd00:98::1"), ("10.98.0.2", "fd00:98::2")
LEFT_ASN, RIGHT_ASN = 65001, 65002
PORT = 1790
TTL = 2


@dataclasses.dataclass(frozen=True, slots=True)
class Pair:
    """The routers; `left` announces one pair of prefixes, `right` the other."""

    left: Router
    right: Router

    def announce(self) -> None:
        """Let both announce."""
        self.left.announce("192.0.2.0/24", "2001:db8:1::/48")
        self.right.announce("198.51.100.0/24", "2001:db8:2::/48")

    def assert_learnt(self) -> None:
        """Check that each has what the other announces, and nothing else."""
        _assert_learnt(self.right, self.left, ("192.0.2.0/24", "2001:db8:1::/48"))
        _assert_learnt(self.left, self.right, ("198.51.100.0/24", "2001:db8:2::/48"))

    def assert_established(self) -> None:
        """Check both sessions at both ends."""
        for router in (self.left, self.right):
            peers = router.peers()
            assert all(peer.established for peer in peers.values()), (router.kind, peers)
            assert len(peers) == len(FAMILIES), peers

    def tokens(self) -> list[list[str]]:
        """Return something that changes when a session is established anew."""
        return [
            sorted(peer.uptime_token for peer in router.peers().values())
            for router in (self.left, self.right)
        ]

    def logs(self) -> str:
        """Return the ends of both logs."""
        return f"{self.left.daemon.tail()}\n{self.right.daemon.tail()}"


def make_pair(
    left: type[Router],
    right: type[Router],
    link: Link,
    directory: Path,
    *,
    left_passive: bool,
    right_passive: bool,
    passwords: tuple[str | None, str | None] = (None, None),
) -> Pair:
    """Give the cable its addresses and make both routers; they are not started."""
    for own, far in zip(LEFT, RIGHT, strict=True):
        link.connect(own, far)

    def make(driver: type[Router], *, left_side: bool) -> Router:
        own, far = (LEFT, RIGHT) if left_side else (RIGHT, LEFT)
        asn, far_asn = (LEFT_ASN, RIGHT_ASN) if left_side else (RIGHT_ASN, LEFT_ASN)
        peers = tuple(
            PeerSettings(
                address,
                far_asn,
                port=PORT,
                passive=left_passive if left_side else right_passive,
                families=(family,),
                multihop=TTL,
                password=passwords[0 if left_side else 1],
            )
            for address, family in zip(far, FAMILIES, strict=True)
        )
        settings = RouterSettings(asn=asn, router_id=own[0], addresses=own, port=PORT, peers=peers)
        namespace = link.left if left_side else link.right
        return driver(settings, namespace, directory / f"AS{asn}")

    return Pair(make(left, left_side=True), make(right, left_side=False))


def _assert_learnt(router: Router, origin: Router, prefixes: tuple[str, str]) -> None:
    addresses = origin.settings.addresses
    for family, address, prefix in zip(FAMILIES, addresses, prefixes, strict=True):
        found = [
            (route.prefix, route.next_hop, route.as_path, route.origin)
            for route in router.routes(family, address).values()
        ]
        wanted = [(prefix, address, (origin.settings.asn,), "igp")]
        assert found == wanted, f"{router.kind} has {found}, not {wanted}"
