"""The program ``waggle``: shows the state of a running agent, and works on manifests without one.

Each sub-command is a module of `waggle.commands` with ``add_parser(subparsers)``, which declares the
arguments and imports nothing slow, and ``run(args)``, which returns the exit status. The modules beside
`commands` are what several of them use: flags, requests, tables. They send requests to the agent
or call the rooms below, and print; they make no decision about routes.

The import of this package, before any other, takes the current folder out of the import path, where
PYTHONPATH=. or python -m has put it: the names of our rooms are ordinary words, and a folder of
manifests may be called ``resources``.
"""

import sys
from pathlib import Path


def _without_current_folder() -> None:
    try:
        current = Path.cwd()
    except OSError:  # it was removed
        return
    package = Path(__file__).resolve().parent
    # A checkout, whose top is the current folder while it is worked on.
    if current not in (package.parent, package.parent.parent):
        sys.path[:] = [path for path in sys.path if path and Path(path).resolve() != current]


_without_current_folder()
