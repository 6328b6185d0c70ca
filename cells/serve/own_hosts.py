"""The hosts that requests of this host name: addresses, ``localhost``, names without a dot.

Without the HTTP library: `cells.serve.direct_actions` asks as well as `cells.serve.own_sites`.
"""

from __future__ import annotations

import contextlib
import ipaddress


def is_own(host: str | None, *, dotless: bool) -> bool:
    """Whether a ``Host`` is an address, which no name leads to, or this host. None: no browser."""
    if host is None:
        return True
    name, _, port = host.rpartition(":")
    name = name if port.isdigit() and name else host
    if name == "localhost":
        return True
    with contextlib.suppress(ValueError):
        ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
        return True
    return dotless and bool(name) and "." not in name
