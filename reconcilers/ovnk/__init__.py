"""OVN-Kubernetes' RouteAdvertisements: the FRRConfigurations that it generates, for FRR-k8s's dialect.

With ``follow`` OVN-Kubernetes generates them, and the agents apply them; with ``generate`` the
operator does. Both are done by the dialect of FRR-k8s, which this one feeds.
"""
