"""Intent: each dialect's objects compiled to the neutral intent, incrementally.

A dialect is a package of pure functions; `compiler` calls them for what changed and writes the rows.
"""
