"""BFDProfile: settings of BFD sessions (RFC 5880); times in milliseconds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import msgspec
from msgspec import Meta

from resources.crds.schema_markers import doc
from resources.errors import FieldError
from resources.meta import Struct
from resources.metallb.objects import MetalLBObject

Milliseconds = Annotated[int, Meta(ge=10, le=60000)]


class BFDProfileSpec(Struct, frozen=True):
    """The specification; the defaults are the BFD implementation's."""

    receive_interval: Annotated[
        Milliseconds | None, doc("The smallest interval between received packets. 300.")
    ] = None
    transmit_interval: Annotated[
        Milliseconds | None, doc("The smallest interval between sent packets. 300.")
    ] = None
    detect_multiplier: Annotated[
        Annotated[int, Meta(ge=2, le=255)] | None,
        doc("How many packets may be missing before the session is down. 3."),
    ] = None
    echo_interval: Annotated[Milliseconds | None, doc("The interval of echo packets. 50.")] = None
    echo_mode: Annotated[
        bool, doc("Whether the echo function is used; not for multihop, and not for IPv6 pools.")
    ] = False
    passive_mode: Annotated[bool, doc("Whether the router has to begin.")] = False
    minimum_ttl: Annotated[
        Annotated[int, Meta(ge=1, le=254)] | None,
        doc("The smallest TTL of received packets of a multihop session. 254."),
    ] = None


class BFDProfile(MetalLBObject, frozen=True, kw_only=True):
    """One profile; its name is the object's."""

    spec: BFDProfileSpec = msgspec.field(default_factory=BFDProfileSpec)


def profile_errors(_row: BFDProfile) -> Iterator[FieldError]:
    """Yield no rule that a MetalLB BFDProfile breaks: the schema has all of them."""
    yield from ()
