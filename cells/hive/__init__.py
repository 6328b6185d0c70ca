"""The hive: build the enabled cells into one graph, start it, supervise it, stop it.

It is modelled on Cilium's hive, on top of `dependency_injector` containers:

* `Cell` - a container with declared inputs and outputs, a name and its own `Options`;
* `load` and `Settings` - flags, environment, file and defaults merged, cells switched on and off;
* `Hive` - the graph of the enabled cells, and `run()`;
* `Lifecycle` - start hooks in construction order, stop hooks in reverse;
* `Jobs` - supervised tasks with restart and back-off; `Signal` wakes them;
* `Health` and `Readiness` - what people and probes see.

Constructors are synchronous and cheap: no I/O, no tasks, no async providers and no wiring. The
framework knows nothing of BGP, Kubernetes, or any cell.
"""

from cells.hive.cell import Cell
from cells.hive.errors import (
    CompositionError,
    DisabledCellError,
    HiveError,
    SettingError,
    StartError,
)
from cells.hive.health import Health, Level, Readiness, Status
from cells.hive.hive import Hive
from cells.hive.jobs import JobFailedError, Jobs, RestartPolicy, Supervisor
from cells.hive.lifecycle import HookTimeoutError, Lifecycle
from cells.hive.options import Options, Setting, describe, setting
from cells.hive.settings import Settings, add_flags, load, read_file, suggestion
from cells.hive.signal import Signal

__all__ = [
    "Cell",
    "CompositionError",
    "DisabledCellError",
    "Health",
    "Hive",
    "HiveError",
    "HookTimeoutError",
    "JobFailedError",
    "Jobs",
    "Level",
    "Lifecycle",
    "Options",
    "Readiness",
    "RestartPolicy",
    "Setting",
    "SettingError",
    "Settings",
    "Signal",
    "StartError",
    "Status",
    "Supervisor",
    "add_flags",
    "describe",
    "load",
    "read_file",
    "setting",
    "suggestion",
]
