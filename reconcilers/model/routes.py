"""Routes, their contributions, and why one is advertised."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from reconcilers.model.references import ObjectRef
from resources.enumeration import MAX_MESSAGE_CHARACTERS, bounded
from speaker.nlri import Family


class Attributes(msgspec.Struct, frozen=True):
    """Path attributes that a route carries, the same for every peer of its set."""

    communities: tuple[int, ...] = ()
    large_communities: tuple[tuple[int, int, int], ...] = ()
    local_preference: int | None = None
    med: int | None = None
    """MULTI_EXIT_DISC (RFC 4271 section 5.1.4); None sends none."""
    next_hop: str | None = None
    """None is the address of the session itself."""
    incomplete: bool = False
    """Whether ORIGIN is INCOMPLETE (RFC 4271 section 5.1.1), and not IGP."""


class Origin(msgspec.Struct, frozen=True, order=True):
    """The object that caused a route, and the object with the rule that selected it."""

    object: ObjectRef
    rule: ObjectRef
    type: str = ""
    """The type of the object's address, in the words of the dialect: LoadBalancerIP, PodCIDR ..."""


class AddressRank(NamedTuple):
    """The rank of an address that a Service names, among addresses of its namespace and name.

    Where not all can be advertised, addresses with the lowest rank are.
    """

    created: str
    """The creationTimestamp of the Service, in UTC."""
    position: int
    """Of the address among the Service's addresses."""


class Contribution(msgspec.Struct, frozen=True):
    """The attributes that one origin gives one prefix of one route set."""

    origin: Origin
    attributes: Attributes
    source: str = ""
    """The route source that it comes from; filled in by the middle."""
    rank: AddressRank | None = None
    """Of an address that a Service names; filled in by the middle. None for all that administrators
    decide."""


class Route(msgspec.Struct, frozen=True):
    """One prefix of a route set: its contributions, and the attributes joined from them."""

    route_set: str
    family: Family
    nlri: bytes
    attributes: Attributes
    contributions: tuple[Contribution, ...]
    """In the order of their origins."""

    @property
    def origins(self) -> tuple[Origin, ...]:
        """The objects that contribute the prefix of the model's route."""
        return tuple(dict.fromkeys(contribution.origin for contribution in self.contributions))


class RouteExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """The advertisement of one prefix of an object to one peer, and the rule that decides.

    ``instance`` and ``peer`` are None where it concerns all of them, ``family`` and ``nlri`` where
    the object has no such address.
    """

    instance: str | None
    peer: str | None
    object: ObjectRef | None
    type: str
    """The type of the object's address: LoadBalancerIP, ClusterIP, ExternalIP, PodCIDR, Interface,
    or the kind of a pool."""
    family: Family | None
    nlri: bytes | None
    advertised: tuple[bytes, ...]
    """The prefix, an aggregate of it, both, or nothing."""
    reason: str
    """One word; "Advertised" where something is advertised."""
    message: str
    """A sentence without its end, for people."""
    rule: ObjectRef | None = None
    """The object with the rule that decided."""

    def __post_init__(self) -> None:
        """Bound the message, as that of a problem."""
        if len(self.message) > MAX_MESSAGE_CHARACTERS:
            msgspec.structs.force_setattr(self, "message", bounded(self.message))
