"""Deployment in a cluster: the Helm chart, and the manifests rendered from it.

`generate` writes the files that are derived from the code; no program imports this package.
"""
