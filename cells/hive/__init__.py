"""The hive: build the enabled cells into one graph, start it, supervise it, stop it.

It is modelled on Cilium's hive, on top of ``dependency_injector`` containers:

* `Cell` - a name, `Options` and switches; its `Wiring` has the constructors: provided, private,
  invoked, contributed to groups;
* `Graph` - the constructors' parameters resolved by type, as ``dependency_injector`` providers;
* `load` and `Settings` - flags, environment, file and defaults merged, cells switched on and off;
* `Hive` - the graph of the enabled cells, and `run()`;
* `Lifecycle` - start hooks in construction order, stop hooks in reverse;
* `Jobs` - supervised tasks with restart and back-off; `Signal` wakes them;
* `Health` and `Readiness` - what people and probes see.

A constructor refers to a value by the type of a parameter. Each cell is given its own `Health`, `Jobs`
and options, and the program's `Lifecycle`, `Readiness`, `HealthTree`, `Supervisor`, `Shutdown` and
`Composition`. ``X | None`` is None where the cell that provides ``X`` is disabled; `Group` holds what
all enabled cells contribute; `Late` puts off a value until all cells are constructed.

This package exports what declares a cell, so that ``--help`` imports little; what runs a program is
imported from its module (`cells.hive.hive`, `jobs`, `lifecycle`, `signal`, `composition`).

Constructors are synchronous and cheap: no I/O, no tasks, no async providers and no wiring. The
framework knows nothing of BGP, Kubernetes, or any cell.
"""

from cells.hive.cell import Cell, Group, Late, Provider, Wiring, provide
from cells.hive.errors import (
    CompositionError,
    DisabledCellError,
    HiveError,
    SettingError,
    StartError,
)
from cells.hive.health import Health, HealthTree, Level, Readiness, Status
from cells.hive.option_loading import Settings, add_flags, load, read_file
from cells.hive.unknown_name import suggestion, unknown_name
from resources.option_declarations import Options, setting
from resources.option_spelling import Setting, describe

__all__ = [
    "Cell",
    "CompositionError",
    "DisabledCellError",
    "Group",
    "Health",
    "HealthTree",
    "HiveError",
    "Late",
    "Level",
    "Options",
    "Provider",
    "Readiness",
    "Setting",
    "SettingError",
    "Settings",
    "StartError",
    "Status",
    "Wiring",
    "add_flags",
    "describe",
    "load",
    "provide",
    "read_file",
    "setting",
    "suggestion",
    "unknown_name",
]
