"""The reconcilers of the speaker, which make it hold what the intent wants. They know no dialect.

* `instances`, `route_sets`, `import_policy`, `peers`: the reconcilers, in their order
* `to_speaker`: intent rows to the speaker's values
"""
