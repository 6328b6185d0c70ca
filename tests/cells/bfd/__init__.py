"""The BFD cell."""
