"""Kubernetes objects: API types as immutable rows, the sources that read them, and their tables.

One folder for each API dialect; `kubernetes` and `manifests` are the sources. An object is validated
and decoded to a row (`kind`), a source emits it in an event (`source`), and one subscriber commits it
to the kind's table (`ingest`). What objects mean is compiled in `reconcilers`.
"""
