"""Objects that do not go together, at BIRD, FRR and GoBGP: nothing of the last good state is lost.

FRRConfigurations and MetalLB's objects; the agent is killed, with the API server and without.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from resources.core.kinds import KINDS as CORE_KINDS
from resources.frrk8s.kinds import FRR_CONFIGURATION, FRRK8S_CONFIGURATION
from resources.kind import Kinds
from resources.metallb.kinds import KINDS as METALLB_KINDS
from tests.interop.conftest import NeedRouter
from tests.reconcilers.frrk8s.build import NAMESPACE, configuration
from tests.reconcilers.metallb.objects import NAMESPACE as METALLB
from tests.reconcilers.metallb.objects import advertisement, peer, pool
from tests.reconcilers.metallb.test_node import endpoints, service
from tests.support.agent import Agent
from tests.support.apiserver import BackgroundApiServer
from tests.support.netns import linked_namespaces
from tests.support.relay import BackgroundRelay
from tests.support.routers import KINDS, PeerSettings, Router, RouterSettings
from tests.support.wait import eventually

pytestmark = [pytest.mark.interop, pytest.mark.netns, pytest.mark.program]

OURS, ASN, PEER_ASN, PORT = "10.96.1.1", 64900, 64950, 1790
ROUTERS: Final = {"bird": "10.96.1.11", "frr": "10.96.1.12", "gobgp": "10.96.1.13"}
GUARDED, WORD = "10.96.1.14", "not-in-any-file"
"""A BIRD with a password."""
NODE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "test-node"},
    "status": {"addresses": [{"type": "InternalIP", "address": OURS}]},
}
OWN, MORE = "10.1.0.0/16", "10.2.0.0/16"
WEB, API, NEW = "198.18.30.5/32", "198.18.30.6/32", "198.18.31.7/32"
SETTINGS = ("address", "peerASN", "localASN", "peerPort", "families", "configuredHoldTime")


def own(name: str, *prefixes: str, to: tuple[str, ...], **settings: object) -> dict[str, Any]:
    """Return an FRRConfiguration that advertises prefixes to routers, by their addresses."""
    advertise = {"allowed": {"mode": "all"}}
    common = {"asn": PEER_ASN, "port": PORT, "connectTime": "1s", "toAdvertise": advertise}
    neighbors = [{"address": address, **common, **settings} for address in to]
    router = {"asn": ASN, "prefixes": list(prefixes), "neighbors": neighbors}
    return configuration(name, {"bgp": {"routers": [router]}})


OF_FRRK8S = (ROUTERS["bird"], ROUTERS["gobgp"])
OF_METALLB = ROUTERS["frr"]
WITH_PASSWORD = own("guarded", to=(GUARDED,), password=WORD)
WITH_PASSWORD["metadata"]["annotations"] = {
    "kubectl.kubernetes.io/last-applied-configuration": json.dumps(WITH_PASSWORD)
}
GOOD: Final = (
    NODE,
    own("own", OWN, to=OF_FRRK8S),
    WITH_PASSWORD,
    peer("tor", OF_METALLB, peerPort=PORT, connectTime="1s"),
    pool("front", "198.18.30.0/24"),
    advertisement("all"),
    service("web", "198.18.30.5"),
    endpoints("web"),
)
HELD: Final = {ROUTERS["bird"]: {OWN}, ROUTERS["gobgp"]: {OWN}, OF_METALLB: {WEB}}
"""What the routers have in the good state."""


class Running:
    """The agent, its API server and its routers, by their addresses."""

    def __init__(
        self,
        agent: Agent,
        server: BackgroundApiServer,
        relay: BackgroundRelay,
        routers: Mapping[str, Router],
        state: Path,
    ) -> None:
        self.agent, self.server, self.relay, self.state = agent, server, relay, state
        self.routers = routers

    def holds(self, held: Mapping[str, set[str]]) -> None:
        """Wait until routers have the session, and exactly these prefixes."""
        eventually(lambda: self.check(held), context=self.logs)

    def check(self, held: Mapping[str, set[str]]) -> None:
        for address, prefixes in held.items():
            (session,) = self.routers[address].peers().values()
            assert session.established, address
            assert set(self.routers[address].routes("ipv4-unicast", OURS)) == prefixes

    def tokens(self, *addresses: str) -> list[str]:
        """Return what changes with each new session."""
        found = [next(iter(self.routers[one].peers().values())) for one in addresses or HELD]
        return [session.uptime_token for session in found]

    def settings(self) -> dict[str, dict[str, Any]]:
        """Return the settings of the agent's peers."""
        return {
            one["address"]: {name: one[name] for name in SETTINGS if name in one}
            for one in self.agent.peers().values()
        }

    def reports(self, *texts: str) -> None:
        """Wait until the agent reports problems with these texts."""

        def check() -> None:
            (status,) = self.agent.ask("/v1/status")
            messages = [one["message"] for one in status.get("problems", ())]
            assert all(any(text in message for message in messages) for text in texts), messages

        eventually(check, context=self.logs)

    def restart(self) -> None:
        """Kill the agent, and start it."""
        self.agent.daemon.kill()
        self.agent.start()
        self.agent.wait_ready()

    def written(self, text: str) -> None:
        """Wait until a text is in the snapshot."""
        path = self.state / "snapshot"
        eventually(lambda: _assert(text.encode() in path.read_bytes()), context=self.logs)

    def logs(self) -> str:
        """Return the ends of the logs."""
        daemons = [self.agent.daemon, *(router.daemon for router in self.routers.values())]
        return "\n".join(daemon.tail() for daemon in daemons)


def _assert(value: bool) -> None:
    assert value


@pytest.fixture
def it(need_router: NeedRouter, tmp_path: Path) -> Iterator[Running]:
    for kind in ROUTERS:
        need_router(kind)
    with linked_namespaces() as link, contextlib.ExitStack() as stack:
        kinds = Kinds(CORE_KINDS, (FRR_CONFIGURATION, FRRK8S_CONFIGURATION), METALLB_KINDS)
        server = stack.enter_context(BackgroundApiServer(kinds))
        server.put(*GOOD)
        relay = stack.enter_context(BackgroundRelay(server.port, link.left))
        link.left.add_address(f"{OURS}/24")
        state = tmp_path / "state"
        agent = Agent(
            link.left,
            tmp_path / "agent",
            kubeconfig=server.kubeconfig(tmp_path / "kubeconfig"),
            arguments=(
                *("--disable-cell", "cilium"),
                *("--enable-cell", "frrk8s", "--enable-cell", "metallb"),
                *("--state-directory", str(state), "--snapshot-file", str(state / "snapshot")),
                *("--snapshot-after-seconds", "1", "--status-report=false"),
            ),
        )
        passwords = dict.fromkeys(ROUTERS.values()) | {GUARDED: WORD}
        kinds_of = {address: kind for kind, address in ROUTERS.items()} | {GUARDED: "bird"}
        routers: dict[str, Router] = {}
        for address, kind in kinds_of.items():
            link.right.add_address(f"{address}/24")
            settings = PeerSettings(OURS, ASN, port=PORT, password=passwords[address])
            routers[address] = KINDS[kind](
                RouterSettings(PEER_ASN, address, (address,), (settings,), PORT),
                link.right,
                tmp_path / address,
            )
        parts: list[Agent | Router] = [*routers.values(), agent]
        for part in parts:
            part.start()
            stack.callback(part.stop)
        for part in parts:
            part.wait_ready()
        yield Running(agent, server, relay, routers, state)


def test_the_last_good_state_stays_over_kills_also_without_an_api_server(it: Running) -> None:
    it.holds({**HELD, GUARDED: set()})
    tokens, settings = it.tokens(*HELD, GUARDED), it.settings()

    # One conflict of FRRConfigurations, and one of MetalLB's objects.
    it.server.put(own("opponent", to=(ROUTERS["bird"],), holdTime="9s", keepaliveTime="3s"))
    it.server.put(pool("wide", "198.18.30.0/23"), peer("other", "10.96.1.19", password=WORD))
    it.reports("hold time differs", "pools overlap")
    # Nothing new counts, but for Services of the pools.
    it.server.put(own("more", MORE, to=OF_FRRK8S))
    it.server.put(service("new", "198.18.31.7"), endpoints("new"))
    it.server.put(service("api", "198.18.30.6"), endpoints("api"))
    held = {**HELD, OF_METALLB: {WEB, API}, GUARDED: set[str]()}
    it.holds(held)
    assert (it.tokens(*HELD, GUARDED), it.settings()) == (tokens, settings)

    it.restart()
    it.holds(held)
    assert it.settings() == settings
    it.reports("hold time differs", "pools overlap")

    it.written("opponent")
    it.relay.cut()
    it.restart()
    it.holds({address: prefixes for address, prefixes in held.items() if address != GUARDED})
    it.reports("hold time differs", "pools overlap")
    assert it.settings() == settings
    waiting = next(one for one in it.agent.peers().values() if one["address"] == GUARDED)
    assert waiting["state"] != "Established"
    assert "password" in waiting["reason"], waiting
    for path in it.state.iterdir():
        assert WORD.encode() not in path.read_bytes(), path

    tokens = it.tokens()
    it.relay.open()
    it.holds(held)
    # Either conflict ends with one of its sides, and the other one is not touched.
    it.server.delete("FRRConfiguration", "opponent", NAMESPACE)
    both = {OWN, MORE}
    it.holds({ROUTERS["bird"]: both, ROUTERS["gobgp"]: both, OF_METALLB: {WEB, API}})
    it.server.put(pool("wide", "198.18.31.0/24"))
    it.holds({ROUTERS["bird"]: both, ROUTERS["gobgp"]: both, OF_METALLB: {WEB, API, NEW}})
    it.server.delete("IPAddressPool", "wide", METALLB)
    it.holds({OF_METALLB: {WEB, API}})
    assert it.tokens() == tokens
