"""What the host says: its network interfaces and its default routes.

* `facts`: both as values, and what BGP asks of them
* `nodenetwork`: the kind NodeNetwork, which says the same in a manifest, where there is no host to ask
* `netlink`: the kernel as the source
"""

from resources.host.facts import DefaultRoute, Device, Host
from resources.host.nodenetwork import NodeNetwork, node_network_errors

__all__ = ["DefaultRoute", "Device", "Host", "NodeNetwork", "node_network_errors"]
"""Importing this costs nothing: `netlink` brings its library and is imported where it is started."""
