"""Where the socket of a user's agent is."""

from __future__ import annotations

import os
from pathlib import Path


def default_path() -> Path:
    """Return the default path of the socket of this user's agent."""
    user = os.geteuid()
    if user == 0:
        return Path("/run/waggle/agent.sock")
    runtime = Path(os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{user}")
    if os.access(runtime, os.W_OK | os.X_OK):
        return runtime / "waggle" / "agent.sock"
    # A user without a session (su, cron, a container). `cells.unix_socket` and `cells.api.client`
    # refuse a directory of that name that is another user's.
    return Path(f"/tmp/waggle-{user}/agent.sock")  # noqa: S108
