"""What an agent accepts of BIRD, FRR and GoBGP, with the selector that decides; imports; AS classes.

In every step the selectors select the accepted routes, ``waggle routes received`` has
the reason, and no session is reset.
"""

from __future__ import annotations

import contextlib
import ipaddress
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.dialects import neutral_model
from tests.interop.conftest import NeedRouter
from tests.interop.transport_lab import ASN, OURS, PEERS, PORT, give_addresses, router_for
from tests.support.agent import Agent
from tests.support.netns import Link, linked_namespaces
from tests.support.routers import ALL_ROUND, KINDS, PeerSettings, Router, RouterSettings
from tests.support.wait import eventually

pytestmark = [pytest.mark.interop, pytest.mark.netns, pytest.mark.program]

ROUTES = (
    "10.1.0.0/16",
    "10.1.1.0/24",
    "10.1.1.128/25",
    "10.2.0.0/16",
    "10.96.0.0/12",
    "10.96.1.0/24",
    "2001:db8:1::/48",
    "2001:db8:1:1::/64",
)
BLOCK = [{"prefix": "10.96.0.0/12", "le": 32, "label": "AlwaysBlock"}]
OBJECT = {"kind": "Router", "name": "main"}


class Lab:
    """An agent with the test dialect, and routers by the name of the peer that each is."""

    def __init__(self, agent: Agent, link: Link, routers: dict[str, Router]) -> None:
        self.agent, self.link, self.routers = agent, link, routers

    def peer(self, name: str, **fields: object) -> dict[str, Any]:
        """Return a peer of a Router."""
        asn, number = PEERS[name]
        address, local = f"10.99.0.{number}", OURS[0]
        both = ["ipv4-unicast", "ipv6-unicast"]
        values = {"name": name, "address": address, "asn": asn, "port": PORT}
        return {**values, "localAddress": local, "families": both, **fields}

    def write(self, *routers: dict[str, Any]) -> None:
        """Replace the configuration."""
        self.agent.write_objects("routers.json", *routers)

    def established(self, *names: str) -> None:
        ours = self.agent.peers()
        assert set(ours) == set(names)
        for name in names:
            assert ours[name]["state"] == "Established", ours[name]

    def tokens(self) -> dict[str, object]:
        """Return something that changes when a session is established anew."""
        return {
            name: next(iter(r.peers().values())).uptime_token for name, r in self.routers.items()
        }

    def available(self, instance: str) -> dict[str, dict[str, Any]]:
        """Return the table of an instance by prefix."""
        items = self.agent.ask("/v1/routes", table="available", instance=instance)
        return {item["prefix"]: item for item in items}

    def received(self, peer: str) -> dict[str, dict[str, Any]]:
        """Return what a peer announces of its own, as the command line has it."""
        items = self.agent.command("routes", "received", "--peer", peer)["items"]
        return {item["prefix"]: item for item in items}

    def logs(self) -> str:
        parts = [self.agent.daemon, *(router.daemon for router in self.routers.values())]
        return "\n".join(part.tail() for part in parts)


@contextlib.contextmanager
def lab_of(kind: str, directory: Path, *names: str) -> Iterator[Lab]:
    """Run an agent without configuration, and routers."""
    with linked_namespaces() as link, contextlib.ExitStack() as stack:
        give_addresses(link)
        agent = Agent(
            link.left,
            directory / "agent",
            program=("tests.dialects.neutral_model",),
            arguments=("--enable-cell", "neutral"),
        )
        agent.write_objects("node.json", {"kind": "Node", "apiVersion": "v1",
                                          "metadata": {"name": "test-node"}})  # fmt: skip
        routers = {name: router_for(kind, name, link, directory) for name in names}
        parts: list[Agent | Router] = [agent, *routers.values()]
        for part in parts:
            part.start()
            stack.callback(part.stop)
            part.wait_ready()
        yield Lab(agent, link, routers)


STEPS: list[tuple[str, dict[str, Any], dict[str, str]]] = [
    # What it is, the fields of the peer, and the selector of each accepted prefix.
    ("nothing", {}, {}),
    ("exact", {"accept": [{"prefix": "10.1.0.0/16"}]}, {"10.1.0.0/16": "10.1.0.0/16"}),
    (
        "le",
        {"accept": [{"prefix": "10.1.0.0/16", "le": 24}]},
        dict.fromkeys(("10.1.0.0/16", "10.1.1.0/24"), "10.1.0.0/16 le 24"),
    ),
    (
        "ge",
        {"accept": [{"prefix": "10.1.0.0/16", "ge": 24}]},
        dict.fromkeys(("10.1.1.0/24", "10.1.1.128/25"), "10.1.0.0/16 ge 24"),
    ),
    (
        "both",
        {"accept": [{"prefix": "10.0.0.0/8", "ge": 17, "le": 24}], "reject": BLOCK},
        {"10.1.1.0/24": "10.0.0.0/8 ge 17 le 24"},
    ),
    (
        "both families",
        {"accept": [{"prefix": "2001:db8::/32", "le": 48}, {"prefix": "10.2.0.0/16"}]},
        {"2001:db8:1::/48": "2001:db8::/32 le 48", "10.2.0.0/16": "10.2.0.0/16"},
    ),
    ("all", {"acceptAll": True}, dict.fromkeys(ROUTES, "all")),
    (
        "all but what is blocked",
        {"acceptAll": True, "reject": BLOCK},
        {prefix: "all" for prefix in ROUTES if not prefix.startswith("10.96.")},
    ),
    ("nothing again", {"reject": BLOCK}, {}),
]


@pytest.mark.parametrize("kind", ALL_ROUND)
def test_filters_accept_exactly_their_selection_with_a_reason(
    kind: str, need_router: NeedRouter, tmp_path: Path
) -> None:
    need_router(kind)
    name = "ebgp-ipv4"
    with lab_of(kind, tmp_path, name) as lab:
        lab.write(neutral_model.router("main", lab.peer(name)))
        eventually(lambda: lab.established(name), context=lab.logs)
        lab.routers[name].announce(*ROUTES)
        eventually(lambda: _check_received(lab, name), context=lab.logs)
        tokens = lab.tokens()
        for what, fields, accepted in STEPS:
            lab.write(neutral_model.router("main", lab.peer(name, **fields)))
            blocked = bool(fields.get("reject"))
            eventually(
                lambda accepted=accepted, blocked=blocked, what=what: _check_step(  # type: ignore[misc]
                    lab, name, accepted, blocked=blocked, what=what
                ),
                context=lab.logs,
            )
        assert lab.tokens() == tokens
        (explained,) = lab.agent.command("explain", "10.96.1.0/24", "--peer", name, "--received")[
            "items"
        ]
        assert (explained["reason"], explained["received"]) == ("AlwaysBlock", True)


def _check_received(lab: Lab, name: str) -> None:
    assert set(lab.received(name)) == set(ROUTES)


def _check_step(lab: Lab, name: str, accepted: dict[str, str], *, blocked: bool, what: str) -> None:
    assert set(lab.available("main")) == set(accepted), what
    for prefix, item in lab.received(name).items():
        assert item["accepted"] is (prefix in accepted), (what, item)
        if prefix in accepted:
            assert (item["filter"], item["object"], item["status"]) == (
                accepted[prefix],
                OBJECT,
                "accepted",
            ), (what, item)
            continue
        block = blocked and ipaddress.ip_network(prefix).version == 4 and "10.96." in prefix
        reason = "AlwaysBlock 10.96.0.0/12" if block else "NotAllowed"
        assert (item["filter"], item["status"]) == (reason, reason), (what, item)
        assert "object" not in item


@pytest.mark.parametrize("kind", ALL_ROUND)
def test_routes_of_one_instance_come_and_go_in_another(
    kind: str, need_router: NeedRouter, tmp_path: Path
) -> None:
    need_router(kind)
    names = ("ebgp-ipv4", "ibgp-ipv4")
    with lab_of(kind, tmp_path, *names) as lab:
        red = {"originates": ["192.0.2.0/24", "2001:db8:9::/48"]}
        peers = {name: lab.peer(name, acceptAll=True) for name in names}

        def configure(*imports: str) -> None:
            lab.write(
                neutral_model.router("red", peers["ebgp-ipv4"], **red),
                neutral_model.router("blue", peers["ibgp-ipv4"], imports=list(imports)),
            )

        configure("red")
        eventually(lambda: lab.established(*names), context=lab.logs)
        tokens = lab.tokens()
        lab.routers["ebgp-ipv4"].announce("203.0.113.0/24", "2001:db8:1::/48")
        lab.routers["ibgp-ipv4"].announce("198.51.100.0/24")
        received = dict.fromkeys(("203.0.113.0/24", "2001:db8:1::/48"), "red/ebgp-ipv4")
        originated = dict.fromkeys(red["originates"], None)
        own = {"198.51.100.0/24": "ibgp-ipv4"}

        def holds(expected: dict[str, str | None]) -> None:
            table = lab.available("blue")
            assert {p: item.get("peer") for p, item in table.items()} == expected
            for item in table.values():
                imported = item.get("peer") != "ibgp-ipv4"
                assert item.get("importedFrom") == ("red" if imported else None)

        eventually(lambda: holds({**received, **originated, **own}), context=lab.logs)
        # Nothing goes the other way.
        assert set(lab.available("red")) == {*received, *originated}
        lab.routers["ebgp-ipv4"].withdraw("203.0.113.0/24")
        rest = {"2001:db8:1::/48": "red/ebgp-ipv4"}
        eventually(lambda: holds({**rest, **originated, **own}), context=lab.logs)
        configure()
        eventually(lambda: holds({**own}), context=lab.logs)
        configure("red")
        eventually(lambda: holds({**rest, **originated, **own}), context=lab.logs)
        assert lab.tokens() == tokens
        lab.routers["ebgp-ipv4"].stop()
        eventually(lambda: holds({**originated, **own}), context=lab.logs)


@pytest.mark.parametrize("kind", ALL_ROUND)
def test_a_peer_may_be_of_the_own_as_or_of_any_other(
    kind: str, need_router: NeedRouter, tmp_path: Path
) -> None:
    need_router(kind)
    names = ("ebgp-ipv4", "ibgp-ipv4")
    with lab_of(kind, tmp_path, *names) as lab:
        classes = {"ebgp-ipv4": "external", "ibgp-ipv4": "internal"}
        peers = [lab.peer(name, asn=classes[name]) for name in names]
        lab.write(neutral_model.router("main", *peers))
        eventually(lambda: lab.established(*names), context=lab.logs)
        ours = lab.agent.peers()
        assert {name: (ours[name]["peerASN"], ours[name]["peerType"]) for name in names} == {
            name: (PEERS[name][0], classes[name]) for name in names
        }
        wrong = [
            lab.peer(name, asn=classes[other])
            for name, other in zip(names, names[::-1], strict=True)
        ]
        lab.write(neutral_model.router("main", *wrong))

        def refused() -> None:
            for name, item in lab.agent.peers().items():
                assert item["state"] != "Established"
                assert "Bad Peer AS" in item.get("lastError", ""), (name, item)

        eventually(refused, context=lab.logs)
        lab.write(neutral_model.router("main", *peers))
        eventually(lambda: lab.established(*names), context=lab.logs)


def test_frr_is_a_member_of_the_confederation_of_an_instance(
    need_router: NeedRouter, tmp_path: Path
) -> None:
    need_router("frr")
    member = 65002
    with lab_of("frr", tmp_path) as lab:
        router = KINDS["frr"](
            RouterSettings(
                asn=member,
                router_id="10.99.0.11",
                addresses=("10.99.0.11", "fd00:99::11"),
                port=PORT,
                confederation=64999,
                peers=(PeerSettings(OURS[0], ASN, port=PORT, internal_confederation=True),),
            ),
            lab.link.right,
            tmp_path / "member",
        )
        peer = lab.peer("ebgp-ipv4", asn=member, acceptAll=True)
        lab.write(
            neutral_model.router(
                "main", peer, confederation=64999, members=[member], originates=["192.0.2.0/24"]
            )
        )
        with router:
            lab.routers["ebgp-ipv4"] = router
            eventually(lambda: lab.established("ebgp-ipv4"), context=lab.logs)
            ours = lab.agent.peers()["ebgp-ipv4"]
            assert (ours["localASN"], ours["peerASN"]) == (ASN, member)
            router.announce("203.0.113.0/24")

            def received() -> None:
                items = lab.received("ebgp-ipv4")
                assert "203.0.113.0/24" in items
                item = items["203.0.113.0/24"]
                assert (item["asPath"], item["status"]) == (f"({member})", "accepted"), item
                assert set(lab.available("main")) == {"203.0.113.0/24", "192.0.2.0/24"}

            eventually(received, context=lab.logs)


def test_an_instance_in_a_vrf_that_is_not_there_waits_and_leaves_the_others_alone(
    need_router: NeedRouter, tmp_path: Path
) -> None:
    need_router("bird")
    names = ("ebgp-ipv4", "ibgp-ipv4")
    with lab_of("bird", tmp_path, *names) as lab:
        peers = [lab.peer(name, acceptAll=True) for name in names]
        lab.write(
            neutral_model.router("plain", peers[0], imports=["coloured"]),
            neutral_model.router(
                "coloured", peers[1], vrf="red", listenPort=1791, originates=["192.0.2.0/24"]
            ),
        )

        def check() -> None:
            ours = lab.agent.peers()
            assert set(ours) == set(names)
            assert ours["ebgp-ipv4"]["state"] == "Established", ours["ebgp-ipv4"]
            waiting = ours["ibgp-ipv4"]
            assert waiting["state"] != "Established"
            assert "red" in waiting["reason"], waiting
            # What the instance originates needs no device.
            assert lab.available("plain")["192.0.2.0/24"]["importedFrom"] == "coloured"

        eventually(check, context=lab.logs)
