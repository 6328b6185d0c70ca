"""The rules for the addresses of Services as the tables change: what is judged differently since.

Holds what is expensive to compute again (the cluster IPs of all Services, what Namespaces grant), and
the last valid value of each Namespace's annotation.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from msgspec.structs import replace

from reconcilers.dialect import ClusterAddresses, Dialect, ReservedAddresses, extended
from reconcilers.intent.options import IntentOptions
from reconcilers.intent.service_addresses import published
from reconcilers.intent.service_addresses.address_rules import (
    AddressChanges,
    AddressRules,
    address_rules,
)
from reconcilers.intent.service_addresses.address_set import AddressSet
from reconcilers.intent.service_addresses.cluster_ips import ClusterIPs
from reconcilers.intent.service_addresses.cluster_networks import (
    ClusterNetworks,
    api_addresses,
    networks_of_dialect,
    networks_of_tables,
    united,
)
from reconcilers.intent.service_addresses.grants import Grants
from reconcilers.intent_tables import IntentTables
from reconcilers.model import Peer, Problem
from reconcilers.sliced_work import Pieces, Slices, changes_of
from resources.core import Node
from resources.core.configmap import ConfigMap
from resources.core.kinds import CONFIG_MAP, NAMESPACE, SERVICE_CIDR
from resources.tables import Tables
from statedb import Database, Snapshot, Table


class AddressRulesTracker:
    """The rules of one node; `read` takes the changes of tables, `update` makes rules of them."""

    def __init__(
        self,
        db: Database,
        resources: Tables,
        intent: IntentTables,
        dialects: Sequence[Dialect],
        node: str,
        options: IntentOptions,
        pieces: Pieces,
        on_error: Callable[[str, Exception], None],
        api_hosts: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        """``on_error`` takes the name of a dialect whose addresses are not known, and the error.

        ``api_hosts`` returns the addresses by which this agent reaches the Kubernetes API, such as that
        of a load balancer: neither the Service ``kubernetes`` nor its endpoints have it.
        """
        self._resources = resources
        self._intent = intent
        self._dialects = extended(dialects, ReservedAddresses)
        self._node = node
        self._options = options
        self._pieces = pieces
        self._on_error = on_error
        self._api_hosts = api_hosts
        self._services = resources.services.changes(db)
        self._namespaces = resources.namespaces.changes(db)
        self._cluster_ips = ClusterIPs()
        self._moved: set[bytes] = set()
        """Cluster IPs that have other owners than at the last `update`."""
        self._grants = Grants(annotated_only=options.advertise_namespaces == "annotated")
        self._networks = ClusterNetworks()
        self._of_cluster: frozenset[Table[Any]] = frozenset(
            (resources.nodes, resources.of(SERVICE_CIDR), resources.of(CONFIG_MAP))
        )
        self._of_api: frozenset[Table[Any]] = frozenset(
            (resources.services, resources.endpoint_slices)
        )
        self._of_node: frozenset[Table[Any]] = frozenset(
            (
                resources.node_networks,
                resources.gateways,
                intent.session_addresses,
                intent.next_hops,
            )
        )
        self._parts: dict[str, tuple[ClusterAddresses, ClusterAddresses]] = {}
        """By dialect, and of Nodes and ServiceCIDRs: the addresses of all nodes and of this one."""
        self._addresses: tuple[ClusterAddresses, ClusterAddresses] | None = None
        """Of all nodes and of this one, as objects have them: what `_networks` is made of."""
        self._due = True
        """True if `update` has to make other rules, whatever its arguments are."""
        self._arguments: tuple[Node | None, tuple[Peer, ...], tuple[str, ...]] | None = None
        """Of the last `update`."""
        self._published_rows: tuple[ConfigMap, ...] = ()
        self._published: list[dict[str, AddressSet]] = []
        """The addresses in these rows, by part."""
        self._problems_changed = False
        self.rules = AddressRules()
        """As of the last `update`."""
        self.problems: Sequence[Problem] = ()
        """Of Namespaces whose annotation is invalid."""

    @property
    def followed(self) -> tuple[Table[Any], ...]:
        """The tables that the tracker of the address rules follows, beside the dialects'."""
        return (
            *self._of_cluster,
            *self._of_api,
            *self._of_node,
            self._resources.namespaces,
            self._resources.unread_objects,
        )

    def read(
        self, snapshot: Snapshot, changed: AbstractSet[Table[Any]], compiled: Collection[str]
    ) -> Slices[bool]:
        """Track changes that concern address rules, in slices; True if rules have to be made.

        ``changed`` are the tables that have changed since the last call, at the first one all;
        ``compiled`` the dialects that were compiled, so that their objects may have changed.
        """
        due = not changed.isdisjoint(self._of_node)
        of_cluster = not changed.isdisjoint(self._of_cluster)
        if of_cluster or compiled:
            due |= yield from self._read_networks(snapshot, None if of_cluster else compiled)
        if not changed.isdisjoint(self._of_api):
            moved: set[bytes] = set()
            for changes in changes_of(self._services, snapshot, self._pieces):
                if changes is None:
                    yield
                else:
                    moved |= self._cluster_ips.update(changes)
            self._moved |= moved
            api = AddressSet.of((*api_addresses(self._resources, snapshot), *self._api_hosts()))
            due = due or bool(moved)
            if api != self._networks.api:
                due = True
                self._networks = replace(self._networks, api=api)
        if not changed.isdisjoint((self._resources.namespaces, self._resources.unread_objects)):
            due |= self._read_grants(snapshot)
        self._due |= due
        return due

    def _read_networks(self, snapshot: Snapshot, compiled: Collection[str] | None) -> Slices[bool]:
        """Read the addresses of dialects that were compiled; None is all, and the Nodes."""
        t, before_parts = self._resources, dict(self._parts)
        if compiled is None:
            self._parts[""] = (
                networks_of_tables(t, snapshot),
                networks_of_tables(t, snapshot, self._node),
            )
        for dialect, reserved in self._dialects:
            if compiled is None or dialect.name in compiled:
                self._parts[dialect.name] = (
                    networks_of_dialect(dialect, reserved, snapshot, self._on_error),
                    networks_of_dialect(dialect, reserved, snapshot, lambda *_: None, self._node),
                )
        if compiled is not None and self._parts == before_parts:
            return False
        of_dialects = united([of_all for of_all, _ in self._parts.values()])
        own = united([of_node for _, of_node in self._parts.values()])
        rows = tuple(t.of(CONFIG_MAP).all(snapshot))
        if (of_dialects, own) == self._addresses and rows == self._published_rows:
            return False
        self._addresses = (of_dialects, own)
        read = {}
        for name in published.PARTS:
            read[name] = yield from AddressSet.gather(getattr(of_dialects, name))
        if rows != self._published_rows:
            parts = []
            for row in rows:
                decoded = yield from published.decode(row.data)
                parts.append(decoded)
            self._published_rows, self._published = rows, parts
        sets = {
            name: read[name].union(*(part[name] for part in self._published))
            for name in published.PARTS
        }
        sets["services"] = sets["services"].union(AddressSet.of(self._options.service_cidr))
        networks = replace(self._networks, own_pods=AddressSet.of(own.pods), **sets)
        if networks == self._networks:
            return False
        self._networks = networks
        return True

    def _read_grants(self, snapshot: Snapshot) -> bool:
        before = self._grants
        t = self._resources
        # What was known before it was forbidden stays known.
        unread = t.unread_objects.get(snapshot, (NAMESPACE.name, "", "")) is not None
        self._grants = self._grants.with_changes(
            (
                (change.row.metadata.name, None if change.deleted else change.row)
                for change in self._namespaces.next(snapshot)
            ),
            unread=unread and not t.namespaces.count(snapshot),
        )
        if self._grants is before:
            return False
        problems = self._grants.problems()
        self._problems_changed = self._problems_changed or problems != self.problems
        self.problems = problems
        return True

    def take_problems(self) -> bool:
        """True if the tracker's problems have changed since the last call."""
        changed, self._problems_changed = self._problems_changed, False
        return changed

    def update(
        self, snapshot: Snapshot, node: Node | None, peers: Iterable[Peer], addresses: Iterable[str]
    ) -> AddressChanges:
        """Make the address rules; returns what they judge differently than the rules before.

        ``addresses`` come from objects of dialects, for the node.
        """
        arguments = (node, tuple(peers), tuple(addresses))
        if not self._due and arguments == self._arguments:
            return AddressChanges()
        self._due, self._arguments = False, arguments
        sessions = self._intent.session_addresses.all(snapshot)
        rules = replace(
            address_rules(node, arguments[1], self._options, sessions, arguments[2]),
            next_hops=AddressSet.of(
                text for row in self._intent.next_hops.all(snapshot) for text in row.addresses
            ),
            gateways=AddressSet.of(self._gateways(snapshot)),
            networks=self._networks,
            cluster_ips=self._cluster_ips,
            grants=self._grants,
        )
        changes = rules.changes_since(self.rules)
        if self._moved:
            changes = changes._replace(host_routes=self._moved)
            self._moved = set()
        self.rules = rules
        return changes

    def _gateways(self, snapshot: Snapshot) -> Iterator[str]:
        described = self._resources.node_networks.get(snapshot, ("", self._node))
        if described is not None:
            yield from (route.gateway for route in described.host.default_routes)
        else:
            yield from (row.address for row in self._resources.gateways.all(snapshot))
