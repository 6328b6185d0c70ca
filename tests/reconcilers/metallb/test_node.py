"""MetalLB's objects on a node, round by round: what a change costs, and what stays meanwhile."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from reconcilers.metallb.stored_state import STORED_STATE
from resources.metallb.kinds import BGP_PEER
from tests.reconcilers.metallb.build import MetalLBNode
from tests.reconcilers.metallb.objects import advertisement, made, peer, pool

FRONT = pool("front", "198.18.30.0/24")
ADDRESS = "203.0.113.9"


def node(**labels: str) -> dict[str, Any]:
    address = {"type": "InternalIP", "address": "192.0.2.10"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1", "labels": labels},
        "status": {"addresses": [address]},
    }


def service(name: str, address: str, **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "shop", "labels": labels},
        "spec": {"type": "LoadBalancer"},
        "status": {"loadBalancer": {"ingress": [{"ip": address}]}},
    }


def endpoints(name: str, *, of: str = "", ready: bool = True) -> dict[str, Any]:
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": f"{name}-1",
            "namespace": "shop",
            "labels": {"kubernetes.io/service-name": of or name},
        },
        "endpoints": [{"addresses": ["10.1.0.4"], "conditions": {"ready": ready}}],
    }


def frr_configuration(name: str, neighbor: dict[str, Any], **router: Any) -> dict[str, Any]:  # noqa: ANN401
    routers = [{"asn": 64900, "neighbors": [{"address": ADDRESS, **neighbor}], **router}]
    return {
        "apiVersion": "frrk8s.metallb.io/v1beta1",
        "kind": "FRRConfiguration",
        "metadata": {"name": name, "namespace": "frr-k8s-system"},
        "spec": {"bgp": {"routers": routers}},
    }


@pytest.fixture
def full() -> MetalLBNode:
    """A node with fifty Services."""
    found = MetalLBNode()
    services = [
        value
        for i in range(50)
        for value in (service(f"s{i}", f"198.18.30.{i}"), endpoints(f"s{i}"))
    ]
    found.put(node(), peer("a"), FRONT, advertisement("x"), *services)
    assert len(found.routes()[ADDRESS]) == 50
    return found


class TestWork:
    def test_a_changed_endpoint_slice_costs_one_service(self, full: MetalLBNode) -> None:
        summary = full.put(endpoints("s7", ready=False))
        assert (summary.dialects, summary.objects, summary.routes) == ((), 1, 1)
        assert "198.18.30.7/32" not in full.routes()[ADDRESS]

    def test_a_slice_that_moves_costs_both_services(self, full: MetalLBNode) -> None:
        summary = full.put(endpoints("s7", of="s8"))
        assert (summary.objects, summary.routes) == (2, 1)
        assert "198.18.30.7/32" not in full.routes()[ADDRESS]

    def test_a_label_of_the_node_that_nothing_selects_costs_no_service(
        self, full: MetalLBNode
    ) -> None:
        summary = full.put(node(rack="1"))
        assert (summary.objects, summary.routes) == (0, 0)

    def test_a_label_that_excludes_the_node_withdraws_and_keeps_the_session(
        self, full: MetalLBNode
    ) -> None:
        full.put(node(**{"node.kubernetes.io/exclude-from-external-load-balancers": ""}))
        assert full.routes() == {ADDRESS: []}
        full.put(node())
        assert len(full.routes()[ADDRESS]) == 50

    def test_a_peer_that_selects_another_node_is_no_change(self, full: MetalLBNode) -> None:
        before = full.render()
        other = peer("b", "203.0.113.10", nodeSelectors=[{"matchLabels": {"rack": "9"}}])
        summary = full.put(other)
        assert (summary.objects, summary.routes) == (0, 0)
        assert full.render() == before

    def test_a_new_advertisement_adds_what_it_adds(self, full: MetalLBNode) -> None:
        full.put(advertisement("y", aggregationLength=24))
        assert "198.18.30.0/24" in full.routes()[ADDRESS]
        full.delete(advertisement("y"))
        assert len(full.routes()[ADDRESS]) == 50


def wrong_peer() -> dict[str, Any]:
    return made(BGP_PEER, "wrong", {"myASN": 0, "peerASN": 1, "peerAddress": "203.0.113.99"})


class TestOnConflict:
    def test_keep_stays_with_the_last_good_objects_while_services_come_and_go(self) -> None:
        found = MetalLBNode()
        found.put(node(), peer("a"), FRONT, advertisement("x"))
        found.put(service("s", "198.18.30.1"), endpoints("s"))
        found.put(wrong_peer(), peer("b", "203.0.113.10"))
        assert found.routes() == {ADDRESS: ["198.18.30.1/32"]}
        assert found.problems() == [("invalid", ["wrong"])]
        found.put(service("t", "198.18.30.2"), endpoints("t"))
        found.delete(service("s", ""))
        assert found.routes() == {ADDRESS: ["198.18.30.2/32"]}
        found.delete(wrong_peer())
        assert sorted(found.routes()) == ["203.0.113.10", ADDRESS]
        assert found.problems() == []

    def test_keep_knows_the_last_good_objects_after_a_restart(self) -> None:
        good = (node(), peer("a", password="hunter22"), FRONT, advertisement("x"))
        web = (service("s", "198.18.30.1"), endpoints("s"))
        first = MetalLBNode()
        first.put(*good, *web)
        memory = first.memory()
        assert memory is not None
        assert b"hunter22" not in memory
        second = MetalLBNode(memories={"metallb": memory})
        second.put(*good, *web, wrong_peer(), peer("b", "203.0.113.10"))
        assert second.routes() == {ADDRESS: ["198.18.30.1/32"]}
        assert second.problems() == [("invalid", ["wrong"])]
        second.delete(wrong_peer())
        assert sorted(second.routes()) == ["203.0.113.10", ADDRESS]
        without = MetalLBNode()
        without.put(*good, *web, wrong_peer())
        assert without.routes() == {}

    def test_what_changed_during_a_conflict_does_not_count_after_a_restart_either(self) -> None:
        web = (service("s", "198.18.30.1"), endpoints("s"))
        more = (service("t", "198.18.31.1"), endpoints("t"))
        other = frr_configuration("other", {"asn": 64950, "port": 1179})
        changed = (advertisement("x", communities=["1:2"]), pool("more", "198.18.31.0/24"))

        def advertised(of: MetalLBNode) -> list[tuple[str, list[str]]]:
            (instance,) = of.render()["instances"]
            (found,) = instance["peers"]
            return [(route["prefix"], route["communities"]) for route in found["advertise"]]

        first = MetalLBNode()
        first.put(node(), peer("a"), FRONT, advertisement("x"), *web, *more)
        good: list[tuple[str, list[str]]] = [("198.18.30.1/32", [])]
        assert advertised(first) == good
        first.put(other, *changed)
        assert advertised(first) == good
        of_metallb, of_frrk8s = first.memory(), first.memory("frrk8s")
        assert of_metallb is not None
        assert of_frrk8s is not None
        second = MetalLBNode(memories={"metallb": of_metallb, "frrk8s": of_frrk8s})
        second.put(node(), peer("a"), FRONT, *changed, *web, *more, other)
        assert advertised(second) == good
        # Services still come and go.
        second.delete(web[0])
        second.put(service("u", "198.18.30.2"), endpoints("u"))
        assert advertised(second) == [("198.18.30.2/32", [])]
        second.delete(other)
        assert advertised(second) == [("198.18.30.2/32", ["1:2"]), ("198.18.31.1/32", ["1:2"])]

    @pytest.mark.parametrize("mode", ["keep", "isolate"])
    def test_a_pool_that_is_not_in_effect_is_part_of_the_explanation(self, mode: str) -> None:
        found = MetalLBNode(mode)
        front = pool("front", "198.18.30.0/24", created="2026-01-01T00:00:00Z")
        found.put(node(), peer("a"), front, advertisement("x"))
        found.put(service("s", "198.18.31.1"), endpoints("s"))
        wide = pool("wide", "198.18.30.0/23", created="2026-01-02T00:00:00Z")

        def why() -> str:
            (group,) = [one for one in found.compiler.explainer().explain() if one]
            (answer,) = group
            assert answer.reason == "NoPool"
            return answer.message

        assert why() == "no pool has its address"
        found.put(wide)
        head = {"keep": "earlier objects are in effect", "isolate": "objects are not in effect"}[
            mode
        ]
        assert why().startswith(f"no pool has its address; {head}: pools overlap: ")
        found.delete(wide)
        assert why() == "no pool has its address"
        if mode == "keep":
            found.put(frr_configuration("other", {"asn": 64950, "port": 1179}))
            text = "earlier objects are in effect, as some are in conflict"
            assert why() == f"no pool has its address; {text}"

    def test_the_memory_changes_with_the_objects_in_effect_only(self) -> None:
        found = MetalLBNode()
        found.put(node(), peer("a"), FRONT, advertisement("x"))

        def memory() -> object:
            return STORED_STATE.of_state(found.compiler.states["metallb"])

        before = memory()
        found.put(service("s", "198.18.30.1"), endpoints("s"), node(other="label"), wrong_peer())
        assert memory() is before
        found.delete(wrong_peer())
        assert memory() is before
        found.put(advertisement("y"))
        assert memory() is not before

    def test_peers_that_were_deleted_do_not_come_back_with_a_restart(self) -> None:
        first = MetalLBNode()
        first.put(node(), peer("a"), FRONT, advertisement("x"))
        first.delete(peer("a"))
        memory = first.memory()
        assert memory is not None
        second = MetalLBNode(memories={"metallb": memory})
        second.put(node(), FRONT, advertisement("x"), wrong_peer())
        assert second.routes() == {}

    @pytest.mark.parametrize(
        ("mode", "held"),
        [
            ("clear", {ADDRESS: ["198.18.30.1/32"]}),
            ("isolate", {ADDRESS: ["198.18.30.1/32"], "203.0.113.10": ["198.18.30.1/32"]}),
        ],
    )
    def test_after_another_mode_the_last_state_without_problems_is_kept(
        self, mode: str, held: dict[str, list[str]]
    ) -> None:
        good = (node(), peer("a"), FRONT, advertisement("x"))
        web = (service("s", "198.18.30.1"), endpoints("s"))
        bad = (wrong_peer(), peer("b", "203.0.113.10"))
        first = MetalLBNode(mode)
        first.put(*good, *web)
        first.put(*bad)
        memory = first.memory()
        assert memory is not None
        second = MetalLBNode("keep", {"metallb": memory})
        second.put(*good, *web, *bad)
        assert second.routes() == held

    @pytest.mark.parametrize("octets", [b"", b"{", b"[[],[],[],[],[5]]", b"\xff"])
    def test_a_damaged_memory_is_an_error(self, octets: bytes) -> None:
        with pytest.raises(ValueError, match="understood"):
            STORED_STATE.restore(MetalLBNode().metallb, octets)

    def test_clear_ends_the_sessions_of_metallb_alone(self) -> None:
        found = MetalLBNode("clear")
        other = frr_configuration("own", {"address": "203.0.113.50", "asn": 64950})
        found.put(node(), peer("a"), FRONT, advertisement("x"), other)
        assert sorted(found.routes()) == ["203.0.113.50", ADDRESS]
        found.put(wrong_peer())
        assert list(found.routes()) == ["203.0.113.50"]

    def test_isolate_leaves_out_what_is_wrong_and_names_it(self) -> None:
        found = MetalLBNode("isolate")
        found.put(node(), peer("a"), FRONT, advertisement("x"), wrong_peer())
        found.put(pool("again", "198.18.30.0/25", created="2026-01-01T00:00:00Z"))
        found.put(service("s", "198.18.30.200"), endpoints("s"))
        assert found.routes() == {ADDRESS: ["198.18.30.200/32"]}
        assert found.problems() == [("invalid", ["wrong"]), ("conflict", ["again", "front"])]


class TestWithFrrConfigurations:
    allowed: ClassVar = {"mode": "all"}

    def test_a_conflict_with_a_peer_ends_when_either_side_goes(self) -> None:
        found = MetalLBNode()
        found.put(node(), peer("a"), FRONT, advertisement("x"))
        opponent = frr_configuration("x", {"asn": 64950, "port": 1179})
        found.put(opponent)
        assert found.problems() == [("conflict", ["a", "x"])]
        assert list(found.routes()) == [ADDRESS]
        found.delete(opponent)
        assert found.problems() == []

    def preferring(self, value: int) -> dict[str, Any]:
        prefixes = ["198.18.30.1/32"]
        advertise = {
            "allowed": self.allowed,
            "withLocalPref": [{"localPref": value, "prefixes": prefixes}],
        }
        neighbor = {"asn": 64950, "toAdvertise": advertise}
        return frr_configuration("pref", neighbor, prefixes=prefixes)

    def test_a_service_may_contradict_a_configured_local_preference(self) -> None:
        found = MetalLBNode()
        found.put(node(), peer("a"), FRONT, advertisement("x", localPref=100), self.preferring(200))
        assert found.problems() == []
        found.put(service("s", "198.18.30.1"), endpoints("s"))
        assert found.problems() == [("conflict", ["x", "pref"])]
        [instance] = found.render()["instances"]
        [route] = instance["peers"][0]["advertise"]
        assert route["localPreference"] == 200
        found.put(endpoints("s", ready=False))
        assert found.problems() == []
        found.put(endpoints("s"), self.preferring(100))
        assert found.problems() == []

    @pytest.mark.parametrize("older", ["advertisement", "configuration"])
    def test_isolate_keeps_the_older_preference(self, older: str) -> None:
        found = MetalLBNode("isolate")
        first, second = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
        configured = self.preferring(200)
        is_older = older == "configuration"
        configured["metadata"]["creationTimestamp"] = first if is_older else second
        mine = advertisement("x", localPref=100, created=second if is_older else first)
        found.put(node(), peer("a", created=first), FRONT, mine, configured)
        found.put(service("s", "198.18.30.1"), endpoints("s"))
        assert found.problems() == [("conflict", ["x", "pref"])]
        [instance] = found.render()["instances"]
        [route] = instance["peers"][0]["advertise"]
        assert route["localPreference"] == (200 if is_older else 100)

    @pytest.mark.parametrize("count", [3, 20])
    def test_isolate_keeps_an_older_preference_beside_any_number_of_advertisements(
        self, count: int
    ) -> None:
        found = MetalLBNode("isolate")
        configured = self.preferring(100)
        configured["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
        younger = [
            advertisement(f"a{i}", localPref=200 + i, created=f"2026-01-02T00:00:{i:02}Z")
            for i in range(count)
        ]
        found.put(node(), peer("a", created="2026-01-01T00:00:00Z"), FRONT, configured, *younger)
        found.put(service("s", "198.18.30.1"), endpoints("s"))
        [instance] = found.render()["instances"]
        [route] = instance["peers"][0]["advertise"]
        assert route["localPreference"] == 100
        named = {name for _, names in found.problems() for name in names}
        assert named == {"pref", *(f"a{i}" for i in range(count))}

    def test_objects_written_by_metallbs_speaker_are_ignored(self) -> None:
        found = MetalLBNode()
        written = frr_configuration("metallb-n1", {"asn": 64999})
        found.put(node(), written)
        assert found.problems() == []
        assert found.routes() == {ADDRESS: []}
        found.put(peer("a"))
        assert found.problems() == [("unsupported", ["metallb-n1"])]
        [instance] = found.render()["instances"]
        assert instance["peers"][0]["peerASN"] == 64950


class TestRendered:
    def test_a_password_is_where_the_peer_has_it(self) -> None:
        found = MetalLBNode()
        found.put(node(), peer("a", password="hunter22"), FRONT, advertisement("x"))
        [configuration] = found.rendered()
        [router] = configuration["spec"]["bgp"]["routers"]
        assert router["neighbors"][0]["password"] == "hunter22"
        assert "hunter22" not in str(found.render())

    def test_a_service_has_a_status_with_its_peers(self) -> None:
        found = MetalLBNode()
        found.put(node(), peer("a"), peer("six", "2001:db8::9"), FRONT, advertisement("x"))
        found.put(service("s", "198.18.30.1"), endpoints("s"))
        [_, status] = found.rendered()
        assert status["status"] == {
            "node": "n1",
            "serviceName": "s",
            "serviceNamespace": "shop",
            "peers": ["a"],
        }
