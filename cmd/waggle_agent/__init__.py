"""The program ``waggle-agent``: the BGP control plane of one node.

It parses flags, chooses cells and runs the hive; what the agent does is in the rooms below.
"""
