"""The host's network: its interfaces and its default routes.

* `network`: both as values, and the addresses that BGP uses
* `nodenetwork`: the kind NodeNetwork, the same in a manifest
* `netlink`: reads them from the kernel
"""

from resources.host.network import DefaultRoute, Device, Gateway, Host, Vrf
from resources.host.nodenetwork import NodeNetwork, node_network_errors

__all__ = ["DefaultRoute", "Device", "Gateway", "Host", "NodeNetwork", "Vrf", "node_network_errors"]
"""Without `netlink`, whose library is imported where it is started."""
