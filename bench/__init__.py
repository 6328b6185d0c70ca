"""Measurements: speed and size, compared with the goals of the project.

Each module is a program (``python -m bench.NAME``) that prints its figures. Not part of
the tests, because figures depend on the machine.
"""
