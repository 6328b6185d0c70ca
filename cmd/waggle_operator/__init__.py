"""The program ``waggle-operator``: loads settings, selects cells and runs the hive."""
