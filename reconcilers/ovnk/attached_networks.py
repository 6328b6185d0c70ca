"""The networks that Namespaces are attached to: the default one, and ClusterUserDefinedNetworks.

They are read from NetworkAttachmentDefinitions, as OVN-Kubernetes does. Manifests without any have what
OVN-Kubernetes would write for the ClusterUserDefinedNetworks and Namespaces.
"""

from __future__ import annotations

import functools
import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from reconcilers.model import Generated, ObjectRef, Problem
from resources.addresses import interface_errors
from resources.core import Namespace
from resources.decimal_numbers import decimal_number
from resources.errors import shortened
from resources.meta import ObjectMeta, OwnerReference
from resources.ovnk import networkattachmentdefinition as names
from resources.ovnk.cni import (
    EVPN,
    NO_OVERLAY,
    PLUGIN,
    ClusterSubnet,
    CniConfig,
    CniEvpn,
    CniVrf,
    default_config,
    parse_cni,
    parse_subnets,
)
from resources.ovnk.evpn import EvpnVrf
from resources.ovnk.kinds import CLUSTER_NETWORK, NETWORK_ATTACHMENT, ROUTE_ADVERTISEMENTS
from resources.ovnk.networkattachmentdefinition import NetworkAttachmentDefinition
from resources.ovnk.networks import ClusterUserDefinedNetwork, NetworkSpec

DEFAULT: Final = "default"
"""The name of the default network, of its VRF and of its attachment."""
PRIMARY_NAMESPACE: Final = "k8s.ovn.org/primary-user-defined-network"
"""The label of a namespace that may have a primary network."""
LONGEST_VRF: Final = 15
"""Octets of the name of a network device (Linux, IFNAMSIZ)."""
HIGHEST_NETWORK_ID: Final = 99_999
"""With more digits the name of its VRF would be longer than that of a device."""
IpNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network


class Network(NamedTuple):
    """A network that may be advertised."""

    name: str
    """``default`` or ``cluster_udn_<name>``: the key in annotations of Nodes."""
    vrf: str
    topology: str
    """``layer2`` or ``layer3``."""
    role: str
    """``default``, ``primary`` or ``secondary``."""
    subnets: tuple[ClusterSubnet, ...]
    transport: str = ""
    evpn: CniEvpn | None = None
    cluster_network: str | None = None
    """The name of its ClusterUserDefinedNetwork; None of the default one."""
    error: str = ""
    """Why its subnets are not known, as a clause."""
    uplink: str = ""
    """The Uplink of its own, if it has one."""

    @property
    def shown_name(self) -> str:
        """The name of this attached network for people."""
        return self.cluster_network or self.name

    @property
    def is_layer2(self) -> bool:
        """True if the nodes share the subnets of this attached network."""
        return self.topology == "layer2"

    @property
    def is_evpn(self) -> bool:
        """True if EVPN connects the nodes of this attached network."""
        return self.transport == EVPN and self.evpn is not None

    @property
    def is_no_overlay(self) -> bool:
        """True if nodes route packets of this attached network to each other without tunnels."""
        return self.transport == NO_OVERLAY

    @property
    def ip_networks(self) -> tuple[IpNetwork, ...]:
        """The subnets of this attached network, parsed."""
        return tuple(ipaddress.ip_network(subnet.prefix) for subnet in self.subnets)


class Attachment(NamedTuple):
    """The attachment of one namespace to a network, or that of the default network."""

    row: NetworkAttachmentDefinition
    network: Network | None
    """None if the network may not be advertised, or is not known yet."""
    stored: bool = True
    """False for a network that does not exist yet."""


class Networks(NamedTuple):
    """All attachments, in order, and what is wrong with them."""

    attachments: tuple[Attachment, ...]
    problems: tuple[Problem, ...]

    def of_namespaces(self) -> Mapping[str, str]:
        """Return the primary network that each namespace is attached to beside the default network."""
        return {
            attachment.row.metadata.namespace: attachment.network.name
            for attachment in self.attachments
            if attachment.network is not None and attachment.network.role == "primary"
        }


def default_attachment(attachment: Attachment, advertisers: str) -> Generated:
    """Return the attachment of the default network, as it is written where there is none."""
    metadata = attachment.row.metadata
    content: dict[str, Any] = {
        "apiVersion": NETWORK_ATTACHMENT.api_versions[0],
        "kind": NETWORK_ATTACHMENT.name,
        "metadata": {"name": metadata.name, "namespace": metadata.namespace},
        "spec": {"config": default_config()},
    }
    ref = ObjectRef(NETWORK_ATTACHMENT.name, *attachment.row.key)
    owner = ObjectRef(ROUTE_ADVERTISEMENTS.name, "", advertisers)
    return Generated(ref, owner, content)


def has_vrf_of_name(cluster_network: str) -> bool:
    """True if the VRF of an attached network has the name of its ClusterUserDefinedNetwork."""
    return len(cluster_network) <= LONGEST_VRF and cluster_network != DEFAULT


def vrf_name(cluster_network: str, network_id: str) -> str | None:
    """Return the VRF of an attached network; None where its number is not known and is needed."""
    if has_vrf_of_name(cluster_network):
        return cluster_network
    number = decimal_number(network_id, HIGHEST_NETWORK_ID)
    return None if number is None else f"mp{number}-udn-vrf"


def is_default_vrf(vrf: str) -> bool:
    """True for the name of the default VRF, that of the default network."""
    return vrf in ("", DEFAULT)


def networks(
    rows: Sequence[NetworkAttachmentDefinition],
    default: Network,
    default_key: tuple[str, str],
    uplinks: Mapping[str, str],
    of_manifests: Iterable[NetworkAttachmentDefinition] = (),
) -> Networks:
    """Return the attached networks: of NetworkAttachmentDefinitions, and the default network.

    ``of_manifests`` are used where there are no ``rows``; ``uplinks`` belong to
    ClusterUserDefinedNetworks. ``default_key``: that of the default network's attachment.
    """
    attachments: list[Attachment] = []
    problems: list[Problem] = []
    known: dict[str, Network] = {}
    stored = bool(rows)
    for row in sorted(rows or of_manifests, key=lambda definition: definition.key):
        if row.key == default_key:
            attachments.append(Attachment(row, default, stored))
            continue
        owner = row.cluster_network
        if owner is None:
            continue
        try:
            network = _network(row, owner, known, problems)
        except Exception as error:  # noqa: BLE001  one object's error is that object's
            text = f"it cannot be used: {type(error).__name__}: {error}"
            problems.append(Problem((ObjectRef(NETWORK_ATTACHMENT.name, *row.key),), "", text))
            network = _unusable(owner, text)
        if network is not None and owner in uplinks:
            network = network._replace(uplink=uplinks[owner])
        attachments.append(Attachment(row, network, stored))
    if not any(attachment.row.key == default_key for attachment in attachments):
        namespace, name = default_key
        row = NetworkAttachmentDefinition(metadata=ObjectMeta(name=name, namespace=namespace))
        attachments.append(Attachment(row, default, stored=False))
        attachments.sort(key=lambda attachment: attachment.row.key)
    return Networks(tuple(attachments), tuple(problems))


def _network(
    row: NetworkAttachmentDefinition,
    owner: str,
    known: dict[str, Network],
    problems: list[Problem],
) -> Network | None:
    ref = ObjectRef(NETWORK_ATTACHMENT.name, *row.key)
    config = parse_cni(row.spec.config)
    if isinstance(config, str):
        problems.append(Problem((ref,), "spec.config", config))
        return None
    if config.type != PLUGIN:
        return None
    errors = interface_errors(owner, "metadata.ownerReferences") if has_vrf_of_name(owner) else ()
    for error in errors:
        # The name is a part of FRR's configuration text, and no API server checks it here.
        problems.append(Problem((ref,), error.path, error.message))
        return None
    annotations = row.metadata.annotations
    name = annotations.get(names.NETWORK_NAME) or config.name
    own = f"{names.CLUSTER_NETWORK_PREFIX}{owner}"
    if name and name != own:
        # Else the network of another owner would have these subnets.
        text = f"{shortened(name)} is not the network of its owner, {own}"
        problems.append(Problem((ref,), f"metadata.annotations[{names.NETWORK_NAME}]", text))
        return _unusable(owner, text)
    if not name:
        problems.append(Problem((ref,), "spec.config.name", "names no network"))
        return None
    network_id = annotations.get(names.NETWORK_ID)
    vrf = vrf_name(owner, network_id or "")
    if vrf is None:
        # Without the annotation OVN-Kubernetes has not numbered the network yet.
        if network_id is not None:
            reason = f"{shortened(network_id)} is not a number from 0 to {HIGHEST_NETWORK_ID}"
            field = f"metadata.annotations[{names.NETWORK_ID}]"
            problems.append(Problem((ref,), field, f"{reason}: the network is not advertised"))
        return None
    if name not in known:
        known[name] = of_config(config, name, vrf, owner)
    return known[name]


def _unusable(owner: str, error: str) -> Network:
    """Return the attached network of a definition that cannot be read: an error keeps its routes."""
    name = f"{names.CLUSTER_NETWORK_PREFIX}{owner}"
    return Network(name, "", "layer3", "primary", (), cluster_network=owner, error=error)


def of_config(config: CniConfig, name: str, vrf: str, owner: str) -> Network:
    """Return the attached network of a CNI configuration; one with wrong subnets has an error."""
    error, subnets = "", tuple[ClusterSubnet, ...]()
    try:
        subnets = parse_subnets(config.subnets, layer3=config.topology == "layer3")
    except ValueError as reason:
        error = f"subnets {shortened(config.subnets)}: {reason}"
    return Network(
        name,
        vrf,
        config.topology,
        config.role,
        subnets,
        config.transport,
        config.evpn,
        owner,
        error,
    )


def of_manifests(
    clusters: Iterable[ClusterUserDefinedNetwork], namespaces: Sequence[Namespace]
) -> Iterator[NetworkAttachmentDefinition]:
    """Yield the attachments that OVN-Kubernetes would write for ClusterUserDefinedNetworks."""
    for row in clusters:
        primary = row.spec.network.role == "Primary"
        for namespace in namespaces:
            labels = namespace.metadata.labels
            if primary and PRIMARY_NAMESPACE not in labels:
                continue
            if row.spec.namespace_selector.matches(labels):
                yield attachment(row, namespace.metadata.name)


def attachment(row: ClusterUserDefinedNetwork, namespace: str) -> NetworkAttachmentDefinition:
    """Return the attachment of a namespace to the network of a ClusterUserDefinedNetwork."""
    name = row.metadata.name
    owner = OwnerReference(
        api_version=CLUSTER_NETWORK.api_versions[0],
        kind=CLUSTER_NETWORK.name,
        name=name,
        uid=row.metadata.uid,
        controller=True,
    )
    network = f"{names.CLUSTER_NETWORK_PREFIX}{name}"
    config = msgspec.json.encode(_config(row.spec.network, network)).decode()
    return NetworkAttachmentDefinition(
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            labels=dict(row.metadata.labels),
            annotations={names.NETWORK_NAME: network},
            owner_references=(owner,),
        ),
        spec=names.NetworkAttachmentSpec(config=config),
    )


def _config(spec: NetworkSpec, name: str) -> CniConfig:
    subnets = ""
    if spec.layer3 is not None:
        lengths = ((s.cidr, s.host_subnet) for s in spec.layer3.subnets)
        subnets = ",".join(cidr if host is None else f"{cidr}/{host}" for cidr, host in lengths)
    elif spec.layer2 is not None:
        subnets = ",".join(spec.layer2.subnets)
    evpn = None
    if spec.evpn is not None:
        evpn = CniEvpn(
            vtep=spec.evpn.vtep, mac_vrf=_vrf(spec.evpn.mac_vrf), ip_vrf=_vrf(spec.evpn.ip_vrf)
        )
    transports = {None: "", "NoOverlay": NO_OVERLAY, "EVPN": EVPN}
    return CniConfig(
        name=name,
        type=PLUGIN,
        topology=spec.topology.lower(),
        role=spec.role.lower(),
        subnets=subnets,
        transport=transports[spec.transport],
        evpn=evpn,
    )


def _vrf(vrf: EvpnVrf | None) -> CniVrf | None:
    return None if vrf is None else CniVrf(vni=vrf.vni, route_target=vrf.route_target)


@functools.lru_cache(maxsize=256)
def overlapping_networks(networks: tuple[Network, ...]) -> tuple[Network, Network] | None:
    """Return two attached networks with a common address of Pods, if there are any."""
    ordered = sorted(
        ((subnet, network) for network in networks for subnet in network.ip_networks),
        key=lambda item: (item[0].version, item[0].network_address, item[0].prefixlen),
    )
    widest: tuple[IpNetwork, Network] | None = None
    for subnet, network in ordered:
        if (
            widest is not None
            and widest[0].version == subnet.version
            and widest[0].overlaps(subnet)
        ):
            if widest[1].name != network.name:
                return widest[1], network
            if int(widest[0].broadcast_address) >= int(subnet.broadcast_address):
                continue
        widest = (subnet, network)
    return None
