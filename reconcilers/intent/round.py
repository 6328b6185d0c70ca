"""One round of intent: what changed since the last one is compiled again, and nothing else.

Configuration (nodes, BGP objects, Secrets) is small: when some of it changed, instances, peers and
route sets are worked out anew. Services are many: a changed one, or a changed EndpointSlice of one,
is asked again by each route set; all of them are asked only by a set that is new. Rows are written
where they differ, in one transaction, so that those who follow the intent see real changes only.
"""

from __future__ import annotations

import ipaddress
import itertools
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec.structs import replace
from opentelemetry import trace
from opentelemetry.trace import SpanContext

from reconcilers.intent import join
from reconcilers.intent.cilium import (
    interfaces,
    operator,
    pod_cidrs,
    pod_ip_pools,
    router_ids,
    services,
)
from reconcilers.intent.cilium import node as nodes
from reconcilers.intent.cilium.members import known_nodes
from reconcilers.intent.cilium.policy import RouteSet
from reconcilers.intent.cilium.v1 import compile as v1
from reconcilers.intent.cilium.v1 import selection
from reconcilers.model import Condition, Contribution, Generated, ObjectRef, Problem, Route
from reconcilers.tables import BY_OBJECT, KEY, IntentTables, object_id
from reconcilers.write import make, make_all
from resources.causes import PendingCauses
from resources.core import Node, Service
from resources.host.facts import Host
from resources.meta import ObjectKey
from resources.tables import BY_SERVICE, Tables
from speaker.nlri import Family
from statedb import ChangeIterator, Database, Snapshot, Table, WriteTxn

_tracer = trace.get_tracer("waggle.reconcilers")


class IntentOptions(msgspec.Struct, frozen=True):
    """Settings of the whole agent that concern intent."""

    node: str
    secrets_namespace: str = "kube-system"
    no_service_endpoints_routable: bool = True
    first_peering_policy_wins: bool = False
    """Of several CiliumBGPPeeringPolicies that select a node one is followed, and not none."""
    router_id_allocation_ip_pool: str | None = None
    """IPv4 prefix that router IDs come from; None takes the node's IPv4 address."""


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
            options.node, options.no_service_endpoints_routable
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
        self._owners: dict[str, str] = {}
        pool = options.router_id_allocation_ip_pool
        self._router_id_pool = None if pool is None else ipaddress.IPv4Network(pool)
        self._router_ids: dict[router_ids.Holder, str] = {}
        self._policy_owners: dict[str, str] = {}
        """The same for v1: node to CiliumBGPPeeringPolicy."""
        self._told: set[ObjectRef] = set()
        """Pod IP pools and interfaces that something was told of."""

    @property
    def followed(self) -> tuple[Table[Any], ...]:
        """The tables whose changes make a round due."""
        return (*self._config_tables, self._resources.services, self._resources.endpoint_slices)

    def run(self) -> Summary:
        """Do one round."""
        snapshot = self._db.snapshot()
        if not all(table.initialized(snapshot) for table in self._resources.resources):
            return Summary(ready=False)
        if not self._resources.host.initialized(snapshot) and self._needs_host(snapshot):
            return Summary(ready=False)
        links = [trace.Link(context) for context in self._causes.take()]
        with _tracer.start_as_current_span("intent.round", links=links) as span:
            summary = self._run(snapshot)
            if span.is_recording():
                span.set_attribute("waggle.configuration", summary.configuration)
                span.set_attribute("waggle.services", summary.services)
                span.set_attribute("waggle.routes", summary.routes)
        return replace(summary, span=span.get_span_context())

    def _needs_host(self, snapshot: Snapshot) -> bool:
        """Tell whether some object refers to this host's interfaces or routes, of its kernel."""
        r = self._resources
        if r.node_networks.get(snapshot, ("", self._options.node)) is not None:
            return False
        return interfaces.are_needed(
            r.cilium_advertisements.all(snapshot),
            r.cilium_peer_configs.all(snapshot),
            (*r.cilium_cluster_configs.all(snapshot), *r.cilium_node_configs.all(snapshot)),
        )

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
            i.instances, i.peers, i.routes, i.withheld, i.conditions, i.problems, i.generated
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
        r, i = self._resources, self._intent
        secrets = {
            secret.metadata.name: secret
            for secret in r.secrets.prefix(snapshot, KEY, (self._options.secrets_namespace,))
        }
        peer_configs = {row.metadata.name: row for row in r.cilium_peer_configs.all(snapshot)}
        present = {row.metadata.name: row for row in r.cilium_node_configs.all(snapshot)}
        known = self._nodes(snapshot)
        operated = operator.operate(
            r.cilium_cluster_configs.all(snapshot),
            known.values(),
            {o.metadata.name: o for o in r.cilium_node_config_overrides.all(snapshot)},
            peer_configs,
            present,
            self._owners,
        )
        self._owners = operated.owners
        pool_problems: list[Problem] = []
        if self._router_id_pool is not None:
            allocated = router_ids.allocate(
                operated.node_configs, present, self._router_ids, self._router_id_pool
            )
            operated = operated._replace(node_configs=allocated.node_configs)
            self._router_ids, pool_problems = allocated.held, allocated.problems
        conditions: list[Condition] = [
            *operated.conditions,
            *operator.peer_config_conditions(peer_configs.values(), secrets),
        ]
        policies = {p.metadata.name: p for p in r.cilium_peering_policies.all(snapshot)}
        selected = selection.select(
            policies.values(),
            known.values(),
            self._policy_owners,
            first_wins=self._options.first_peering_policy_wins,
        )
        self._policy_owners = selected.owners
        conditions += selected.conditions
        problems = [*operated.problems, *pool_problems, *selected.problems]
        node = known.get(self._options.node)
        config = present.get(self._options.node) or operated.node_configs.get(self._options.node)
        compiled = nodes.Compiled([], [], {}, [])
        if self._options.node in selected.claimed:
            # v1 goes before v2, as in Cilium: also where its policies contradict each other.
            if config is not None:
                ref = ObjectRef(operator.NODE_CONFIG, "", self._options.node)
                text = "has no effect: a CiliumBGPPeeringPolicy selects the node"
                problems.append(Problem((ref,), "", text))
            policy = selected.owners.get(self._options.node)
            if policy is not None and node is not None:
                compiled = v1.compile_policy(
                    policies[policy],
                    v1.Context(
                        node=node,
                        load_balancer_pools=tuple(r.cilium_load_balancer_ip_pools.all(snapshot)),
                        secrets=secrets,
                        secrets_namespace=self._options.secrets_namespace,
                    ),
                )
        elif config is not None:
            context = nodes.Context(
                node=node,
                peer_configs=peer_configs,
                advertisements=tuple(r.cilium_advertisements.all(snapshot)),
                secrets=secrets,
                secrets_namespace=self._options.secrets_namespace,
                host=self._host(snapshot) or Host(),
                router_id_of_node=self._router_id_pool is None,
            )
            compiled = nodes.compile_node(config, context)
        problems += compiled.problems
        if node is None:
            ref = ObjectRef("Node", "", self._options.node)
            problems.append(Problem((ref,), "metadata.name", "there is no such node"))
        make_all(txn, i.generated, self._generated(operated))
        make_all(txn, i.conditions, conditions)
        make_all(txn, i.instances, compiled.instances)
        make_all(txn, i.peers, compiled.peers)
        make_all(txn, i.problems, problems)
        return compiled.route_sets

    def _generated(self, operated: operator.Operated) -> Iterable[Generated]:
        for name, config in operated.node_configs.items():
            content = {
                "apiVersion": "cilium.io/v2",
                "kind": operator.NODE_CONFIG,
                **msgspec.json.decode(msgspec.json.encode(config)),
            }
            owner = ObjectRef(operator.CLUSTER_CONFIG, "", operated.owners[name])
            yield Generated(ObjectRef(operator.NODE_CONFIG, "", name), owner, content)

    # Routes

    def _nodes(self, snapshot: Snapshot) -> dict[str, Node]:
        r = self._resources
        return known_nodes(r.nodes.all(snapshot), r.cilium_nodes.all(snapshot))

    def _pod_networks(self, txn: WriteTxn, snapshot: Snapshot) -> int:
        r = self._resources
        ref = ObjectRef("Node", "", self._options.node)
        node = self._nodes(snapshot).get(self._options.node)
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
            reasons = services.withheld(found, route_set) if found is not None else ()
            prefix = (route_set.name, object_id(ref))
            present = [] if new else list(i.withheld.prefix(txn, KEY, prefix))
            make(txn, i.withheld, reasons, present)
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

    def _drop_set(self, txn: WriteTxn, name: str) -> int:
        i = self._intent
        rows = list(i.routes.prefix(txn, KEY, (name,)))
        for row in rows:
            i.routes.delete(txn, (name, row.family, row.nlri))
        for reason in list(i.withheld.prefix(txn, KEY, (name,))):
            i.withheld.delete(txn, next(iter(i.withheld.primary.keys(reason))))
        return len(rows)
