"""The CNI configuration of a network: JSON text in a NetworkAttachmentDefinition.

Source: OVN-Kubernetes, ``go-controller/pkg/cni/types``; CNI specification 1.1.0.
"""

from __future__ import annotations

import functools
from typing import Annotated, Any, Final, NamedTuple

import msgspec
from msgspec import Meta

from resources.addresses import canonical_prefix
from resources.decimal_numbers import decimal_number
from resources.errors import INVALID_JSON, shortened
from resources.meta import Struct
from resources.ovnk.evpn import is_route_target

PLUGIN: Final = "ovn-k8s-cni-overlay"
"""The type of OVN-Kubernetes' CNI plugin."""
NO_OVERLAY: Final = "no-overlay"
EVPN: Final = "evpn"
"""Transports of a network; without one it is tunnelled with Geneve."""
_DEFAULT_LENGTH: Final = {4: 24, 6: 64}
"""Of the subnet of a host, by IP version."""


class CniVrf(Struct, frozen=True):
    """A MAC-VRF or IP-VRF of an EVPN network."""

    vni: Annotated[int, Meta(ge=1, le=16777215)]
    route_target: str = ""

    def __post_init__(self) -> None:
        """Check the route target: no API server does. Raises ValueError."""
        if self.route_target and not is_route_target(self.route_target):
            text = shortened(self.route_target)
            raise ValueError(f"{text} is not a route target such as 65000:100")


class CniEvpn(Struct, frozen=True):
    """The EVPN of a network."""

    vtep: str
    mac_vrf: CniVrf | None = msgspec.field(name="macVRF", default=None)
    ip_vrf: CniVrf | None = msgspec.field(name="ipVRF", default=None)


class CniConfig(Struct, frozen=True):
    """The CNI configuration of a network of OVN-Kubernetes."""

    name: str = ""
    type: str = ""
    topology: str = ""
    role: str = ""
    subnets: str = ""
    transport: str = ""
    evpn: CniEvpn | None = None


class ClusterSubnet(NamedTuple):
    """A subnet of a network, and the length of the subnet of each host."""

    prefix: str
    host_length: int | None
    """None where hosts share the subnet (Layer2)."""

    @property
    def version(self) -> int:
        """The IP version, 4 or 6, of a subnet in a CNI configuration."""
        return 6 if ":" in self.prefix else 4


@functools.lru_cache(maxsize=8192)
def parse_cni(text: str) -> CniConfig | str:
    """Parse a CNI configuration; returns a sentence without its end where it is invalid."""
    try:
        return msgspec.json.decode(text, type=CniConfig)
    except INVALID_JSON as error:
        return f"is not a CNI configuration: {error}"


def default_config() -> str:
    """Return the CNI configuration of the default network."""
    value: dict[str, Any] = {"cniVersion": "0.4.0", "name": "ovn-kubernetes", "type": PLUGIN}
    return msgspec.json.encode(value).decode()


@functools.lru_cache(maxsize=8192)
def parse_subnets(text: str, *, layer3: bool) -> tuple[ClusterSubnet, ...]:
    """Parse the subnets of a CNI configuration: ``10.0.0.0/16/24,...``, plain for Layer2.

    Host bits are cleared, as the API of ClusterUserDefinedNetworks admits them. Raises ValueError.
    """
    return tuple(_subnet(part.strip(), layer3) for part in text.split(",") if part.strip())


def _subnet(text: str, layer3: bool) -> ClusterSubnet:
    parts = text.split("/")
    prefix = canonical_prefix("/".join(parts[:2]), host_bits=True)
    length = int(prefix.rpartition("/")[2])
    version, longest = (6, 128) if ":" in prefix else (4, 32)
    if len(parts) > 3 or (len(parts) == 3 and not layer3):
        raise ValueError(f"{shortened(text)} is not a subnet")
    if not layer3:
        return ClusterSubnet(prefix, None)
    host = parts[2] if len(parts) == 3 else str(_DEFAULT_LENGTH[version])
    host_length = decimal_number(host, longest)
    if host_length is None or host_length <= length:
        reason = f"{shortened(host)} is not the length of a host's subnet"
        raise ValueError(f"{shortened(text)}: {reason}")
    return ClusterSubnet(prefix, host_length)
