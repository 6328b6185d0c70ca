"""Wrong, strange and large objects, and damaged files, on an agent that runs."""
