"""An agent and real routers: what BIRD, FRR and GoBGP hold is what ``waggle render`` promises.

One lab a kind of router serves the tests that leave it as they found it; what ends a session or an
agent has a lab of its own.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interop.conftest import NeedRouter
from tests.interop.transport_lab import ASN, OURS, PORT, Lab, router_for, running_lab
from tests.support.routers import ALL_ROUND
from tests.support.run_delay import seconds_to_end
from tests.support.wait import eventually, settles

pytestmark = [pytest.mark.interop, pytest.mark.netns, pytest.mark.program]

STOP_SECONDS = 2.0
# GoBGP waits for five seconds and more before it connects.
QUICK_TO_CONNECT = [kind for kind in ALL_ROUND if kind != "gobgp"]
PASSWORD = "only-the-two-of-us-know"


@pytest.fixture(scope="module", params=ALL_ROUND)
def lab(
    request: pytest.FixtureRequest,
    need_router: NeedRouter,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Lab]:
    """Four sessions with routers of one kind, all Established."""
    kind: str = request.param
    need_router(kind)
    with running_lab(kind, tmp_path_factory.mktemp(kind)) as made:
        eventually(made.assert_established, context=made.logs)
        yield made


def service(name: str, *ips: str, label: str = "true") -> dict[str, Any]:
    """Build a LoadBalancer Service."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "shop", "labels": {"expose": label}},
        "spec": {"type": "LoadBalancer", "clusterIP": "10.96.0.77", "clusterIPs": ["10.96.0.77"]},
        "status": {"loadBalancer": {"ingress": [{"ip": ip} for ip in ips]}},
    }


def theirs_of(lab: Lab, name: str) -> list[dict[str, Any]]:
    """Return what a router announces of its own: FRR also sends our routes back to us."""
    return [
        item
        for item in lab.agent.routes("received", peer=name)
        if str(ASN) not in item.get("asPath", "").split()
    ]


def test_sessions_come_up_over_both_transports_as_ebgp_and_ibgp(lab: Lab) -> None:
    lab.assert_established()


def test_routers_hold_exactly_the_routes_of_render(lab: Lab) -> None:
    lab.keeps_promises()
    # The manifests have something of everything, so that nothing is kept by being empty.
    routes = lab.held("ibgp-ipv4")
    assert routes["198.51.100.10/32"].communities == {"65001:80", "65001:443", "65535:65281"}
    assert routes["198.51.100.10/32"].large_communities == {"65001:100:4294967295"}
    assert routes["198.51.100.10/32"].local_preference == 250
    assert routes["10.244.7.0/24"].local_preference == 100
    assert "fd00:10:244:7::/64" in routes


def test_each_prefix_has_a_next_hop_at_the_node(lab: Lab) -> None:
    lab.keeps_promises()
    for name in lab.routers:
        session = lab.own(name)[0]
        for prefix, route in lab.held(name).items():
            # IPv4 prefixes keep an IPv6 session's address (RFC 8950); IPv6 prefixes over an IPv4
            # session have the node's IPv6 address, which routers can use.
            expected = OURS[1] if ":" in prefix else session
            assert route.next_hop == expected, (name, prefix)


def test_ebgp_peers_see_our_as_and_ibgp_peers_an_empty_path(lab: Lab) -> None:
    lab.keeps_promises()
    for name in lab.routers:
        paths = {route.as_path for route in lab.held(name).values()}
        assert paths == ({(ASN,)} if name.startswith("ebgp") else {()}), name


def test_a_service_is_added_changed_and_deleted_without_a_flap(lab: Lab) -> None:
    before = lab.session_tokens()
    lab.agent.write_objects("extra.json", service("extra", "198.51.100.77", "2001:db8:100::77"))
    lab.keeps_promises()
    assert {"198.51.100.77/32", "2001:db8:100::77/128"} <= set(lab.held("ebgp-ipv6"))
    # Another address of one family, the other one stays.
    lab.agent.write_objects("extra.json", service("extra", "198.51.100.78", "2001:db8:100::77"))
    lab.keeps_promises()
    assert "198.51.100.77/32" not in lab.held("ebgp-ipv4")
    assert "198.51.100.78/32" in lab.held("ebgp-ipv4")
    # The same addresses with other attributes.
    lab.agent.write_objects(
        "extra.json", service("extra", "198.51.100.78", "2001:db8:100::77", label="plain")
    )
    lab.keeps_promises()
    assert lab.held("ibgp-ipv6")["198.51.100.78/32"].communities == frozenset()
    lab.agent.remove("extra.json")
    lab.keeps_promises()
    assert "198.51.100.78/32" not in lab.held("ebgp-ipv4")
    assert lab.session_tokens() == before


def test_changed_attributes_replace_all_routes_without_a_flap(lab: Lab) -> None:
    before = lab.session_tokens()
    text = (lab.agent.manifests / "services.yaml").read_text()
    changed = text.replace("localPreference: 250", "localPreference: 50")
    lab.agent.write("services.yaml", changed.replace('"65001:80"', '"65001:81"'))
    lab.keeps_promises()
    assert lab.held("ibgp-ipv4")["198.51.100.10/32"].local_preference == 50
    assert "65001:81" in lab.held("ebgp-ipv6")["2001:db8:100::10/128"].communities
    lab.agent.write("services.yaml", text)
    lab.keeps_promises()
    assert lab.session_tokens() == before


def test_routes_of_the_routers_show_in_routes_received(lab: Lab) -> None:
    announced = {"203.0.113.0/24", "2001:db8:300::/48"}
    for router in lab.routers.values():
        router.announce(*announced)

    def received() -> None:
        for name, router in lab.routers.items():
            routes = {item["prefix"]: item for item in theirs_of(lab, name)}
            assert set(routes) == announced, name
            external = router.settings.asn != ASN
            for prefix, route in routes.items():
                assert route.get("asPath", "") == (str(router.settings.asn) if external else "")
                assert route["peer"] == name
                if (":" in prefix) == name.endswith("ipv6"):
                    theirs = router.settings.address_towards(router.peer())
                    assert route["nextHop"] == theirs, (name, prefix)

    eventually(received, context=lab.logs)
    # The command line shows the same.
    shown = lab.agent.command("routes", "received", "ipv4", "--peer", "ebgp-ipv4")["items"]
    assert "203.0.113.0/24" in [item["prefix"] for item in shown]
    for router in lab.routers.values():
        router.withdraw(*announced)

    def withdrawn() -> None:
        assert [theirs_of(lab, name) for name in lab.routers] == [[]] * len(lab.routers)

    eventually(withdrawn, context=lab.logs)
    lab.assert_established()


def test_a_router_that_restarts_gets_a_session_and_the_whole_table(lab: Lab) -> None:
    lab.routers["ebgp-ipv4"].restart()
    eventually(lab.assert_established, context=lab.logs)
    lab.keeps_promises()
    assert lab.agent.peers()["ebgp-ipv4"]["flaps"] >= 1


def test_a_router_that_is_down_has_a_reason_in_peers(lab: Lab) -> None:
    router = lab.routers["ebgp-ipv6"]
    router.stop()

    def down() -> None:
        items = lab.agent.command("peers", "--peer", "ebgp-ipv6")["items"]
        assert items[0]["state"] != "Established"
        assert items[0]["reason"]
        # A dash in the table: there are no counts then.
        assert "received" not in items[0]

    eventually(down, context=lab.logs)
    router.start()
    router.wait_ready()
    eventually(lab.assert_established, context=lab.logs)
    lab.keeps_promises()


@pytest.mark.parametrize("kind", ALL_ROUND)
def test_a_wrong_as_is_a_reason_in_peers_and_leaves_other_sessions_alone(
    kind: str, need_router: NeedRouter, tmp_path: Path
) -> None:
    need_router(kind)
    with running_lab(kind, tmp_path, "ibgp-ipv4") as lab:
        stranger = router_for(kind, "ebgp-ipv4", lab.link, tmp_path, asn=65999)
        with stranger:
            eventually(lab.assert_established, context=lab.logs)
            before = lab.session_tokens()

            def refused() -> None:
                item = lab.agent.command("peers", "--peer", "ebgp-ipv4")["items"][0]
                assert item["state"] != "Established"
                # Either side may be the first to refuse.
                reason = f"{item['reason']} {item.get('lastError', '')}"
                assert "65999" in reason or "AS" in reason, reason

            eventually(refused, context=lambda: lab.logs() + stranger.daemon.tail())
            assert lab.session_tokens() == before


@pytest.mark.parametrize("kind", ALL_ROUND)
def test_f20_sigterm_closes_sessions_with_cease_and_exits_0_within_2_seconds(
    kind: str, need_router: NeedRouter, tmp_path: Path
) -> None:
    need_router(kind)
    with running_lab(kind, tmp_path, "ebgp-ipv4", "ibgp-ipv6") as lab:
        eventually(lab.assert_established, context=lab.logs)
        lab.keeps_promises()
        lab.agent.daemon.signal(signal.SIGTERM)
        took = seconds_to_end(lab.agent.daemon.pid, within=60)
        assert lab.agent.daemon.wait(60) == 0, lab.logs()
        assert took < STOP_SECONDS

        def gone() -> None:
            for router in lab.routers.values():
                (peer,) = router.peers().values()
                assert not peer.established
                assert router.all_routes() == {}

        eventually(gone, context=lab.logs)
        for router in lab.routers.values():
            assert router.received_cease(), router.daemon.tail()


@pytest.mark.parametrize("kind", ALL_ROUND)
def test_a_session_waits_for_its_secret_and_is_then_protected(
    kind: str, need_router: NeedRouter, tmp_path: Path
) -> None:
    need_router(kind)
    with running_lab(kind, tmp_path, "ebgp-ipv4", password=PASSWORD) as lab:
        text = (lab.agent.manifests / "bgp.yaml").read_text()
        transport = "  transport:\n    peerPort: 1790\n"
        assert transport in text
        lab.agent.write("bgp.yaml", text.replace(transport, f"  authSecretRef: bgp\n{transport}"))

        def waiting() -> None:
            item = lab.agent.peers()["ebgp-ipv4"]
            assert item["state"] != "Established"
            assert "Secret" in item["reason"], item["reason"]

        eventually(waiting, context=lab.logs)
        lab.agent.write_objects(
            "secret.json",
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "bgp", "namespace": "kube-system"},
                "stringData": {"password": PASSWORD},
            },
        )
        eventually(lab.assert_established, context=lab.logs)
        lab.keeps_promises()
        assert PASSWORD not in lab.agent.daemon.tail()
        assert PASSWORD not in str(lab.agent.command("peers"))


@pytest.mark.parametrize("kind", QUICK_TO_CONNECT)
def test_an_instance_with_a_local_port_lets_the_router_connect(
    kind: str, need_router: NeedRouter, tmp_path: Path
) -> None:
    need_router(kind)
    with running_lab(kind, tmp_path, "ebgp-ipv6", passive=False) as lab:
        text = (lab.agent.manifests / "bgp.yaml").read_text()
        changed = text.replace("localASN: 65001", f"localASN: 65001\n      localPort: {PORT}")
        # No router listens where the agent connects, so that the router has to connect.
        changed = changed.replace("peerPort: 1790", "peerPort: 1799")
        lab.agent.write("bgp.yaml", changed)

        def up() -> None:
            item = lab.agent.peers()["ebgp-ipv6"]
            assert item["state"] == "Established", item.get("reason")

        settles(up, stays=0.3, context=lab.logs)
        lab.keeps_promises()
