"""The sub-commands: each is a module with ``add_parser(subparsers)`` and ``run(args)``.

What several commands use is above, in `waggle`. No command imports another command, but `router`, which
lists sessions and routes as `peers` and `routes` do.
"""
