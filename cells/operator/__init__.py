"""The operator cell: leader election, and the writes of the leader.

`election` keeps the Lease, `kubernetes` is the cell with the kinds that an operator reads,
`cell` has the jobs, `in_process` the operator of an agent that reads manifests. The rules are in
`reconcilers.operator` and `resources.kubernetes`.
"""
