"""Policies: lists, patterns, terms."""
