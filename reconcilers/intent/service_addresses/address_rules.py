"""The rules for the addresses of Services on one node, and the judgement of one address. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from reconcilers.dialect import ServiceAddress
from reconcilers.intent.options import IntentOptions
from reconcilers.intent.service_addresses.address_set import AddressSet
from reconcilers.intent.service_addresses.cluster_ips import ClusterIPs
from reconcilers.intent.service_addresses.cluster_networks import ClusterNetworks
from reconcilers.intent.service_addresses.grants import ANY, Grants
from reconcilers.intent.service_addresses.martians import EmbeddedIPv4, embedded_ipv4, martian
from reconcilers.model import ObjectRef, Peer, SessionAddress
from resources.core import Node
from resources.core.service import EXTERNAL_IPS
from resources.pages import reference
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST, Family, prefix_to_text

AGGREGATE_TOO_SHORT: Final = "AggregateTooShort"
"""The reason of an aggregate, and not of an address."""


class Rejection(NamedTuple):
    """Why an address is not advertised."""

    reason: str
    """One word."""
    message: str
    """A sentence without its end."""
    of_node: bool = False
    """True if another node may advertise the address."""
    objects: tuple[ObjectRef, ...] = ()
    """The objects that it is because of, beside the Service."""


class AddressChanges(NamedTuple):
    """The addresses that two sets of rules may judge differently."""

    addresses: AddressSet = AddressSet()
    namespaces: frozenset[str] = frozenset()
    host_routes: frozenset[bytes] | set[bytes] = frozenset()
    """Single addresses, beside the set."""

    def __bool__(self) -> bool:
        """True if there is one."""
        return bool(self.addresses) or bool(self.namespaces) or bool(self.host_routes)

    def may_concern(self, nlri: bytes) -> bool:
        """True if changed address rules may judge the address of a host route differently."""
        family = IPV4_UNICAST if nlri[0] == 32 else IPV6_UNICAST
        return nlri in self.host_routes or self.addresses.covers(family, nlri)


EVERY_ADDRESS: Final = AddressSet.of(("0.0.0.0/0", "::/0"))


class AddressRules(msgspec.Struct, frozen=True, dict=True):
    """The rules for one node."""

    own: AddressSet = AddressSet()
    """Addresses of this node: of its Node, objects of dialects, and its sessions."""
    peers: AddressSet = AddressSet()
    """Addresses of its peers."""
    next_hops: AddressSet = AddressSet()
    """Next hops of the routes that its peers advertise."""
    gateways: AddressSet = AddressSet()
    """Gateways of its default routes."""
    networks: ClusterNetworks = ClusterNetworks()
    cluster_ips: ClusterIPs = ClusterIPs()
    """Of all Services; compared by identity, as it notes its changes itself."""
    permit: AddressSet = AddressSet()
    """Prefixes within which only martians, ``deny``, ``allow`` and ``grants`` reject addresses."""
    allow: AddressSet | None = None
    """Prefixes outside of which nothing is advertised; None allows all."""
    deny: AddressSet = AddressSet()
    grants: Grants = ANY
    minimum_length: Mapping[Family, int] = {}

    @cached_property
    def _concerned(self) -> AddressSet:
        """Addresses that a rule may reject beside networks and cluster IPs: few are in it."""
        foreign = self.own.union(self.peers, self.next_hops, self.gateways)
        return foreign.union(self.deny, self.grants.granted)

    def reject_address(
        self, service: ObjectRef, family: Family, address: ServiceAddress
    ) -> Rejection | None:
        """Return why the rules reject an address that a Service names, or None."""
        nlri = address.nlri
        special = martian(family, nlri)
        if special is not None:
            return Rejection("Martian", f"it is {special}")
        concerned = (
            nlri in self.cluster_ips
            or self._concerned.covers(family, nlri)
            or self.networks.foreign.covers(family, nlri)
        )
        embedded = embedded_ipv4(nlri) if family == IPV6_UNICAST else None
        restricted = self.allow is not None or not self.grants.unrestricted(service.namespace)
        if not (concerned or restricted) and embedded is None:
            return None  # as most addresses
        rejection: Rejection | None = None
        if concerned and not self.permit.covers(family, nlri):
            rejection = self._reject_foreign(service, family, address)
        if rejection is None and embedded is not None:
            rejection = self._reject_embedded(service, address, embedded)
        if rejection is not None:
            return rejection
        if self.deny.covers(family, nlri):
            return Rejection("Denied", "--advertise-deny has a prefix that it is in")
        if self.allow is not None and not self.allow.covers(family, nlri):
            return Rejection("NotAllowed", "no prefix of --advertise-allow has it")
        text = self.grants.rejection(service.namespace, family, nlri, in_pool=address.in_pool)
        if text is not None:
            objects = (ObjectRef("Namespace", "", service.namespace),)
            return Rejection("NotInNamespace", text, objects=objects)
        return None

    def _reject_embedded(
        self, service: ObjectRef, address: ServiceAddress, embedded: EmbeddedIPv4
    ) -> Rejection | None:
        """Return the rejection of the IPv4 address within an IPv6 address, or None.

        The IPv6 address has the traffic of the IPv4 one: translators and relays forward it there.
        """
        permit = self.permit
        if permit.covers(IPV6_UNICAST, address.nlri) or permit.covers(IPV4_UNICAST, embedded.nlri):
            return None
        inner = address._replace(nlri=embedded.nlri)
        rejection = self._reject_foreign(service, IPV4_UNICAST, inner)
        if rejection is None:
            return None
        text = prefix_to_text(IPV4_UNICAST, embedded.nlri).partition("/")[0]
        message = f"it is {embedded.form} with {text}, which{rejection.message.removeprefix('it')}"
        return rejection._replace(message=message)

    def _reject_foreign(
        self, service: ObjectRef, family: Family, address: ServiceAddress
    ) -> Rejection | None:
        """Return the rejection of an address that something else than the Service has, or None."""
        nlri, networks = address.nlri, self.networks
        if self.own.covers(family, nlri):
            return Rejection("NodeAddress", "it is an address of this node", of_node=True)
        if self.peers.covers(family, nlri):
            return Rejection("PeerAddress", "it is the address of a peer", of_node=True)
        if address.in_pool:
            # The administrator has decided what is in a pool.
            return None
        if networks.nodes.covers(family, nlri):
            return Rejection("NodeAddress", "it is an address of a Node")
        if networks.api.covers(family, nlri):
            return Rejection("ApiServer", "it is an address of the Kubernetes API")
        if networks.pods.covers(family, nlri) and not networks.own_pods.covers(family, nlri):
            text = "it is within the pod network of another Node"
            return Rejection("PodAddress", text, of_node=True)
        if networks.peers.covers(family, nlri):
            return Rejection("PeerAddress", "it is the address of a peer of another node")
        if self.next_hops.covers(family, nlri):
            text = "it is the next hop of a received route"
            return Rejection("NextHop", text, of_node=True)
        if self.gateways.covers(family, nlri):
            return Rejection("Gateway", "it is a default gateway of this node", of_node=True)
        return self._reject_cluster_ip(service, family, address)

    def _reject_cluster_ip(
        self, service: ObjectRef, family: Family, address: ServiceAddress
    ) -> Rejection | None:
        nlri = address.nlri
        owner = self.cluster_ips.other_owner(nlri, service)
        if owner is not None:
            return Rejection("ClusterIP", f"it is the cluster IP of {owner}", objects=(owner,))
        if address.field == EXTERNAL_IPS and self.networks.services.covers(family, nlri):
            text = self.networks.services.text_of(family, nlri)
            return Rejection("ServiceRange", f"it is within {text}, the range of cluster IPs")
        return None

    def reject_prefix(self, family: Family, prefix: bytes) -> Rejection | None:
        """Return why the address rules reject an aggregate, or None."""
        minimum = self.minimum_length.get(family, 0)
        if prefix[0] >= minimum:
            return None
        text = f"its aggregate has the length {prefix[0]}, and {minimum} is the shortest allowed"
        return Rejection(AGGREGATE_TOO_SHORT, text)

    def changes_since(self, former: AddressRules) -> AddressChanges:
        """Return what these rules may judge differently, without ``cluster_ips``."""
        before = replace(former, cluster_ips=self.cluster_ips)
        parts = [getattr(self, name).difference(getattr(before, name)) for name in _SETS]
        parts += self.networks.differences(before.networks)
        same = {name: getattr(self, name) for name in (*_SETS, "networks", "grants")}
        if replace(before, **same) != self:
            return AddressChanges(EVERY_ADDRESS)
        namespaces = self.grants.changes_since(before.grants)
        if namespaces is None:
            return AddressChanges(EVERY_ADDRESS)
        parts.append(self.grants.granted.difference(before.grants.granted))
        return AddressChanges(AddressSet().union(*parts), namespaces)


def unrestricted(rules: AddressRules) -> list[str]:
    """Return a sentence if the address rules let Services use any address that nothing has."""
    grants = rules.grants
    if rules.allow is not None or grants.annotated_only or grants.by_namespace:
        return []
    text = "any address that a user writes into a Service is advertised, but for the cluster's own"
    remedy = "--advertise-allow CIDR or --advertise-namespaces=annotated restricts them"
    return [f"{text}: {remedy} ({reference('service-addresses')})"]


_SETS: Final = ("own", "peers", "next_hops", "gateways")


def address_rules(
    node: Node | None,
    peers: Iterable[Peer],
    options: IntentOptions,
    session_addresses: Iterable[SessionAddress] = (),
    addresses: Iterable[str] = (),
) -> AddressRules:
    """Return the address rules of a node with these peers, without the rules of the cluster.

    ``session_addresses`` of other peers are ignored. ``addresses`` are the addresses of the node in
    other objects than its Node.
    """
    texts = [] if node is None else [address.address for address in node.status.addresses]
    texts += addresses
    sessions = list(peers)
    names = {(peer.instance, peer.name) for peer in sessions}
    texts += [peer.local_address for peer in sessions if peer.local_address is not None]
    texts += [row.address for row in session_addresses if (row.instance, row.peer) in names]
    return AddressRules(
        own=AddressSet.of(texts),
        peers=AddressSet.of(peer.address for peer in sessions if peer.address is not None),
        permit=AddressSet.of(options.advertise_permit),
        allow=AddressSet.of(options.advertise_allow) if options.advertise_allow else None,
        deny=AddressSet.of(options.advertise_deny),
        minimum_length={
            IPV4_UNICAST: options.advertise_min_length_ipv4,
            IPV6_UNICAST: options.advertise_min_length_ipv6,
        },
    )
