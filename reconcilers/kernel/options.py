"""The options of the kernel's routes: in an agent and in ``waggle render``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Final, Literal, Protocol, TypeAlias

import msgspec

from resources.option_declarations import InvalidOption, Options, setting

MAIN_TABLE: Final = 254
LOCAL_TABLE: Final = 255
BGP_PROTOCOL: Final = 186
"""RTPROT_BGP of linux/rtnetlink.h."""
LARGEST_NUMBER: Final = 0xFFFFFFFF
Fib: TypeAlias = bool | Literal["auto"] | None


class Installable(Protocol):
    """A dialect, as far as the kernel's routes depend on it."""

    @property
    def name(self) -> str:
        """The name of the dialect."""

    @property
    def wants_routes_installed(self) -> bool:
        """True if received routes belong into the kernel, by the dialect's API or options."""


class FibOptions(Options, frozen=True):
    """Selects received routes for the kernel, and their form there."""

    fib: Annotated[
        Fib,
        setting(
            "install received routes in the kernel. auto: routes of dialects whose API is for that "
            "(FRR-k8s and what builds on it); true: routes of all dialects; false: none, and routes of "
            "an earlier run are removed. By default auto, if such a dialect is on, and the agent has "
            "NET_ADMIN or --fib-socket is set; otherwise the kernel is left alone",
            flag="--fib",
            metavar="auto|true|false",
        ),
    ] = None
    table: Annotated[
        int,
        msgspec.Meta(ge=1, le=LARGEST_NUMBER),
        setting(
            "routing table of the routes of the default VRF; a VRF has its own", flag="--fib-table"
        ),
    ] = MAIN_TABLE
    metric: Annotated[
        int,
        msgspec.Meta(ge=1, le=LARGEST_NUMBER),
        setting("metric of installed routes", flag="--fib-metric"),
    ] = 20
    protocol: Annotated[
        int,
        msgspec.Meta(ge=5, le=255),
        setting("protocol number of installed routes; 186 is BGP", flag="--fib-protocol"),
    ] = BGP_PROTOCOL
    multipath: Annotated[
        int,
        msgspec.Meta(ge=1, le=256),
        setting("next hops of a route at the most", flag="--fib-multipath"),
    ] = 64
    multipath_relax: Annotated[
        bool,
        setting(
            "paths whose AS paths have the same length and other AS numbers share a route, too",
            flag="--fib-multipath-relax",
        ),
    ] = False
    blackhole: Annotated[
        bool,
        setting(
            "routes with the community BLACKHOLE (65535:666, RFC 7999) discard their packets",
            flag="--fib-blackhole",
        ),
    ] = False
    socket: Annotated[
        str | None,
        setting(
            "Unix socket of waggle-kernel, which writes the routes; by default the agent starts it",
            flag="--fib-socket",
            metavar="PATH",
        ),
    ] = None
    default_route: Annotated[
        bool,
        setting(
            "install default routes that no import rule names, as with mode all; otherwise only routes "
            "of rules with the prefix 0.0.0.0/0 or ::/0",
            flag="--fib-default-route",
        ),
    ] = False
    check: Annotated[
        bool,
        setting(
            "after routes were installed, the API server, other nodes and DNS servers have to be "
            "reached as before: otherwise these routes are removed, until they are approved",
            flag="--fib-check",
        ),
    ] = True
    keep: Annotated[
        bool,
        setting(
            "routes stay in the kernel when the agent ends; false: they are removed",
            flag="--fib-keep",
        ),
    ] = True

    def installs(self, *, for_that: bool) -> bool:
        """Return whether the options install routes of a dialect; ``for_that``: its API is for that."""
        return self.fib is True or (self.fib is not False and for_that)

    def installing(self, dialects: Iterable[Installable]) -> frozenset[str]:
        """Return the names of the dialects whose peers' routes the options install."""
        return frozenset(
            dialect.name
            for dialect in dialects
            if self.installs(for_that=dialect.wants_routes_installed)
        )

    def __post_init__(self) -> None:
        """Check the table. Raises `InvalidOption`."""
        if self.table == LOCAL_TABLE:
            raise InvalidOption("--fib-table", "255 is the kernel's table of local addresses")
