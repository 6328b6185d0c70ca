"""A router with a prefix limit: after its first Cease the session stays up, with fewer prefixes.

FRR names its limit in the NOTIFICATION (RFC 4486 section 4); BIRD sends no data.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.interop.conftest import NeedRouter
from tests.interop.transport_lab import ASN, OURS, PEERS, PORT, give_addresses
from tests.support.agent import Agent
from tests.support.netns import linked_namespaces
from tests.support.routers import KINDS, PeerSettings, Router, RouterSettings
from tests.support.wait import settles

pytestmark = [pytest.mark.interop, pytest.mark.netns, pytest.mark.program]

NAME = "ebgp-ipv4"
PEER_ASN, NUMBER = PEERS[NAME]
LIMIT = 1000
SERVICES = 20
OF_SERVICE = 55
POD_NETWORK = "10.244.0.0/24"
STAYS = 5.0
"""Seconds without another Cease: a limit that is exceeded again ends the session at once."""
SENT = SERVICES * OF_SERVICE + 1
"""Above the limit, and nine tenths of it are below."""


def manifests() -> list[dict[str, Any]]:
    peer = {
        "name": NAME,
        "peerASN": PEER_ASN,
        "peerAddress": f"10.99.0.{NUMBER}",
        "peerConfigRef": {"name": "p"},
    }
    cilium = {"apiVersion": "cilium.io/v2"}
    families = [{"afi": "ipv4", "safi": "unicast", "advertisements": {}}]
    services = {
        "advertisementType": "Service",
        "service": {"addresses": ["ExternalIP"]},
        "selector": {},
    }
    return [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "test-node"},
            "spec": {"podCIDRs": [POD_NETWORK]},
            "status": {"addresses": [{"type": "InternalIP", "address": OURS[0]}]},
        },
        {
            **cilium,
            "kind": "CiliumBGPClusterConfig",
            "metadata": {"name": "c"},
            "spec": {"bgpInstances": [{"name": "i", "localASN": ASN, "peers": [peer]}]},
        },
        {
            **cilium,
            "kind": "CiliumBGPPeerConfig",
            "metadata": {"name": "p"},
            "spec": {
                "families": families,
                "transport": {"peerPort": PORT},
                "timers": {"connectRetryTimeSeconds": 1},
            },
        },
        {
            **cilium,
            "kind": "CiliumBGPAdvertisement",
            "metadata": {"name": "a"},
            "spec": {"advertisements": [services, {"advertisementType": "PodCIDR"}]},
        },
        *(service(number) for number in range(SERVICES)),
    ]


def service(number: int) -> dict[str, Any]:
    addresses = [f"198.18.{number}.{host}" for host in range(1, OF_SERVICE + 1)]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": f"s{number:02}",
            "namespace": f"n{number % 2}",
            "creationTimestamp": f"2026-01-{number + 1:02}T00:00:00Z",
        },
        "spec": {"externalIPs": addresses},
    }


def router_of(kind: str, link: Any, directory: Path) -> Router:  # noqa: ANN401
    address = f"10.99.0.{NUMBER}"
    peer = PeerSettings(
        OURS[0],
        ASN,
        maximum_prefixes=LIMIT,
        reconnects_after_limit=True,
        families=("ipv4-unicast",),
    )
    settings = RouterSettings(
        asn=PEER_ASN, router_id=address, addresses=(address,), port=PORT, peers=(peer,)
    )
    return KINDS[kind](settings, link.right, directory / "router")


@pytest.mark.parametrize(("kind", "limit"), [("frr", LIMIT), ("bird", SENT * 9 // 10)])
def test_after_the_first_cease_the_session_stays_up_and_the_newest_services_wait(
    kind: str, limit: int, need_router: NeedRouter, tmp_path: Path
) -> None:
    need_router(kind)
    with linked_namespaces() as link:
        give_addresses(link)
        router = router_of(kind, link, tmp_path)
        agent = Agent(
            link.left,
            tmp_path / "agent",
            arguments=("--advertise-namespace-limit=0",),
        )
        agent.write_objects("objects.json", *manifests())

        def logs() -> str:
            return agent.daemon.tail() + router.daemon.tail()

        def steady() -> None:
            (theirs,) = router.peers().values()
            assert theirs.established, theirs
            held = {route.prefix for route in router.paths("ipv4-unicast")}
            assert len(held) == limit
            assert POD_NETWORK in held

        try:
            router.start()
            router.wait_ready()
            agent.start()
            agent.wait_ready()
            # FRR waits for a minute before it accepts the next session.
            settles(steady, stays=STAYS, within=200, interval=0.3, context=logs)
            # One Cease: the session that followed is up.
            log = (tmp_path / "agent" / "log").read_text()
            assert log.count("event=peer.limit_learned") == 1
            assert log.count("event=peer.down") == 1
            (explained,) = agent.command("explain", "198.18.19.55")["items"]
            assert (explained["advertised"], explained["reason"]) == (False, "PeerLimit")
            (status,) = agent.ask("/v1/status")
            (problem,) = [one for one in status["problems"] if not one.get("ofTenant")]
            assert f"is sent no more than {limit} prefixes of ipv4-unicast" in problem["message"]
            assert problem["count"] == SENT - limit
        finally:
            agent.stop()
            router.stop()
