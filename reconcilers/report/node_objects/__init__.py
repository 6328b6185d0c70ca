"""The objects that an agent writes whole about its own node: computed, compared, written.

``rows`` computes them from the dialects, ``changes`` is the comparison with the API server, ``writer``
decides when a request is sent.
"""
