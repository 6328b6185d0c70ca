"""Routes in the kernel: another target of reconcilers, beside the speaker.

* `options`: the settings (``--fib``)
* `routing`, `next_hops`: next hops, resolved to gateways by the host's own routes (`resolved_next_hops`
  as the kernel has them)
* `forwarding`, `instance_routes`, `wanted_tables`: the best paths, and the routes that follow from them
* `reasons`, `martians`, `default_route`: why a route is not installed
* `offline`: the same without a kernel, of routes in a file (`received_file`, `offline_speaker`)
* `reconciler`, `installed`: the kernel as a target, and what the writer has confirmed
* ``writer`` is the process that writes them

The pure modules know prefixes as octets and no rows: a route is an entry of a dictionary.
"""
