"""What the cluster says: API types as immutable rows, the ways in, and the tables that hold them.

One folder for each API dialect, `manifests` as a way in, and behind both the same three steps: an
object is validated and decoded to a row (`kinds`), a source tells it as an event (`source`), and the
one subscriber of its kind commits it (`ingest`). Nothing here decides what an object means.
"""
