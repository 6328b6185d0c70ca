"""An instance that becomes another router has its local routes again, copied in steps."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace

from speaker.api import InstanceConfig, PeerConfig, RouteAttributes
from speaker.engine import Engine
from speaker.engine.inputs import (
    BytesReceived,
    RemovePeer,
    SendUpdates,
    SetInstance,
    SetPeer,
    Shutdown,
    TransportAccepted,
    UpdateRoutes,
)
from speaker.engine.instance import inherited_routes, originated_prefixes
from speaker.iana import IPV4_UNICAST
from speaker.message import KEEPALIVE
from speaker.nlri import prefix_to_text
from speaker.peer.actions import Write
from speaker.rib.loc_rib import LocRib
from tests.speaker.engine.small_steps import set_small_steps
from tests.speaker.network import INSTANCE
from tests.speaker.raw import LOCAL, REMOTE, REMOTE_ASN, Raw, open_message

LOCAL_PREFIXES = [f"10.{number}.0.0/16" for number in range(60)]
NLRI = {text: bytes((16, 10, number)) for number, text in enumerate(LOCAL_PREFIXES)}
STEP = 5


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    set_small_steps(monkeypatch)
    for module in (inherited_routes, originated_prefixes):
        monkeypatch.setattr(module, "STEP_ROUTES", STEP)


class Lab:
    """An engine with local routes of the API, and originated ones."""

    def __init__(self) -> None:
        self.engine = Engine(random.Random(1))  # noqa: S311  jitter
        self.number = 1
        self.originated: tuple[str, ...] = ()
        self.expected: dict[str, int | None] = {}
        """The MED of each route."""

    def become(self, number: int, originated: tuple[str, ...]) -> None:
        for text in self.originated:
            if text not in originated:
                self.expected.pop(text, None)
        for text in originated:
            if text not in self.originated:
                self.expected[text] = None
        self.number, self.originated = number, originated
        router_id = f"192.0.2.{number}"
        instance = InstanceConfig(
            name="i", local_asn=65000, router_id=router_id, originate=originated
        )
        self.engine.handle(SetInstance(instance), 0.0)

    def change(self, texts: list[str], med: int | None) -> None:
        """Announce routes with a MED, or (None) withdraw them."""
        attributes = None if med is None else RouteAttributes(med=med)
        changes = {NLRI[text]: attributes for text in texts}
        self.engine.handle(UpdateRoutes("i", None, {IPV4_UNICAST: changes}), 0.0)
        for text in texts:
            if med is None:
                self.expected.pop(text, None)
            else:
                self.expected[text] = med

    def turns(self, most: int = 1 << 30) -> int:
        """Send UPDATEs until none is left, or so often; returns how often."""
        done = 0
        while self.engine.updates_pending and done < most:
            self.engine.handle(SendUpdates(), 0.0)
            done += 1
        return done

    @property
    def table(self) -> LocRib:
        return self.engine.instance("i").outbound.loc.table(IPV4_UNICAST)

    @property
    def routes(self) -> dict[str, int | None]:
        """The MED of each route."""
        return {
            prefix_to_text(IPV4_UNICAST, nlri): paths[0].attributes.med
            for nlri, paths in self.table.items()
        }


def copying() -> Lab:
    """Return a lab in which some local routes are copied, and some are not."""
    lab = Lab()
    lab.become(1, ())
    lab.change(LOCAL_PREFIXES, 1)
    lab.turns()
    lab.become(2, ())
    lab.turns(2)
    assert 0 < len(lab.routes) < len(LOCAL_PREFIXES)
    return lab


def test_no_turn_copies_more_than_a_few_routes() -> None:
    lab = copying()
    before, turns = len(lab.routes), 0
    while lab.turns(1):
        assert len(lab.routes) - before <= 2 * STEP
        before, turns = len(lab.routes), turns + 1
    assert lab.routes == lab.expected
    assert turns > 5


def test_what_changes_meanwhile_is_not_copied() -> None:
    lab = copying()
    lab.change([LOCAL_PREFIXES[0], LOCAL_PREFIXES[-1]], None)
    lab.change([LOCAL_PREFIXES[1], LOCAL_PREFIXES[-2]], 7)
    lab.turns()
    assert lab.routes == lab.expected


def test_yet_another_router_has_the_routes_of_both() -> None:
    lab = copying()
    lab.change([LOCAL_PREFIXES[-1]], None)
    lab.change([LOCAL_PREFIXES[-2]], 7)
    lab.become(3, ())
    lab.change([LOCAL_PREFIXES[-3]], 8)
    lab.turns()
    assert lab.routes == lab.expected


def test_nothing_is_copied_after_a_shutdown() -> None:
    lab = copying()
    lab.engine.handle(Shutdown(), 0.0)
    assert lab.turns() == 0


def test_a_peer_that_comes_meanwhile_is_sent_the_whole_table_before_its_end() -> None:
    peer = Raw(passive=True, export="all")
    changes = dict.fromkeys(NLRI.values(), RouteAttributes())
    peer.give(UpdateRoutes(INSTANCE, None, {IPV4_UNICAST: changes}))
    config = peer.engine.instance(INSTANCE).config
    peer.engine_only(SetInstance(replace(config, router_id="10.0.0.77")))
    # A peer that is configured anew does not wait before it is accepted.
    peer.engine_only(RemovePeer(INSTANCE, "p"))
    peer.engine_only(
        SetPeer(
            INSTANCE,
            PeerConfig(name="p", address=REMOTE, peer_asn=REMOTE_ASN, passive=True, export="all"),
        )
    )
    peer.connection -= 1
    accepted = TransportAccepted(peer.connection, INSTANCE, (LOCAL, 179), (REMOTE, 40000))
    for item in (
        accepted,
        BytesReceived(peer.connection, open_message()),
        BytesReceived(peer.connection, KEEPALIVE),
    ):
        peer.engine_only(item)
    assert peer.status.established
    assert peer.engine.instance(INSTANCE).outbound.inherited_routes.formers
    while peer.engine.updates_pending:
        for action in peer.engine.handle(SendUpdates(), peer.now):
            if isinstance(action, Write):
                peer.sent += b"".join(action.parts)
    updates = [body for kind, body in peer.messages if kind == 2]
    end = updates.index(bytes(4))
    assert all(nlri in b"".join(updates[:end]) for nlri in NLRI.values())
    assert not any(updates[end + 2 :])


@pytest.mark.parametrize("seed", range(30))
def test_concurrent_changes_end_with_the_routes_of_one_turn(seed: int) -> None:
    lab = Lab()
    rng = random.Random(seed)  # noqa: S311  a test
    lab.become(1, ())
    lab.change(LOCAL_PREFIXES[:40], 1)
    for _ in range(40):
        match rng.randrange(4):
            case 0:
                lab.become(rng.randrange(1, 9), lab.originated)
            case 1:
                # Other prefixes than the API has, as of both the last change is in effect.
                some = rng.sample(LOCAL_PREFIXES[40:], rng.randrange(20))
                lab.become(rng.randrange(1, 9), tuple(sorted(some)))
            case 2:
                lab.change(rng.sample(LOCAL_PREFIXES[:40], 10), rng.choice([None, 2, 3]))
            case _:
                lab.turns(rng.randrange(1, 6))
    lab.turns()
    assert lab.routes == lab.expected
    assert not lab.engine.instance("i").outbound.inherited_routes.formers
