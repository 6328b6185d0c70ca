"""The file of ``waggle render --received``: the routes that each peer of a node announces.

``{"<peer>" or "<vrf>/<peer>": [{"prefix", "nextHop", "asPath", "communities", "localPreference", "med",
"origin"}]}``; a peer is its address, its interface or its name. docs/render.md has the fields.
"""

from __future__ import annotations

import ipaddress
from typing import Annotated, Literal, TypeAlias

import msgspec

from resources.decimal_numbers import decimal_number
from resources.errors import INVALID_JSON, shortened
from speaker.nlri import Family, prefix_to_wire


class InvalidReceivedFile(ValueError):  # noqa: N818  the name is the condition
    """The file cannot be used; ``str()`` has the place."""


class ReceivedRoute(
    msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, kw_only=True
):
    """One route as a peer announces it."""

    prefix: str
    next_hop: str | None = None
    """None is the address of the peer."""
    as_path: tuple[Annotated[int, msgspec.Meta(ge=0, le=0xFFFFFFFF)], ...] | None = None
    """None is the AS of an external peer, and empty for an internal one."""
    communities: tuple[str, ...] = ()
    local_preference: Annotated[int, msgspec.Meta(ge=0, le=0xFFFFFFFF)] | None = None
    """Of an internal peer; None is 100."""
    med: Annotated[int, msgspec.Meta(ge=0, le=0xFFFFFFFF)] | None = None
    origin: Literal["igp", "egp", "incomplete"] = "igp"

    @property
    def family(self) -> Family:
        """The address family of a route in the file of ``--received``."""
        return prefix_to_wire(self.prefix)[0]

    @property
    def nlri(self) -> bytes:
        """The prefix of a route in the file of ``--received``, in wire form."""
        return prefix_to_wire(self.prefix)[1]

    def __post_init__(self) -> None:
        """Check the values. Raises ValueError."""
        prefix_to_wire(self.prefix)
        if self.next_hop is not None:
            ipaddress.ip_address(self.next_hop.partition("%")[0])
        for text in self.communities:
            community(text)


def community(text: str) -> int:
    """Return a community of the file of ``--received``, as ``65535:666``. Raises ValueError."""
    high, _, low = text.partition(":")
    first, second = decimal_number(high, 0xFFFF), decimal_number(low, 0xFFFF)
    if first is None or second is None:
        raise ValueError(f"{shortened(text)} is not a community such as 65000:99")
    return first << 16 | second


FileRoutes: TypeAlias = dict[str, tuple[ReceivedRoute, ...]]
ReceivedRoutes: TypeAlias = FileRoutes | dict[tuple[str, str], tuple[ReceivedRoute, ...]]
"""By the names of peers in a file, or by instance and peer."""


def decode_received(octets: bytes) -> FileRoutes:
    """Decode the file of ``waggle render --received``. Raises `InvalidReceivedFile`."""
    try:
        return msgspec.json.decode(octets, type=FileRoutes)
    except INVALID_JSON as error:
        raise InvalidReceivedFile(str(error)) from None
