"""Random mutants that no test can notice, each with the reason."""

from __future__ import annotations

from typing import Final, NamedTuple


class Equivalent(NamedTuple):
    """A change of the line ``text`` of a module (without its indentation) that changes no behaviour."""

    module: str
    text: str
    change: str
    """As printed: ``old -> new``."""
    reason: str


_COLLECTOR = (
    "thresholds of the garbage collector: a little more or less of memory and time, no result"
)

EQUIVALENT: Final = (
    Equivalent(
        "cells/api/agent_socket.py",
        "credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)",
        "12 -> 13",
        "the kernel returns the 12 octets of struct ucred in any larger room",
    ),
    Equivalent(
        "cells/safe_text.py",
        'return escape(data.decode("utf-8", "backslashreplace"))',
        "\"utf-8\" -> 'utf-8_'",
        "Python finds a codec by its letters and digits",
    ),
    Equivalent(
        "cmd/waggle/fleet/agents.py",
        'return ""',
        '"" -> None',
        "no problem: asked whether it is true, and never printed",
    ),
    Equivalent(
        "cmd/waggle/output.py",
        "return False",
        "False -> None",
        "of no colours: the layout asks whether it is true",
    ),
    *(
        Equivalent(
            "cmd/waggle_agent/__main__.py", "gc.set_threshold(50_000, 20, 50)", change, _COLLECTOR
        )
        for change in ("50_000 -> 50001", "20 -> 21", "50 -> 51")
    ),
)
