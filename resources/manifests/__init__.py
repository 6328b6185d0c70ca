"""A directory of manifests as the cluster: YAML and JSON files, read once or watched.

From the bottom up: `files` says which files count, `yamlfile` and `parse` take a file apart,
`catalog` holds what every file says and works out events, `source` watches, `load` reads once. A file
that is broken keeps the last good version of what it held, and never stops anything.
"""

from resources.manifests.load import Loaded, UnreadablePathError, load
from resources.manifests.source import ManifestsSource

__all__ = ["Loaded", "ManifestsSource", "UnreadablePathError", "load"]
