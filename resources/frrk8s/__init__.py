"""FRR-k8s's BGP API: FRRConfiguration with all fields of v1beta1 (group frrk8s.metallb.io).

The types and limits are the row types'; the rules of a single object, which no schema expresses, are
applied where objects are merged (`reconcilers.frrk8s`): a node needs the rules of its own objects only.
"""
