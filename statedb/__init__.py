"""Statedb."""
