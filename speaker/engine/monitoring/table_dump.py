"""Whole tables and statistics for a monitoring station, in slices: one slice per turn of the loop.

A table may change between two slices. The keys are copied at the beginning, and what is said of a key
is looked up when its slice is made; changes are told as they happen. So whatever comes last is right.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from speaker.api import Monitor
from speaker.bmp import Statistic, StatisticKind, StatisticsReport, encode
from speaker.engine.monitoring.encode_routes import announced, cut, withdrawn
from speaker.engine.monitoring.monitored_peers import (
    LOC_RIB_FAMILIES,
    MonitoredLocRib,
    MonitoredPeer,
    MonitoredSession,
)
from speaker.nlri import Family
from speaker.rib import pack
from speaker.rib.inbound import OWN_AS, OWN_ORIGINATOR

SLICE: Final = 1000
"""Routes of one slice."""
REPORTS: Final = 25
"""Statistics Reports of one slice."""
NO_TIME: Final = bytes(8)
"""Routes of a table: when they came is not kept (RFC 7854 section 4.2: zero)."""


def _slices(lists: Iterable[Sequence[bytes]]) -> Iterator[Sequence[bytes]]:
    """Cut long lists, and put short ones together."""
    found: list[bytes] = []
    for keys in lists:
        for start in range(0, len(keys), SLICE):
            found += keys[start : start + SLICE]
            if len(found) >= SLICE:
                yield found
                found = []
    if found:
        yield found


def held(
    subject: MonitoredSession,
    monitor: Monitor,
    family: Family,
    keys: Iterable[bytes],
    *,
    withdrawals: bool = True,
) -> list[bytes]:
    """Return UPDATEs that say what an Adj-RIB-In holds for some keys now.

    ``withdrawals`` says whether they also say what it does not hold, or policy does not let pass.
    """
    adj_in = subject.member.adj_in
    as4 = subject.member.negotiated.as4
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
    subject: MonitoredSession, monitors: Sequence[Monitor], *, anew: bool = False, end: bool = True
) -> Iterator[bytes]:
    """Yield an Adj-RIB-In, then End-of-RIB (RFC 7854 section 3.3) unless that is left out.

    ``anew``: the station knows the table, and has to learn what has gone from it, too.
    """
    adj_in = subject.member.adj_in
    for family in list(adj_in.families):
        for keys in _slices(adj_in.keys(family)):
            for monitor in monitors:
                updates = held(subject, monitor, family, keys, withdrawals=anew)
                yield subject.monitored(monitor, updates, NO_TIME)
        if end:
            for monitor in monitors:
                yield subject.monitored(monitor, (pack.end_of_rib(family),), NO_TIME)


def adj_rib_out(subject: MonitoredSession) -> Iterator[bytes]:
    """Yield what a session has been told (RFC 8671), unless it has still to be told everything."""
    member = subject.member
    group = member.group
    if group is None or member not in group.members:
        return
    families = group.rules.families
    for family in families:
        for prefixes in _slices((group.prefixes(family),)):
            # Another export policy moves a member to another group, and tells the difference.
            if member.group is not None:
                octets = member.group.export_prefixes(family, prefixes, member)
                yield subject.monitored("adj-rib-out", cut(octets), NO_TIME)
    ends = [pack.end_of_rib(family) for family in families]
    yield subject.monitored("adj-rib-out", ends, NO_TIME)


def loc_rib(subject: MonitoredLocRib) -> Iterator[bytes]:
    """Yield the best routes of an instance (RFC 9069), then End-of-RIB."""
    tables = subject.instance.outbound.loc.tables
    for family in list(tables):
        table = tables[family]
        for prefixes in _slices((table.prefixes(),)):
            updates: list[bytes] = []
            for path, some in table.best_of(prefixes).items():
                updates += announced(family, path, some, as4=True)
            yield subject.monitored("loc-rib", updates, NO_TIME)
    ends = [pack.end_of_rib(family) for family in LOC_RIB_FAMILIES]
    yield subject.monitored("loc-rib", ends, NO_TIME)


# ------------------------------------------------------------------- statistics


def statistics(subjects: Sequence[MonitoredPeer], time: int) -> Iterator[bytes]:
    """Yield Statistics Reports of subjects (RFC 7854 section 4.8); ``time`` is that of all."""
    for start in range(0, len(subjects), REPORTS):
        yield b"".join(
            encode(StatisticsReport(subject.at(time), tuple(_statistics(subject))))
            for subject in subjects[start : start + REPORTS]
            if subject.present
        )


def _statistics(subject: MonitoredPeer) -> Iterator[Statistic]:
    if isinstance(subject, MonitoredSession):
        return _of_session(subject)
    assert isinstance(subject, MonitoredLocRib)  # noqa: S101  there is no third kind
    return _of_loc_rib(subject)


def _of_session(subject: MonitoredSession) -> Iterator[Statistic]:
    member = subject.member
    adj_in, inbound, group = member.adj_in, member.inbound, member.group
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
        told = [(family, group.advertised_count(family, member)) for family in group.rules.families]
        yield from _gauges(
            StatisticKind.ADJ_RIB_OUT_POST_POLICY,
            StatisticKind.ADJ_RIB_OUT_POST_POLICY_FAMILY,
            told,
        )


def _of_loc_rib(subject: MonitoredLocRib) -> Iterator[Statistic]:
    counts = [
        (family, len(table)) for family, table in subject.instance.outbound.loc.tables.items()
    ]
    return _gauges(StatisticKind.LOC_RIB, StatisticKind.LOC_RIB_FAMILY, counts)


def _gauges(
    total: StatisticKind, of_family: StatisticKind, counts: Iterable[tuple[Family, int]]
) -> Iterator[Statistic]:
    ours, theirs = itertools.tee(counts)
    yield Statistic(total, sum(count for _, count in ours))
    for family, count in theirs:
        yield Statistic(of_family, count, family)
