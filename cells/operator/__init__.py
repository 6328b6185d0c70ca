"""The operator cell: who leads, and what the leader writes into the cluster.

`election` keeps the Lease, `writing` the loop of rounds and writes, `source` is the kubernetes cell
with what an operator reads, and `cell` puts them together. What is written is worked out in
`reconcilers.operator`.
"""
