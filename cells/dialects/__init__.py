"""The cells of API dialects: one file for each, and what they have in common in `cell`.

A dialect is switched on and off as a cell. The programs list these cells; nothing else names one.
"""
