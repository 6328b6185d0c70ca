"""What every peer is told of every address of this node, and why not: answers for `waggle explain`.

Nothing is kept for it: the rules are asked again when somebody asks. Reads one snapshot, writes
nothing; the answer is as of the last round.
"""

from __future__ import annotations

import ipaddress
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from reconcilers.intent.cilium import candidates, interfaces, pod_ip_pools, services
from reconcilers.intent.cilium.candidates import Candidate
from reconcilers.intent.cilium.explain import judge
from reconcilers.intent.cilium.members import known_nodes
from reconcilers.intent.cilium.policy import RouteSet
from reconcilers.model import ObjectRef, Peer, Verdict
from reconcilers.tables import IntentTables
from resources.core import Service
from resources.host.facts import Host
from resources.tables import BY_SERVICE, Tables
from speaker.nlri import Family, prefix_to_wire
from statedb import Snapshot

KINDS = {
    "service": "Service",
    "services": "Service",
    "svc": "Service",
    "node": "Node",
    "podcidr": "Node",
    "ciliumpodippool": pod_ip_pools.ENTRY,
    "pool": pod_ip_pools.ENTRY,
    "interface": interfaces.ENTRY,
}
"""How the kinds that addresses are of may be spelled, in lower case."""


class Target(NamedTuple):
    """What somebody asks about: a prefix, an address, or an object."""

    text: str
    prefix: tuple[Family, bytes] | None = None
    kind: str | None = None
    namespace: str | None = None
    name: str | None = None

    def names(self, ref: ObjectRef) -> bool:
        """Tell whether it is about an object."""
        return (
            self.name == ref.name
            and self.kind in (None, ref.kind)
            and self.namespace in (None, ref.namespace)
        )


class NothingFoundError(Exception):
    """Nothing here has that prefix, or is called so; ``str()`` is one sentence."""


def parse_target(text: str) -> Target:
    """Read a question: ``10.0.0.1[/32]``, ``[NAMESPACE/]NAME`` of a Service, ``KIND/[NAMESPACE/]NAME``.

    Raises ValueError naming what is wrong.
    """
    parts = text.split("/")
    try:
        ipaddress.ip_address(parts[0])
    except ValueError:
        pass
    else:
        network = ipaddress.ip_network(text, strict=False)
        return Target(text, prefix=prefix_to_wire(str(network)))
    kind = KINDS.get(parts[0].lower()) if len(parts) > 1 else None
    if kind is not None:
        parts = parts[1:]
    elif len(parts) > 1:
        kind = "Service"
    if len(parts) > 2 or not all(parts):
        raise ValueError(
            f"{text!r} is neither a prefix nor an object such as Service/NAMESPACE/NAME, "
            "NAMESPACE/NAME, Node/NAME, CiliumPodIPPool/NAME or Interface/NAME"
        )
    namespace = parts[0] if len(parts) == 2 else None
    return Target(text, kind=kind, namespace=namespace, name=parts[-1])


class Explanation:
    """Answers as of one snapshot."""

    def __init__(
        self,
        snapshot: Snapshot,
        resources: Tables,
        intent: IntentTables,
        sets: Mapping[str, RouteSet],
        options: services.ServiceOptions,
        host: Host,
    ) -> None:
        self._snapshot = snapshot
        self._resources = resources
        self._intent = intent
        self._sets = sets
        self._options = options
        self._host = host

    def verdicts(
        self,
        target: Target | None = None,
        chosen: Callable[[str, str | None, str | None], bool] = lambda *_: True,
    ) -> Iterator[Sequence[Verdict]]:
        """Yield what becomes of the target at each peer, a group a peer; without one, of everything.

        ``chosen`` picks peers by instance, name and address. Raises `NothingFoundError` before the
        first group where the target is nothing that is here.
        """
        found = self._candidates(target)
        peers = [
            peer
            for peer in sorted(
                self._intent.peers.all(self._snapshot), key=lambda row: (row.instance, row.name)
            )
            if chosen(peer.instance, peer.name, peer.address)
        ]
        general = self._left_out(chosen)
        if not peers and not general and not self._intent.peers.count(self._snapshot):
            general = [self._nobody()]
        groups: Iterator[Sequence[Verdict]] = filter(
            None, (self._at(peer, found, target) for peer in peers)
        )
        if peers and target is not None:
            first = next(groups, None)
            if first is None:
                raise NothingFoundError(self._nothing(target))
            groups = itertools.chain([first], groups)
        return itertools.chain(filter(None, [general]), groups)

    def _at(
        self, peer: Peer, found: Sequence[Candidate], target: Target | None
    ) -> Sequence[Verdict]:
        route_set = self._sets.get(peer.route_set) if peer.route_set is not None else None
        made = [judge(candidate, peer, route_set) for candidate in found]
        if target is None or target.prefix is None:
            return made
        family, nlri = target.prefix
        exact = [
            verdict
            for verdict in made
            if verdict.family == family and (verdict.nlri == nlri or nlri in verdict.told)
        ]
        if exact:
            return exact
        return [
            verdict
            for verdict in made
            if verdict.family == family
            and verdict.nlri is not None
            and services.covered(nlri, [verdict.nlri])
        ]

    # What there is

    def _candidates(self, target: Target | None) -> list[Candidate]:
        found = [c for c in self._all(target) if self._concerns(c, target)]
        if target is not None and not found:
            raise NothingFoundError(self._nothing(target))
        return sorted(
            found, key=lambda c: (c.object, c.type, c.family is None, c.family or (), c.nlri or b"")
        )

    def _concerns(self, candidate: Candidate, target: Target | None) -> bool:
        if target is None or target.prefix is not None:
            return target is None or candidate.nlri is not None
        return target.names(candidate.object)

    def _all(self, target: Target | None) -> Iterator[Candidate]:
        r, snapshot, node = self._resources, self._snapshot, self._options.node
        named = sorted(
            {
                entry.interface
                for route_set in self._sets.values()
                for entries in route_set.entries.values()
                for entry in entries
                if entry.interface is not None
            }
        )
        if target is not None:
            # Whoever asks may well mean an interface that no rule is about.
            named = sorted({*named, *(device.name for device in self._host.devices)})
        yield from candidates.of_interfaces(self._host, node, named)
        known = known_nodes(r.nodes.all(snapshot), r.cilium_nodes.all(snapshot)).get(node)
        if known is not None:
            yield from candidates.of_pod_networks(known)
        cilium_node = r.cilium_nodes.get(snapshot, ("", node))
        if cilium_node is not None:
            pools = {pool.metadata.name: pool for pool in r.cilium_pod_ip_pools.all(snapshot)}
            yield from candidates.of_pools(cilium_node, pools)
        for service in self._services(target):
            slices = r.endpoint_slices.find(snapshot, BY_SERVICE, service.key)
            yield from candidates.of_service(services.facts(service, slices, self._options))

    def _services(self, target: Target | None) -> Iterator[Service]:
        for service in self._resources.services.all(self._snapshot):
            meta = service.metadata
            ref = ObjectRef("Service", meta.namespace, meta.name)
            if target is None or target.prefix is not None or target.names(ref):
                yield service

    # Who is not there

    def _left_out(self, chosen: Callable[[str, str | None, str | None], bool]) -> list[Verdict]:
        found: list[Verdict] = []
        for problem in sorted(self._intent.problems.all(self._snapshot)):
            if problem.leaves_out:
                instance, *rest = problem.leaves_out
                peer = rest[0] if rest else None
                if chosen(instance, peer, None):
                    rule = problem.objects[0]
                    found.append(_general(instance, peer, "LeftOut", problem.message, rule))
        return found

    def _nobody(self) -> Verdict:
        node = self._options.node
        kinds = {"CiliumBGPPeeringPolicy", "CiliumBGPClusterConfig", "Node"}
        reasons = [
            problem.message
            for problem in sorted(self._intent.problems.all(self._snapshot))
            if problem.objects[0].kind in kinds
        ]
        text = f"node {node} has no peers: nothing selects it, or what selects it lists none"
        return _general(None, None, "NoPeers", "; ".join([text, *reasons]), None)

    def _nothing(self, target: Target) -> str:
        node = self._options.node
        if target.prefix is None:
            return f"nothing that node {node} could advertise is called {target.text}"
        return f"no Service, pod network, pool or interface of node {node} has {target.text}"


def _general(
    instance: str | None, peer: str | None, reason: str, message: str, rule: ObjectRef | None
) -> Verdict:
    return Verdict(instance, peer, None, "", None, None, (), reason, message, rule)
