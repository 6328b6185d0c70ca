"""Mutants of the rules that docs/rfcs.md lists and of corrected mistakes, and the run against tests.

`rules` has a mutant of each row; `python -m tests.mutants` (``make mutants``) runs the tests that the
row names against each of them.
"""
