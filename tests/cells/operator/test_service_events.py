"""The leader's Events on Services that objects of dialects select, by the statuses of nodes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from cells.apply.reconcile import Runners
from cells.hive import Group, Health
from cells.hive.health import HealthTree, Level
from cells.hive.hive import Hive
from cells.hive.rounds import in_slices
from cells.operator import service_events
from cells.operator.service_events import ServiceEventsCheck
from cells.options import OperatorOptions
from cells.sources.api_server import UNREAD_SECONDS
from reconcilers.dialect import Dialect, ServiceStatuses, Unread
from reconcilers.report import service_events as rules
from reconcilers.target import write_spread
from resources.cilium.kinds import ADVERTISEMENT
from resources.core import EndpointSlice, Service
from resources.frrk8s.kinds import BGP_SESSION_STATE, FRR_CONFIGURATION
from resources.kind import Kinds
from resources.kubernetes import StatusError
from resources.metallb.kinds import CONFIGURATION, SERVICE_BGP_STATUS
from resources.tables import Tables
from statedb import Database
from tests.cells.operator.test_rivals import run
from tests.support.apiserver import ApiServer
from tests.support.apiserver import status as forbidden
from tests.support.kinds import KINDS
from tests.support.wait import until

ON = {"enable_cell": ["frrk8s", "metallb"], "disable_cell": ["logging", "cilium"]}
CILIUM = {"disable_cell": ["logging"]}
GROUP = "metallb.io"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passes within the time of a test, no grace, and counts at once."""
    monkeypatch.setattr(service_events, "POLL_INTERVAL_SECONDS", 0.03)
    monkeypatch.setattr(rules, "GRACE_SECONDS", 0.0)
    monkeypatch.setattr(write_spread, "COUNT_INTERVAL_SECONDS", 0.0)


def metallb(kind: str, name: str, version: str, **content: Any) -> dict[str, Any]:  # noqa: ANN401
    metadata = {"name": name, "namespace": "metallb-system"}
    return {"apiVersion": f"{GROUP}/{version}", "kind": kind, "metadata": metadata, **content}


def service(name: str, address: str, **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "shop", "labels": labels},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
        "status": {"loadBalancer": {"ingress": [{"ip": address}]}},
    }


def cluster() -> ApiServer:
    """Return a server with a pool that is advertised for one Service."""
    server = ApiServer([*KINDS, *CONFIGURATION, SERVICE_BGP_STATUS, FRR_CONFIGURATION])
    pool = {"addresses": ["198.51.100.0/28"]}
    selectors = [{"matchLabels": {"expose": "true"}}]
    server.put(metallb("IPAddressPool", "blue", "v1beta1", spec=pool))
    spec = {"ipAddressPools": ["blue"], "serviceSelectors": selectors}
    server.put(metallb("BGPAdvertisement", "all", "v1beta1", spec=spec))
    server.put(service("web", "198.51.100.7", expose="true"))
    server.put(service("hidden", "198.51.100.8"))
    server.put(service("elsewhere", "203.0.113.1", expose="true"))
    return server


def status(peers: object) -> dict[str, Any]:
    members = {"node": "a", "serviceName": "web", "serviceNamespace": "shop", "peers": peers}
    return metallb("ServiceBGPStatus", "bgp-x", "v1beta1", status=members)


def events(server: ApiServer) -> list[tuple[str, str, str]]:
    return [(e["reason"], e["regarding"]["name"], e["reportingController"]) for e in server.events]


def cilium(kind: str, name: str, **content: Any) -> dict[str, Any]:  # noqa: ANN401
    metadata = {"name": name, **content.pop("metadata", {})}
    return {"apiVersion": "cilium.io/v2", "kind": kind, "metadata": metadata, **content}


def node_config(node: str, state: str, *families: str) -> dict[str, Any]:
    """Return a NodeConfig with one peer, whose session has this state."""
    reference = {"name": "tor", "group": "cilium.io", "kind": "CiliumBGPPeerConfig"}
    peer = {"name": "r", "peerASN": 64900, "peerAddress": "192.0.2.9"}
    instance = {"name": "i", "localASN": 65001}
    counts = [{"afi": afi, "safi": "unicast", "received": 0, "advertised": 1} for afi in families]
    status = {"name": "r", "peerAddress": "192.0.2.9", "peeringState": state, "routeCount": counts}
    return cilium(
        "CiliumBGPNodeConfig",
        node,
        spec={"bgpInstances": [{**instance, "peers": [{**peer, "peerConfigRef": reference}]}]},
        status={"bgpInstances": [{**instance, "peers": [status]}]},
    )


def of_cilium(server: ApiServer | None = None) -> ApiServer:
    """Give a server an Advertisement for one Service, and nodes without a session."""
    server = server or ApiServer()
    families = [
        {"afi": afi, "safi": "unicast", "advertisements": {"matchLabels": {"to": "tor"}}}
        for afi in ("ipv4", "ipv6")
    ]
    selector = {"matchLabels": {"expose": "true"}}
    addresses = {"addresses": ["LoadBalancerIP"]}
    entry = {"advertisementType": "Service", "service": addresses, "selector": selector}
    labels = {"labels": {"to": "tor"}}
    server.put(cilium("CiliumBGPPeerConfig", "tor", spec={"families": families}))
    advertisement = {"advertisements": [entry]}
    server.put(cilium("CiliumBGPAdvertisement", "all", metadata=labels, spec=advertisement))
    server.put(cilium("CiliumBGPAdvertisement", "unused", spec={"advertisements": [entry]}))
    for node in ("a", "b"):
        server.put(node_config(node, "active"))
    server.put(service("web", "198.51.100.7", expose="true"))
    server.put(service("hidden", "198.51.100.8"))
    return server


def local(value: dict[str, Any]) -> dict[str, Any]:
    return {**value, "spec": {**value["spec"], "externalTrafficPolicy": "Local"}}


def endpoint_on(node: str) -> dict[str, Any]:
    labels = {"kubernetes.io/service-name": "web"}
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "web-1", "namespace": "shop", "labels": labels},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.1.0.1"], "nodeName": node, "conditions": {"ready": True}}],
    }


MISSING = ("NotAdvertised", "web", "waggle.dev/operator")
ADVERTISED = ("Advertised", "web", "waggle.dev/operator")


async def passes(server: ApiServer, read: str = "servicebgpstatuses") -> None:
    """Wait for two whole passes; ``read`` is listed in each."""
    before = len(server.queries("list", read))
    await until(lambda: len(server.queries("list", read)) > before + 2)


def test_a_service_that_no_node_advertises_has_one_event_and_one_for_each_change(
    tmp_path: Path,
) -> None:
    server = cluster()

    async def scenario(_: Hive) -> None:
        await until(lambda: events(server) == [MISSING])
        await passes(server)
        assert events(server) == [MISSING]  # once
        server.put(status(["tor"]))
        await until(lambda: events(server) == [MISSING, ADVERTISED])
        server.put(status([]))
        # The same Event, with the time of now: what the last one says is what is true.
        await until(lambda: server.events[0].get("series", {}).get("count") == 2)

    run(tmp_path, server, scenario, **ON)
    assert events(server) == [MISSING, ADVERTISED]


def test_a_status_that_cannot_be_read_is_named_and_delays_no_event(tmp_path: Path) -> None:
    server = cluster()
    server.put(status("nonsense"))

    async def scenario(operator: Hive) -> None:
        await until(lambda: events(server) == [MISSING])
        await passes(server)
        (scope,) = (
            scope for scope in operator.health.report() if scope.path[-1] == ServiceEventsCheck.name
        )
        assert scope.message.startswith("ServiceBGPStatus/metallb-system/bgp-x: ")

    run(tmp_path, server, scenario, **ON)


def test_objects_of_another_namespace_ask_for_nothing(tmp_path: Path) -> None:
    server = cluster()
    pool = metallb("IPAddressPool", "red", "v1beta1", spec={"addresses": ["203.0.113.0/28"]})
    advertisement = metallb("BGPAdvertisement", "any", "v1beta1", spec={})
    for value in (pool, advertisement):
        value["metadata"]["namespace"] = "shop"
        server.put(value)

    async def scenario(_: Hive) -> None:
        await until(lambda: events(server) == [MISSING])
        await passes(server)
        assert events(server) == [MISSING]

    run(tmp_path, server, scenario, **ON)


@pytest.mark.parametrize(
    ("flags", "served"),
    [
        pytest.param({"--status-report": False}, True, id="statuses are switched off"),
        pytest.param({}, False, id="definitions without ServiceBGPStatus"),
    ],
)
def test_without_statuses_nothing_is_reported_of_services(
    tmp_path: Path, flags: dict[str, Any], served: bool
) -> None:
    server = cluster()
    if not served:
        server.served[SERVICE_BGP_STATUS.plural] = ()

    async def scenario(operator: Hive) -> None:
        before = len(server.queries("list", "daemonsets"))
        await until(lambda: len(server.queries("list", "daemonsets")) > before + 2)
        assert events(server) == []
        bad = [s for s in operator.health.report() if s.level is Level.DEGRADED]
        assert [s for s in bad if s.path[-1] == ServiceEventsCheck.name] == []

    run(tmp_path, server, scenario, **ON, **flags)


def test_a_service_of_cilium_is_advertised_where_a_session_is_established(tmp_path: Path) -> None:
    server = of_cilium()

    async def scenario(_: Hive) -> None:
        await until(lambda: events(server) == [MISSING])
        server.put(node_config("b", "established", "ipv6"))  # the family of no address
        await passes(server, ADVERTISEMENT.plural)
        assert events(server) == [MISSING]
        server.put(node_config("b", "established", "ipv4", "ipv6"))
        await until(lambda: events(server) == [MISSING, ADVERTISED])

    run(tmp_path, server, scenario, **CILIUM)
    assert server.queries("list", "endpointslices") == []


def test_a_service_with_local_endpoints_is_advertised_by_their_nodes_alone(tmp_path: Path) -> None:
    server = of_cilium()
    server.put(local(service("web", "198.51.100.7", expose="true")))
    server.put(node_config("a", "established", "ipv4"))
    server.put(endpoint_on("b"))

    async def scenario(_: Hive) -> None:
        await until(lambda: events(server) == [MISSING])
        server.put(endpoint_on("a"))
        await until(lambda: events(server) == [MISSING, ADVERTISED])

    run(tmp_path, server, scenario, **CILIUM)


def test_a_service_of_some_nodes_is_advertised_by_these_alone(tmp_path: Path) -> None:
    server = of_cilium()
    label = "service.cilium.io/node"
    value = service("web", "198.51.100.7", expose="true")
    value["metadata"]["annotations"] = {label: "blue"}
    server.put(value)
    for name, color in (("a", "red"), ("b", "blue")):
        metadata = {"name": name, "labels": {label: color}}
        server.put({"apiVersion": "v1", "kind": "Node", "metadata": metadata})
    server.put(node_config("a", "established", "ipv4"))

    async def scenario(_: Hive) -> None:
        await until(lambda: events(server) == [MISSING])
        server.put(node_config("b", "established", "ipv4"))
        await until(lambda: events(server) == [MISSING, ADVERTISED])

    run(tmp_path, server, scenario, **CILIUM)


def test_an_address_within_a_prefix_of_an_frrconfiguration(tmp_path: Path) -> None:
    server = ApiServer([*KINDS, FRR_CONFIGURATION, BGP_SESSION_STATE])
    namespace = {"namespace": "frr-k8s-system"}
    group = "frrk8s.metallb.io/v1beta1"
    prefixes = {"prefixes": ["198.51.100.0/28", "203.0.113.0/28"]}
    only = {"prefixes": ["198.51.100.0/28"]}
    near = {"address": "192.0.2.9", "asn": 64900, "toAdvertise": {"allowed": only}}
    every = {"address": "2001:db8::9", "asn": 64900, "toAdvertise": {"allowed": {"mode": "all"}}}
    router = {"asn": 65001, **prefixes, "neighbors": [near, every]}
    server.put({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}})
    head = {"apiVersion": group, "kind": "FRRConfiguration"}
    spec = {"bgp": {"routers": [router, {"asn": 65001, "vrf": "red", "prefixes": ["0.0.0.0/0"]}]}}
    server.put({**head, "metadata": {"name": "c", **namespace}, "spec": spec})
    server.put(service("web", "198.51.100.7"))
    server.put(service("api", "203.0.113.7"))
    server.put(service("elsewhere", "192.0.2.7"))

    def session(peer: str, state: str) -> dict[str, Any]:
        status = {"node": "a", "peer": peer, "vrf": "", "bgpStatus": state, "bfdStatus": "N/A"}
        metadata = {"name": f"a-{peer}", **namespace}
        return {
            "apiVersion": group,
            "kind": "BGPSessionState",
            "metadata": metadata,
            "status": status,
        }

    both = {MISSING, ("NotAdvertised", "api", "waggle.dev/operator")}

    async def scenario(_: Hive) -> None:
        await until(lambda: set(events(server)) == both)
        server.put(session("192.0.2.9", "Established"))
        server.put(session("2001-0db8-0000-0000-0000-0000-0000-0009", "Established"))
        await until(lambda: ADVERTISED in events(server))
        # To a neighbor with an IPv6 address goes no IPv4 prefix, unless the session has both families.
        await passes(server, BGP_SESSION_STATE.plural)
        assert set(events(server)) == {*both, ADVERTISED}

    run(tmp_path, server, scenario, enable_cell=["frrk8s"], disable_cell=["logging", "cilium"])


@pytest.mark.parametrize("denied", ["ciliumbgpadvertisements", "endpointslices"])
def test_what_may_not_be_read_is_named_and_costs_one_dialect_its_events(
    tmp_path: Path, denied: str
) -> None:
    server = of_cilium(cluster())
    server.put(local(service("web", "198.51.100.7", expose="true")))
    server.put(node_config("a", "established", "ipv4"))
    server.always("list", denied, forbidden(403, "Forbidden", f"{denied} are forbidden"))

    async def scenario(operator: Hive) -> None:
        await until(lambda: events(server) == [MISSING])  # MetalLB's
        (scope,) = (s for s in operator.health.report() if s.path[-1] == ServiceEventsCheck.name)
        assert scope.message.startswith("no Events for Cilium BGP: ")
        assert denied in scope.message

    cells = {"enable_cell": ["frrk8s", "metallb"], "disable_cell": ["logging"]}
    run(tmp_path, server, scenario, **cells)


def test_a_service_that_another_dialect_advertises_is_not_missing(tmp_path: Path) -> None:
    # MetalLB's pool has the address, and no node has a session by MetalLB's objects.
    server = of_cilium(cluster())
    server.put(node_config("a", "established", "ipv4"))

    async def scenario(_: Hive) -> None:
        await passes(server)
        assert events(server) == []

    cells = {"enable_cell": ["frrk8s", "metallb"], "disable_cell": ["logging"]}
    run(tmp_path, server, scenario, **cells)


def test_a_new_leader_waits_until_every_kind_was_read() -> None:
    kubernetes: Any = SimpleNamespace(unread=Unread(waits_for="IPAddressPool"))
    database, dialects, nothing = Database(), Group[Dialect](), cast("Any", None)
    options = OperatorOptions()
    check = ServiceEventsCheck(
        database,
        nothing,
        dialects,
        kubernetes,
        options,
        nothing,
        Health(),
        nothing,
        Runners(),
    )
    assert asyncio.run(check.run(nothing)) == UNREAD_SECONDS


class Toy:
    """A dialect whose Services are all selected, and are advertised as its statuses have them."""

    name, title = "toy", "Toy"
    cluster_kinds = (FRR_CONFIGURATION,)

    def __init__(self) -> None:
        self.present: set[str] = set()
        self.follows = False
        """Whether it depends on the EndpointSlices which node advertises a Service."""

    def each(self, extension: object) -> tuple[object, ...]:
        statuses = ServiceStatuses(self.begin, (SERVICE_BGP_STATUS,), lambda _: "toys")
        return (statuses,) if extension is ServiceStatuses else ()

    def begin(self, dialect: object, _: object) -> Any:  # noqa: ANN401 - a stand-in
        assert dialect is self
        self.present.clear()
        return self

    def read(self, kind: object, value: dict[str, Any]) -> None:
        assert kind is SERVICE_BGP_STATUS
        self.present.add(value["address"])

    def selected(self, service: Service) -> tuple[str, ...]:
        return tuple(ingress.ip for ingress in service.status.load_balancer.ingress)

    def follows_endpoints(self, _: Service) -> bool:
        return self.follows

    def advertised(self, _: Service, slices: Sequence[EndpointSlice]) -> set[str]:
        assert bool(slices) is self.follows
        return self.present


class Reading:
    """A writer's reads: what each list has, or its error."""

    def __init__(self) -> None:
        self.lists: dict[str, list[dict[str, Any]] | StatusError] = {}
        self.rejection: StatusError | None = None
        """The answer to a write."""
        self.created: list[str] = []
        self.notes: list[str] = []

    async def pages(self, path: str, _: object) -> AsyncIterator[list[dict[str, Any]]]:
        found = next((v for k, v in self.lists.items() if k in path), [])
        if isinstance(found, StatusError):
            raise found
        yield found

    async def create(self, path: str, content: dict[str, Any]) -> dict[str, Any]:
        if self.rejection is not None:
            raise self.rejection
        self.created.append(f"{path} {content['reason']} {content['regarding']['name']}")
        self.notes.append(content["note"])
        return content


class Pass:
    """The check, run by the test."""

    def __init__(self, **unread: Any) -> None:  # noqa: ANN401
        self.tree, self.reading = HealthTree(), Reading()
        database = Database()
        tables = Tables(database, Kinds((FRR_CONFIGURATION,)))
        self.table = tables.of(FRR_CONFIGURATION).name
        kubernetes: Any = SimpleNamespace(unread=Unread(**unread))
        self.kubernetes = kubernetes
        self.toy = Toy()
        dialects = Group[Dialect]((cast("Dialect", self.toy),))
        health = self.tree.scope("operator")
        self.jobs: dict[str, object] = {}
        others: Any = SimpleNamespace(add=self.jobs.__setitem__)
        self.check = ServiceEventsCheck(
            database,
            tables,
            dialects,
            kubernetes,
            OperatorOptions(),
            others,
            health,
            others,
            Runners(),
        )
        self.writes = self.check._events
        self.runner = self.writes.runner(cast("Any", self.reading))

    def run(self) -> tuple[str, str]:
        """Make a pass; returns its health."""
        pause = asyncio.run(self.check.run(cast("Any", self.reading)))
        assert pause == service_events.POLL_INTERVAL_SECONDS
        return self.health("service-events")

    def write(self) -> tuple[str, str]:
        """Write what is recorded; returns the health of writes."""
        asyncio.run(in_slices(self.runner.slices(time.monotonic)))
        self.writes.report(self.runner)
        return self.health(service_events.WRITES)

    def health(self, name: str) -> tuple[str, str]:
        (status,) = [s for s in self.tree.report() if s.path == ("operator", name)]
        return str(status.level), status.message

    def dropped(self) -> float:
        (family,) = self.check.collect()
        (sample,) = family.samples
        assert sample.name == "waggle_operator_events_dropped_total"
        return sample.value


def test_a_pass_writes_an_event_of_each_service_that_no_node_advertises() -> None:
    it = Pass()
    web, api = service("web", "198.51.100.7"), service("api", "198.51.100.8")
    invalid = {**service("invalid", "x"), "spec": {"type": "LoadBalancer", "ports": 7}}
    none = {**service("none", ""), "status": {}}
    it.reading.lists["services"] = [web, invalid, none, api]
    it.reading.lists["servicebgpstatuses"] = [{"address": "198.51.100.8"}]
    assert list(it.jobs) == [service_events.WRITES]
    for _ in range(2):
        assert it.run() == ("ok", "Services are compared with the statuses")
        assert it.write() == ("ok", "1 written")
        assert [line.split()[1:] for line in it.reading.created] == [["NotAdvertised", "web"]]


def test_each_address_of_a_service_has_its_place_in_an_event() -> None:
    it = Pass()
    first, second = "198.51.100.7", "198.51.100.8"
    dual = service("web", first)
    dual["status"]["loadBalancer"]["ingress"].append({"ip": second})
    it.reading.lists["services"] = [dual]

    def after(*advertised: str) -> list[str]:
        """Return the notes of the Events of a pass with these addresses in statuses."""
        it.reading.lists["servicebgpstatuses"] = [{"address": text} for text in advertised]
        before = len(it.reading.notes)
        it.run()
        it.write()
        return [note.partition(";")[0] for note in it.reading.notes[before:]]

    assert after() == [f"not advertised by any node: {first}, {second}"]
    assert after(second) == [f"advertised: {second}"]
    assert after(first, second) == [f"advertised: {first}"]
    assert after(first) == [f"not advertised by any node: {second}"]
    assert after(first) == []


def test_a_kind_that_cannot_be_read_costs_the_events_of_its_dialect() -> None:
    it = Pass()
    it.kubernetes.unread = Unread(kinds={it.table: "FRRConfiguration", "other": "Other"})
    it.reading.lists["services"] = [service("web", "198.51.100.7")]
    assert it.run() == ("degraded", "no Events for Toy: FRRConfiguration cannot be read")
    assert it.reading.created == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("services", "Services cannot be read: 403: no"),
        ("servicebgpstatuses", "no Events for Toy: 403: no"),
        ("endpointslices", "no Events for Toy: 403: no"),
    ],
)
def test_what_may_not_be_read_is_named_and_another_error_is_not_ours(path: str, text: str) -> None:
    it = Pass()
    it.toy.follows = True
    it.reading.lists["services"] = [service("web", "198.51.100.7")]
    it.reading.lists[path] = StatusError(403, "no")
    assert it.run() == ("degraded", text)
    assert it.reading.created == []
    it.reading.lists[path] = StatusError(500, "no")
    with pytest.raises(StatusError):
        it.run()


def test_statuses_that_older_definitions_lack_are_no_problem() -> None:
    it = Pass()
    it.reading.lists["services"] = [service("web", "198.51.100.7")]
    it.reading.lists["servicebgpstatuses"] = StatusError(404, "no")
    assert it.run() == ("ok", "Services are compared with the statuses")
    assert it.write() == ("ok", "0 written")
    assert it.reading.created == []


def test_events_that_are_lost_are_a_warning_and_a_metric() -> None:
    it = Pass()
    assert it.dropped() == 0
    it.writes.events.dropped = 4
    assert it.dropped() == 4
    with capture_logs() as logs:
        assert it.write() == ("ok", "0 written, 4 dropped")
        it.write()
    assert logs == [
        {
            "event": "Events are dropped",
            "event_name": "operator.events_dropped",
            "log_level": "warning",
            "events": 4,
        },
    ]


def test_events_that_are_rejected_in_several_passes_are_one_line() -> None:
    it = Pass()
    it.reading.rejection = StatusError(403, "User cannot")
    with capture_logs() as logs:
        for number in range(3):
            it.reading.lists["services"] = [service(f"web-{number}", f"198.51.100.{number}")]
            it.run()
            level, text = it.write()
    assert level == "degraded"
    assert text.endswith(f"may not create events: User cannot, {number + 1} dropped")
    rejected = [line for line in logs if line["event_name"] == "operator.event_rejected"]
    assert rejected == [
        {
            "event": "Event not written",
            "event_name": "operator.event_rejected",
            "log_level": "warning",
            "object": "Service/shop/web-0",
            "reason": "may not create events: User cannot",
        }
    ]
