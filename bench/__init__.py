"""Measurements: speed and size, compared with the goals that the project states for itself.

Each module is a program (``python -m bench.NAME``) that prints its figures. Nothing here is part of
the tests, because a figure depends on the machine.
"""
