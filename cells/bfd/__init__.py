"""BFD sessions of peers: their process, its reconciler, and what they do to BGP."""
