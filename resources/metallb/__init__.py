"""MetalLB's BGP kinds (group metallb.io): peers, advertisements, pools, communities, BFD profiles."""
