"""Antrea's BGPPolicy as a dialect: one BGP process per node, configured by one effective policy.

`dialect` has the hooks, `compile_node` the intent of a node, `in_effect` the choice of the policy,
`node_facts` what is read of a Node, `candidates` the addresses of Services, Egresses and the Node.
"""
