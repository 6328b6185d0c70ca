"""The writer of kernel routes: the only part of Waggle that needs CAP_NET_ADMIN.

A process of its own, because 100,000 routes take the kernel hundreds of milliseconds, in which an event
loop would stand still. It imports the standard library alone, so that it stays small.

* `protocol_messages`, `protocol`: the messages between agent and writer, and their form as octets
* `port`, `client`: the writer as the agent sees it, and the agent's end of the connection
* `netlink`, `route_messages`, `listings`: the kernel's messages, packed; listings of routes and objects
* `kernel_features`: what the kernel has, and permits
* `next_hop_groups`: objects and groups of next hops
* `route_writer`: batches, adoption, whose route it is
* `monitor`, `foreign_routes`: notifications; routes of others that concern the agent
* `service`: the loop, on `reconcilers.process`
"""
