"""Antrea's BGPPolicy as a dialect: one BGP process per node, configured by one effective policy.

`dialect` has the hooks, `compile_node` the intent of a node, `effective` the choice of the policy,
`node` the facts of a Node, `addresses` what Services, Egresses and the Node contribute.
"""
