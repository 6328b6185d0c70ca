"""Reconcilers."""
