"""The program ``waggle-operator``: what is done once per cluster, beside the agents.

Its cells run inside an agent that reads a directory of manifests; against a cluster it is not
there yet, and the program says so instead of pretending.
"""
