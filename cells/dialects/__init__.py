"""The cells of API dialects: one file for each; `cell` has the parts in common.

A dialect is switched on and off as a cell. The programs list these cells; nothing else names one.
"""
