"""Redistributed routes of the kernel: permitted prefixes alone, towards neighbours that get them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from reconcilers.apply.to_speaker import instance_config
from reconcilers.dialect.node_object import RunningInstance
from reconcilers.frrk8s.configuration_text import desired_text, running_text
from reconcilers.frrk8s.raw_config import raw_meaning
from reconcilers.redistribution import KERNEL_ROUTE
from resources.host import KernelRoute, KernelTable
from speaker.nlri import prefix_to_text
from tests.reconcilers.frrk8s.agent_in_memory import AgentInMemory
from tests.reconcilers.frrk8s.build import PEER, configuration, neighbor, router
from waggle.__main__ import main

VIP, OTHER = "192.0.2.10/32", "198.51.100.1/32"
KUBE_VIP = (198, 248)
ALL = {"allowed": {"mode": "all"}}
SECOND = "203.0.113.10"


def annotated(value: Any, *routers: Mapping[str, Any], name: str = "vips") -> dict[str, Any]:  # noqa: ANN401
    found = configuration(name, {"bgp": {"routers": list(routers)}})
    text = value if isinstance(value, str) else json.dumps(value)
    found["metadata"]["annotations"] = {"waggle.dev/redistribute": text}
    return found


def entry(prefix: str = "192.0.2.0/24", **more: object) -> dict[str, Any]:
    return {"table": 198, "protocol": 248, "prefixes": [{"prefix": prefix, "ge": 32}], **more}


class Node(AgentInMemory):
    """A node whose kernel has these routes: prefix, table and protocol."""

    def __init__(self) -> None:
        super().__init__("n1")

    def kernel(self, *routes: tuple[str, int, int]) -> None:
        table = self.tables.kernel_routes
        with self.db.write(table) as txn:
            for row in list(table.all(txn)):
                table.delete(txn, row.key)
            for prefix, number, protocol in routes:
                table.upsert(txn, KernelRoute(prefix, number, protocol))
        self.settle()

    @property
    def advertised(self) -> dict[str, list[str]]:
        """The prefixes that each peer is advertised."""
        snapshot = self.db.snapshot()
        routes = list(self.intent.routes.all(snapshot))
        return {
            peer.name: sorted(
                prefix_to_text(route.family, route.nlri)
                for route in routes
                if route.route_set == peer.route_set
            )
            for peer in self.intent.peers.all(snapshot)
        }

    def problems(self) -> list[tuple[str, str]]:
        rows = self.intent.problems.all(self.db.snapshot())
        return [(row.field, row.message) for row in rows]


def node(*objects: Mapping[str, Any]) -> Node:
    made = Node()
    made.work(*objects)
    return made


def test_a_route_is_advertised_while_the_kernel_has_it() -> None:
    found = node(annotated([entry()], router(neighbor(toAdvertise=ALL), prefixes=["10.0.0.0/8"])))
    assert found.compiler.run().ready
    found.connect()
    found.kernel((VIP, *KUBE_VIP), ("2001:db8::1/128", *KUBE_VIP))
    assert found.advertised == {PEER: ["10.0.0.0/8", VIP]}
    (instance,) = found.intent.instances.all(found.db.snapshot())
    assert instance.originates == ("10.0.0.0/8", VIP)
    found.kernel()
    assert found.advertised == {PEER: ["10.0.0.0/8"]}


@pytest.mark.parametrize(
    "route",
    [
        (OTHER, *KUBE_VIP),
        ("192.0.2.0/24", *KUBE_VIP),
        (VIP, 199, 248),
        (VIP, 198, 3),
        (VIP, 198, 186),
    ],
    ids=["prefix", "length", "table", "protocol", "BGP"],
)
def test_no_other_route_is_advertised(route: tuple[str, int, int]) -> None:
    found = node(annotated([entry()], router(neighbor(toAdvertise=ALL))))
    found.kernel(route)
    assert found.advertised == {PEER: []}


@pytest.mark.parametrize("prefix", ["127.0.0.9/32", "169.254.1.1/32", "224.0.0.5/32"])
def test_addresses_that_are_not_routed_are_never_advertised(prefix: str) -> None:
    found = node(annotated([entry("0.0.0.0/0", protocol=248)], router(neighbor(toAdvertise=ALL))))
    found.kernel((prefix, *KUBE_VIP), (VIP, *KUBE_VIP))
    assert found.advertised == {PEER: [VIP]}


def test_a_neighbour_with_a_list_gets_what_is_listed() -> None:
    listed = neighbor(
        address=SECOND,
        toAdvertise={
            "allowed": {"prefixes": [VIP]},
            "withLocalPref": [{"localPref": 150, "prefixes": [VIP]}],
        },
    )
    found = node(annotated([entry()], router(neighbor(), listed)))
    found.kernel((VIP, *KUBE_VIP), ("192.0.2.11/32", *KUBE_VIP))
    assert found.advertised == {PEER: [], SECOND: [VIP]}
    (route,) = found.intent.routes.all(found.db.snapshot())
    assert (route.attributes.local_preference, route.attributes.incomplete) == (150, True)


def test_a_prefix_that_no_redistribution_permits_cannot_be_listed() -> None:
    listed = neighbor(toAdvertise={"allowed": {"prefixes": [OTHER]}})
    ((field, message),) = node(annotated([entry()], router(listed))).problems()
    assert field.endswith("toAdvertise.allowed.prefixes[0]")
    assert f"{OTHER} is not a prefix of its router" in message


def test_the_tables_come_from_the_objects_in_effect() -> None:
    found = node(annotated([entry(), entry(table=1000)], router(neighbor())))
    demand = found.compiler._host_demand
    assert demand.kernel_tables == {KernelTable(198, 248), KernelTable(1000, 248)}
    found.work(removed=[annotated([], router(neighbor()))])
    assert demand.kernel_tables == frozenset()


def test_a_round_waits_for_the_first_reading_of_the_kernel() -> None:
    found = Node()
    first = found.tables.kernel_routes.register_initializer("kernel")
    found.write([annotated([entry()], router(neighbor(toAdvertise=ALL)))])
    summary = found.round()
    assert (summary.ready, summary.waiting_for) == (False, ("kernel-routes",))
    with found.db.write(found.tables.kernel_routes) as txn:
        found.tables.kernel_routes.upsert(txn, KernelRoute(VIP, *KUBE_VIP))
        first(txn)
    assert found.round().ready
    assert found.advertised == {PEER: [VIP]}


def test_each_vrf_has_its_own_redistribution() -> None:
    red = router(neighbor(address=SECOND, toAdvertise=ALL), vrf="red")
    value = [entry(), entry(table=1001, vrf="red")]
    found = node(annotated(value, router(neighbor(toAdvertise=ALL)), red))
    found.kernel((VIP, *KUBE_VIP), ("192.0.2.11/32", 1001, 248))
    assert found.advertised == {PEER: [VIP], SECOND: ["192.0.2.11/32"]}


def test_the_state_of_the_node_has_what_is_redistributed() -> None:
    value = [entry(), entry("2001:db8::/32", table=1001, vrf="red")]
    red = router(neighbor(address=SECOND), vrf="red")
    found = node(annotated(value, router(neighbor()), red))
    snapshot = found.db.snapshot()
    instances = {row.name: row for row in found.intent.instances.all(snapshot)}
    texts = {name: instance.redistributes for name, instance in instances.items()}
    of_main = "redistribute table-direct 198, protocol 248: 192.0.2.0/24 ge 32"
    of_red = "redistribute table-direct 1001, protocol 248: 2001:db8::/32 ge 32"
    assert sorted(texts.values()) == [(of_red,), (of_main,)]
    desired = desired_text(instances.values(), found.intent.peers.all(snapshot))
    held: dict[str, RunningInstance] = {
        name: (instance_config(row), {}) for name, row in instances.items()
    }
    for text in (desired, running_text(held, {}, texts)):
        assert [line for line in text.splitlines() if "redistribute" in line] == [
            f" ! {of_main}",
            f" ! {of_red}",
        ]


def explained(
    target: str, objects: Mapping[str, Any], directory: Path, capsys: pytest.CaptureFixture[str]
) -> tuple[str, str, str]:
    path = directory / "objects.json"
    path.write_text(json.dumps(objects))
    main(["explain", target, "-f", str(path), "--node", "n1", "-o", "json"])
    (item,) = json.loads(capsys.readouterr().out)["items"]
    return item["prefix"], item["reason"], item.get("message", "")


@pytest.mark.parametrize("target", [VIP, "192.0.2.10"])
def test_a_permitted_prefix_that_the_kernel_lacks_is_explained(
    target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    objects = annotated([entry()], router(neighbor(toAdvertise=ALL)))
    text = f"the kernel has no route {VIP} in table 198, protocol 248"
    assert explained(target, objects, tmp_path, capsys) == (VIP, "NotInKernel", text)


def test_a_prefix_of_a_router_that_covers_it_is_explained_in_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = "192.0.2.0/24"
    objects = annotated([entry()], router(neighbor(toAdvertise=ALL), prefixes=[whole]))
    prefix, reason, _ = explained("192.0.2.10", objects, tmp_path, capsys)
    assert (prefix, reason) == (whole, "Advertised")


FIELD = "metadata.annotations[waggle.dev/redistribute]"


@pytest.mark.parametrize(
    ("value", "field", "message"),
    [
        ("table 198", "", "it is no JSON: JSON is malformed: invalid character"),
        ("{}", "", "expected a list, got an object"),
        ("[" * 100_000, "", "at most 65536 characters, got 100000"),
        ("[" * 60_000, "", "it is no JSON:"),
        ([7], "[0]", "expected an object, got an integer"),
        ([{}], "[0].table", "is required"),
        ([entry(table=0)], "[0].table", "0 is not within 1 to 4294967295"),
        ([entry(table=255)], "[0].table", "255 is the kernel's table of local addresses"),
        (
            [entry(protocol=186)],
            "[0].protocol",
            "186 is BGP: received routes are not redistributed",
        ),
        ([entry(protocol="static")], "[0].protocol", "expected an integer, got a string 'static'"),
        ([entry(prefixes=[])], "[0].prefixes", "at least 1 item(s), got 0"),
        ([entry("192.0.2.0")], "[0].prefixes[0].prefix", "'192.0.2.0' is not a prefix such as"),
        (
            [entry("10.0.0.0/8", prefixes=[{"prefix": "10.0.0.0/8", "le": 4}])],
            "[0].prefixes[0].le",
            "le 4 of",
        ),
        ([entry(prefixs=[])], "[0].prefixs", "unknown field; did you mean prefixes?"),
        ([entry(vrf="blue")], "[0].vrf", "the object has no router of VRF blue"),
    ],
)
def test_a_wrong_annotation_is_a_problem_of_its_field(value: Any, field: str, message: str) -> None:  # noqa: ANN401
    found = node(annotated(value, router(neighbor(toAdvertise=ALL)))).problems()
    assert any(path == FIELD + field and message in text for path, text in found), found


RAW = """ip import-table 198
ip prefix-list vips seq 5 permit 192.0.2.0/24 ge 32
ipv6 prefix-list vips6 permit 2001:db8::/64 ge 128 le 128
route-map vips permit 10
 match ip address prefix-list vips
route-map vips deny 20
route-map vips6 permit 10
 match ipv6 address prefix-list vips6
exit
route-map 203.0.113.9-out permit 4000
 match ip address prefix-list vips
!
router bgp 64900
 address-family ipv4 unicast
  redistribute table-direct 198 route-map vips
 exit-address-family
 address-family ipv6 unicast
  redistribute table-direct 198 route-map vips6
exit
"""


def raw(text: str) -> dict[str, Any]:
    return configuration("raw", {"raw": {"rawConfig": text}})


def test_raw_configuration_says_the_same() -> None:
    routers = router(neighbor(), neighbor(address=SECOND, toAdvertise=ALL))
    found = node(configuration("x", {"bgp": {"routers": [routers]}}), raw(RAW))
    # With raw configuration a table has no protocol.
    found.kernel((VIP, 198, 3), (OTHER, 198, 3), ("192.0.2.11/32", 198, 186))
    assert found.advertised == {PEER: [VIP], SECOND: []}
    assert found.problems() == []


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("  redistribute table-direct 198 route-map vips\n", "  redistribute connected\n", 1),
        (" route-map vips\n", "\n", 1),
        ("permit 192.0.2.0/24 ge 32", "deny 192.0.2.0/24", 2),
        ("permit 192.0.2.0/24 ge 32", "permit 192.0.2.0/24 ge 8", 2),
        ("vips permit 10\n match", "vips permit 10\n set metric 3\n match", 2),
        ("vips permit 10\n match ip address prefix-list vips\n", "vips permit 10\n", 2),
        ("vips permit 10\n match ip address", "vips permit 10\n match ip next-hop", 2),
    ],
)
def test_what_is_not_understood_redistributes_nothing(old: str, new: str, line: int) -> None:
    text = RAW[: RAW.index(" address-family ipv6")].replace(old, new)
    meaning = raw_meaning(text)
    assert (meaning.routes.redistributions, meaning.other) == ((), line)
    found = node(configuration("x", {"bgp": {"routers": [router(neighbor())]}}), raw(text))
    found.kernel((VIP, *KUBE_VIP))
    assert found.advertised == {PEER: []}


def test_a_raw_line_beside_redistribution_is_named() -> None:
    text = f"{RAW}ip community-list 1 permit 1:1\n"
    found = node(configuration("x", {"bgp": {"routers": [router(neighbor())]}}), raw(text))
    (problem,) = found.problems()
    assert problem[1] == "raw configuration has no effect but for redistribution: line 20"


def written(tmp_path: Path, objects: Iterable[Mapping[str, Any]]) -> str:
    path = tmp_path / "objects.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
    return str(path)


def test_a_node_network_has_the_routes_offline(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network = {
        "apiVersion": "waggle.dev/v1alpha1",
        "kind": "NodeNetwork",
        "metadata": {"name": "n1"},
        "spec": {"routes": [{"prefix": VIP, "table": 198, "protocol": 248}]},
    }
    objects = [annotated([entry()], router(neighbor(toAdvertise=ALL))), network]
    path = written(tmp_path, objects)
    assert main(["explain", VIP, "-f", path, "--node", "n1", "-o", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["items"]
    assert (found["reason"], found["addressType"]) == ("Advertised", KERNEL_ROUTE)
    assert found["object"] == {"kind": "Node", "name": "n1"}
    assert found["rule"]["name"] == "vips"
    main(["render", "-f", path, "--node", "n1"])
    assert VIP in capsys.readouterr().out
