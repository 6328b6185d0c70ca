"""The options of BFD in an agent."""

from __future__ import annotations

from typing import Annotated

import msgspec

from resources.option_declarations import Options, setting


class BfdOptions(Options, frozen=True):
    """Whether peers have BFD sessions, and which process has them."""

    bfd: Annotated[
        bool,
        setting(
            "have a BFD session with each peer whose object configures one; the sessions run in "
            "waggle-bfd, which goes on while the agent is restarted",
            flag="--bfd",
        ),
    ] = False
    socket: Annotated[
        str | None,
        setting(
            "Unix socket of waggle-bfd, where it is no child of the agent",
            flag="--bfd-socket",
            metavar="PATH",
        ),
    ] = None
    directory: Annotated[
        str,
        setting(
            "directory of memory for the socket and the sessions of the waggle-bfd that the agent "
            "starts",
            flag="--bfd-directory",
            metavar="PATH",
        ),
    ] = "/run/waggle-bfd"
    least_interval: Annotated[
        float,
        msgspec.Meta(ge=1, le=60000),
        setting(
            "to which shorter intervals are raised where the kernel gives that waggle-bfd no "
            "real-time scheduling, in milliseconds",
            flag="--bfd-least-interval",
            metavar="MILLISECONDS",
        ),
    ] = 300.0
