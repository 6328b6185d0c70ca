"""``waggle explain`` against an agent with made-up answers, and offline."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from cells.api.model import ExplainItem, KernelRouteItem, OriginItem, ReceivedExplainItem, RouteItem
from cells.api.resource import ApiResource
from tests.support import plain_yaml
from tests.support.api import MadeUp, serving
from waggle.__main__ import main
from waggle.commands.explain import _in_order

WEB = OriginItem(kind="Service", namespace="shop", name="web")
ADVERTISED = ExplainItem(
    node="node-a",
    instance="i",
    peer="tor-1",
    object=WEB,
    address_type="LoadBalancerIP",
    family="ipv4-unicast",
    prefix="198.51.100.7/32",
    advertised=True,
    advertised_prefixes=["198.51.100.0/24"],
    reason="Advertised",
    rule=OriginItem(kind="CiliumBGPAdvertisement", name="vips"),
)
WITHHELD = ExplainItem(
    node="node-a",
    instance="i",
    peer="tor-2",
    object=WEB,
    address_type="LoadBalancerIP",
    family="ipv4-unicast",
    prefix="198.51.100.7/32",
    advertised=False,
    reason="NoLocalEndpoint",
    message="no ready \x1b[31m",
)
NO_SUCH_ADDRESS = ExplainItem(
    node="node-a",
    instance="i",
    peer="tor-2",
    object=WEB,
    address_type="ExternalIP",
    advertised=False,
    reason="NoAddress",
)
ACCEPTED = ReceivedExplainItem(
    node="node-a",
    instance="i",
    peer="tor-1",
    family="ipv4-unicast",
    prefix="10.1.0.0/16",
    received=True,
    accepted=True,
    filter="10.0.0.0/8 le 24",
    object=OriginItem(kind="FRRConfiguration", namespace="ns", name="a"),
    reason="Accepted",
    message="accepted by the selector 10.0.0.0/8 le 24 of FRRConfiguration/ns/a",
)
SCENARIO = "tests/scenarios/cilium/C10-C12-aggregation"


@pytest.fixture(name="path")
def agent(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "agent.sock"
    explained = [ADVERTISED, WITHHELD, NO_SUCH_ADDRESS]
    with serving(path, MadeUp(explained=explained, explained_received=[ACCEPTED])):
        yield path


def lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def test_a_prefix_at_each_peer(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "198.51.100.7/32", "--socket", str(path)]) == 0
    assert lines(capsys.readouterr().out) == [
        "PEER PREFIX OBJECT TYPE ADVERTISED REASON WHY",
        "tor-1 198.51.100.7/32 Service/shop/web LoadBalancerIP as 198.51.100.0/24 Advertised -",
        r"tor-2 198.51.100.7/32 Service/shop/web LoadBalancerIP no NoLocalEndpoint no ready \x1b[31m",
    ]


def test_without_a_target_the_missing_routes_are_explained(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", "--socket", str(path), "-o", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["kind"], answer["apiVersion"]) == ("ExplainList", "cli.waggle/v1")
    (item,) = answer["items"]
    assert (item["peer"], item["advertised"], item["reason"]) == (
        "tor-2",
        False,
        "NoLocalEndpoint",
    )
    assert main(["explain", "--all", "--socket", str(path), "-o", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["items"]) == 3


def test_an_unknown_target_is_exit_4_and_an_invalid_one_exit_2(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", "192.0.2.9", "--socket", str(path)]) == 4
    assert capsys.readouterr() == (
        "",
        "waggle explain: nothing that node n could advertise contains 192.0.2.9\n",
    )
    assert main(["explain", "not/a/target", "--socket", str(path)]) == 2
    assert capsys.readouterr().err == "waggle explain: not/a/target is no target\n"
    assert main(["explain", "not/a/target", "--socket", str(path), "-o", "json"]) == 2
    answer = json.loads(capsys.readouterr().out)
    assert answer["kind"] == "ExplainList"
    (error,) = answer["errors"]
    assert error == {"code": "BadRequest", "message": "not/a/target is no target"}


@pytest.mark.parametrize(
    "flags",
    [
        ["--drain", "withdraw"],
        ["--secrets-namespace", "kube-system"],
        ["--always-block", "10.0.0.0/8"],
    ],
)
def test_options_of_manifests_are_refused_without_them(
    flags: list[str], path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", "--socket", str(path), *flags]) == 2
    text = f"waggle explain: {flags[0]}: only with -f; without it the"
    assert capsys.readouterr() == ("", f"{text} agent has the options\n")
    # Also of objects without an agent: its ConfigMap has them.
    assert main(["explain", "--from-statuses", *flags]) == 2
    assert capsys.readouterr() == ("", f"{text} agents have the options\n")


def test_the_socket_of_an_agent_is_refused_with_manifests(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", "-f", SCENARIO, "--node", "n", "--socket", str(path)]) == 2
    assert "--socket: -f explains manifests, without an agent" in capsys.readouterr().err


@pytest.mark.parametrize("flags", [[], ["10.0.0.0/8", "--received"]])
def test_manifests_without_the_node_are_exit_4(
    flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", *flags, "-f", str(tmp_path), "--node", "n"]) == 4
    text = "waggle explain: there is no Node n: there are no manifests\n"
    assert capsys.readouterr() == ("", text)


def test_manifests_are_explained_without_an_agent(capsys: pytest.CaptureFixture[str]) -> None:
    offline = ["-f", SCENARIO, "--node", "test-node"]
    assert main(["explain", "10.10.10.1", *offline, "-o", "json"]) == 0
    (item,) = json.loads(capsys.readouterr().out)["items"]
    assert (item["peer"], item["advertisedPrefixes"], item["rule"]["name"]) == (
        "p",
        ["10.10.10.0/24"],
        "ad",
    )
    assert main(["explain", "192.0.2.99", *offline]) == 4
    assert "192.0.2.99" in capsys.readouterr().err
    assert main(["explain", "a/b/c/d", *offline]) == 2
    assert "a/b/c/d" in capsys.readouterr().err
    assert main(["explain", "--peer", "absent", *offline]) == 4
    assert main(["explain", "-f", "/nowhere", "--node", "n"]) == 2


def test_the_settings_of_the_agent_apply_offline(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = "tests/scenarios/cilium/C09-no-endpoints-routable"
    offline = ["-f", directory, "--node", "test-node", "172.16.1.1", "-o", "json"]
    assert main(["explain", *offline]) == 0
    assert json.loads(capsys.readouterr().out)["items"][0]["advertised"]
    assert main(["explain", *offline, "--no-service-endpoints-routable=false"]) == 0
    assert json.loads(capsys.readouterr().out)["items"][0]["reason"] == "NoEndpoint"


def test_manifests_require_a_node(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "10.0.0.1", "-f", SCENARIO]) == 2
    assert "--node" in capsys.readouterr().err


def test_received_names_the_selector_and_its_object(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["explain", "10.1.0.0/16", "--peer", "tor-1", "--received", "--socket", str(path)]
    assert main(command) == 0
    assert lines(capsys.readouterr().out) == [
        "PEER PREFIX RECEIVED ACCEPTED REASON FILTER OBJECT WHY",
        f"tor-1 10.1.0.0/16 yes yes Accepted 10.0.0.0/8 le 24 FRRConfiguration/ns/a {ACCEPTED.message}",
    ]
    assert main([*command, "-o", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["kind"] == "ReceivedExplainList"
    (item,) = answer["items"]
    assert (item["filter"], item["object"]["name"]) == ("10.0.0.0/8 le 24", "a")


def test_all_paths_of_a_received_prefix_are_listed_with_the_step_that_decided(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [
        RouteItem(
            node="node-a",
            instance="i",
            family="ipv4-unicast",
            prefix="10.1.0.0/16",
            peer=peer,
            next_hop=next_hop,
            as_path=as_path,
            local_preference=100,
            best=status == "best",
            status=status,
        )
        for peer, next_hop, as_path, status in (
            ("tor-2", "192.0.2.2", "64512 64513", "longer AS path"),
            ("tor-1", "192.0.2.1", "64512", "best"),
        )
    ]
    path = tmp_path / "agent.sock"
    with serving(path, MadeUp(routes=paths, explained_received=[ACCEPTED])):
        arguments = ["explain", "10.1.0.0/16", "--received", "--socket", str(path)]
        assert main(arguments) == 0
        assert lines(capsys.readouterr().out)[-4:] == [
            "Paths:",
            "PREFIX FROM NEXT-HOP LP AS-PATH MED BEST LOST-BY",
            "10.1.0.0/16 tor-1 192.0.2.1 100 64512 - yes -",
            "10.1.0.0/16 tor-2 192.0.2.2 100 64512 64513 - no longer AS path",
        ]
        assert main([*arguments, "-o", "json"]) == 0
        answer = json.loads(capsys.readouterr().out)
        assert [item["peer"] for item in answer["paths"]] == ["tor-1", "tor-2"]


def test_received_needs_a_prefix(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--received", "--socket", str(path)]) == 2
    text = "waggle explain: --received needs a prefix or an address\n"
    assert capsys.readouterr().err == text


def test_the_route_of_the_kernel_is_beside_what_the_peers_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    route = KernelRouteItem(
        node="node-a",
        table=254,
        metric=20,
        family="ipv4-unicast",
        prefix="10.1.0.0/16",
        type="unicast",
        state="NotInstalled",
        reason="NextHop",
        peers=["tor-1"],
        origins=[OriginItem(kind="FRRConfiguration", namespace="frr-k8s-system", name="spine")],
    )
    resource = ApiResource(
        path="/v1/kernel-routes",
        kind="KernelRouteList",
        parameters=("prefix",),
        read=lambda query: iter([[route] if query.get("prefix") == route.prefix else []]),
    )
    path = tmp_path / "agent.sock"
    with serving(path, MadeUp(explained_received=[ACCEPTED]), resource):
        arguments = ["explain", route.prefix, "--received", "--socket", str(path)]
        assert main(arguments) == 0
        assert lines(capsys.readouterr().out)[-3:] == [
            "In the kernel:",
            "NODE TABLE PREFIX NEXT-HOPS PEERS ORIGIN-OBJECT STATE",
            "node-a 254 10.1.0.0/16 - tor-1 FRRConfiguration/frr-k8s-system/spine NextHop",
        ]
        assert main([*arguments, "-o", "json"]) == 0
        (found,) = json.loads(capsys.readouterr().out)["kernel"]
        assert (found["prefix"], found["reason"]) == (route.prefix, "NextHop")


def test_received_is_decided_by_manifests_alone(capsys: pytest.CaptureFixture[str]) -> None:
    offline = ["-f", SCENARIO, "--node", "test-node"]
    assert main(["explain", "10.1.0.0/16", "--received", *offline, "-o", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert {(item["accepted"], item["filter"]) for item in answer["items"]} == {
        (False, "NotAllowed")
    }
    assert all("received" not in item for item in answer["items"])
    assert main(["explain", "nonsense", "--received", *offline]) == 2
    capsys.readouterr()
    assert main(["explain", "10.1.0.0/16", "--received", "--peer", "none", *offline]) == 4
    assert capsys.readouterr().err == "waggle explain: no such peer: --peer none\n"


def test_a_peer_of_a_node_that_has_nothing_to_advertise_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    examples = Path(__file__).parents[2] / "examples" / "antrea"
    manifests = tmp_path / "manifests"
    manifests.mkdir()
    for item in (
        found for file in examples.iterdir() for found in plain_yaml.load_all(file.read_text())
    ):
        if item["kind"] in ("Node", "BGPPolicy"):
            item["spec"].pop("podCIDRs", None)
            (manifests / f"{item['kind']}.yaml").write_text(yaml.safe_dump(item))
    words = ["explain", "-f", str(manifests), "--node", "node-1", "--peer", "127.0.0.2"]
    for more in ((), ("--all",)):
        assert main([*words, *more]) == 0
        captured = capsys.readouterr()
        text = "waggle explain: every route is advertised to every peer\n"
        assert (captured.out, captured.err) == ("", text)
    assert main([*words, "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["errors"] == []


def test_a_peer_has_the_name_of_its_object_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    # FRR-k8s names it by its VRF and address; people know the BGPPeer.
    manifests = str(Path(__file__).parents[2] / "examples" / "metallb")
    flags = ["-f", manifests, "--node", "node-1", "shop/web", "--peer", "demo-router"]
    assert main(["explain", *flags, "-o", "json"]) == 0
    items = json.loads(capsys.readouterr().out)["items"]
    assert [item["peer"] for item in items] == ["127.0.0.2"]


def test_the_routes_of_each_peer_are_in_address_order_in_the_order_of_the_peers() -> None:
    def item(peer: str, prefix: str | None, instance: str = "i") -> dict[str, Any]:
        return {"instance": instance, "peer": peer} | ({"prefix": prefix} if prefix else {})

    given = [
        item("b", None),
        item("b", "10.0.0.0/8"),
        item("a", "9.0.0.0/8"),
        item("b", "9.0.0.0/8"),
        item("a", "2001:db8::/32"),
        item("a", "8.0.0.0/8", "j"),
        item("a", "10.0.0.0/8"),
    ]
    ordered = [(item["instance"], item["peer"], item.get("prefix")) for item in _in_order(given)]
    assert ordered == [
        ("i", "b", "9.0.0.0/8"),
        ("i", "b", "10.0.0.0/8"),
        ("i", "b", None),
        ("i", "a", "9.0.0.0/8"),
        ("i", "a", "10.0.0.0/8"),
        ("i", "a", "2001:db8::/32"),
        ("j", "a", "8.0.0.0/8"),
    ]
