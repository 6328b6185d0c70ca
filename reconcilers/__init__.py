"""From what the cluster says to what the speaker does, in two storeys.

``intent`` compiles each dialect's objects to the neutral intent of `reconcilers.model`; ``apply``
compares that with what the speaker holds and calls it, in order. `render` prints an intent. Only
`reconcilers.apply` knows that there is a speaker, and nothing here does I/O.
"""
