"""Whole agents with their API server and a router: faults, and what a router sees of them."""
