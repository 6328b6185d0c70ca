"""The program ``waggle-bfd``: has the BFD sessions of a node for an agent."""

import waggle  # noqa: F401  takes the current folder out of the import path
