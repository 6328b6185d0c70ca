"""Options of the local API and of the page for browsers."""

from __future__ import annotations

from typing import Annotated

from resources.option_declarations import Options, setting


class ApiOptions(Options, frozen=True):
    """Options of the api cell."""

    socket: Annotated[
        str | None,
        setting(
            "Unix socket for the waggle command; by default $XDG_RUNTIME_DIR/waggle/agent.sock, "
            "for root /run/waggle/agent.sock",
            flag="--api-socket",
            metavar="PATH",
        ),
    ] = None


class PageOptions(Options, frozen=True):
    """Options of the page cell."""

    address: Annotated[
        str | None,
        setting(
            "serve the page, read-only, here too; a port alone means loopback, elsewhere "
            "--page-token-file or --page-client-ca is required. It is always on the API socket",
            flag="--page-address",
            metavar="[HOST:]PORT",
        ),
    ] = None
    token_file: Annotated[
        str | None,
        setting(
            "file with the token that the page requires", flag="--page-token-file", metavar="PATH"
        ),
    ] = None
    certificate: Annotated[
        str | None,
        setting("file with the page's certificate, PEM", flag="--page-certificate", metavar="PATH"),
    ] = None
    key: Annotated[
        str | None, setting("file with its key, PEM", flag="--page-key", metavar="PATH")
    ] = None
    client_ca: Annotated[
        str | None,
        setting(
            "file with the CA of the certificates that clients of the page must have, PEM",
            flag="--page-client-ca",
            metavar="PATH",
        ),
    ] = None
