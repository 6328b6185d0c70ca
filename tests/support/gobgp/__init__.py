"""The GoBGP that go.mod pins, the first with BFD: where `install-gobgp` left it; builds nothing."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from tests.support import builds

_HERE = Path(__file__).parent


def find() -> Path | str:
    """Return the program, or one sentence with the reason why there is none."""
    pinned = (_HERE / "go.mod").read_bytes() + (_HERE / "go.sum").read_bytes()
    found = builds.cache() / f"gobgpd-{hashlib.sha256(pinned).hexdigest()[:16]}"
    if os.access(found, os.X_OK):
        return found
    return "no GoBGP with BFD: tests/support/install-gobgp builds it where Go is installed"
