"""A small cluster in tables, for the tests of intent and apply: objects in, rounds, rows out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from reconcilers.cilium.dialect import CiliumDialect
from reconcilers.dialect import Dialect, StoredState, extended
from reconcilers.intent.arbitrate import Owners
from reconcilers.intent.compiler import IntentCompiler
from reconcilers.intent.render import document
from reconcilers.intent.summary import Summary
from reconcilers.intent_tables import IntentTables
from reconcilers.operator import InProcessOperator, Planner
from resources.kind import Kind
from resources.tables import Tables
from statedb import Database
from tests.support import kinds
from tests.support.scenario import cilium_options, offline_settings

NODE = "test-node"


class Cluster:
    """Objects of one cluster as an agent on `NODE` sees them.

    ``operator``: the operator's part runs in the same process, as with manifests. ``also`` are
    dialects beside Cilium's, ``owners`` the claims of an earlier process, ``memories`` what its
    dialects have encoded.
    """

    def __init__(
        self,
        *,
        operator: bool = True,
        also: Sequence[type[Dialect]] = (),
        owners: Owners | None = None,
        memories: Mapping[str, bytes] = MappingProxyType({}),
        bfd_off: str = "",
        api_hosts: Callable[[], Sequence[str]] = tuple,
        clock: Callable[[], float] = time.monotonic,
        **options: Any,  # noqa: ANN401
    ) -> None:
        self.db = Database()
        of_others = [kind for dialect in also for kind in dialect.kinds]
        self.resources = Tables(self.db, [*kinds.CILIUM_KINDS, *of_others])
        self.intent = IntentTables(self.db)
        settings = offline_settings(NODE, options)
        self.dialect = CiliumDialect(self.resources, cilium_options(settings))
        others = [dialect(self.resources, dialect.options_type()) for dialect in also]
        self.dialects = dialects = [self.dialect, *others]
        planner = Planner(self.db, dialects, "kube-system", stored=False)
        self.operator = InProcessOperator(self.db, self.intent, planner) if operator else None
        self.compiler = IntentCompiler(
            self.db,
            self.resources,
            self.intent,
            dialects,
            NODE,
            options=settings.intent,
            owners=owners,
            states={
                dialect.name: memory.restore(dialect, memories[dialect.name])
                for dialect, memory in extended(others, StoredState)
                if dialect.name in memories
            },
            operator_in_process=operator,
            bfd_off=bfd_off,
            api_hosts=api_hosts,
            clock=clock,
        )

    def put(self, kind: Kind[Any], value: dict[str, Any]) -> None:
        """Write an object."""
        table = self.resources.of(kind)
        with self.db.write(table) as txn:
            table.upsert(txn, kind.decode(value))

    def delete(self, kind: Kind[Any], name: str, namespace: str = "") -> None:
        """Delete an object."""
        table = self.resources.of(kind)
        with self.db.write(table) as txn:
            table.delete(txn, (namespace, name))

    def run(self) -> Summary:
        """Run the operator's part, if there is one, and the compiler."""
        if self.operator is not None:
            self.operator.run()
        return self.compiler.run()

    def render(self) -> dict[str, Any]:
        """See the intent as `waggle render` shows it."""
        return document(self.db.snapshot(), NODE, self.resources, self.intent)

    def fresh(self) -> dict[str, Any]:
        """Return what a compiler without history makes of the same objects."""
        other = Cluster()
        for kind in kinds.KINDS:
            mine, theirs = self.resources.of(kind), other.resources.of(kind)
            with other.db.write(theirs) as txn:
                for row in mine.all(self.db.snapshot()):
                    theirs.upsert(txn, row)
        sessions = other.intent.session_addresses
        with other.db.write(sessions) as txn:
            for found in self.intent.session_addresses.all(self.db.snapshot()):
                sessions.upsert(txn, found)
        other.run()
        return other.render()

    def prefixes(self, peer: str = "p") -> list[str]:
        """Return the prefixes that are advertised to a peer."""
        peers = {p["name"]: p for i in self.render()["instances"] for p in i["peers"]}
        return [route["prefix"] for route in peers[peer]["advertise"]]

    def problems(self) -> list[tuple[str, str]]:
        """List problems as (first object, field)."""
        return [(p["objects"][0], p["field"]) for p in self.render()["problems"]]


def node(name: str = NODE, **labels: str) -> dict[str, Any]:
    """Make a Node."""
    return {
        "metadata": {"name": name, "labels": labels or {"bgp": "yes"}},
        "spec": {"podCIDRs": ["10.244.0.0/24"]},
        "status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.1"}]},
    }


def cluster_config(
    name: str = "c",
    *,
    peers: list[dict[str, Any]] | None = None,
    **spec: Any,  # noqa: ANN401
) -> dict[str, Any]:
    """Make a ClusterConfig with one instance."""
    instance = {"name": "i", "localASN": 65001, "peers": [peer()] if peers is None else peers}
    return {"metadata": {"name": name}, "spec": {"bgpInstances": [instance], **spec}}


def peer(name: str = "p", **fields: Any) -> dict[str, Any]:  # noqa: ANN401
    """Make a peer of an instance."""
    return {
        "name": name,
        "peerASN": 65010,
        "peerAddress": "192.0.2.9",
        "peerConfigRef": {"name": "pc"},
        **fields,
    }


def peer_config(name: str = "pc", advertise: str = "ad", **spec: Any) -> dict[str, Any]:  # noqa: ANN401
    """Make a PeerConfig for IPv4."""
    family = {
        "afi": "ipv4",
        "safi": "unicast",
        "advertisements": {"matchLabels": {"advertise": advertise}},
    }
    return {"metadata": {"name": name}, "spec": {"families": [family], **spec}}


def advertisement(
    name: str = "ad",
    *,
    label: str = "ad",
    selector: dict[str, Any] | None = None,
    **entry: Any,  # noqa: ANN401
) -> dict[str, Any]:
    """Make an Advertisement of pod networks and of Services' LoadBalancer addresses."""
    service = {
        "advertisementType": "Service",
        "service": {"addresses": ["LoadBalancerIP"]},
        "selector": {} if selector is None else selector,
        **entry,
    }
    return {
        "metadata": {"name": name, "labels": {"advertise": label}},
        "spec": {"advertisements": [{"advertisementType": "PodCIDR"}, service]},
    }


def service(name: str, address: str, *, policy: str = "Cluster", **labels: str) -> dict[str, Any]:
    """Make a LoadBalancer Service."""
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"type": "LoadBalancer", "externalTrafficPolicy": policy},
        "status": {"loadBalancer": {"ingress": [{"ip": address}]}},
    }


def endpoint_slice(
    name: str, of: str, on: str = NODE, *, ipv6: bool = False, **conditions: bool
) -> dict[str, Any]:
    """Make an EndpointSlice with one endpoint."""
    address = "fd00:244::5" if ipv6 else "10.244.0.5"
    endpoint = {"addresses": [address], "nodeName": on, "conditions": conditions}
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/service-name": of}},
        "addressType": "IPv6" if ipv6 else "IPv4",
        "endpoints": [endpoint],
    }


def usual(**options: Any) -> Cluster:  # noqa: ANN401
    """Return a cluster with one peer to which everything is advertised."""
    cluster = Cluster(**options)
    cluster.put(kinds.NODE, node())
    cluster.put(kinds.CLUSTER_CONFIG, cluster_config())
    cluster.put(kinds.PEER_CONFIG, peer_config())
    cluster.put(kinds.ADVERTISEMENT, advertisement())
    return cluster
