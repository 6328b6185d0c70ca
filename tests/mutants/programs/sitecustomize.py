"""Records the lines of a program that a test starts, for `tests.mutants.recorder`.

The interpreter imports this module at its start where the directory is in PYTHONPATH. The process that
forks programs (`tests.support.forked`) records nothing; each program that it forks does.
"""

from __future__ import annotations

import os
import sys

_FORKING = "tests.support.forked"
"""The module of the process that forks, and the audit event of what it has forked."""


def _record() -> None:
    import coverage

    coverage.Coverage(
        data_file=os.environ["REACH_DATA"],
        data_suffix=True,
        auto_data=True,
        source=os.environ["REACH_ROOMS"].split(","),
        config_file=False,
        context=os.environ["REACH_TEST"],
    ).start()


def _event(event: str, _: tuple[object, ...]) -> None:
    if event == _FORKING and "REACH_TEST" in os.environ:
        _record()


if "REACH_TEST" in os.environ:
    if _FORKING in sys.orig_argv:
        sys.addaudithook(_event)
    else:
        _record()
