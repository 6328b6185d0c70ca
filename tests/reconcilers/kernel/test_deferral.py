"""How long routes of an earlier process are kept."""

from __future__ import annotations

from reconcilers.kernel.deferral import DEFERRAL_SECONDS, SETTLE_SECONDS, Deferral
from speaker.api import FamilyStatus, PeerStatus
from speaker.nlri import IPV4_UNICAST

PEER = ("main", "p")


def status(received: int = 0, *, state: str = "Established", name: str = "p") -> PeerStatus:
    family = FamilyStatus(
        family=IPV4_UNICAST, negotiated=True, received=received, accepted=0, advertised=0
    )
    return PeerStatus(
        instance="main",
        name=name,
        address=None,
        interface=None,
        port=179,
        local_address=None,
        local_asn=1,
        state=state,
        since=0.0,
        families=(family,),
        peer_router_id=None,
        hold_time=None,
        keepalive_time=None,
        retry_in=None,
        messages_received=0,
        messages_sent=0,
        updates_received=0,
        updates_sent=0,
        flaps=0,
        last_error=None,
        authentication=None,
        graceful_restart_time=None,
        route_set=None,
        queued_octets=0,
    )


class Clock:
    """A deferral that began at 0."""

    def __init__(self) -> None:
        self.deferral = Deferral(0.0)

    def is_over(self, now: float, *peers: PeerStatus, selected: bool = True) -> bool:
        return self.deferral.is_over(now, peers, {PEER}, selected=selected)


def test_it_is_over_when_the_table_of_each_peer_grows_no_more() -> None:
    clock = Clock()
    assert not clock.is_over(1.0, status(10))
    assert not clock.is_over(2.0, status(20))
    assert not clock.is_over(1.9 + SETTLE_SECONDS, status(20))
    assert clock.is_over(2.0 + SETTLE_SECONDS, status(20))


def test_it_waits_for_peers_that_are_away_and_for_route_selection() -> None:
    clock = Clock()
    clock.is_over(1.0, status(10))
    assert not clock.is_over(60.0, status(10, state="Active"))
    assert not clock.is_over(61.0)
    assert not clock.is_over(62.0, status(10), selected=False)
    assert not clock.is_over(63.0, status(10))
    assert clock.is_over(63.0 + SETTLE_SECONDS, status(10))


def test_it_does_not_wait_for_ever() -> None:
    assert Clock().is_over(DEFERRAL_SECONDS, status(state="Idle"), selected=False)


def test_peers_from_which_nothing_is_accepted_do_not_matter() -> None:
    clock = Clock()
    other = status(state="Idle", name="other")
    clock.is_over(1.0, status(), other)
    assert clock.is_over(1.0 + SETTLE_SECONDS, status(), other)
