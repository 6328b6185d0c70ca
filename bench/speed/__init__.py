"""`waggle router` against the routers that people run today, side by side in one run.

* `arena`: two network namespaces, the tester in one, a daemon in the other, and what it used
* `daemons`: how each router is configured so that all of them do the same
* `streams`: the UPDATEs, made beforehand
* `scenarios`: what is measured; `plan`: how often, and with whom
* `report`, `plot`: tables, ratios and goals, and a picture

Only ratios within one run say anything: daemons take turns, so that what else the machine does
falls on all of them. Development only; the product imports nothing of this.
"""
