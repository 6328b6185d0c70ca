"""Cilium's BGP v1 API (CiliumBGPPeeringPolicy), as pure functions.

`selection` finds the policy of each node, `annotations` reads what is set per node, `compile` makes
instances, peers and route sets of a policy, `translate` writes the policy as objects of v2.
Source: Cilium 1.14 to 1.16, package bgpv1; the names of `translate` are those of CFP-28175.
"""
