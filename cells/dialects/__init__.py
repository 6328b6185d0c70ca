"""The cells of API dialects: one file for each, with its entry; `cell` and `wiring` have the rest.

A dialect is switched on and off as a cell. The programs list these cells; nothing else names one.
"""
