"""Records the lines of a program that a test starts, for `tests.mutants.reach`.

The interpreter imports this module at its start where the directory is in PYTHONPATH.
"""

from __future__ import annotations

import os

if test := os.environ.get("REACH_TEST"):
    import coverage

    coverage.Coverage(
        data_file=os.environ["REACH_DATA"],
        data_suffix=True,
        auto_data=True,
        source=os.environ["REACH_ROOMS"].split(","),
        config_file=False,
        context=test,
    ).start()
