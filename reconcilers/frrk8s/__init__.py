"""FRR-k8s's BGP API as a dialect: the FRRConfigurations of a node are merged to routers.

`reconcilers.frrk8s.merge` is the entry for other dialects whose objects are merged with them.
"""
