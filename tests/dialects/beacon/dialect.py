"""The dialect: a node's Beacon is an instance with one peer; Services are its routes."""

from collections.abc import Iterator
from typing import ClassVar, NamedTuple

from reconcilers import dialect as api
from reconcilers.model import Attributes, Condition, Instance, ObjectRef, Peer, ref_to
from reconcilers.prefixes import host_route
from reconcilers.sliced_work import Slices
from resources.core.kinds import NODE, SERVICE
from resources.core.service import INGRESS, Service
from resources.tables import Tables
from statedb import Snapshot
from tests.dialects.beacon.in_effect import in_effect
from tests.dialects.beacon.kinds import BEACON, BeaconReport
from tests.dialects.beacon.options import BeaconOptions

NO_NODE = "test.waggle.dev/NoNode"


class Rules(NamedTuple):  # of a route set, which has the name of a namespace
    name: str
    beacon: ObjectRef
    attributes: Attributes


def addresses(row: Service) -> Iterator[api.Address]:
    for address in row.load_balancer_addresses:
        family, nlri = host_route(address)
        ref = ref_to(SERVICE, row)
        yield api.Address(ref, "LoadBalancerIP", family, nlri, service_field=INGRESS)


def select(rules: Rules, row: Service) -> api.SelectingRule | None:
    selected = rules.name == row.metadata.namespace
    return api.SelectingRule(rules.beacon, rules.attributes) if selected else None


def operate(
    dialect: api.Dialect, snapshot: Snapshot, context: api.ClusterContext
) -> Slices[api.ClusterIntent]:
    table = dialect.tables.of(BEACON)
    nodes = {row.metadata.name for row in dialect.tables.nodes.all(snapshot)}
    chosen = []
    for name in sorted(nodes):
        of_node = yield from context.of_node(name)
        chosen.append(in_effect(table.get(snapshot, ("", name)), of_node))
    beacons = [ref_to(BEACON, row) for row in table.all(snapshot)]
    lost = (Condition(ref, NO_NODE, ref.name not in nodes, "Checked") for ref in beacons)
    outcome = frozenset(beacon.ref for beacon in chosen if beacon is not None)
    return api.ClusterIntent(conditions=tuple(lost), outcome=outcome)


def statuses(
    dialect: api.Dialect, snapshot: Snapshot, context: api.ReportContext
) -> Iterator[api.ObjectStatus]:
    row = dialect.tables.of(BEACON).get(snapshot, ("", context.node))
    if row is not None:
        up = any(s.established for s in context.sessions if s.instance == row.spec.instance)
        yield api.ObjectStatus(ref_to(BEACON, row), row.metadata.uid, BeaconReport(up))


class BeaconDialect(api.Dialect):
    name, title = "beacon", "Beacons"
    kinds = (NODE, SERVICE, BEACON)
    cluster_kinds = (NODE, BEACON)
    options_type = BeaconOptions
    extensions: ClassVar[tuple[api.Extension, ...]] = (
        api.Operation(operate, condition_kinds=(BEACON,), condition_types=frozenset({NO_NODE})),
        api.ReportedStatuses((BEACON,), statuses),
    )
    options: BeaconOptions

    def __init__(self, tables: Tables, options: BeaconOptions) -> None:
        super().__init__(tables, options)
        self.sources = (api.KindSource(tables, SERVICE, addresses, select),)

    def compile(self, snapshot: Snapshot, context: api.NodeContext) -> api.NodeIntent:
        chosen = in_effect(self.tables.of(BEACON).get(snapshot, ("", context.node)), context)
        if chosen is None:
            return api.NodeIntent()
        ref, spec = chosen.ref, chosen.row.spec
        rules = Rules(spec.namespace, ref, Attributes(communities=(self.options.community,)))
        router = Instance(spec.instance, None, spec.asn, spec.router_id, spec.listen_port, ref)
        peer = Peer(
            spec.instance, "router", spec.peer_address, None, spec.peer_asn, spec.peer_port,
            local_address=spec.local_address, connect_retry_time=1, route_set=rules.name,
            origins=(ref,),
        )  # fmt: skip
        return api.NodeIntent((router,), (peer,), {rules.name: rules}, outcomes=chosen.outcomes)
