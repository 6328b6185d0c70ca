"""The program ``waggle-operator``: flags, and which cells."""
