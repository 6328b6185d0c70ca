"""The program ``waggle-kernel``: writes routes into the kernel for an agent."""

import waggle  # noqa: F401  takes the current folder out of the import path
