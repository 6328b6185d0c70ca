"""From kubectl to the router in Jaeger: what its query API returns of a change, span by span.

A cluster as in `tests.interop.one_node_cluster`, whose agent sends its spans to Jaeger. An ordinary
change is one trace; a round with several causes is one of its own, with links to them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

import pytest

from tests.interop.conftest import NeedRouter
from tests.interop.one_node_cluster import (
    ASN,
    NAMESPACE,
    NODE,
    PEER_ASN,
    POD_CIDR,
    THEIRS,
    WEB,
    Cluster,
    running,
    service,
)
from tests.support import jaeger
from tests.support.bfd_process import end_process
from tests.support.jaeger import Jaeger, Span
from tests.support.kubernetes.server import KubeApiServer
from tests.support.wait import eventually
from tests.test_span_names import OURS, conventional

pytestmark = [
    pytest.mark.apiserver,
    pytest.mark.interop,
    pytest.mark.jaeger,
    pytest.mark.netns,
    pytest.mark.program,
]

FRRK8S: Final = "frr-k8s-system"
RECEIVED = "203.0.113.0/24"
OF_JAEGER = {"span.kind", "error", "internal.span.format", "otel.status_code"}
"""Tags that Jaeger adds, and ``otel.*`` of what OTLP has in fields of its own."""


@dataclass(frozen=True, slots=True)
class Lab:
    """The cluster, and where its spans are."""

    cluster: Cluster
    jaeger: Jaeger

    def change(self, object_: str, last: str, *, after: Iterable[Span] = ()) -> list[Span]:
        """Return the trace of the last event of an object, once a span of a name has come.

        ``after`` is the trace of an earlier event, which stays the last one until the next is exported.
        """
        tags = {"waggle.object": object_}
        earlier = {span.trace_id for span in after}
        found: list[Span] = []

        def check() -> None:
            every = self.jaeger.traces("waggle-agent", "resource.event", tags)
            traces = [spans for spans in every if spans[0].trace_id not in earlier]
            traces.sort(key=lambda spans: min(span.start for span in spans))
            assert traces, f"no event of {object_}"
            found[:] = sorted(traces[-1], key=lambda span: span.start)
            assert last in names(found), names(found)

        eventually(check, context=self.cluster.logs)
        return found


def names(spans: Iterable[Span]) -> list[str]:
    return [span.name for span in spans]


def one(spans: Iterable[Span], name: str) -> Span:
    """Return the only span of a name."""
    (found,) = (span for span in spans if span.name == name)
    return found


def way(spans: Iterable[Span], last: Span) -> list[str]:
    """Return the names of the spans above one, from the first, and its own."""
    known = {span.span_id: span for span in spans}
    found = [last]
    while (parent := found[0].parent) is not None:
        assert parent in known, f"{found[0].name} has a parent that Jaeger does not have"
        found.insert(0, known[parent])
    return names(found)


@pytest.fixture(scope="module")
def lab(
    apiserver: KubeApiServer, need_router: NeedRouter, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Lab]:
    """A cluster and a Jaeger; the agent accepts one prefix, and installs it."""
    need_router("bird")
    program = jaeger.find()
    if isinstance(program, str):
        pytest.skip(program)
    directory = tmp_path_factory.mktemp("jaeger")
    collector = Jaeger(program, directory)
    collector.start()
    try:
        arguments = [
            *("--otlp-endpoint", f"http://127.0.0.1:{collector.otlp_port}"),
            *("--otlp-interval-seconds", "0.1"),
            *("--cilium-import", RECEIVED, "--fib", "true", "--cilium-next-fields"),
            *("--enable-cell", "frrk8s", "--bfd", "--bfd-directory", str(directory / "bfd")),
        ]
        with running(
            apiserver,
            directory,
            arguments=arguments,
            reaches=(collector.otlp_port,),
            kernel=True,
            bfd_interval=300,
        ) as cluster:
            cluster.server.kubectl("label", "node", NODE, "bgp=cluster-test")
            cluster.holds()
            yield Lab(cluster, collector)
    finally:
        end_process(directory / "bfd")
        collector.stop()


def test_a_service_applied_with_kubectl_is_one_trace_up_to_the_update(lab: Lab) -> None:
    cluster = lab.cluster
    web = json.dumps(service("web", "198.51.100.10"))
    cluster.server.kubectl("apply", "-f", "-", text=web)
    cluster.holds(WEB)

    trace = lab.change(f"{NAMESPACE}/web", "bgp.update.send")
    send = one(trace, "bgp.update.send")
    assert way(trace, send) == [
        "resource.event",
        "intent.round",
        "apply.round",
        "apply.route-set",
        "bgp.export",
        "bgp.update.send",
    ]
    event, commit = one(trace, "resource.event"), one(trace, "statedb.commit")
    assert way(trace, commit) == ["resource.event", "statedb.commit"]
    assert event.attributes["waggle.kind"] == "Service"
    assert json.loads(one(trace, "intent.round").attributes["waggle.prefixes"]) == [WEB]
    (route_set,) = json.loads(one(trace, "apply.route-set").attributes["waggle.objects"])
    assert route_set.startswith("main/")
    assert json.loads(send.attributes["bgp.peers"]) == ["tor"]
    counts = {name: send.attributes[f"bgp.{name}_count"] for name in ("peer", "prefix", "update")}
    assert counts == {"peer": 1, "prefix": 1, "update": 1}
    assert send.attributes["bgp.octet_count"] > 23
    assert send.attributes["network.peer.address"] == THEIRS
    # What Jaeger shows of the process: which node, which version.
    assert send.resource["service.name"] == "waggle-agent"
    assert send.resource["k8s.node.name"] == NODE
    assert send.resource["service.version"]
    assert all(span.links == () for span in trace)


def test_a_configuration_names_each_reconciler_with_its_objects(lab: Lab) -> None:
    kubectl = lab.cluster.server.kubectl
    timers = {"spec": {"timers": {"keepAliveTimeSeconds": 2}}}
    kubectl(
        *("patch", "ciliumbgppeerconfig", "cluster-test", "--type=merge", "-p", json.dumps(timers))
    )
    trace = lab.change("cluster-test", "apply.peer")
    assert one(trace, "resource.event").attributes["waggle.kind"] == "CiliumBGPPeerConfig"
    peer = one(trace, "apply.peer")
    assert way(trace, peer) == ["resource.event", "intent.round", "apply.round", "apply.peer"]
    assert json.loads(peer.attributes["waggle.objects"]) == ["main/tor"]
    policy = one(trace, "apply.import-policy")
    assert way(trace, policy) == [*way(trace, peer)[:-1], "apply.import-policy"]
    assert json.loads(policy.attributes["waggle.objects"]) == ["main/tor"]
    lab.cluster.holds(*({WEB} & lab.cluster.held()))


ACCEPTED: Final = "192.0.2.0/24"


def frr_configuration(*prefixes: str) -> str:
    """Return an FRRConfiguration with a router of its own, whose only neighbor is silent."""
    neighbor: dict[str, object] = {"address": "10.99.0.99", "asn": PEER_ASN}
    if prefixes:
        allowed = {"prefixes": [{"prefix": prefix} for prefix in prefixes]}
        neighbor["toReceive"] = {"allowed": allowed}
    value = {
        "apiVersion": "frrk8s.metallb.io/v1beta1",
        "kind": "FRRConfiguration",
        "metadata": {"name": "traced", "namespace": FRRK8S},
        "spec": {"bgp": {"routers": [{"asn": ASN, "neighbors": [neighbor]}]}},
    }
    return json.dumps(value)


def test_an_instance_and_an_import_policy_are_traced_from_their_object(lab: Lab) -> None:
    kubectl = lab.cluster.server.kubectl
    # Other tests on this API server make it, too.
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": FRRK8S}}
    kubectl("apply", "-f", "-", text=json.dumps(namespace))
    kubectl("apply", "-f", "-", text=frr_configuration())
    created = lab.change(f"{FRRK8S}/traced", "apply.instance")
    instance = one(created, "apply.instance")
    assert way(created, instance) == [
        "resource.event",
        "intent.round",
        "apply.round",
        "apply.instance",
    ]
    (name,) = json.loads(instance.attributes["waggle.objects"])
    assert json.loads(one(created, "apply.peer").attributes["waggle.objects"]) == [
        f"{name}/10.99.0.99"
    ]

    kubectl("apply", "-f", "-", text=frr_configuration(ACCEPTED))

    def has_policy() -> None:
        query = {"prefix": ACCEPTED, "instance": name}
        accepted = lab.cluster.agent.ask("/v1/explain-received", **query)
        assert [item["accepted"] for item in accepted] == [True]

    eventually(has_policy, context=lab.cluster.logs)
    changed = lab.change(f"{FRRK8S}/traced", "apply.peer", after=created)
    # The instance has not changed, and the import policy reaches the peer before its other settings.
    assert "apply.instance" not in names(changed)
    reconciled = ("apply.import-policy", "apply.peer")
    assert [span for span in names(changed) if span in reconciled] == [*reconciled]
    for reconciler in reconciled:
        span = one(changed, reconciler)
        above = ["resource.event", "intent.round", "apply.round"]
        assert way(changed, span) == [*above, reconciler]
        assert json.loads(span.attributes["waggle.objects"]) == [f"{name}/10.99.0.99"]
    kubectl("delete", "frrconfiguration", "traced", "--namespace", FRRK8S)


def test_a_round_with_several_causes_is_a_trace_of_its_own_with_links_to_them(lab: Lab) -> None:
    cluster = lab.cluster
    before = {span.trace_id for t in _intents(lab) for span in t}
    # Both changes wait in one connection for the agent, which reads them at once.
    cluster.agent.daemon.freeze()
    try:
        for name, address in (("a", "198.51.100.21"), ("b", "198.51.100.22")):
            waiting = cluster.link.left.unread()
            cluster.put(name, address)
            eventually(partial(_arrived, cluster, waiting), context=cluster.logs)
    finally:
        cluster.agent.daemon.thaw()
    added = {"198.51.100.21/32", "198.51.100.22/32"}
    eventually(lambda: _superset(cluster.held(), added), context=cluster.logs)
    found: list[Span] = []

    def linked() -> None:
        traces = [t for t in _intents(lab) if t[0].trace_id not in before]
        found[:] = [span for t in traces for span in t if len(span.links) >= 2]
        assert found, [names(t) for t in traces]

    eventually(linked, context=cluster.logs)
    round_ = found[0]
    assert (round_.name, round_.parent) == ("intent.round", None)
    causes = [
        span
        for trace_id, span_id in round_.links
        for span in lab.jaeger.trace(trace_id)
        if span.span_id == span_id
    ]
    assert names(causes) == ["resource.event"] * len(round_.links)
    objects = {cause.attributes["waggle.object"] for cause in causes}
    assert {f"{NAMESPACE}/a", f"{NAMESPACE}/b"} <= objects

    def sent() -> None:
        trace = lab.jaeger.trace(round_.trace_id)
        assert "bgp.update.send" in names(trace)
        assert way(trace, one(trace, "bgp.export"))[0] == "intent.round"

    eventually(sent, context=cluster.logs)


EVENT_OCTETS: Final = 600
"""A Service in an event of a watch has more, a bookmark less."""


def _arrived(cluster: Cluster, before: list[int]) -> None:
    """Fail until one of the agent's connections has an event of a Service more to read."""
    now = cluster.link.left.unread()
    grown = [octets - was for octets, was in zip(now, before, strict=True)]
    assert max(grown) >= EVENT_OCTETS, grown


def _superset(held: set[str], added: set[str]) -> None:
    assert {POD_CIDR, *added} <= held


def _intents(lab: Lab) -> list[list[Span]]:
    return lab.jaeger.traces("waggle-agent", "intent.round", {})


def test_a_received_route_is_one_trace_up_to_the_kernel(lab: Lab) -> None:
    cluster = lab.cluster
    cluster.bird.announce(RECEIVED)

    def installed() -> None:
        routes = json.loads(cluster.link.left.run("ip", "-j", "route", "show", "proto", "186"))
        assert [row["dst"] for row in routes] == [RECEIVED]

    eventually(installed, context=cluster.logs)
    found: list[Span] = []

    def traced() -> None:
        traces = lab.jaeger.traces("waggle-agent", "kernel.batch", {})
        assert traces
        found[:] = traces[-1]
        assert "bgp.best_paths" in names(found), [(s.name, s.links) for s in found]

    eventually(traced, context=cluster.logs)
    batch = one(found, "kernel.batch")
    round_ = ["apply.round", "apply.kernel-routes"]
    # A first round waits until the kernel has looked up the next hop, if it has not by then.
    assert way(found, batch) in (
        ["bgp.update.receive", "bgp.export", "bgp.best_paths", *round_ * rounds, "kernel.batch"]
        for rounds in (1, 2)
    )
    received = one(found, "bgp.update.receive")
    assert received.attributes["network.peer.address"] == THEIRS
    assert json.loads(received.attributes["bgp.peers"]) == ["tor"]
    assert received.attributes["bgp.update_count"] >= 1
    assert (batch.attributes["waggle.route_count"], batch.attributes["waggle.failed_count"]) == (
        1,
        0,
    )
    assert one(found, "bgp.best_paths").attributes["bgp.instance"] == "main"


def test_a_bfd_session_that_comes_up_is_a_span_with_its_states(lab: Lab) -> None:
    bfd = {"enabled": True, "receiveIntervalMilliseconds": 300, "transmitIntervalMilliseconds": 300}
    kubectl = lab.cluster.server.kubectl
    patch = ("patch", "ciliumbgppeerconfig", "cluster-test", "--type=merge", "-p")
    tags = {"waggle.object": "cluster-test"}
    before = [s for t in lab.jaeger.traces("waggle-agent", "resource.event", tags) for s in t]
    kubectl(*patch, json.dumps({"spec": {"bfd": bfd}}))

    def traced() -> None:
        traces = lab.jaeger.traces("waggle-agent", "bfd.change", {})
        events = [e for t in traces for s in t for e in s.events if e["event"] == "bfd.changed"]
        up = [event for event in events if event["waggle.bfd.state"] == "Up"]
        # A machine that keeps one of both from running ends the session, which comes up again.
        assert {event["network.peer.address"] for event in up} == {THEIRS}, events
        assert up[0]["waggle.bfd.former_state"] in ("Init", "Down")

    eventually(traced, context=lab.cluster.logs)
    # Which object asked for the session is in the trace of its own change.
    change = lab.change("cluster-test", "apply.bfd-session", after=before)
    session = one(change, "apply.bfd-session")
    assert way(change, session) == [
        "resource.event",
        "intent.round",
        "apply.round",
        "apply.bfd-session",
    ]
    assert json.loads(session.attributes["waggle.objects"]) == [f"{THEIRS}///"]
    assert json.loads(one(change, "apply.peer").attributes["waggle.objects"]) == ["main/tor"]


def test_each_reconciler_of_the_agent_has_spans_with_its_objects(lab: Lab) -> None:
    """Of the changes above; the reconcilers of statuses that no object of the lab has have none."""
    items = lab.cluster.agent.ask("/v1/reconcilers")
    applying = {item["name"] for item in items if not item["target"].startswith("API server")}
    assert applying == {
        *("instance", "route-set", "import-policy", "peer", "kernel-routes", "bfd-session")
    }
    traced: dict[str, set[str]] = {}

    def complete() -> None:
        for round_ in ("apply.round", "report.round"):
            for span in (s for t in lab.jaeger.traces("waggle-agent", round_, {}) for s in t):
                objects = json.loads(span.attributes.get("waggle.objects", "[]"))
                traced.setdefault(span.name, set()).update(objects)
        wanted = {f"apply.{name}" for name in applying} | {"report.event"}
        assert {name for name in wanted if not traced.get(name)} == set()

    eventually(complete, context=lab.cluster.logs)
    assert traced["apply.import-policy"] >= {"main/tor", "default/10.99.0.99"}
    assert f"{THEIRS}///" in traced["apply.bfd-session"]


def test_all_attributes_that_jaeger_has_are_conventional(lab: Lab) -> None:
    known = conventional() | OF_JAEGER
    operations = ("resource.event", "bgp.update.receive", "bgp.best_paths", "bfd.change")
    spans = [s for o in operations for t in lab.jaeger.traces("waggle-agent", o, {}) for s in t]
    assert len(spans) > 20
    attributes = {name for span in spans for name in (*span.attributes, *span.resource)}
    assert {n for n in attributes if n not in known and not OURS.fullmatch(n)} == set()
    # A span whose parent was never sent would be a hole in its trace.
    known_spans = {(span.trace_id, span.span_id) for span in spans}
    holes = {s.name for s in spans if s.parent and (s.trace_id, s.parent) not in known_spans}
    assert holes == set()
