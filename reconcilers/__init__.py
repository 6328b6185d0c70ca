"""Compiles the cluster's objects to the intent of a node, and reconciles the speaker with it.

`intent` compiles each dialect's objects to the neutral intent of `reconcilers.model`; `apply`
compares it with the speaker's state and calls the speaker, in order. `operator` and `report`
compute and write generated objects, conditions, statuses and Events. `reconcilers.intent.render`
has the text of an intent.
"""
