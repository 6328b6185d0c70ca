"""The interface of the local API: what ``waggle`` and the cells that contribute paths have in common.

`model` has the items, a stable interface; `resource` is what a path is; `client` sends requests. What
answers is `cells.serve`.
"""
