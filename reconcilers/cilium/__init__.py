"""Cilium's BGP v2 API: what the operator does, and what its agent does, as pure functions.

`operator` makes NodeConfigs and conditions of ClusterConfigs, `node` makes instances and peers of one
node's NodeConfig, `policy` makes route sets of Advertisements, `services` and `pod_cidrs` say what an
object contributes to a route set. Source: shared behaviour of Cilium 1.16 to 1.19.
"""
