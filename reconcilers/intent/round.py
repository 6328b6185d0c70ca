"""One round of intent: what changed since the last one is compiled again, and nothing else.

Configuration (nodes, BGP objects, Secrets) is small: when some of it changed, instances, peers and
route sets are worked out anew. Services are many: a changed one, or a changed EndpointSlice of one,
is asked again by each route set; all of them are asked only by a set that is new. Rows are written
where they differ, in one transaction, so that those who follow the intent see real changes only.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec.structs import replace
from opentelemetry import trace
from opentelemetry.trace import SpanContext

from reconcilers.intent import join
from reconcilers.intent.cilium import interfaces, pod_cidrs, pod_ip_pools, services
from reconcilers.intent.cilium.configuration import Configuration
from reconcilers.intent.cilium.host_needs import is_host_needed
from reconcilers.intent.cilium.members import known_nodes
from reconcilers.intent.cilium.policy import RouteSet
from reconcilers.intent.explanation import Explanation
from reconcilers.intent.options import IntentOptions
from reconcilers.model import Contribution, ObjectRef, Problem, Route
from reconcilers.tables import BY_OBJECT, KEY, IntentTables, object_id
from reconcilers.write import make_all
from resources.causes import PendingCauses
from resources.core import Service
from resources.host.facts import Host
from resources.meta import ObjectKey
from resources.tables import BY_SERVICE, Tables
from speaker.nlri import Family
from statedb import ChangeIterator, Database, Snapshot, Table, WriteTxn

_tracer = trace.get_tracer("waggle.reconcilers")


class Summary(msgspec.Struct, frozen=True):
    """What a round did."""

    ready: bool
    """False until every source has told everything once; nothing is done before that."""
    configuration: bool = False
    services: int = 0
    """How many were asked."""
    routes: int = 0
    """How many rows were written or deleted."""
    span: SpanContext | None = None
    """The round's own, for the apply round that follows from it."""


class IntentRound:
    """Compiles the resource tables to the intent tables; `run` is one round."""

    def __init__(
        self,
        db: Database,
        resources: Tables,
        intent: IntentTables,
        options: IntentOptions,
        causes: PendingCauses | None = None,
    ) -> None:
        self._db = db
        self._resources = resources
        self._intent = intent
        self._options = options
        self._service_options = services.ServiceOptions(
            options.node,
            options.no_service_endpoints_routable,
            options.legacy_origin_attribute,
        )
        self._causes = causes or PendingCauses()
        r = resources
        self._config_tables: tuple[Table[Any], ...] = (
            r.nodes,
            r.secrets,
            r.cilium_cluster_configs,
            r.cilium_peer_configs,
            r.cilium_advertisements,
            r.cilium_node_configs,
            r.cilium_node_config_overrides,
            r.cilium_peering_policies,
            r.cilium_nodes,
            r.cilium_load_balancer_ip_pools,
            r.cilium_pod_ip_pools,
            r.node_networks,
            r.host,
        )
        self._config_revisions: tuple[int, ...] | None = None
        self._services: ChangeIterator[Service] = r.services.changes(db)
        self._slices = r.endpoint_slices.changes(db)
        self._slice_owners: dict[ObjectKey, ObjectKey | None] = {}
        """The Service that each slice belonged to, for when its label changes."""
        self._sets: dict[str, RouteSet] = {}
        self._configuration = Configuration(resources, options)
        self._told: set[ObjectRef] = set()
        """Pod IP pools and interfaces that something was told of."""

    @property
    def followed(self) -> tuple[Table[Any], ...]:
        """The tables whose changes make a round due, all that the first round waits for among them."""
        r = self._resources
        return (*self._config_tables, r.services, r.endpoint_slices, r.namespaces)

    def run(self) -> Summary:
        """Do one round."""
        snapshot = self._db.snapshot()
        if not all(table.initialized(snapshot) for table in self._resources.resources):
            return Summary(ready=False)
        if not self._resources.host.initialized(snapshot) and is_host_needed(
            self._resources, snapshot, self._options.node
        ):
            return Summary(ready=False)
        links = [trace.Link(context) for context in self._causes.take()]
        with _tracer.start_as_current_span("intent.round", links=links) as span:
            summary = self._run(snapshot)
            if span.is_recording():
                span.set_attribute("waggle.configuration", summary.configuration)
                span.set_attribute("waggle.services", summary.services)
                span.set_attribute("waggle.routes", summary.routes)
        return replace(summary, span=span.get_span_context())

    def _host(self, snapshot: Snapshot) -> Host | None:
        r = self._resources
        described = r.node_networks.get(snapshot, ("", self._options.node))
        return described.host if described is not None else next(r.host.all(snapshot), None)

    def _run(self, snapshot: Snapshot) -> Summary:
        i = self._intent
        changed = self._changed_services(snapshot)
        revisions = tuple(table.revision(snapshot) for table in self._config_tables)
        configuration = revisions != self._config_revisions
        if not configuration and not changed:
            return Summary(ready=True)
        with self._db.write(
            i.instances, i.peers, i.routes, i.conditions, i.problems, i.generated
        ) as txn:
            fresh: list[RouteSet] = []
            written = 0
            if configuration:
                compiled = self._configure(txn, snapshot)
                fresh = [s for name, s in compiled.items() if name not in self._sets]
                for name in self._sets.keys() - compiled.keys():
                    written += self._drop_set(txn, name)
                self._sets = compiled
                written += self._pod_networks(txn, snapshot)
            old = [s for s in self._sets.values() if s not in fresh]
            asked = 0
            if old:
                for key in changed:
                    written += self._service(txn, snapshot, key, old)
                asked += len(changed)
            if fresh:
                for service in self._resources.services.all(snapshot):
                    written += self._service(txn, snapshot, service.key, fresh, new=True)
                    asked += 1
        self._config_revisions = revisions
        return Summary(ready=True, configuration=configuration, services=asked, routes=written)

    def _changed_services(self, snapshot: Snapshot) -> list[ObjectKey]:
        keys: dict[ObjectKey, None] = {}
        for change in self._services.next(snapshot):
            keys[change.row.key] = None
        for piece in self._slices.next(snapshot):
            before = self._slice_owners.pop(piece.row.key, None)
            owner = piece.row.service_key
            for key in (before, owner):
                if key is not None:
                    keys[key] = None
            if not piece.deleted:
                self._slice_owners[piece.row.key] = owner
        return list(keys)

    # Configuration

    def _configure(self, txn: WriteTxn, snapshot: Snapshot) -> dict[str, RouteSet]:
        i = self._intent
        made = self._configuration.compile(snapshot, self._host(snapshot) or Host())
        make_all(txn, i.generated, made.generated)
        make_all(txn, i.conditions, made.conditions)
        make_all(txn, i.instances, made.instances)
        make_all(txn, i.peers, made.peers)
        make_all(txn, i.problems, made.problems)
        return made.route_sets

    # Routes

    def _pod_networks(self, txn: WriteTxn, snapshot: Snapshot) -> int:
        r = self._resources
        ref = ObjectRef("Node", "", self._options.node)
        nodes = known_nodes(r.nodes.all(snapshot), r.cilium_nodes.all(snapshot))
        node = nodes.get(self._options.node)
        cilium_node = r.cilium_nodes.get(snapshot, ("", self._options.node))
        host = self._host(snapshot) or Host()
        pools = {pool.metadata.name: pool for pool in r.cilium_pod_ip_pools.all(snapshot)}
        written = 0
        told: set[ObjectRef] = set()
        for route_set in self._sets.values():
            wanted = pod_cidrs.contributions(node, route_set) if node is not None else ()
            written += self._contribute(txn, route_set.name, ref, wanted)
            wishes: dict[ObjectRef, list[tuple[Family, bytes, Contribution]]] = {}
            found = interfaces.contributions(host, self._options.node, route_set)
            if cilium_node is not None:
                pooled = pod_ip_pools.contributions(cilium_node, pools, route_set)
                found = itertools.chain(found, pooled)
            for of, family, nlri, part in found:
                wishes.setdefault(of, []).append((family, nlri, part))
            for of in self._told | wishes.keys():
                written += self._contribute(txn, route_set.name, of, wishes.get(of, ()))
            told |= wishes.keys()
        self._told = told
        return written

    def _service(
        self,
        txn: WriteTxn,
        snapshot: Snapshot,
        key: ObjectKey,
        sets: Iterable[RouteSet],
        *,
        new: bool = False,
    ) -> int:
        r, i = self._resources, self._intent
        ref = ObjectRef("Service", *key)
        service = r.services.get(snapshot, key)
        found = None
        for told in list(i.problems.prefix(txn, KEY, (object_id(ref),))):
            i.problems.delete(txn, next(iter(i.problems.primary.keys(told))))
        if service is not None:
            slices = r.endpoint_slices.find(snapshot, BY_SERVICE, key)
            found = self._fenced(
                txn, ref, lambda: services.facts(service, slices, self._service_options)
            )
        written = 0
        for route_set in sets:
            wanted = services.contributions(found, route_set) if found is not None else ()
            written += self._contribute(txn, route_set.name, ref, wanted, new=new)
        return written

    def _fenced(
        self, txn: WriteTxn, ref: ObjectRef, work: Callable[[], services.Facts]
    ) -> services.Facts | None:
        """Let one object's error be that object's problem, and nobody else's."""
        try:
            return work()
        except Exception as error:  # noqa: BLE001  the fence around one object
            text = f"it cannot be used: {type(error).__name__}: {error}"
            self._intent.problems.upsert(txn, Problem((ref,), "", text))
            return None

    def _contribute(
        self,
        txn: WriteTxn,
        route_set: str,
        ref: ObjectRef,
        wanted: Iterable[tuple[Family, bytes, Contribution]],
        *,
        new: bool = False,
    ) -> int:
        """Make an object contribute exactly this to a set; ``new`` says that it has nothing there."""
        table = self._intent.routes
        wishes: dict[tuple[Family, bytes], list[Contribution]] = {}
        for family, nlri, contribution in wanted:
            wishes.setdefault((family, nlri), []).append(contribution)
        written = 0
        if not new:
            for row in list(table.find(txn, BY_OBJECT, (route_set, object_id(ref)))):
                if (row.family, row.nlri) not in wishes:
                    self._put(txn, route_set, row.family, row.nlri, row, ref, [])
                    written += 1
        for (family, nlri), parts in wishes.items():
            present = table.get(txn, (route_set, family, nlri))
            written += self._put(txn, route_set, family, nlri, present, ref, parts)
        return written

    def _put(
        self,
        txn: WriteTxn,
        route_set: str,
        family: Family,
        nlri: bytes,
        present: Route | None,
        ref: ObjectRef,
        parts: list[Contribution],
    ) -> int:
        table = self._intent.routes
        others = (
            [c for c in present.contributions if c.origin.object != ref]
            if present is not None
            else []
        )
        if not others and not parts:
            table.delete(txn, (route_set, family, nlri))
            return 1
        row = join.route(route_set, family, nlri, (*others, *parts))
        if row == present:
            return 0
        table.upsert(txn, row)
        return 1

    # Questions

    def explanation(self) -> Explanation:
        """Make what answers why something is advertised or not, as of the last round."""
        snapshot = self._db.snapshot()
        return Explanation(
            snapshot,
            self._resources,
            self._intent,
            self._sets,
            self._service_options,
            self._host(snapshot) or Host(),
        )

    def _drop_set(self, txn: WriteTxn, name: str) -> int:
        i = self._intent
        rows = list(i.routes.prefix(txn, KEY, (name,)))
        for row in rows:
            i.routes.delete(txn, (name, row.family, row.nlri))
        return len(rows)
