"""NodeNetwork: a node's interfaces, default routes and redistributed routes in a manifest.

For manifests that describe nodes other than this host: labs, tests, `waggle render`. A node's
NodeNetwork precedes the state of the kernel.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from resources.addresses import address_errors, canonical_address, canonical_prefix
from resources.errors import FieldError
from resources.host.network import DefaultRoute, Device, Host, KernelRoute, Vrf
from resources.meta import Resource, Struct

MAC = r"^([0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5})?$"
_LENGTH: Final = re.compile(r"0|[1-9][0-9]{0,2}")
InterfaceName = Annotated[str, Meta(min_length=1, max_length=15)]


class NetworkDevice(Struct, frozen=True):
    """One interface."""

    name: InterfaceName
    admin_up: bool = True
    oper_state: str = "up"
    addresses: tuple[str, ...] = ()
    """Each with the length of its network, or without."""
    mac_address: Annotated[str, Meta(pattern=MAC)] = ""
    vrf: Annotated[str, Meta(max_length=15)] = ""


class NetworkDefaultRoute(Struct, frozen=True):
    """One default route."""

    gateway: str
    device: InterfaceName
    metric: Annotated[int, Meta(ge=0, le=4294967295)] = 0


class NetworkVrf(Struct, frozen=True):
    """One VRF device."""

    name: InterfaceName
    table: Annotated[int, Meta(ge=1, le=4294967295)]


class NetworkRoute(Struct, frozen=True):
    """A route that another program has installed in the kernel."""

    prefix: str
    table: Annotated[int, Meta(ge=1, le=4294967295)]
    protocol: Annotated[int, Meta(ge=0, le=255)] = 3
    """RTPROT_* of linux/rtnetlink.h; 3 (boot) is what ``ip route add`` writes."""


class NodeNetworkSpec(Struct, frozen=True):
    """The specification."""

    devices: tuple[NetworkDevice, ...] = ()
    default_routes: tuple[NetworkDefaultRoute, ...] = ()
    vrfs: tuple[NetworkVrf, ...] | None = None
    """None where the VRFs of the host are not known."""
    routes: tuple[NetworkRoute, ...] = ()
    """Routes of other programs that objects may redistribute."""


class NodeNetwork(Resource, frozen=True):
    """A node's interfaces, default routes and redistributed routes; named after the node."""

    spec: NodeNetworkSpec = msgspec.field(default_factory=NodeNetworkSpec)

    @property
    def host(self) -> Host:
        """The network of the NodeNetwork manifest as a `Host`."""
        return Host(
            tuple(
                Device(
                    device.name,
                    device.admin_up,
                    device.oper_state.lower(),
                    tuple(
                        canonical_address(text.partition("/")[0], mapped=True)
                        for text in device.addresses
                    ),
                    device.mac_address.lower(),
                    device.vrf,
                    tuple(
                        str(ipaddress.ip_network(text, strict=False))
                        for text in device.addresses
                        if "/" in text
                    ),
                )
                for device in self.spec.devices
            ),
            tuple(
                DefaultRoute(route.metric, canonical_address(route.gateway), route.device)
                for route in self.spec.default_routes
            ),
            None
            if self.spec.vrfs is None
            else tuple(Vrf(vrf.name, vrf.table) for vrf in self.spec.vrfs),
            tuple(
                KernelRoute(canonical_prefix(route.prefix), route.table, route.protocol)
                for route in self.spec.routes
            ),
        )


def node_network_errors(network: NodeNetwork) -> Iterator[FieldError]:
    """Yield the rules that a NodeNetwork manifest breaks, and a schema cannot express."""
    seen: set[str] = set()
    for i, device in enumerate(network.spec.devices):
        if device.name in seen:
            yield FieldError(f"spec.devices[{i}].name", f"{device.name!r} is listed twice")
        seen.add(device.name)
        for j, address in enumerate(device.addresses):
            # A kernel takes IPv4-mapped addresses, which are not advertised.
            path = f"spec.devices[{i}].addresses[{j}]"
            text, slash, length = address.partition("/")
            errors = list(address_errors(text, path, mapped=True))
            yield from errors
            longest = 128 if ":" in text else 32
            if slash and not errors and not (_LENGTH.fullmatch(length) and int(length) <= longest):
                yield FieldError(path, f"{length!r} is not a prefix length")
    for i, route in enumerate(network.spec.default_routes):
        yield from address_errors(route.gateway, f"spec.defaultRoutes[{i}].gateway")
    for i, kernel_route in enumerate(network.spec.routes):
        try:
            canonical_prefix(kernel_route.prefix)
        except ValueError as error:
            yield FieldError(f"spec.routes[{i}].prefix", str(error))
    if network.spec.vrfs is not None:
        yield from _vrf_errors(network.spec, network.spec.vrfs)


def _vrf_errors(spec: NodeNetworkSpec, vrfs: tuple[NetworkVrf, ...]) -> Iterator[FieldError]:
    names: set[str] = set()
    for i, vrf in enumerate(vrfs):
        if vrf.name in names:
            yield FieldError(f"spec.vrfs[{i}].name", f"{vrf.name!r} is listed twice")
        names.add(vrf.name)
    for i, device in enumerate(spec.devices):
        if device.vrf and device.vrf not in names:
            yield FieldError(f"spec.devices[{i}].vrf", f"{device.vrf!r} is not in spec.vrfs")
