"""Whole tables and statistics for a monitoring station, in slices: one slice per turn of the loop.

A table may change between two slices. The keys are copied at the start, and a key's route is looked
up when its slice is encoded; changes are sent as they happen. So the last message about a route is
always right.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from speaker.api import Monitor
from speaker.bmp import Statistic, StatisticKind, StatisticsReport, encode
from speaker.engine.monitoring.monitored_peers import (
    LOC_RIB_FAMILIES,
    MonitoredLocRib,
    MonitoredPeer,
    MonitoredSession,
)
from speaker.engine.monitoring.routes_as_updates import announced, cut, withdrawn
from speaker.nlri import Family
from speaker.rib import pack
from speaker.rib.inbound import OWN_AS, OWN_ORIGINATOR
from speaker.rib.key_slices import key_slices

SLICE_ROUTES: Final = 1000
"""Routes of one slice."""
SLICE_REPORTS: Final = 25
"""Statistics Reports of one slice."""
NO_TIME: Final = bytes(8)
"""The timestamp of table routes, whose time of arrival is not stored (RFC 7854 section 4.2)."""


def held(
    peer: MonitoredSession,
    monitor: Monitor,
    family: Family,
    keys: Iterable[bytes],
    *,
    withdrawals: bool = True,
) -> list[bytes]:
    """Return UPDATEs for what an Adj-RIB-In holds for some keys now.

    With ``withdrawals`` the UPDATEs also withdraw keys without a route, or rejected by policy.
    """
    adj_in = peer.established.adj_in
    as4 = peer.established.negotiated.as4
    groups, gone = adj_in.by_path(family, keys)
    updates: list[bytes] = []
    for path, some in groups.items():
        if monitor == "pre-policy":
            updates += announced(family, path, some, as4=as4)
            continue
        for used, part in adj_in.imported(family, path, some):
            if used is None:
                gone.extend(part)
            else:
                updates += announced(family, used, part, as4=as4)
    if withdrawals:
        updates += withdrawn(family, gone)
    return updates


def adj_rib_in(
    peer: MonitoredSession, monitors: Sequence[Monitor], *, resend: bool = False, end: bool = True
) -> Iterator[bytes]:
    """Yield an Adj-RIB-In, then (with ``end``) End-of-RIB (RFC 7854 section 3.3).

    ``resend``: the station has the table already, and has to receive withdrawals, too.
    """
    adj_in = peer.established.adj_in
    for family in list(adj_in.families):
        for keys in key_slices(adj_in.keys(family), SLICE_ROUTES):
            if not keys:
                yield b""
                continue
            for monitor in monitors:
                updates = held(peer, monitor, family, keys, withdrawals=resend)
                yield peer.monitored(monitor, updates, NO_TIME)
        if end:
            for monitor in monitors:
                yield peer.monitored(monitor, (pack.end_of_rib(family),), NO_TIME)


def adj_rib_out(peer: MonitoredSession) -> Iterator[bytes]:
    """Yield a session's Adj-RIB-Out (RFC 8671), unless its initial table is still to be sent."""
    established = peer.established
    group = established.group
    if group is None or established not in group.members:
        return
    families = group.rules.families
    for family in families:
        for prefixes in group.walk(family, SLICE_ROUTES):
            # A changed export policy moves the session to another group, and sends the difference.
            if prefixes and established.group is not None:
                batch = established.group.export_prefixes(family, prefixes, established)
                yield peer.monitored("adj-rib-out", cut(batch.octets), NO_TIME)
            elif not prefixes:
                yield b""
    ends = [pack.end_of_rib(family) for family in families]
    yield peer.monitored("adj-rib-out", ends, NO_TIME)


def loc_rib(peer: MonitoredLocRib) -> Iterator[bytes]:
    """Yield the best routes of an instance (RFC 9069), then End-of-RIB."""
    for family, table, prefixes in peer.instance.outbound.loc.slices(SLICE_ROUTES):
        updates: list[bytes] = []
        for path, some in table.best_of(prefixes or ()).items():
            updates += announced(family, path, some, as4=True)
        yield peer.monitored("loc-rib", updates, NO_TIME)
    ends = [pack.end_of_rib(family) for family in LOC_RIB_FAMILIES]
    yield peer.monitored("loc-rib", ends, NO_TIME)


# ------------------------------------------------------------------- statistics


def statistics(peers: Sequence[MonitoredPeer], time: int) -> Iterator[bytes]:
    """Yield Statistics Reports of peers (RFC 7854 section 4.8), with ``time`` in microseconds."""
    for start in range(0, len(peers), SLICE_REPORTS):
        yield b"".join(
            encode(StatisticsReport(peer.at(time), tuple(_statistics(peer))))
            for peer in peers[start : start + SLICE_REPORTS]
            if peer.present
        )


def _statistics(peer: MonitoredPeer) -> Iterator[Statistic]:
    if isinstance(peer, MonitoredSession):
        return _of_session(peer)
    assert isinstance(peer, MonitoredLocRib)  # noqa: S101  there is no third kind
    return _of_loc_rib(peer)


def _of_session(peer: MonitoredSession) -> Iterator[Statistic]:
    established = peer.established
    adj_in, inbound, group = established.adj_in, established.inbound, established.group
    yield Statistic(StatisticKind.REJECTED_BY_POLICY, adj_in.rejected_by_policy)
    yield Statistic(StatisticKind.AS_PATH_LOOPS, inbound.loops[OWN_AS])
    yield Statistic(StatisticKind.ORIGINATOR_ID_LOOPS, inbound.loops[OWN_ORIGINATOR])
    yield Statistic(StatisticKind.TREATED_AS_WITHDRAW, inbound.treated_as_withdraw)
    yield Statistic(
        StatisticKind.PREFIXES_TREATED_AS_WITHDRAW, inbound.prefixes_treated_as_withdraw
    )
    received = {family: adj_in.received(family) for family in adj_in.families}
    yield from _gauges(StatisticKind.ADJ_RIB_IN, StatisticKind.ADJ_RIB_IN_FAMILY, received.items())
    if group is not None:
        advertised = [
            (family, group.advertised_count(family, established)) for family in group.rules.families
        ]
        yield from _gauges(
            StatisticKind.ADJ_RIB_OUT_POST_POLICY,
            StatisticKind.ADJ_RIB_OUT_POST_POLICY_FAMILY,
            advertised,
        )


def _of_loc_rib(peer: MonitoredLocRib) -> Iterator[Statistic]:
    counts = [(family, len(table)) for family, table in peer.instance.outbound.loc.tables.items()]
    return _gauges(StatisticKind.LOC_RIB, StatisticKind.LOC_RIB_FAMILY, counts)


def _gauges(
    total: StatisticKind, of_family: StatisticKind, counts: Iterable[tuple[Family, int]]
) -> Iterator[Statistic]:
    summed, single = itertools.tee(counts)
    yield Statistic(total, sum(count for _, count in summed))
    for family, count in single:
        yield Statistic(of_family, count, family)
