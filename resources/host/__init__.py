"""The host's network: its interfaces and its default routes.

* `network`: both as values, and the addresses that BGP uses
* `nodenetwork`: the kind NodeNetwork, the same in a manifest
* `netlink`: reads them from the kernel
* `redistributed`: reads routes of other programs from the kernel
"""

from resources.host.network import (
    BGP_PROTOCOL,
    DefaultRoute,
    Device,
    Gateway,
    Host,
    KernelRoute,
    KernelTable,
    Vrf,
)
from resources.host.nodenetwork import NodeNetwork

__all__ = [
    "BGP_PROTOCOL",
    "DefaultRoute",
    "Device",
    "Gateway",
    "Host",
    "KernelRoute",
    "KernelTable",
    "NodeNetwork",
    "Vrf",
]
"""Without `netlink`, whose library is imported where it is started."""
