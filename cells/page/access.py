"""Access to the page on an address: on loopback for the host's users, elsewhere with the token.

A browser has the token in a cookie that no script and no other site can use. On loopback without a
token requests must name the host as itself: a site whose name leads here (DNS rebinding) reads nothing.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from typing import Final
from urllib.parse import parse_qs

from aiohttp import web
from aiohttp.typedefs import Handler

from cells.page.files import HEADERS
from cells.serve.own_sites import refusal

SIGN_IN: Final = "/sign-in"
BODY_OCTETS: Final = 4096
FORM: Final = """<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><title>Waggle</title>
<link rel="stylesheet" href="/page.css"><link rel="icon" href="/page.svg">
<form class="sign-in" method="post" action="/sign-in"><h1>Waggle</h1>
<label for="token">Token of this agent's page</label>
<input id="token" name="token" type="password" autocomplete="current-password" autofocus required>
<button>Sign in</button>{note}</form></html>
"""
PUBLIC: Final = frozenset(("/page.css", "/page.svg", SIGN_IN))


class Access:
    """The middleware that admits a request, or answers it."""

    def __init__(
        self,
        token: Callable[[], bytes] | None,
        *,
        secure: bool,
        local: bool,
        use_code: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """``token`` reads the token, None where none is required; ``secure``: over TLS.

        ``local``: the listener is on loopback. ``use_code``: whether the code of a link admits; none
        does twice, as addresses are in histories of browsers and in lists of processes.
        """
        self._use_code = use_code
        self._token = token
        self._secure = secure
        self._local = local

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Admit a request, or answer it."""
        if self._token is None:
            refused = refusal(request) if self._local else None
            return refused or await handler(request)
        token = self._token()
        if request.path == SIGN_IN:
            return await self._sign_in(request, token)
        if request.path in PUBLIC or self._is_admitted(request, token):
            return await handler(request)
        if request.path == "/":
            return _form("")
        return _refused(401, "a token is required: Authorization: Bearer TOKEN\n")

    def _is_admitted(self, request: web.Request, token: bytes) -> bool:
        if not token:
            return False
        given = request.headers.get("Authorization", "").encode(errors="surrogateescape")
        if hmac.compare_digest(given, b"Bearer " + token):
            return True
        cookie = request.cookies.get(_cookie_of(request), "").encode(errors="surrogateescape")
        return hmac.compare_digest(cookie, _signed(token))

    async def _sign_in(self, request: web.Request, token: bytes) -> web.StreamResponse:
        """Answer with the cookie, for the token of a form or the code of a link (``waggle ui``)."""
        given, admitted = request.query.get("code", ""), False
        if request.method == "POST":
            body = b""
            while (part := await request.content.readany()) and len(body) <= BODY_OCTETS:
                body += part
            if len(body) > BODY_OCTETS:
                return _refused(413, "the form is too long\n")
            given = parse_qs(body.decode(errors="replace")).get("token", [""])[0]
            admitted = hmac.compare_digest(given.encode(errors="surrogateescape"), token)
        elif request.method == "GET":
            admitted = self._use_code(given)
        if not token or not admitted:
            return _form('<p role="alert">That is not the token.</p>' if given else "", 401)
        response = web.Response(status=303, headers={**HEADERS, "Location": "/"})
        response.set_cookie(
            _cookie_of(request),
            _signed(token).decode(),
            httponly=True,
            samesite="Strict",
            secure=self._secure,
            path="/",
        )
        return response


def _cookie_of(request: web.Request) -> str:
    # Without this header, `Request.host` of older aiohttp looks up a name, in the loop.
    return cookie_name(request.headers.get("Host", ""))


def cookie_name(host: str) -> str:
    """Return the name of the cookie for the host of a request, as the browser has it: with its port.

    The ports of a host share its cookies: two pages on one host would have one cookie.
    """
    port = host.rpartition("]")[2].rpartition(":")[2]
    return f"waggle-{port}" if port.isascii() and port.isdigit() else "waggle"


def _signed(token: bytes) -> bytes:
    """Return the content of the cookie: it proves the token, and does not show it."""
    return hmac.new(token, b"waggle page", hashlib.sha256).hexdigest().encode()


def _form(note: str, status: int = 200) -> web.Response:
    return web.Response(
        status=status, text=FORM.format(note=note), content_type="text/html", headers=HEADERS
    )


def _refused(status: int, text: str) -> web.Response:
    return web.Response(status=status, text=text, headers=HEADERS)
