"""OVN-Kubernetes' kinds for BGP, as far as they are read: what advertises, networks, egress IPs, VTEPs.

Source: OVN-Kubernetes, ``docs/features/bgp-integration`` and the definitions of ``k8s.ovn.org``.
"""
