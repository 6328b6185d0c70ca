"""Hypothesis strategies for BMP messages as a router could send them."""

from __future__ import annotations

from hypothesis import strategies as st

from speaker.bmp import (
    Initiation,
    Message,
    PeerDown,
    PeerHeader,
    PeerKind,
    PeerUp,
    RouteMirroring,
    RouteMonitoring,
    Statistic,
    StatisticsReport,
    Termination,
    Tlv,
)
from speaker.bmp.numbers import FAMILY_GAUGES, GAUGES, StatisticKind
from speaker.iana import Family, MessageType
from speaker.message import frame_message

u16 = st.integers(0, 0xFFFF)
u32 = st.integers(0, 0xFFFFFFFF)
u64 = st.integers(0, 0xFFFFFFFFFFFFFFFF)


def bgp(kind: MessageType, least: int) -> st.SearchStrategy[bytes]:
    """Return BGP messages of a type with any body of at least so many octets."""
    return st.binary(min_size=least, max_size=80).map(lambda body: frame_message(kind, body))


@st.composite
def peers(draw: st.DrawFn, *, loc_rib: bool | None = None) -> PeerHeader:
    """Return per-peer headers."""
    of_loc_rib = draw(st.booleans()) if loc_rib is None else loc_rib
    time = draw(u32) * 1_000_000 + draw(st.integers(0, 999_999))
    if of_loc_rib:
        return PeerHeader(
            kind=PeerKind.LOC_RIB, distinguisher=draw(u64), address=b"", asn=draw(u32),
            router_id=draw(u32), filtered=draw(st.booleans()), time=time,
        )  # fmt: skip
    kind = draw(st.sampled_from([PeerKind.GLOBAL, PeerKind.RD, PeerKind.LOCAL]))
    return PeerHeader(
        kind=kind,
        distinguisher=0 if kind == PeerKind.GLOBAL else draw(u64),
        address=draw(st.binary(min_size=4, max_size=4) | st.binary(min_size=16, max_size=16)),
        asn=draw(u32),
        router_id=draw(u32),
        post_policy=draw(st.booleans()),
        legacy_as_path=draw(st.booleans()),
        adj_rib_out=draw(st.booleans()),
        time=time,
    )


def tlvs(*kinds: int) -> st.SearchStrategy[tuple[Tlv, ...]]:
    """Return TLVs of these types in any number, with values of 2 octets (which all may have)."""
    return st.lists(
        st.builds(Tlv, st.sampled_from(kinds), st.binary(min_size=2, max_size=2)), max_size=4
    ).map(tuple)


@st.composite
def statistics(draw: st.DrawFn) -> Statistic:
    """Return single statistics with values of the width that their kind has."""
    kind = draw(st.sampled_from(StatisticKind))
    if kind in FAMILY_GAUGES:
        return Statistic(kind, draw(u64), Family(draw(u16), draw(st.integers(0, 255))))
    return Statistic(kind, draw(u64 if kind in GAUGES else u32))


@st.composite
def ups(draw: st.DrawFn) -> PeerUp:
    """Return Peer Up messages."""
    peer = draw(peers())
    opened = bgp(MessageType.OPEN, 10)
    if peer.kind == PeerKind.LOC_RIB:
        return PeerUp(
            peer=peer, sent_open=draw(opened), received_open=draw(opened), information=draw(tlvs(3))
        )
    return PeerUp(
        peer=peer,
        local_address=draw(st.binary(min_size=len(peer.address), max_size=len(peer.address))),
        local_port=draw(u16),
        remote_port=draw(u16),
        sent_open=draw(opened),
        received_open=draw(opened),
        information=draw(tlvs(0, 3, 4, 999)),
    )


def downs() -> st.SearchStrategy[PeerDown]:
    """Return Peer Down messages with each reason."""
    peer = peers()
    return st.one_of(
        st.builds(
            PeerDown,
            peer=peer,
            reason=st.sampled_from([1, 3]),
            notification=bgp(MessageType.NOTIFICATION, 2),
        ),
        st.builds(PeerDown, peer=peer, reason=st.just(2), event=u16),
        st.builds(PeerDown, peer=peer, reason=st.sampled_from([4, 5])),
        st.builds(PeerDown, peer=peer, reason=st.just(6), information=tlvs(3)),
        st.builds(PeerDown, peer=peer, reason=st.integers(7, 254), data=st.binary(max_size=20)),
    )


def messages() -> st.SearchStrategy[Message]:
    """Return messages of every type."""
    required = (Tlv(1, b"a router"), Tlv(2, b"r1"))
    return st.one_of(
        tlvs(0, 1, 2).map(lambda more: Initiation((*required, *more))),
        st.builds(Termination, tlvs(0, 1)),
        st.builds(RouteMonitoring, peers(), bgp(MessageType.UPDATE, 4)),
        st.builds(StatisticsReport, peers(), st.lists(statistics(), max_size=6).map(tuple)),
        downs(),
        ups(),
        st.builds(RouteMirroring, peers(), tlvs(0, 1)),
    )
