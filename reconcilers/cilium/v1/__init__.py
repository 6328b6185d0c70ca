"""Cilium's BGP v1 API (CiliumBGPPeeringPolicy), as pure functions.

`in_effect` selects the policy of each node, `annotations` parses the settings of a node, `compile_node`
compiles a policy to instances, peers and route sets, `translation` translates it to objects of v2,
`operate` is the operator's part.
Source: Cilium 1.14 to 1.16, package bgpv1; the names of `translation` are from CFP-28175.
"""
