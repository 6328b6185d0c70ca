"""The program ``waggle``: a person's view of a running agent, and what works without one.

Each sub-command is a module of its own with ``add_parser(subparsers)``, which only describes the
arguments, and ``run(args) -> int``, which may import what it needs. Nothing here decides anything
about routes: it asks, computes with the rooms below, and prints.
"""
