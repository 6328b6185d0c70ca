"""A second dialect that feeds `beacon`: a Buoy is the Beacon of one node, and has a condition."""
