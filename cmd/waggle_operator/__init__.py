"""The program ``waggle-operator``: loads settings, selects cells and runs the hive."""

import waggle  # noqa: F401  takes the current folder out of the import path
