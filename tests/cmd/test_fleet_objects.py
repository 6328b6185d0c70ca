"""Routes and explanations where no agent answers: by the objects of a cluster, joined with statuses."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from resources.core.kinds import NAMESPACE
from resources.frrk8s.kinds import BGP_SESSION_STATE, FRR_NODE_STATE
from resources.frrk8s.kinds import KINDS as FRRK8S
from resources.kubernetes.exec import Container
from resources.metallb.kinds import KINDS as METALLB
from resources.metallb.kinds import SERVICE_BGP_STATUS
from tests.cmd.lab import NODE, configuration, service
from tests.cmd.test_schema import check
from tests.support.apiserver import BackgroundApiServer, status
from tests.support.kinds import KINDS
from waggle.__main__ import main
from waggle.commands.schema.schemas import schema
from waggle.fleet import ask as ask_module
from waggle.fleet.agents import AgentPod
from waggle.fleet.routes import ONLY_AGENTS

Json = dict[str, Any]
WEB, SHOP = "198.51.100.10/32", "198.51.100.11/32"
FAR = "node-2"


def ago(minutes: int) -> str:
    """Return a time before the present one, not before that of the import: the suite takes minutes."""
    return (datetime.now(UTC) - timedelta(minutes=minutes)).isoformat(timespec="seconds")


def written(minutes: int) -> Json:
    """Return the metadata of an object whose status was written so long ago."""
    spec = {"manager": "kubectl", "operation": "Apply", "time": ago(0)}
    own = {"manager": "waggle-agent", "operation": "Apply", "subresource": "status"}
    return {"managedFields": [spec, own | {"time": ago(minutes)}]}


def peer(name: str, address: str, state: str, sent: int | None = None) -> Json:
    item: Json = {"name": name, "peerAddress": address, "peeringState": state, "peerASN": 65000}
    if sent is not None:
        item["routeCount"] = [{"afi": "ipv4", "safi": "unicast", "advertised": sent}]
    return item


def node_config(name: str, *peers: Json, minutes: int = 187) -> Json:
    """Return what the agent of a node has written of its sessions."""
    return {
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumBGPNodeConfig",
        "metadata": {"name": name, **written(minutes)},
        "spec": {"bgpInstances": []},
        "status": {"bgpInstances": [{"name": "main", "localASN": 65001, "peers": list(peers)}]},
    }


def objects() -> list[Json]:
    """Return two nodes of one configuration, of which one is not Ready, and their statuses."""
    given = configuration((1179, 1180))
    node = next(item for item in given if item["kind"] == "Node")
    conditions = [{"type": "Ready", "status": "Unknown", "lastTransitionTime": ago(1200)}]
    far = {**node, "metadata": {"name": FAR, "labels": {"rack": "r1"}}, "status": {}}
    far["status"] = {
        "addresses": [{"type": "InternalIP", "address": "192.0.2.12"}],
        "conditions": conditions,
    }
    return [
        *given,
        far,
        service("web", "198.51.100.10"),
        service("shop", "198.51.100.11"),
        node_config(
            NODE,
            peer("tor-1", "127.0.0.2", "established", sent=2),
            peer("tor-2", "127.0.0.3", "established", sent=1),
        ),
        node_config(FAR, peer("tor-1", "127.0.0.2", "active"), minutes=1510),
    ]


@pytest.fixture
def cluster() -> Iterator[BackgroundApiServer]:
    with BackgroundApiServer(
        (*KINDS, *FRRK8S, BGP_SESSION_STATE, FRR_NODE_STATE, *METALLB)
    ) as server:
        server.put(*objects())
        yield server


Ask = Callable[..., tuple[int, Json]]


@pytest.fixture
def access(cluster: BackgroundApiServer, tmp_path: Path) -> tuple[str, ...]:
    kubeconfig = cluster.kubeconfig(tmp_path / "kubeconfig")
    return ("--from-statuses", "--kubeconfig", str(kubeconfig))


@pytest.fixture
def ask(access: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> Ask:
    def run(*arguments: str) -> tuple[int, Json]:
        done = main([*arguments, *access, "-o", "json"])
        return done, check(capsys.readouterr().out)

    return run


def of(answer: Json, node: str, peer: str, prefix: str) -> Json:
    (item,) = (
        i
        for i in answer["items"]
        if (i["node"], i["peer"], i.get("prefix")) == (node, peer, prefix)
    )
    found: Json = item
    return found


@pytest.mark.parametrize(
    "command", ["peers", "status", "routes", "routes --count", "explain --all", "explain none/none"]
)
def test_answers_of_statuses_are_valid_by_their_schema(command: str, ask: Ask) -> None:
    _, answer = ask(*command.split())  # which checks it
    assert answer["items"] or answer["errors"]


def test_a_session_of_a_status_has_its_object_and_the_time_of_its_last_change(ask: Ask) -> None:
    _, answer = ask("peers", "--peer", "tor-1")
    sources = {item["source"] for item in answer["items"]}
    assert sources == {f"CiliumBGPNodeConfig/{NODE}", f"CiliumBGPNodeConfig/{FAR}"}
    assert {"source", "statusTime"} <= schema("PeerList")["$defs"]["PeerItem"]["properties"].keys()


def test_routes_are_what_the_objects_advertise_with_the_session_of_the_status(ask: Ask) -> None:
    done, answer = ask("routes")
    assert (done, answer["errors"]) == (0, [])
    assert {(i["node"], i["peer"], i["prefix"]) for i in answer["items"]} == {
        (node, tor, prefix)
        for node in (NODE, FAR)
        for tor in ("tor-1", "tor-2")
        for prefix in (WEB, SHOP)
    }
    web = of(answer, NODE, "tor-1", WEB)
    assert web["status"] == (
        f"by the objects; session Established by CiliumBGPNodeConfig/{NODE} of 3h7m ago; "
        "2 ipv4-unicast routes sent by the status"
    )
    assert (web["basis"], web["sessionState"]) == ("objects", "Established")
    assert web["source"] == f"CiliumBGPNodeConfig/{NODE}"
    assert web["origins"] == [{"kind": "Service", "namespace": "shop", "name": "web"}]


def test_a_status_that_has_other_numbers_than_the_objects_is_no_confirmation(ask: Ask) -> None:
    _, answer = ask("routes", "--peer", "tor-2", "--node", NODE)
    assert of(answer, NODE, "tor-2", WEB)["status"].endswith(
        "; 1 ipv4-unicast route sent by the status, 2 by the objects"
    )


def test_a_session_that_is_down_by_the_status_comes_first_and_one_without_status_is_named(
    ask: Ask,
) -> None:
    _, answer = ask("routes")
    first = answer["items"][0]
    assert (first["node"], first["peer"], first["sessionState"]) == (FAR, "tor-1", "Active")
    assert first["status"].startswith(
        f"by the objects; session Active by CiliumBGPNodeConfig/{FAR} of 1d1h ago"
    )
    unknown = of(answer, FAR, "tor-2", WEB)
    assert unknown["status"] == "by the objects; no status object has the session"
    assert "sessionState" not in unknown


def test_the_answer_says_what_it_is_computed_from_and_names_nodes_with_stale_statuses(
    ask: Ask, cluster: BackgroundApiServer
) -> None:
    cluster.put(node_config("gone", peer("tor-1", "127.0.0.2", "established")))
    _, answer = ask("routes")
    basis, *stale = answer["notes"]
    assert basis.startswith(f"computed from the objects of http://127.0.0.1:{cluster.port} with ")
    assert basis.endswith("whether a route was sent is known to the agents alone")
    assert stale == [
        f"{FAR}: the Node has not been Ready for 20h: its status objects may be stale",
        "gone: there is no Node of this name: its status objects are what it left",
    ]
    assert (answer["summary"]["answered"], answer["summary"]["nodes"]) == (0, 3)


def test_the_table_has_the_state_beside_the_prefix_and_no_age(
    access: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["routes", SHOP, "--node", NODE, "--peer", "tor-1", *access]) == 0
    out, err = capsys.readouterr()
    head, row = out.splitlines()
    assert head.split()[-1] == "STATE"
    assert "by the objects; session Established by" in row
    assert "no agent" not in row
    assert "waggle routes: computed from the objects of" in err


@pytest.mark.parametrize(
    ("words", "prefixes"),
    [
        ((WEB,), {WEB}),
        (("198.51.100.11",), {SHOP}),
        (("--within", "198.51.100.10/31"), {WEB, SHOP}),
        (("--origin", "shop/web"), {WEB}),
        (("ipv6",), set()),
        (("--community", "65000:1"), set()),
    ],
    # In the order of the text: processes of pytest-xdist have to agree on the names.
    ids=lambda value: " ".join(sorted(value) if isinstance(value, set) else value),
)
def test_routes_of_status_objects_are_selected_as_routes_of_agents(
    ask: Ask, words: tuple[str, ...], prefixes: set[str]
) -> None:
    assert {item["prefix"] for item in ask("routes", *words)[1]["items"]} == prefixes


def test_routes_are_counted_and_limited_for_each_node(ask: Ask) -> None:
    _, answer = ask("routes", "--count", "--node", NODE)
    assert [(i["node"], i["routes"], i["basis"]) for i in answer["items"]] == [(NODE, 4, "objects")]
    assert len(ask("routes", "--limit", "1")[1]["items"]) == 2


def test_an_instance_without_peers_exists(ask: Ask, cluster: BackgroundApiServer) -> None:
    given = configuration((1179, 1180))
    config = next(item for item in given if item["kind"] == "CiliumBGPClusterConfig")
    config["spec"]["bgpInstances"].append({"name": "red", "localASN": 65002, "localPort": 1199})
    cluster.put(config)
    done, answer = ask("routes", "--instance", "red")
    assert (done, answer["items"], answer["errors"]) == (0, [], [])
    done, answer = ask("routes", "--instance", "red", "--peer", "tor-1")
    text = "no peer is called tor-1 in the instance red"
    assert (done, answer["errors"][0]["message"]) == (4, text)


def test_an_unknown_node_peer_or_target_is_named(ask: Ask, cluster: BackgroundApiServer) -> None:
    done, answer = ask("routes", "--node", "node-3")
    assert (done, answer["errors"][0]["code"]) == (4, "NotFound")
    assert "the Nodes: node-1, node-2" in answer["errors"][0]["message"]
    done, answer = ask("routes", "--peer", "tor-9")
    text = "no peer is called tor-9 (did you mean tor-2?)"
    assert (done, answer["errors"][0]["message"]) == (4, text)
    # An address that no status object has, of the objects alone.
    cluster.delete("CiliumBGPNodeConfig", NODE)
    done, answer = ask("explain", "--peer", "127.0.0.33", "--node", NODE)
    assert (done, answer["errors"][0]["message"]) == (
        4,
        "no peer is called 127.0.0.33 (did you mean 127.0.0.3?)",
    )
    done, answer = ask("explain", "--peer", "tor-9")
    assert (done, answer["errors"][0]["message"]) == (4, text)
    done, answer = ask("routes", "--instance", "maine")
    assert (done, answer["errors"][0]["message"]) == (
        4,
        "no instance is called maine (did you mean main?)",
    )
    done, answer = ask("routes", "198.51.100.9")
    assert (done, answer["errors"][0]["message"]) == (
        4,
        f"no advertised route that contains 198.51.100.9; the nearest: {WEB}, {SHOP}",
    )
    done, answer = ask("explain", "shop/wep")
    rest = "could advertise is called shop/wep; the nearest: Service/shop/web, Service/shop/shop"
    text = f"nothing that any node {rest}"
    assert (done, answer["errors"]) == (4, [{"code": "NotFound", "message": text}])
    done, answer = ask("explain", "shop/wep", "--node", NODE)
    assert (done, answer["errors"][0]["message"]) == (4, f"nothing that node {NODE} {rest}")
    done, answer = ask("explain", "198.51.100.8/31")
    assert (done, answer["errors"][0]["message"]) == (
        4,
        f"nothing that any node could advertise contains 198.51.100.8/31; the nearest: {WEB}, {SHOP}",
    )
    done, answer = ask("explain", "a/b/c/d")
    assert (done, answer["errors"][0]["code"]) == (2, "BadRequest")


@pytest.mark.parametrize("table", ["received", "available", "kernel"])
def test_tables_that_no_object_has_are_refused(
    access: tuple[str, ...], capsys: pytest.CaptureFixture[str], table: str
) -> None:
    assert main(["routes", table, *access]) == 2
    assert capsys.readouterr().err == f"waggle routes: --from-statuses: {ONLY_AGENTS}\n"
    assert main(["explain", WEB, "--received", *access]) == 2
    assert main(["routes", "--as-path", "_1_", *access]) == 2


def test_explain_has_the_chain_and_the_session_of_each_node(ask: Ask) -> None:
    done, answer = ask("explain", "shop/web")
    assert done == 0
    known = of(answer, NODE, "tor-1", WEB)
    assert (known["advertised"], known["reason"]) == (True, "ByObjects")
    assert known["rule"] == {"kind": "CiliumBGPAdvertisement", "name": "services"}
    assert known["message"].startswith("by the objects; session Established by ")
    down = of(answer, FAR, "tor-1", WEB)
    assert (down["advertised"], down["reason"]) == (False, "SessionDown")
    assert down["message"].startswith("advertised by the objects; session Active by ")
    assert of(answer, FAR, "tor-2", WEB)["message"].endswith("no status object has the session")


def test_explain_has_the_rule_that_stands_in_the_way(
    ask: Ask, cluster: BackgroundApiServer
) -> None:
    hidden = service("hidden", "198.51.100.12")
    hidden["metadata"]["labels"] = {"expose": "no"}
    cluster.put(hidden)
    _, answer = ask("explain", "shop/hidden", "--node", NODE)
    item = of(answer, NODE, "tor-1", "198.51.100.12/32")
    assert (item["advertised"], item["basis"]) == (False, "objects")
    assert "expose" in item["message"]
    # Without a target: what is not advertised, as of agents.
    listed = ask("explain")[1]["items"]
    assert {(i["node"], i["prefix"]) for i in listed if i["reason"] == "SessionDown"} == {
        (FAR, WEB),
        (FAR, SHOP),
    }
    assert "ByObjects" not in {i["reason"] for i in listed}


def test_the_table_of_explain_does_not_have_an_intention_as_a_fact(
    access: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", WEB, "--node", NODE, "--peer", "tor-1", *access]) == 0
    head, row = capsys.readouterr().out.splitlines()
    assert "ADVERTISED" in head
    assert " intended " in row
    assert " yes " not in row


def test_of_nodes_whose_agents_do_not_answer_the_objects_are_shown_as_well(
    access: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def find(*_: object) -> list[AgentPod]:
        return [AgentPod(FAR, Container("w", "far", "agent"), "its Pod is Pending")]

    monkeypatch.setattr(ask_module, "find_agents", find)
    for command in (("routes",), ("explain", "shop/web")):
        assert main([*command, "--all-nodes", *access[1:], "-o", "json"]) == 3
        answer = json.loads(capsys.readouterr().out)
        assert {(i["node"], i["basis"]) for i in answer["items"]} == {(FAR, "objects")}
        assert answer["errors"][0]["code"] == "AgentNotRunning"
        assert answer["notes"][0].startswith("computed from the objects of ")
        assert answer["summary"]["nodes"] == 1
    # What no object has is not looked for.
    assert main(["routes", "received", "--all-nodes", *access[1:], "-o", "json"]) == 3
    assert json.loads(capsys.readouterr().out)["notes"] == []


def metallb() -> list[Json]:
    """Return a BGPPeer, a pool, an advertisement, a Service, and what agents wrote of them."""
    head = {"metadata": {"namespace": "metallb-system"}}

    def custom(kind: str, name: str, spec: Json, version: str = "v1beta1") -> Json:
        metadata = {**head["metadata"], "name": name}
        return {
            "apiVersion": f"metallb.io/{version}",
            "kind": kind,
            "metadata": metadata,
            "spec": spec,
        }

    def endpoints(name: str) -> Json:
        metadata = {
            "namespace": "shop",
            "name": name,
            "labels": {"kubernetes.io/service-name": name},
        }
        return {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": metadata,
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["10.0.0.1"], "nodeName": NODE}],
        }

    to_peer = {"myASN": 65001, "peerASN": 65000, "peerAddress": "127.0.0.2"}
    return [
        endpoints("web"),
        endpoints("shop"),
        custom("BGPPeer", "rack", to_peer, "v1beta2"),
        custom("IPAddressPool", "pool", {"addresses": ["198.51.100.0/24"]}),
        custom("BGPAdvertisement", "all", {}),
        {
            "apiVersion": "frrk8s.metallb.io/v1beta1",
            "kind": "BGPSessionState",
            "metadata": {"namespace": "frr-k8s-system", "name": "s-1", **written(125)},
            "status": {"node": NODE, "peer": "127.0.0.2", "bgpStatus": "Established"},
        },
        {
            "apiVersion": "frrk8s.metallb.io/v1beta1",
            "kind": "FRRNodeState",
            "metadata": {"name": NODE, **written(125)},
            "status": {
                "runningConfig": "router bgp 65001\n neighbor 127.0.0.2 remote-as 65000\n",
                "lastConversionResult": "success",
                "lastReloadResult": "failed: port 179 is in use",
            },
        },
        {
            "apiVersion": "metallb.io/v1beta1",
            "kind": "ServiceBGPStatus",
            "metadata": {"namespace": "metallb-system", "name": "bgp-web", **written(125)},
            "status": {
                "node": NODE,
                "serviceNamespace": "shop",
                "serviceName": "web",
                "peers": ["rack"],
            },
        },
    ]


@pytest.fixture
def of_metallb(cluster: BackgroundApiServer) -> None:
    for value in objects():
        if value["kind"].startswith("Cilium"):
            cluster.delete(value["kind"], value["metadata"]["name"])
    cluster.put(*metallb())


@pytest.mark.usefixtures("of_metallb")
def test_statuses_of_metallb_and_frrk8s_are_evidence(ask: Ask) -> None:
    _, answer = ask("routes", "--node", NODE)
    web, shop = (of(answer, NODE, "127.0.0.2", prefix)["status"] for prefix in (WEB, SHOP))
    of_node = f"FRRNodeState/{NODE} has 127.0.0.2; FRRNodeState/{NODE}: failed: port 179 is in use"
    session = (
        "by the objects; session Established by BGPSessionState/frr-k8s-system/s-1 of 2h5m ago"
    )
    assert web == f"{session}; {of_node}; ServiceBGPStatus/metallb-system/bgp-web has rack"
    assert shop == f"{session}; {of_node}; no ServiceBGPStatus of Service/shop/shop"


@pytest.mark.usefixtures("of_metallb")
def test_status_objects_that_may_not_be_listed_are_named(
    ask: Ask, cluster: BackgroundApiServer
) -> None:
    cluster.always("list", SERVICE_BGP_STATUS.plural, status(403, "Forbidden", "not yours"))
    done, answer = ask("routes", "--node", NODE)
    assert done == 3
    assert any("not yours" in note for note in answer["notes"])
    assert "ServiceBGPStatus" not in of(answer, NODE, "127.0.0.2", WEB)["status"]


def test_without_the_right_to_a_kind_there_are_no_routes(
    ask: Ask, cluster: BackgroundApiServer
) -> None:
    cluster.always("list", NAMESPACE.plural, status(403, "Forbidden", "no list of namespaces"))
    done, answer = ask("routes")
    assert (done, answer["items"], answer["errors"][0]["code"]) == (1, [], "Forbidden")


def test_options_come_from_the_configmap_of_the_agents_if_readable(
    ask: Ask, cluster: BackgroundApiServer
) -> None:
    cells = {"cilium": {"enabled": False}}
    cluster.put(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "namespace": "waggle-system",
                "name": "waggle-agent",
                "labels": {
                    "app.kubernetes.io/part-of": "waggle",
                    "app.kubernetes.io/component": "agent",
                },
            },
            "data": {"config.yaml": yaml.safe_dump({"cells": cells})},
        }
    )
    _, answer = ask("routes")
    assert answer["items"] == []
    assert "with the options of ConfigMap/waggle-system/waggle-agent" in answer["notes"][0]
