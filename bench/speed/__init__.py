"""`waggle router` beside other routers, compared in one run.

* `arena`: two network namespaces, the tester in one, a daemon in the other, and its resource usage
* `daemons`: the equivalent configuration of each router
* `streams`: the UPDATEs, encoded beforehand
* `scenarios`: the measurements; `plan`: their sizes, repetitions and contenders
* `report`, `plot`: tables, ratios and goals, and a picture

Only ratios within one run are meaningful: daemons take turns, so that other load of the machine affects
all of them. Development only; no program imports this package.
"""
