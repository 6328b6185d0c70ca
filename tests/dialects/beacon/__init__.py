"""A dialect with one kind: a Beacon is the BGP configuration of one node, and has the node's name."""
