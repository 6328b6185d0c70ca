"""A directory of manifests as the cluster: YAML and JSON files, read once or watched.

From the bottom up: `files` finds manifest files, `yamlfile` and `parse` decode a file, `catalog` holds
the objects of all files and computes events, `source` watches, `load` reads once. A broken file keeps
the last valid version of its objects. The package imports none of them: `waggle router` decodes its
file with `yamlfile` alone.
"""
