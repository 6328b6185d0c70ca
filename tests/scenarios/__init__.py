"""Behaviour as directories of manifests with what they must lead to, and what runs them."""
