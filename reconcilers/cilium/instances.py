"""Compiles a node's NodeConfig to instances, peers and route sets.

Pure. An invalid instance or peer becomes a `Problem` that names the object and the field; all others
are compiled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from reconcilers.cilium import sessions
from reconcilers.cilium.bfd import bfd_profile
from reconcilers.cilium.default_router_id import CILIUM_HOST, router_id_of, router_id_of_host
from reconcilers.cilium.passwords import session_password
from reconcilers.cilium.peer_ends import InvalidNodeConfigError, PeerEnds, local_address, peer_end
from reconcilers.cilium.route_sets import RouteSet, route_set, unknown_values
from reconcilers.model import (
    Instance,
    ObjectRef,
    Peer,
    Problem,
    SuppressedFamily,
)
from reconcilers.node_addresses import next_hops_of
from resources.cilium import (
    DEFAULT_FAMILIES,
    CiliumBGPAdvertisement,
    CiliumBGPNodeConfig,
    CiliumBGPPeerConfig,
)
from resources.cilium.clusterconfig import (
    DEFAULT_GATEWAY,
    UNNUMBERED,
    PeerConfigReference,
)
from resources.cilium.nodeconfig import NodeInstance, NodePeer
from resources.cilium.peerconfig import PeerConfigSpec
from resources.core import Node, Secret
from resources.host.network import Host
from resources.label_selectors import LabelSelector
from resources.meta import ObjectMeta
from speaker.nlri import Family

_DEFAULTS = CiliumBGPPeerConfig(metadata=ObjectMeta(name=""), spec=PeerConfigSpec())


class Context(msgspec.Struct, frozen=True):
    """The objects that a NodeConfig refers to."""

    node: Node | None
    peer_configs: Mapping[str, CiliumBGPPeerConfig]
    advertisements: tuple[CiliumBGPAdvertisement, ...]
    secrets: Mapping[str, Secret]
    secrets_namespace: str
    host: Host = Host()
    router_id_of_node: bool = True
    """True if the node's IPv4 address is the default router ID; false if router IDs are allocated."""
    next_fields: bool = False
    """True if fields that are proposed for later releases of Cilium are used."""


class CompiledNode(NamedTuple):
    """The configuration of one node, filled while it is compiled."""

    instances: list[Instance]
    peers: list[Peer]
    route_sets: dict[str, RouteSet]
    problems: list[Problem]


def compile_instances(config: CiliumBGPNodeConfig, context: Context) -> CompiledNode:
    """Compile the instances of a CiliumBGPNodeConfig, with their peers and route sets."""
    compiled = CompiledNode([], [], {}, [])
    ref = ObjectRef("CiliumBGPNodeConfig", "", config.metadata.name)
    sets: dict[bytes, RouteSet | None] = {}
    for i, instance in enumerate(config.spec.bgp_instances):
        _instance(ref, f"spec.bgpInstances[{i}]", instance, context, compiled, sets)
    for advertisement in context.advertisements:
        compiled.problems.extend(unknown_values(advertisement))
    return compiled


def _instance(
    ref: ObjectRef,
    path: str,
    instance: NodeInstance,
    context: Context,
    compiled: CompiledNode,
    sets: dict[bytes, RouteSet | None],
) -> None:
    def leave_out(
        error: InvalidNodeConfigError, where: str, names: tuple[str, ...], text: str
    ) -> None:
        objects = (ref, *error.objects)
        field = f"{where}.{error.field}"
        compiled.problems.append(Problem(objects, field, text, names, error.category))

    try:
        neutral = _neutral_instance(ref, instance, context)
    except InvalidNodeConfigError as error:
        leave_out(error, path, (instance.name,), f"instance {instance.name!r} {error}")
        return
    port = neutral.listen_port
    holder = next((i.name for i in compiled.instances if i.listen_port == port), None)
    if port is not None and holder is not None:
        text = f"instance {instance.name!r} does not listen: {port} is the port of {holder!r}"
        compiled.problems.append(Problem((ref,), f"{path}.localPort", text))
        neutral = replace(neutral, listen_port=None)
    compiled.instances.append(neutral)
    for j, peer in enumerate(instance.peers):
        try:
            compiled.peers.append(_checked_peer(ref, instance, peer, context, compiled, sets))
        except InvalidNodeConfigError as error:
            text = f"peer {peer.name!r} is not configured: {error}"
            leave_out(error, f"{path}.peers[{j}]", (instance.name, peer.name), text)
        compiled.problems.extend(_unused_discovery(ref, f"{path}.peers[{j}].autoDiscovery", peer))


def _unused_discovery(ref: ObjectRef, path: str, peer: NodePeer) -> Iterable[Problem]:
    """Yield the part of an autoDiscovery that belongs to the other mode."""
    discovery = peer.auto_discovery
    if discovery is None:
        return
    text = f"has no effect with mode {discovery.mode}"
    if discovery.mode == UNNUMBERED and discovery.default_gateway is not None:
        yield Problem((ref,), f"{path}.defaultGateway", text, category="unsupported")
    if discovery.mode == DEFAULT_GATEWAY and discovery.unnumbered is not None:
        yield Problem((ref,), f"{path}.unnumbered", text, category="unsupported")


def _neutral_instance(ref: ObjectRef, instance: NodeInstance, context: Context) -> Instance:
    """Return an instance with its AS number and router ID. Raises `InvalidNodeConfigError`."""
    if instance.local_asn is None:
        raise InvalidNodeConfigError("localASN", "has no AS number of its own")
    invalid = sessions.invalid_asn(instance.local_asn)
    if invalid is not None:
        raise InvalidNodeConfigError("localASN", f"the instance is not configured: {invalid}")
    router_id = instance.router_id
    if router_id is None:
        if not context.router_id_of_node:
            raise InvalidNodeConfigError("routerID", "has no router ID from the pool")
        router_id = router_id_of(context.node) or router_id_of_host(context.host)
    if router_id is None:
        raise InvalidNodeConfigError(
            "routerID",
            f"has no router ID: the node has no IPv4 address, and no interface {CILIUM_HOST}; set "
            "routerID in a CiliumBGPNodeConfigOverride",
        )
    return Instance(instance.name, None, instance.local_asn, router_id, instance.local_port, ref)


def _checked_peer(
    ref: ObjectRef,
    instance: NodeInstance,
    peer: NodePeer,
    context: Context,
    compiled: CompiledNode,
    sets: dict[bytes, RouteSet | None],
) -> Peer:
    """Return a peer. Raises `InvalidNodeConfigError`."""
    end = peer_end(peer, context.host)
    invalid = sessions.invalid_asn(peer.peer_asn)
    if invalid is not None:
        raise InvalidNodeConfigError("peerASN", invalid)
    config = _DEFAULTS
    if peer.peer_config_ref is not None:
        _check_reference(peer.peer_config_ref)
        name = peer.peer_config_ref.name
        if name not in context.peer_configs:
            missing = ObjectRef("CiliumBGPPeerConfig", "", name)
            text = f"there is no CiliumBGPPeerConfig {name!r}"
            raise InvalidNodeConfigError("peerConfigRef.name", text, missing)
        config = context.peer_configs[name]
    config_ref = ObjectRef("CiliumBGPPeerConfig", "", config.metadata.name)
    try:
        source = local_address(peer, end, config, context.host)
    except ValueError as error:
        if peer.local_address:
            raise InvalidNodeConfigError("localAddress", str(error)) from None
        raise InvalidNodeConfigError("peerConfigRef", str(error), config_ref) from None
    neutral = _peer(
        ref, instance, peer, end._replace(local_address=source), config, context, compiled, sets
    )
    if not neutral.families:
        text = "none of its families is spoken"
        raise InvalidNodeConfigError("peerConfigRef", text, config_ref)
    other = peer_at_same_address(neutral, compiled.peers)
    if other is not None:
        raise InvalidNodeConfigError("peerAddress", f"its address is that of peer {other!r}")
    return neutral


def peer_at_same_address(peer: Peer, others: Iterable[Peer]) -> str | None:
    """Return a peer at the same address in one of Cilium's instances, as connections match by it."""
    address = (peer.instance, peer.address, peer.interface)
    same = (o.name for o in others if (o.instance, o.address, o.interface) == address)
    return next(same, None)


def _check_reference(reference: PeerConfigReference) -> None:
    """Check group and kind, which v2alpha1 has. Raises `InvalidNodeConfigError`."""
    for field, value, only in (
        ("group", reference.group, "cilium.io"),
        ("kind", reference.kind, "CiliumBGPPeerConfig"),
    ):
        if value != only:
            raise InvalidNodeConfigError(f"peerConfigRef.{field}", f"{value!r} is not {only}")


def _peer(
    ref: ObjectRef,
    instance: NodeInstance,
    peer: NodePeer,
    ends: PeerEnds,
    config: CiliumBGPPeerConfig,
    context: Context,
    compiled: CompiledNode,
    sets: dict[bytes, RouteSet | None],
) -> Peer:
    spec = config.spec
    reported = len(compiled.problems)
    config_ref = ObjectRef("CiliumBGPPeerConfig", "", config.metadata.name)
    families: dict[Family, LabelSelector | None] = sessions.families(
        config_ref,
        "spec.families",
        ((f.afi, f.safi, f.advertisements) for f in spec.families or DEFAULT_FAMILIES),
        compiled.problems,
    )
    if any(p in compiled.problems[:reported] for p in compiled.problems[reported:]):
        # Another peer with the same PeerConfig has reported them.
        del compiled.problems[reported:]
    selectors = msgspec.json.encode(sorted(families.items()), order="deterministic")
    if selectors not in sets:
        sets[selectors] = route_set(families, context.advertisements)
    selected = sets[selectors]
    if selected is not None:
        compiled.route_sets[selected.name] = selected
    password, down_reason = session_password(
        config_ref,
        "spec.authSecretRef",
        spec.auth_secret_ref,
        context.secrets,
        context.secrets_namespace,
        compiled.problems,
    )
    return Peer(
        instance=instance.name,
        name=peer.name,
        address=ends.address,
        interface=ends.interface,
        peer_asn=peer.peer_asn,
        peer_port=spec.transport.peer_port,
        local_address=ends.local_address,
        hold_time=spec.timers.hold_time_seconds,
        keepalive_time=spec.timers.keep_alive_time_seconds,
        connect_retry_time=spec.timers.connect_retry_time_seconds,
        ebgp_multihop=spec.ebgp_multihop,
        password=password,
        graceful_restart=sessions.graceful_restart(spec.graceful_restart),
        bfd=bfd_profile(spec.bfd) if context.next_fields else None,
        families=tuple(sorted(families)),
        route_set=selected.name if selected is not None else None,
        next_hops=next_hops_of(context.node, ends.address),
        origins=(ref,),
        down_reason=down_reason,
        suppressed=_suppressed(ref, peer, config, families, selected),
    )


def _suppressed(
    ref: ObjectRef,
    peer: NodePeer,
    config: CiliumBGPPeerConfig,
    families: Mapping[Family, LabelSelector | None],
    selected: RouteSet | None,
) -> tuple[SuppressedFamily, ...]:
    """Return the families in which nothing is advertised, with the reason."""
    suppressed = []
    where = f"CiliumBGPPeerConfig {config.metadata.name}"
    rule = ObjectRef("CiliumBGPPeerConfig", "", config.metadata.name)
    for family, selector in sorted(families.items()):
        if selected is not None and family in selected.entries:
            continue
        if peer.peer_config_ref is None:
            text = "the peer refers to no CiliumBGPPeerConfig, which selects what is advertised"
            suppressed.append(SuppressedFamily(family, "NoPeerConfig", text, ref))
        elif not config.spec.families:
            text = f"{where} lists no families, and nothing is advertised in the default ones"
            suppressed.append(SuppressedFamily(family, "NoAdvertisements", text, rule))
        elif selector is None:
            text = f"{where} has no advertisements for {family}"
            suppressed.append(SuppressedFamily(family, "NoAdvertisements", text, rule))
        else:
            text = f"no CiliumBGPAdvertisement has labels that {where} selects for {family}"
            suppressed.append(SuppressedFamily(family, "NoAdvertisement", text, rule))
    return tuple(suppressed)
