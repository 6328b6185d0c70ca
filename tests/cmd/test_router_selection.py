"""What `waggle router routes` lists of a router with two peers, each with routes of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from cells.api.resource import NotFoundError
from cells.serve.routing import TABLES, SpeakerRouting, routes_resource
from speaker.api import InstanceConfig, InstanceStatus, Limited, PeerConfig, RouteAttributes
from tests.support.engine_speaker import EngineSpeaker
from waggle.commands.router.api import _Names
from waggle.router_config import INSTANCE

ROUTER, TOR_1, TOR_2 = "192.0.2.1", "192.0.2.11", "192.0.2.12"
SHARED = ("10.0.0.0/8", "2001:db8::/32")
"""Announced by both; each has a longer IPv4 prefix beside it that the other one has not."""


@pytest.fixture(name="api", scope="module")
def router_with_two_peers() -> SpeakerRouting:
    speaker = EngineSpeaker(address=ROUTER)
    speaker.set_instance(InstanceConfig(name=INSTANCE, local_asn=65000, router_id=ROUTER))
    for number, address in enumerate((TOR_1, TOR_2), 1):
        asn = 65000 + number
        speaker.set_peer(
            INSTANCE,
            PeerConfig(
                name=f"tor-{number}", address=address, peer_asn=asn, import_="all", export="all"
            ),
        )
        tor = speaker.network.host(f"tor-{number}", address, asn)
        tor.peer(PeerConfig(name="router", address=ROUTER, peer_asn=65000, export="all"))
        tor.routes(dict.fromkeys((*SHARED, f"10.{number}.0.0/16"), RouteAttributes()))
    speaker.network.run(5)
    assert all(status.established for status in speaker.peers())
    return SpeakerRouting(cast("Any", speaker))


def ask(
    api: SpeakerRouting, *, table: str = "available", limit: int | None = None, **question: str
) -> list[tuple[str, str]]:
    """Return peer and prefix of each route of an answer."""
    slices = iter(routes_resource(api).read({"table": table, **question}))
    found = [
        (str(route.peer), route.prefix) for routes in Limited(slices, limit) for route in routes
    ]
    return sorted(found)


def at(peer: str, *prefixes: str) -> list[tuple[str, str]]:
    return sorted((peer, prefix) for prefix in prefixes)


def test_a_peer_of_another_instance_is_not_selected() -> None:
    speaker = EngineSpeaker(address=ROUTER)
    for number, (name, address) in enumerate((("red", TOR_1), ("blue", TOR_2)), 1):
        speaker.set_instance(InstanceConfig(name=name, local_asn=65000, router_id=ROUTER))
        peer = PeerConfig(name=f"{name}-1", address=address, peer_asn=65000 + number)
        speaker.set_peer(name, peer)
    api = SpeakerRouting(cast("Any", speaker))
    with pytest.raises(NotFoundError) as unknown:
        ask(api, peer="red-1", instance="blue")
    assert str(unknown.value) == "no peer is called red-1 in the instance blue"


def test_a_peer_is_named_by_its_address_too(api: SpeakerRouting) -> None:
    for table in ("received", "available", "advertised"):
        assert ask(api, table=table, peer=TOR_1) == ask(api, table=table, peer="tor-1")
    with pytest.raises(NotFoundError, match=r"no peer is called 192\.0\.2\.13"):
        ask(api, peer="192.0.2.13")
    with pytest.raises(NotFoundError, match=r"no peer is called tor-11 \(did you mean tor-1\?\)"):
        ask(api, peer="tor-11")


@pytest.mark.parametrize("table", ["received", "available"])
@pytest.mark.parametrize(("peer", "own"), [("tor-1", "10.1.0.0/16"), ("tor-2", "10.2.0.0/16")])
def test_a_peers_routes_are_its_announced_routes(
    api: SpeakerRouting, table: str, peer: str, own: str
) -> None:
    assert ask(api, table=table, peer=peer) == at(peer, *SHARED, own)
    assert ask(api, table=table, peer=peer, family="ipv6-unicast") == at(peer, "2001:db8::/32")
    assert ask(api, table=table, peer=peer, prefix="10.0.0.0/8") == at(peer, "10.0.0.0/8")


def test_without_a_peer_both_have_theirs(api: SpeakerRouting) -> None:
    both = at("tor-1", *SHARED, "10.1.0.0/16") + at("tor-2", *SHARED, "10.2.0.0/16")
    assert ask(api, table="received") == both
    assert ask(api, table="available") == both


def test_advertised_to_a_peer_is_what_the_other_one_announced(api: SpeakerRouting) -> None:
    assert ask(api, table="advertised", peer="tor-1") == at("tor-1", "10.2.0.0/16")
    assert "10.1.0.0/16" in {prefix for _, prefix in ask(api, table="advertised", peer="tor-2")}


@pytest.mark.parametrize("table", ["received", "available"])
def test_the_longest_match_is_that_of_the_peer(api: SpeakerRouting, table: str) -> None:
    assert ask(api, table=table, peer="tor-1", prefix="10.1.2.3") == at("tor-1", "10.1.0.0/16")
    assert ask(api, table=table, peer="tor-2", prefix="10.1.2.3") == at("tor-2", "10.0.0.0/8")
    assert ask(api, table=table, peer="tor-2", prefix="192.0.2.1") == []


def test_without_a_peer_the_longest_match_is_that_of_each_peer_or_of_the_table(
    api: SpeakerRouting,
) -> None:
    of_each = at("tor-1", "10.1.0.0/16") + at("tor-2", "10.0.0.0/8")
    assert ask(api, table="received", prefix="10.1.2.3") == of_each
    assert ask(api, table="available", prefix="10.1.2.3") == at("tor-1", "10.1.0.0/16")


def test_a_limit_counts_the_routes_of_the_peer(api: SpeakerRouting) -> None:
    assert len(ask(api, table="received", peer="tor-2", limit=2)) == 2
    assert {peer for peer, _ in ask(api, table="received", peer="tor-2", limit=2)} == {"tor-2"}


@pytest.mark.parametrize("table", TABLES)
def test_the_router_is_not_asked_for_its_name_for_each_route(
    monkeypatch: pytest.MonkeyPatch, api: SpeakerRouting, table: str
) -> None:
    """It has its listening sockets, too: a call of the kernel for each of them."""
    asked: list[None] = []
    before = EngineSpeaker.instances

    def instances(speaker: EngineSpeaker) -> Sequence[InstanceStatus]:
        asked.append(None)
        return before(speaker)

    def count(prefix: str | None = None) -> tuple[int, int]:
        asked.clear()
        wanted = {} if prefix is None else {"prefix": prefix}
        return len(ask(api, table=table, limit=None, family="ipv4-unicast", **wanted)), len(asked)

    monkeypatch.setattr(EngineSpeaker, "instances", instances)
    (few, once), (many, again) = count(SHARED[0]), count()
    assert few < many
    assert again == once


def test_an_action_on_an_unknown_peer_names_the_nearest(api: SpeakerRouting) -> None:
    names = _Names(cast("Any", api))
    names.check("tor-1", None)
    with pytest.raises(NotFoundError, match=r"no peer is called tor-11 \(did you mean tor-1\?\)"):
        names.check("tor-11", None)
