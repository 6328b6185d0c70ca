"""What a node writes about itself: sessions, configuration, and the BGPPeers of each Service."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from reconcilers.apply.to_speaker import instance_config, peer_config
from reconcilers.bfd_session import BfdSession
from reconcilers.dialect import NodeContext, NodeObject, WrittenObjects
from reconcilers.frrk8s.configuration_text import desired_text
from reconcilers.frrk8s.node_objects import peer_name
from reconcilers.frrk8s.options import Frrk8sClusterOptions
from reconcilers.intent.unsent_routes import write_unsent_routes
from reconcilers.metallb.dialect import MetalLBDialect
from reconcilers.metallb.generated import merging_options
from reconcilers.model import (
    Instance,
    Peer,
    PendingDialect,
    PrefixRule,
    ReconcileStatus,
    UnsentRoutes,
)
from reconcilers.report.node_objects.compute_rows import NodeObjectRows
from reconcilers.sliced_work import finish
from resources.frrk8s.status import PEER_LABEL, VRF_LABEL
from speaker.api import PeerStatus
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST
from tests.cells.stand_in_speaker import StandInSpeaker
from tests.reconcilers.frrk8s.build import configuration, neighbor, router
from tests.reconcilers.metallb.build import NODE, MetalLBNode
from tests.reconcilers.metallb.objects import advertisement, peer, pool
from tests.support.dialects import changed, extension

MARKED = "s3cret-of-an-object"
THIS_NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}
BASE = (
    THIS_NODE,
    peer("tor-a", "203.0.113.9"),
    peer("tor-b", "203.0.113.10"),
    peer("tor-6", "2001:db8::a"),
    pool("front", "198.18.30.0/24"),
    advertisement("plain"),
)


class Speaker(StandInSpeaker):
    """A speaker that holds what it is given; the states of sessions are a test's."""

    def __init__(self) -> None:
        super().__init__()
        self.states: dict[str, str] = {}
        self.retry_in: float | None = 5.0

    def peers(self) -> list[PeerStatus]:
        return [
            replace(one, state=self.states.get(one.name, one.state), retry_in=self.retry_in)
            for one in super().peers()
        ]


class Node(MetalLBNode):
    """A node with the objects that it writes about itself."""

    def __init__(self, on_conflict: str = "keep", **options: Any) -> None:  # noqa: ANN401
        super().__init__(on_conflict, **options)
        self.speaker = Speaker()
        self.rows = NodeObjectRows(self.db, self.intent, self.dialects, NODE, self.speaker)

    def apply(self) -> None:
        """Have the speaker hold what is desired."""
        snapshot = self.db.snapshot()
        for row in self.intent.instances.all(snapshot):
            self.speaker.set_instance(instance_config(row))
        for peer_row in self.intent.peers.all(snapshot):
            config = peer_config(peer_row, 64900, lambda _: MARKED.encode())
            self.speaker.set_peer(peer_row.instance, config)

    def run(self) -> dict[str, list[NodeObject]]:
        """Compute; returns the objects by kind."""
        finish(self.rows.compute())
        assert self.rows.failures == {}
        found: dict[str, list[NodeObject]] = {}
        for row in self.rows.present.values():
            found.setdefault(row.kind, []).append(row)
        return found

    def services(self) -> dict[str, tuple[str, ...]]:
        """Return the BGPPeers of each Service."""
        rows = self.run().get("ServiceBGPStatus", [])
        return {row.status.service_name: row.status.peers for row in rows}

    def sessions(self) -> dict[tuple[str, str], str]:
        """Return the state of each session, by VRF and peer."""
        rows = self.run()["BGPSessionState"]
        return {(row.status.vrf, row.status.peer): row.status.bgp_status for row in rows}

    def state(self) -> Any:  # noqa: ANN401
        """Return the status of the FRRNodeState."""
        (row,) = self.run()["FRRNodeState"]
        return row.status

    def validity(self) -> tuple[str, str]:
        """Return result and summary of the ConfigurationState."""
        (row,) = self.run()["ConfigurationState"]
        return row.status.result, row.status.error_summary


def service(name: str, *addresses: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Make a Service, and its EndpointSlice with a ready endpoint."""
    found = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"type": "LoadBalancer"},
        "status": {"loadBalancer": {"ingress": [{"ip": address} for address in addresses]}},
    }
    labels = {"kubernetes.io/service-name": name}
    endpoint = {"addresses": ["10.1.0.4"], "nodeName": NODE, "conditions": {"ready": True}}
    slices = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": f"{name}-1", "namespace": "shop", "labels": labels},
        "endpoints": [endpoint],
    }
    return found, slices


def test_the_peers_of_a_service_have_a_session_that_carries_it() -> None:
    node = Node()
    node.put(*BASE, *service("web", "198.18.30.5"), *service("idle", "198.18.99.5"))
    assert node.services() == {"web": ("tor-a", "tor-b")}
    (row,) = node.run()["ServiceBGPStatus"]
    assert row.status.node == NODE
    assert dict(row.labels) == {
        "metallb.io/service-name": "web",
        "metallb.io/service-namespace": "shop",
    }


def test_a_peer_whose_session_cannot_carry_the_family_is_not_named() -> None:
    node = Node()
    node.put(*BASE, *service("web", "198.18.30.5"))
    assert node.services() == {"web": ("tor-a", "tor-b")}
    (row, *_) = (
        one
        for one in node.intent.peers.all(node.db.snapshot())
        if any(ref.name == "tor-a" for ref in one.origins)
    )
    unsent = UnsentRoutes(row.instance, row.name, IPV4_UNICAST, "no next hop")
    write_unsent_routes(node.db, node.intent, [unsent])
    assert node.services() == {"web": ("tor-b",)}
    # One route that does not fit a message is not the whole family.
    write_unsent_routes(node.db, node.intent, [replace(unsent, all_routes=False)])
    assert node.services() == {"web": ("tor-a", "tor-b")}
    write_unsent_routes(node.db, node.intent, [replace(unsent, family=IPV6_UNICAST)])
    assert node.services() == {"web": ("tor-a", "tor-b")}


def test_the_peers_of_services_follow_services_advertisements_and_peers() -> None:
    node = Node()
    shared = (*service("a", "198.18.30.7"), *service("b", "198.18.30.7"))
    node.put(*BASE, *shared, *service("web", "198.18.30.5"))
    assert node.services() == dict.fromkeys(["a", "b", "web"], ("tor-a", "tor-b"))
    # A Service of several that have one prefix goes away, the prefix stays.
    node.delete(shared[0])
    assert node.services() == dict.fromkeys(["b", "web"], ("tor-a", "tor-b"))
    node.put(advertisement("plain", peers=["tor-b"]))
    assert node.services() == dict.fromkeys(["b", "web"], ("tor-b",))
    node.delete(BASE[2])
    assert node.services() == {}


def test_services_that_share_an_address_have_the_peers_of_the_prefix() -> None:
    node = Node()
    blue, red = service("blue", "198.18.30.7"), service("red", "198.18.30.7")
    red[0]["metadata"]["labels"] = {"team": "red"}
    selector = [{"matchLabels": {"team": "red"}}]
    node.put(
        *BASE,
        *blue,
        *red,
        advertisement("plain", peers=["tor-a"]),
        advertisement("own", peers=["tor-b"], serviceSelectors=selector),
    )
    assert node.services() == dict.fromkeys(["blue", "red"], ("tor-a", "tor-b"))
    # The other Service of the prefix follows, although no route of its own has changed.
    node.delete(red[0])
    assert node.services() == {"blue": ("tor-a",)}
    node.put(red[0])
    assert node.services() == dict.fromkeys(["blue", "red"], ("tor-a", "tor-b"))


def test_without_statuses_of_services_there_is_none() -> None:
    node = Node(service_statuses=False)
    node.put(*BASE, *service("web", "198.18.30.5"))
    assert node.services() == {}
    assert node.validity() == ("Valid", "")


def test_a_change_of_one_service_computes_that_one(monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[str] = []
    usual = extension(MetalLBDialect, WrittenObjects).of_origin

    def counted(dialect: Any, snapshot: Any, context: Any, origin: Any) -> Any:  # noqa: ANN401
        computed.append(origin.name)
        return usual(dialect, snapshot, context, origin)

    extensions = changed(MetalLBDialect, WrittenObjects, of_origin=counted)
    monkeypatch.setattr(MetalLBDialect, "extensions", extensions)
    node = Node()
    node.put(*BASE, *service("web", "198.18.30.5"), *service("db", "198.18.30.6"))
    node.run()
    node.rows.take()
    computed.clear()
    node.put(service("db", "198.18.30.8")[0])
    node.run()
    assert computed == ["db"]
    # The peers are the same as before: nothing has changed.
    assert node.rows.take() == {}


def test_a_dialect_that_fails_keeps_its_last_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = extension(MetalLBDialect, WrittenObjects).of_node
    broken = False

    def fails(*arguments: Any) -> Any:  # noqa: ANN401
        if broken:
            raise KeyError("a bug in a dialect")
        return usual(*arguments)

    extensions = changed(MetalLBDialect, WrittenObjects, of_node=fails)
    monkeypatch.setattr(MetalLBDialect, "extensions", extensions)
    node = Node()
    node.put(*BASE, *service("web", "198.18.30.5"))
    before = node.run()
    broken = True
    node.put(peer("tor-c", "203.0.113.11"))
    finish(node.rows.compute())
    assert str(node.rows.failures["metallb"]) == "'a bug in a dialect'"
    kinds = {row.kind: row for row in node.rows.present.values()}
    assert kinds["ConfigurationState"] == before["ConfigurationState"][0]
    assert sum(row.kind == "BGPSessionState" for row in node.rows.present.values()) == 4


def test_stored_objects_are_not_known_before_a_dialect_is_read_and_computed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(*_: Any) -> Any:  # noqa: ANN401
        raise KeyError("a bug in a dialect")

    extensions = changed(MetalLBDialect, WrittenObjects, of_node=fails)
    monkeypatch.setattr(MetalLBDialect, "extensions", extensions)
    node = Node()
    node.put(*BASE)
    pending = node.intent.pending_dialects
    with node.db.write(pending) as txn:
        pending.upsert(txn, PendingDialect("frrk8s", ("frrconfigurations",)))
    finish(node.rows.compute())
    assert node.rows.computed == set()
    assert list(node.rows.failures) == ["metallb"]
    with node.db.write(pending) as txn:
        pending.delete_all(txn)
    finish(node.rows.compute())
    assert node.rows.computed == {"frrk8s"}


def test_every_session_has_a_state_with_the_labels_of_the_api() -> None:
    node = Node()
    red = router(neighbor(address="2001:db8::7"), vrf="red")
    node.put(*BASE, configuration("x", {"bgp": {"routers": [red]}}))
    six = "2001-0db8-0000-0000-0000-0000-0000-000a"
    seven = "2001-0db8-0000-0000-0000-0000-0000-0007"
    assert node.sessions() == dict.fromkeys(
        [("", "203.0.113.9"), ("", "203.0.113.10"), ("", six), ("red", seven)], "Idle"
    )
    labels = {
        (row.labels[PEER_LABEL], row.labels[VRF_LABEL]) for row in node.run()["BGPSessionState"]
    }
    assert (seven, "red") in labels
    assert ("203.0.113.9", "") in labels
    assert {row.status.bfd_status for row in node.run()["BGPSessionState"]} == {"N/A"}
    node.delete(BASE[1])
    assert ("", "203.0.113.9") not in node.sessions()


@pytest.mark.parametrize(
    ("state", "status"),
    [
        ("Up", "Up"),
        ("Down", "Down"),
        ("Init", "Down"),
        ("AdminDown", "Down"),
        ("Unknown", "Unknown"),
    ],
)
def test_the_state_of_a_bfd_session_in_the_words_of_the_api(state: str, status: str) -> None:
    node = Node()
    node.put(*BASE)
    (peer, *_) = node.intent.peers.all(node.db.snapshot())
    table = node.intent.bfd_sessions
    node.run()
    with node.db.write(table) as txn:
        table.upsert(txn, BfdSession(instance=peer.instance, peer=peer.name, state=state))
    found = {row.status.peer: row.status.bfd_status for row in node.run()["BGPSessionState"]}
    assert found.pop(peer_name(peer)) == status
    assert set(found.values()) == {"N/A"}


def test_the_states_that_a_session_passes_in_each_attempt_are_one() -> None:
    node = Node()
    node.put(*BASE)
    node.apply()
    assert set(node.sessions().values()) == {"Established"}
    names = [one.name for one in node.speaker.peers()]
    node.rows.take()
    for state in ("Idle", "Connect", "Active", "OpenSent", "OpenConfirm"):
        node.speaker.states = dict.fromkeys(names, state)
        assert set(node.sessions().values()) == {"Active"}
    node.speaker.retry_in = None
    node.speaker.states = dict.fromkeys(names, "Idle")
    assert set(node.sessions().values()) == {"Idle"}


def test_desired_and_running_configuration_are_equal_once_applied_and_have_no_password() -> None:
    node = Node()
    own = neighbor(
        address="203.0.113.20",
        password=MARKED,
        toReceive={
            "allowed": {"mode": "filtered", "prefixes": [{"prefix": "10.0.0.0/8", "le": 24}]}
        },
        toAdvertise={"nextHop": {"ipv4": "192.0.2.9"}},
        enableGracefulRestart=True,
    )
    routers = [router(own, prefixes=["192.0.2.0/24"], id="192.0.2.1")]
    node.put(*BASE, configuration("x", {"bgp": {"routers": routers}}))
    before = node.state()
    assert before.running_config == ""
    assert before.last_conversion_result == before.last_reload_result == "success"
    node.apply()
    status = node.state()
    assert status.running_config == status.desired_config == before.desired_config
    lines = status.desired_config.splitlines()
    assert lines[:2] == ["router bgp 64900", " bgp router-id 192.0.2.1"]
    start = lines.index(" neighbor 203.0.113.20 remote-as 64950")
    assert lines[start + 1 : start + 9] == [
        " neighbor 203.0.113.20 port 179",
        " neighbor 203.0.113.20 timers 60 180",
        " neighbor 203.0.113.20 timers connect 60",
        " neighbor 203.0.113.20 graceful-restart",
        " ! neighbor 203.0.113.20: password set",
        " ! neighbor 203.0.113.20: restart time 120",
        " ! neighbor 203.0.113.20: next hop 192.0.2.9",
        " ! neighbor 203.0.113.20: accept 10.0.0.0/8 le 24",
    ]
    # The lines that FRR-k8s's end-to-end tests and scripts look for.
    at = lines.index(" address-family ipv4 unicast")
    assert lines[at + 1] == "  network 192.0.2.0/24"
    assert "  neighbor 203.0.113.20 activate" in lines[at:]
    assert lines[-2:] == [" exit-address-family", "exit"]
    assert MARKED not in repr(node.rows.present)


def test_a_conflict_is_the_result_of_the_conversion_and_what_is_in_force_stays() -> None:
    node = Node()
    node.put(*BASE)
    node.apply()
    config = node.state().desired_config
    other = router(neighbor(port=1790), asn=64900)
    node.put(configuration("x", {"bgp": {"routers": [other]}}))
    status = node.state()
    assert status.last_conversion_result.startswith("failed: ")
    assert "BGPPeer/metallb-system/tor-a" in status.last_conversion_result
    assert "port" in status.last_conversion_result
    assert status.desired_config == config
    # The BGPPeer has a say in it.
    result, summary = node.validity()
    assert result == "Invalid"
    assert "FRRConfiguration/frr-k8s-system/x" in summary


def test_what_cannot_be_applied_is_the_result_of_the_reload() -> None:
    node = Node()
    node.put(*BASE)
    (instance,) = node.intent.instances.all(node.db.snapshot())
    table = node.intent.reconcile_statuses
    row = ReconcileStatus("peer", f"{instance.name}/tor", "it is refused")
    with node.db.write(table) as txn:
        table.upsert(txn, row)
    assert node.state().last_reload_result == f"{instance.name}/tor: it is refused"


def test_a_configuration_is_valid_until_an_object_of_this_node_is_not() -> None:
    node = Node()
    node.put(*BASE)
    assert node.validity() == ("Valid", "")
    elsewhere = [{"matchLabels": {"rack": "elsewhere"}}]
    node.put(peer("wrong", "203.0.113.99", myASN=0, nodeSelectors=elsewhere))
    assert node.validity() == ("Valid", "")
    node.put(peer("wrong", "203.0.113.99", myASN=0))
    result, summary = node.validity()
    assert result == "Invalid"
    assert summary.startswith("BGPPeer/metallb-system/wrong: spec.myASN")
    (row,) = node.run()["ConfigurationState"]
    (condition,) = row.status.conditions
    assert (condition.type, condition.status) == ("configReconcilerValid", "False")
    assert dict(row.labels) == {"metallb.io/component-type": "speaker"}


def test_a_long_configuration_is_cut() -> None:
    instance = Instance("i", None, 64900, "192.0.2.1")
    accept = tuple(PrefixRule(f"10.{n}.0.0/16") for n in range(200))
    one = Peer("i", "p", "203.0.113.9", None, 64950, accept=accept)
    text = desired_text([instance], [one] * 2000)
    assert len(text) < 130 * 1024
    assert " and 180 more" in text
    assert text.splitlines()[-1] == "! and more"


def test_objects_are_merged_with_the_options_of_frr_k8s() -> None:
    given = Frrk8sClusterOptions(namespace="routers")
    assert merging_options(NodeContext("n1", merging_options=given)) is given
    assert merging_options(NodeContext("n1")) == Frrk8sClusterOptions()
