"""The report cell: writes an agent's statuses and Events into the cluster that it reads.

The rules are in `reconcilers.report`; the cell has the jobs, clocks, health, logs and metrics. An API
server that rejects a write or is unavailable changes nothing of what is advertised.
"""
