"""The program ``waggle-agent``: the BGP control plane of one node.

Loads settings, selects cells and runs the hive; the functions are in the rooms below.
"""

import waggle  # noqa: F401  takes the current folder out of the import path
