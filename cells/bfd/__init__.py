"""BFD sessions of peers: their process, its reconciler, and their effect on BGP."""
