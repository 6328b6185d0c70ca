"""The files of the page, and headers that keep it to itself: no other host, no inline script."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Final

from cells.api.resource import ApiFile

STATIC: Final = Path(__file__).parent / "static"
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
"""Content Security Policy Level 3: a text that became markup could load nothing, and run nothing."""
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
OF_PATH: Final = {
    "/": ("page.html", "text/html"),
    "/page.js": ("page.js", "text/javascript"),
    "/page.css": ("page.css", "text/css"),
    "/page.svg": ("page.svg", "image/svg+xml"),
}


@functools.cache
def _content(name: str) -> bytes:
    return (STATIC / name).read_bytes()


def files() -> tuple[ApiFile, ...]:
    """Return the files by path; each is read when it is requested for the first time."""
    return tuple(
        ApiFile(
            path=path,
            media_type=media_type,
            read=functools.partial(_content, name),
            headers=HEADERS,
        )
        for path, (name, media_type) in OF_PATH.items()
    )
