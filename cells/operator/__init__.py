"""The operator cell: leader election, and the leader's writes into the cluster.

`election` keeps the Lease, `writing` carries out plans, `migration` brings stored objects to the
present version, `source` is the kubernetes cell of an operator, `local` the operator's part in an
agent, and `cell` composes them. `reconcilers.operator` computes the plans.
"""
