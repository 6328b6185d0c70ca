"""Paths and whence they come: the values that all RIBs share.

One `Path` stands for one attribute set of one source, however many prefixes carry it: a RIB maps
a prefix's wire bytes straight to a shared `Path`, so that there is no object per route. Everything
that can be worked out once per attribute set is worked out here: eligibility and the keys of the
decision process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, final

import msgspec

from speaker.attribute import AS_SEQUENCE, AsPath, PathAttributes, hop_count
from speaker.attribute.as_path import CONFEDERATION
from speaker.iana import WELL_KNOWN_COMMUNITIES

DEFAULT_LOCAL_PREFERENCE: Final = 100
MED_SET: Final = 1
NEXT_HOP_SET: Final = 2
NEXT_HOP_SELF: Final = 4
"""What a policy has decided, so that the rules of a session leave it alone."""
LLGR_STALE: Final = WELL_KNOWN_COMMUNITIES["llgr-stale"]


@final
class Source:
    """Who a path comes from: one session's lifetime, or this router itself.

    Compared by identity. A session that comes up again is another source, unless the peer had
    asked to keep its routes while it restarts. With ADD-PATH each path identifier of a session is a
    source, so that a RIB has at most one path of a source for a prefix.
    """

    __slots__ = (
        "address",
        "ebgp",
        "internal",
        "local",
        "name",
        "number",
        "path_id",
        "router_id",
        "session",
    )

    def __init__(
        self,
        name: str,
        *,
        address: bytes = b"",
        router_id: int = 0,
        ebgp: bool = False,
        internal: bool | None = None,
        number: int = 1,
    ) -> None:
        """Name a session; a peer in our confederation is neither eBGP nor internal (RFC 5065)."""
        self.internal = not ebgp if internal is None else internal
        self.name = name
        self.number = number
        """The path identifier under which its paths are told (RFC 7911); 1 is this router."""
        self.path_id: int | None = None
        """The path identifier under which the peer tells them."""
        self.session = self
        """Itself, or the source that it is a part of."""
        self.address = address
        self.router_id = router_id
        self.ebgp = ebgp
        self.local = not address

    def with_path_id(self, path_id: int, number: int) -> Source:
        """Return the source of the paths that the peer tells under an identifier (RFC 7911)."""
        part = Source(
            self.name,
            address=self.address,
            router_id=self.router_id,
            ebgp=self.ebgp,
            internal=self.internal,
            number=number,
        )
        part.path_id = path_id
        part.session = self
        return part

    def same_router(self, other: Source) -> bool:
        """Tell whether another session is one with the same router, as after its restart."""
        return (self.address, self.router_id, self.ebgp) == (
            other.address,
            other.router_id,
            other.ebgp,
        )

    def __repr__(self) -> str:
        return f"Source({self.name!r})"


class Rank(NamedTuple):
    """What the decision process compares; keys compare with ``<``, smaller is better."""

    early: tuple[object, ...]
    med: int
    neighbor_as: int
    late: tuple[object, ...]


@final
class Path(msgspec.Struct, eq=False, weakref=True):
    """One attribute set from one source; frozen by convention, compared by identity.

    ``rejected`` says why no prefix with these attributes may be used (a loop ...), or is None.
    ``overrides`` are `MED_SET` and the like. Attributes that came as octets which are known to be
    well-formed are read when they are first asked for, and ranked when there is a choice.
    """

    _attributes: PathAttributes | None
    source: Source
    rejected: str | None = None
    overrides: int = 0
    _field: bytes = b""
    """What the attributes are read from when they are first asked for, where they are None ..."""
    _read: Callable[[bytes], PathAttributes] | None = None
    """... by whom."""
    _rank: Rank | None = None

    @property
    def attributes(self) -> PathAttributes:
        """The attributes as they are in the RIBs."""
        attributes = self._attributes
        if attributes is None:
            assert self._read is not None  # noqa: S101  one of them was given
            attributes = self._attributes = self._read(self._field)
            self._field, self._read = b"", None
        return attributes

    @property
    def field(self) -> bytes:
        """The path attribute field, NEXT_HOP included and four octets per AS, or nothing.

        It is there only where it came like that, and until the attributes are asked for.
        """
        return self._field

    @property
    def long_lived(self) -> bool:
        """Whether it is stale for long (RFC 9494), also where another router marked it."""
        return LLGR_STALE in self.attributes.communities

    @property
    def rank(self) -> Rank:
        """The keys of the decision process."""
        return self._rank or self._ranked()

    def _ranked(self) -> Rank:
        attributes, source = self.attributes, self.source
        preference = attributes.local_preference
        rank = self._rank = Rank(
            early=(
                not source.local,
                # RFC 9494 section 4.3: such a path is the last choice.
                self.long_lived,
                -(DEFAULT_LOCAL_PREFERENCE if preference is None else preference),
                hop_count(attributes.as_path),
                attributes.origin,
            ),
            med=attributes.med or 0,
            neighbor_as=_neighbor_as(attributes.as_path),
            late=(
                not source.ebgp,
                # RFC 4456 section 9: the originator stands for the router ID, then the shorter
                # cluster list wins.
                _originator(attributes, source),
                len(attributes.cluster_list),
                len(source.address),
                source.address,
                source.path_id or 0,
            ),
        )
        return rank

    def __repr__(self) -> str:
        return f"Path({self.source.name!r}, {self.attributes!r})"


def same_export(one: Path, other: Path) -> bool:
    """Tell whether two paths make the same of a prefix for a peer."""
    return one is other or (
        one.attributes == other.attributes
        and one.overrides == other.overrides
        and one.source.session is other.source.session
    )


def _neighbor_as(as_path: AsPath) -> int:
    # RFC 5065 section 5.3: the AS next to the confederation, whatever member the path came through.
    for kind, asns in as_path:
        if kind not in CONFEDERATION:
            return asns[0] if kind == AS_SEQUENCE else 0
    return 0


def _originator(attributes: PathAttributes, source: Source) -> int:
    originator = attributes.originator_id
    return source.router_id if originator is None else int.from_bytes(originator, "big")
