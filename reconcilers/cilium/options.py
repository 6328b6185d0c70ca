"""The options of the Cilium dialect: in an agent and in ``waggle render``, and in the operator."""

from __future__ import annotations

import ipaddress
from typing import Annotated, Literal, TypeAlias

from reconcilers.import_options import METAVAR, TEXT, ImportOptions
from resources.option_declarations import InvalidOption, Options, setting

PeeringPolicies: TypeAlias = Literal["exclusive", "first", "translate"]


def _broken_rule(text: str, error: ValueError, otherwise: str) -> str:
    """Return the rule that a prefix breaks: no host bits, or the form that the text does not have."""
    if "host bits" in str(error):
        return f"{error}; the prefix is {ipaddress.ip_network(text, strict=False)}"
    return f"{text!r} is {otherwise}"


class RouterIdOptions(Options, frozen=True):
    """The option that agents and the operator share."""

    router_id_allocation_ip_pool: Annotated[
        str | None,
        setting(
            "IPv4 prefix from which every instance of every node gets its router ID; by default a "
            "router ID is the node's IPv4 address",
            flag="--router-id-allocation-ip-pool",
            metavar="CIDR",
        ),
    ] = None

    def __post_init__(self) -> None:
        """Check the pool. Raises `InvalidOption` for text that is no IPv4 prefix."""
        try:
            _ = self.router_id_pool
        except ValueError as error:
            text = self.router_id_allocation_ip_pool or ""
            rule = _broken_rule(text, error, "not an IPv4 prefix such as 10.0.0.0/24")
            raise InvalidOption("--router-id-allocation-ip-pool", rule) from None

    @property
    def router_id_pool(self) -> ipaddress.IPv4Network | None:
        """The option ``router_id_allocation_ip_pool`` as a network, or None."""
        text = self.router_id_allocation_ip_pool
        return None if text is None else ipaddress.IPv4Network(text)

    @property
    def translates(self) -> bool:
        """True if the options have CiliumBGPPeeringPolicies translated to objects of v2."""
        return False


class CiliumOptions(RouterIdOptions, ImportOptions, frozen=True):
    """Options of the agent and of ``waggle render``."""

    no_service_endpoints_routable: Annotated[
        bool,
        setting(
            "advertise a Service with traffic policy Cluster that has no endpoint anywhere",
            flag="--no-service-endpoints-routable",
        ),
    ] = True
    legacy_origin_attribute: Annotated[
        bool,
        setting(
            "advertise LoadBalancer addresses with ORIGIN INCOMPLETE, as Cilium up to 1.15",
            flag="--legacy-origin-attribute",
        ),
    ] = False
    service_proxy_name: Annotated[
        str,
        setting(
            "label service.kubernetes.io/service-proxy-name of the Services that are advertised, as "
            "Cilium's k8s-service-proxy-name; by default Services without the label are",
            flag="--service-proxy-name",
            metavar="NAME",
        ),
    ] = ""
    node_address: Annotated[
        tuple[str, ...],
        setting(
            "address or prefix; repeatable. Which address of the node is its router ID and the next "
            "hop of IPv6 routes over IPv4: the first one within, for each family; by default the first "
            "InternalIP",
            flag="--node-address",
            metavar="CIDR",
        ),
    ] = ()
    next_fields: Annotated[
        bool,
        setting(
            "accept fields of CiliumBGPPeerConfig that are proposed for later releases of Cilium: bfd",
            flag="--cilium-next-fields",
        ),
    ] = False
    peering_policies: Annotated[
        PeeringPolicies,
        setting(
            "CiliumBGPPeeringPolicies. exclusive: of several that select a node none applies, as in "
            "Cilium; first: one of them applies; translate: they are translated to objects of v2",
            flag="--peering-policies",
        ),
    ] = "exclusive"
    imports: Annotated[tuple[str, ...], setting(TEXT, flag="--cilium-import", metavar=METAVAR)] = ()

    def __post_init__(self) -> None:
        """Check pool and prefixes. Raises `InvalidOption`."""
        super().__post_init__()
        self.check_imports("--cilium-import")
        for text in self.node_address:
            try:
                ipaddress.ip_network(text)
            except ValueError as error:
                rule = _broken_rule(text, error, "neither an IP address nor a prefix")
                raise InvalidOption("--node-address", rule) from None

    @property
    def translates(self) -> bool:
        """True if the options have CiliumBGPPeeringPolicies translated to objects of v2."""
        return self.peering_policies == "translate"


class CiliumOperatorOptions(RouterIdOptions, frozen=True):
    """Options of the operator."""

    translate_peering_policies: Annotated[
        bool,
        setting(
            "write the objects of v2 that CiliumBGPPeeringPolicies are equivalent to",
            flag="--translate-peering-policies",
        ),
    ] = False

    @property
    def translates(self) -> bool:
        """True if the options have CiliumBGPPeeringPolicies translated to objects of v2."""
        return self.translate_peering_policies
