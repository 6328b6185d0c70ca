"""Cilium's BGP APIs as a dialect: pure functions and level-triggered computations.

`node_configs` generates NodeConfigs and conditions from ClusterConfigs, `instances` compiles a
NodeConfig to instances and peers, `route_sets` compiles Advertisements, `services`, `pod_cidrs`,
`pod_ip_pools` and `interfaces` have the contributions of objects to route sets; `v1` has
CiliumBGPPeeringPolicy.
Source: shared behaviour of Cilium 1.16 to 1.19.
"""
