"""A directory of manifests as the cluster: YAML and JSON files, read once or watched.

From the bottom up: `files` finds manifest files, `yamlfile` and `parse` decode a file, `catalog` holds
the objects of all files and computes events, `source` watches, `load` reads once. A broken file keeps
the last valid version of its objects.
"""

from resources.manifests.load import Loaded, UnreadablePathError, load
from resources.manifests.source import ManifestsSource

__all__ = ["Loaded", "ManifestsSource", "UnreadablePathError", "load"]
