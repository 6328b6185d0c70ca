"""Compiles the effective policy of a node to one instance, its peers and its route sets. Pure.

The instance is called `INSTANCE` whatever policy it comes from: a successor with the same AS number,
port, router ID and confederation keeps the sessions. The name of a peer is its canonical address.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from reconcilers.antrea.in_effect import choose
from reconcilers.antrea.node_facts import annotated, node_facts, router_id
from reconcilers.antrea.passwords import Passwords, secret_key
from reconcilers.antrea.route_sets import RouteSet, route_sets
from reconcilers.dialect import NodeContext, NodeIntent
from reconcilers.model import (
    GracefulRestart,
    Instance,
    ObjectAnnotations,
    ObjectRef,
    Peer,
    Problem,
    ref_to,
)
from resources.addresses import canonical_address
from resources.antrea import BGPPolicy
from resources.antrea.bgppolicy import Bfd, BGPPeer
from resources.antrea.kinds import BGP_POLICY
from resources.core import Node, Secret
from resources.core.kinds import SECRET as SECRET_KIND
from resources.meta import ObjectKey
from speaker.api import BfdProfile, Confederation
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST, Family
from statedb import Snapshot

if TYPE_CHECKING:
    from reconcilers.antrea.dialect import AntreaDialect

INSTANCE: Final = "antrea"
HOLD_TIME, CONNECT_RETRY_TIME = 90, 120
"""Seconds, as Antrea's speaker has them."""
BFD_INTERVAL: Final = 300
"""Milliseconds, in both proposals."""
MAX_DUPLICATES: Final = 10
"""Problems of entries with one address, each by itself; more are counted."""


class Inputs(NamedTuple):
    """The inputs of a node's compilation."""

    name: str
    """Of the node."""
    node: Node | None
    policies: tuple[BGPPolicy, ...]
    secret: Secret | None
    """The Secret with the passwords."""
    secret_key: ObjectKey
    """Its namespace and name."""
    secret_unread: bool = False
    """True if it could not be read: without it, it is not known whether it exists."""
    next_fields: bool = False


def inputs(dialect: AntreaDialect, snapshot: Snapshot, context: NodeContext) -> Inputs:
    """Read what a node is compiled of: its Node, all BGPPolicies, and the Secret of passwords."""
    tables, key = dialect.tables, secret_key(dialect.of_node.namespace)
    unread = tables.unread_objects.get(snapshot, (SECRET_KIND.name, *key))
    return Inputs(
        context.node,
        tables.nodes.get(snapshot, ("", context.node)),
        tuple(tables.of(BGP_POLICY).all(snapshot)),
        tables.secrets.get(snapshot, key),
        key,
        unread is not None,
        dialect.options.next_fields,
    )


class Entry(NamedTuple):
    """An entry of ``bgpPeers`` in effect."""

    address: str
    """In canonical form."""
    family: Family
    peer: BGPPeer
    field: str
    """Its path in the policy."""


def compile_node(inputs: Inputs) -> NodeIntent:
    """Compile the effective BGPPolicy of a node to an instance, peers and route sets."""
    node = inputs.node
    labels = None if node is None else node.metadata.labels
    choice = choose(inputs.policies, labels, next_fields=inputs.next_fields)
    if node is None or choice.policy is None:
        return NodeIntent(conditions=choice.conditions, problems=choice.problems)
    policy = choice.policy
    ref, facts = ref_to(BGP_POLICY, policy), node_facts(node)
    identifier = router_id(node, facts)
    problems = [*choice.problems, *facts.problems]
    if identifier.problem is not None:
        problems.append(identifier.problem)
    annotations: tuple[ObjectAnnotations, ...] = ()
    if not identifier.annotated:
        annotations = (annotated(node, identifier.text),)
    sets = route_sets(policy, facts.families)
    entries = distinct(policy, problems)
    peers = _peers(ref, entries, sets, inputs, problems)
    without = [f"{entry.address}" for entry in entries if entry.family not in sets]
    conditions = choice.conditions
    if without:
        more = f"; not used, as the node has not enabled their family: {', '.join(without)}"
        conditions = tuple(
            replace(condition, message=condition.message + more) if condition.status else condition
            for condition in conditions
        )
    instance = Instance(
        INSTANCE,
        None,
        policy.spec.local_asn,
        identifier.text,
        policy.spec.listen_port,
        ref,
        _confederation(policy),
    )
    return NodeIntent(
        (instance,),
        tuple(peers),
        {route_set.name: route_set for route_set in sets.values()},
        conditions,
        tuple(problems),
        annotations=annotations,
    )


def _confederation(policy: BGPPolicy) -> Confederation | None:
    confederation = policy.spec.confederation
    if confederation is None or confederation.identifier is None:
        return None
    return Confederation(confederation.identifier, tuple(sorted(set(confederation.member_asns))))


def distinct(policy: BGPPolicy, problems: list[Problem]) -> list[Entry]:
    """Return one entry of a BGPPolicy's ``bgpPeers`` for each address; others are ``problems``.

    Of several entries with the same AS number the last one is used, as in Antrea.
    """
    kept: dict[str, Entry] = {}
    ref, others = ref_to(BGP_POLICY, policy), 0
    for i, peer in enumerate(policy.spec.bgp_peers):
        address = canonical_address(peer.address)
        field = f"spec.bgpPeers[{i}]"
        version = ipaddress.ip_address(address).version
        family = IPV4_UNICAST if version == 4 else IPV6_UNICAST
        before = kept.get(address)
        if before is None or before.peer.asn == peer.asn:
            kept[address] = Entry(address, family, peer, field)
            continue
        others += 1
        if others <= MAX_DUPLICATES:
            text = f"{address} is a peer already, with AS {before.peer.asn}: that entry is used"
            problems.append(Problem((ref,), field, text, category="conflict"))
    if others > MAX_DUPLICATES:
        text = f"{others} entries have the address of another entry, with another AS number"
        problems.append(Problem((ref,), "spec.bgpPeers", text, category="conflict"))
    return list(kept.values())


def _peers(
    ref: ObjectRef,
    entries: list[Entry],
    sets: Mapping[Family, RouteSet],
    inputs: Inputs,
    problems: list[Problem],
) -> list[Peer]:
    passwords = Passwords(inputs.secret_key, inputs.secret, unread=inputs.secret_unread)
    peers = []
    for entry in entries:
        if entry.family not in sets:
            continue
        given = entry.peer
        if not inputs.next_fields:
            given = _released(given)
        password = passwords.find(entry.address, given.asn, given.address)
        if password.problem is not None and password.problem not in problems:
            problems.append(password.problem)
        hold = given.hold_time_seconds or HOLD_TIME
        restarts = given.graceful_restart_enabled is not False
        peer = Peer(
            instance=INSTANCE,
            name=entry.address,
            address=entry.address,
            interface=None,
            peer_asn=given.asn,
            peer_port=given.port,
            hold_time=hold,
            # A third of the negotiated hold time is used, if that is less.
            keepalive_time=given.keepalive_interval_seconds or max(1, hold // 3),
            connect_retry_time=given.connect_retry_seconds or CONNECT_RETRY_TIME,
            ebgp_multihop=given.multihop_ttl,
            password=password.reference,
            down_reason=password.down_reason,
            graceful_restart=(
                GracefulRestart(given.graceful_restart_time_seconds) if restarts else None
            ),
            bfd=bfd_profile(given.bfd),
            bfd_field=f"{entry.field}.bfd",
            families=(entry.family,),
            route_set=sets[entry.family].name,
            origins=(ref,),
        )
        idle = given.idle_hold_time_after_reset_seconds
        peers.append(peer if idle is None else replace(peer, idle_hold_time=idle))
    return peers


def bfd_profile(bfd: Bfd | None) -> BfdProfile | None:
    """Return the BFD settings of a BGPPolicy's peer, in the names of either proposal."""
    if bfd is None or not bfd.enabled:
        return None
    receive = bfd.receive_interval_milliseconds or bfd.min_receive_interval_milliseconds
    transmit = bfd.transmit_interval_milliseconds or bfd.min_transmit_interval_milliseconds
    return BfdProfile(
        receive_interval=receive or BFD_INTERVAL,
        transmit_interval=transmit or BFD_INTERVAL,
        detect_multiplier=bfd.detection_multiplier,
    )


def _released(peer: BGPPeer) -> BGPPeer:
    """Return a peer without the fields that are not released."""
    return replace(
        peer,
        hold_time_seconds=None,
        keepalive_interval_seconds=None,
        connect_retry_seconds=None,
        idle_hold_time_after_reset_seconds=None,
        graceful_restart_enabled=None,
        bfd=None,
    )
