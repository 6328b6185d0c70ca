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


EQUIVALENT: Final = (
    Equivalent(
        "cells/api/client.py",
        "credentials = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)",
        "12 -> 13",
        "the kernel returns the 12 octets of struct ucred in any larger room",
    ),
)
