"""Distinguishes browsers' requests from the program's own page and from other sites.

A browser sends the requests of any site to a port of its host, on which a page listens, or to which a
person forwards the socket. A site that has the name of this host resolve to itself (DNS rebinding)
could read the answers; every other site could have the program work.
"""

from __future__ import annotations

from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler

from cells.serve.own_hosts import is_own

OTHER_SITES: Final = frozenset(("cross-site", "same-site"))
"""Of ``Sec-Fetch-Site`` (Fetch Metadata Request Headers, 2.3)."""
MISDIRECTED: Final = 421
"""RFC 9110 section 15.5.20."""


def refusal(request: web.Request, *, dotless: bool = False) -> web.Response | None:
    """Return the answer to a request of another site; None for the program's own.

    ``dotless`` admits names without a dot, which no foreign site can have.
    """
    if not is_own(request.headers.get("Host"), dotless=dotless):
        text = "this host's answers are at http://localhost or its address\n"
        return web.Response(status=MISDIRECTED, text=text)
    headers = request.headers
    if headers.get("Sec-Fetch-Site") in OTHER_SITES and headers.get("Sec-Fetch-Mode") != "navigate":
        return web.Response(status=403, text="not for pages of another site\n")
    return None


@web.middleware
async def of_this_host(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer what is not from another site: of a socket, which a person may forward to a port."""
    return refusal(request, dotless=True) or await handler(request)
