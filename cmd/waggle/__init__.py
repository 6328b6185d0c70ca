"""The program ``waggle``: shows the state of a running agent, and works on manifests without one.

Each sub-command is a module with ``add_parser(subparsers)``, which declares the arguments and imports
nothing slow, and ``run(args)``, which returns the exit status. Modules here send requests to the agent
or call the rooms below, and print; they make no decision about routes.
"""
