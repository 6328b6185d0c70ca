"""Two test dialects, `beacon` and `lighthouse`, and the tests that a dialect is a plug-in.

docs/dialects.md follows `beacon` file by file.
"""
