"""Paths and their sources: the values that all RIBs share.

A `Path` is one attribute set from one source, whatever number of prefixes has it. A RIB maps a
prefix's wire octets to a shared `Path`, so there is no object per route. What depends on the
attribute set alone is computed once per path: its eligibility and the keys of route selection.
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
NEXT_HOP_KEPT: Final = 8
"""Attributes that a policy has set: the export rules of a session do not change them (bit mask)."""
LLGR_STALE: Final = WELL_KNOWN_COMMUNITIES["llgr-stale"]


@final
class SourceSession:
    """The identity of the session that sources belong to, or that of this router."""

    __slots__ = ("local",)

    def __init__(self, *, local: bool) -> None:
        self.local = local
        """Whether its routes are this router's own."""


@final
class Source:
    """The source of a path: one session from Established to its end, or this router.

    Compared by identity. The next session of a peer is a new source, unless its routes are retained
    during a graceful restart. With ADD-PATH each path identifier of a session is a source of its
    own, so that a RIB has at most one path of a source for a prefix.
    """

    __slots__ = (
        "address",
        "direct",
        "ebgp",
        "imported_from",
        "interface",
        "internal",
        "local",
        "name",
        "received_path_id",
        "router_id",
        "sent_path_id",
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
        sent_path_id: int = 1,
        imported_from: str | None = None,
        direct: bool = False,
        interface: str | None = None,
    ) -> None:
        """Describe a session; without an address the source is this router.

        ``address`` has 4 or 16 octets, and a zone. ``internal`` defaults to the opposite of ``ebgp``;
        a peer in another member AS of our confederation is neither (RFC 5065). ``sent_path_id`` is the
        path identifier with which its paths are advertised. ``direct``: the session reaches
        neighbours of its links only. ``interface`` is the session's, where it is configured or in the
        address.
        """
        self.internal = not ebgp if internal is None else internal
        self.imported_from = imported_from
        """The instance of this router whose source it is, where its paths are imported."""
        self.direct = direct
        self.interface = interface
        self.name = name
        self.sent_path_id = sent_path_id
        """The path identifier with which its paths are advertised (RFC 7911); 1 is this router."""
        self.received_path_id: int | None = None
        """The path identifier with which the peer sends them, or None without ADD-PATH."""
        self.session = SourceSession(local=not address)
        """Common to the sources of all path identifiers of a session."""
        self.address = address
        self.router_id = router_id
        self.ebgp = ebgp
        self.local = not address

    def with_path_id(self, path_id: int, sent_path_id: int) -> Source:
        """Return the source of the session's paths with a path identifier (RFC 7911)."""
        source = Source(
            self.name,
            address=self.address,
            router_id=self.router_id,
            ebgp=self.ebgp,
            internal=self.internal,
            sent_path_id=sent_path_id,
            direct=self.direct,
            interface=self.interface,
        )
        source.received_path_id = path_id
        source.session = self.session
        return source

    def same_router(self, other: Source) -> bool:
        """Return whether another session has the same peer, as after its restart."""
        return self._router == other._router

    @property
    def _router(self) -> tuple[object, ...]:
        return (self.address, self.router_id, self.ebgp, self.direct, self.interface)

    def __repr__(self) -> str:
        return f"Source({self.name!r})"


class Rank(NamedTuple):
    """The keys of route selection, compared with ``<``: the smaller one is better.

    MED is between ``early`` and ``late`` because it is compared only among equal neighbouring ASes.
    """

    early: tuple[object, ...]
    med: int
    neighbor_as: int
    late: tuple[object, ...]


@final
class Path(msgspec.Struct, eq=False, weakref=True):
    """One attribute set from one source; frozen by convention, compared by identity.

    ``rejected`` is why routes with these attributes are ineligible (an AS loop ...), or None.
    ``overrides`` is a mask of `MED_SET` and one of `NEXT_HOP_SET`, `NEXT_HOP_SELF` and
    `NEXT_HOP_KEPT`. Attributes that took the fast path are decoded on first access; the rank is
    computed when there is more than one path.
    """

    _attributes: PathAttributes | None
    source: Source
    rejected: str | None = None
    overrides: int = 0
    _encoded: bytes = b""
    """The path attributes field of attributes that are not decoded yet."""
    _decode: Callable[[bytes], PathAttributes] | None = None
    """The decoder of ``_encoded``."""
    _rank: Rank | None = None

    @property
    def attributes(self) -> PathAttributes:
        """The attributes as received, or as a policy has changed them."""
        attributes = self._attributes
        if attributes is None:
            assert self._decode is not None  # noqa: S101  one of them was given
            attributes = self._attributes = self._decode(self._encoded)
            self._encoded, self._decode = b"", None
        return attributes

    def decoded(self) -> Path:
        """Return this path, or a decoded copy where the attributes are not decoded yet.

        For reads of whole tables: decoded attributes take a multiple of the memory.
        """
        if self._attributes is None and self._decode is not None:
            decoded = self._decode(self._encoded)
            return Path(decoded, self.source, self.rejected, self.overrides)
        return self

    @property
    def encoded(self) -> bytes:
        """The undecoded path attributes field, with four-octet AS numbers; empty once decoded."""
        return self._encoded

    @property
    def long_lived(self) -> bool:
        """Whether the path is long-lived stale (RFC 9494), also if another router marked it."""
        return LLGR_STALE in self.attributes.communities

    @property
    def rank(self) -> Rank:
        """The keys of route selection."""
        return self._rank or self._ranked()

    def _ranked(self) -> Rank:
        attributes, source = self.attributes, self.source
        preference = attributes.local_preference
        rank = self._rank = Rank(
            early=(
                not source.local,
                # RFC 9494 section 4.3: least preferred.
                self.long_lived,
                -(DEFAULT_LOCAL_PREFERENCE if preference is None else preference),
                hop_count(attributes.as_path),
                attributes.origin,
            ),
            med=attributes.med or 0,
            neighbor_as=_neighbor_as(attributes.as_path),
            late=(
                not source.ebgp,
                # The place of the IGP metric, which is not the path's (`speaker.rib.decision`).
                0,
                # RFC 4456 section 9: ORIGINATOR_ID replaces the BGP Identifier; then the shorter
                # CLUSTER_LIST is preferred.
                _originator(attributes, source),
                len(attributes.cluster_list),
                len(source.address),
                source.address,
                source.imported_from is not None,
                source.received_path_id or 0,
            ),
        )
        return rank

    def __repr__(self) -> str:
        return f"Path({self.source.name!r}, {self.attributes!r})"


def same_export(one: Path, other: Path) -> bool:
    """Return whether two paths lead to the same advertisement of a prefix."""
    return one is other or (
        one.attributes == other.attributes
        and one.overrides == other.overrides
        and one.source.session is other.source.session
    )


def _neighbor_as(as_path: AsPath) -> int:
    # RFC 5065 section 5.3: the AS next to the confederation, whatever member AS is in between.
    for kind, asns in as_path:
        if kind not in CONFEDERATION:
            return asns[0] if kind == AS_SEQUENCE else 0
    return 0


def _originator(attributes: PathAttributes, source: Source) -> int:
    originator = attributes.originator_id
    return source.router_id if originator is None else int.from_bytes(originator, "big")
