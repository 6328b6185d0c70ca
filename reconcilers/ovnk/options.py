"""The options of the OVN-Kubernetes dialect: OVN-Kubernetes' options that its result depends on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal

from msgspec import Meta

from resources.option_declarations import InvalidOption, Options, setting

if TYPE_CHECKING:
    from resources.ovnk.cni import ClusterSubnet

_RESERVED_ASNS: Final = frozenset({23456, 65535})
"""RFC 6793, RFC 7300."""


class OvnkOptions(Options, frozen=True):
    """The options of agents, the operator and ``waggle render``."""

    mode: Annotated[
        Literal["follow", "generate"],
        setting(
            "follow: OVN-Kubernetes generates FRRConfigurations of RouteAdvertisements; generate: the "
            "operator does, with enable-route-advertisements off in OVN-Kubernetes' cluster manager",
            flag="--ovnk",
        ),
    ] = "follow"
    cluster_subnets: Annotated[
        str,
        setting(
            "subnets of the default network, as in OVN-Kubernetes: prefix and length of a host's "
            "subnet, separated by commas",
            metavar="CIDR/LENGTH[,...]",
        ),
    ] = ""
    gateway_mode: Annotated[
        Literal["local", "shared"], setting("the gateway mode of OVN-Kubernetes")
    ] = "local"
    transport: Annotated[
        Literal["geneve", "no-overlay"], setting("the transport of the default network")
    ] = "geneve"
    egress_ip: Annotated[bool, setting("egress IPs may be advertised (enable-egress-ip)")] = True
    evpn: Annotated[bool, setting("EVPN networks may be advertised (enable-evpn)")] = False
    evpn_form: Annotated[
        Literal["auto", "text", "fields"],
        setting(
            "how EVPN is written to FRRConfigurations. text: raw configuration; fields: as in newer "
            "versions of FRR-k8s; auto: fields where the definition in the cluster has them"
        ),
    ] = "auto"
    dynamic_udn: Annotated[
        bool,
        setting(
            "networks are on the nodes of their Pods and egress IPs alone "
            "(enable-dynamic-udn-allocation); the operator then reads Pods"
        ),
    ] = False
    layer2_transit_router: Annotated[
        bool,
        setting("Layer2 networks have a transit router, and need no tunnel ID on a node"),
    ] = False
    managed_bgp: Annotated[
        Literal["off", "full-mesh"],
        setting("sessions between all nodes for no-overlay networks with managed routing"),
    ] = "off"
    managed_bgp_asn: Annotated[
        int, Meta(ge=1, le=4294967294), setting("the AS number of these sessions")
    ] = 64512
    namespace: Annotated[
        str, setting("namespace of OVN-Kubernetes, with the attachment of the default network")
    ] = "ovn-kubernetes"
    cluster_default_nad: Annotated[
        str,
        setting(
            "the NetworkAttachmentDefinition of the default network (cluster-default-nad); default: "
            "default, in the namespace of OVN-Kubernetes",
            metavar="NAMESPACE/NAME",
        ),
    ] = ""

    def __post_init__(self) -> None:
        """Check subnets, AS number and names. Raises `InvalidOption`."""
        asn = self.managed_bgp_asn
        if asn in _RESERVED_ASNS:
            raise InvalidOption("--ovnk-managed-bgp-asn", f"{asn} is reserved")
        try:
            _ = self.default_subnets
        except ValueError as error:
            raise InvalidOption("--ovnk-cluster-subnets", str(error)) from None
        name = self.cluster_default_nad
        if name and (name.count("/") != 1 or not all(name.split("/"))):
            raise InvalidOption("--ovnk-cluster-default-nad", f"{name!r} is not NAMESPACE/NAME")

    @property
    def generates(self) -> bool:
        """True if the operator generates FRRConfigurations, in place of OVN-Kubernetes."""
        return self.mode == "generate"

    @property
    def default_attachment(self) -> tuple[str, str]:
        """Namespace and name of the NetworkAttachmentDefinition of the default network."""
        if not self.cluster_default_nad:
            return self.namespace, "default"
        namespace, _, name = self.cluster_default_nad.partition("/")
        return namespace, name

    @property
    def default_subnets(self) -> tuple[ClusterSubnet, ...]:
        """The option of the subnets of OVN-Kubernetes' default network."""
        if not self.cluster_subnets:
            return ()
        # Every program reads the options, also where the dialect is off.
        from resources.ovnk.cni import parse_subnets

        return parse_subnets(self.cluster_subnets, layer3=True)
