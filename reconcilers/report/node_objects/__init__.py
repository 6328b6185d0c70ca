"""The objects that an agent writes whole about its own node: computed, compared, written.

`compute_rows` computes them from the dialects, `objects` reconciles one kind with the API server.
"""
