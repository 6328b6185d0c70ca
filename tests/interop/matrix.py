"""The interop matrix: the tests with each router, and the reason where a cell has none.

Rows are features, columns are the routers of `KINDS`. A cell that is not in `CANNOT` is a test of
`test_matrix` or `test_matrix_alone`, and has to pass. BFD has a table of its own (`test_matrix_bfd`).
Renders docs/interop.md; a pure function of its arguments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from tests.support.routers import KINDS

COLUMNS = tuple(KINDS)

FEATURES: dict[str, str] = {
    "ipv4": "IPv4 unicast over an IPv4 session (RFC 4271)",
    "ipv6": "IPv6 unicast over an IPv6 session (RFC 4760)",
    "both-families": "both families over one session",
    "ipv6-over-ipv4": "IPv6 prefixes over an IPv4 session",
    "ipv4-over-ipv6": "IPv4 prefixes with IPv6 next hops (RFC 8950)",
    "unnumbered": "unnumbered: a neighbour by interface",
    "md5": "TCP MD5, and no session with another key (RFC 2385)",
    "gtsm": "TTL security, and no session with a more distant peer (RFC 5082)",
    "multihop": "eBGP multihop, through another router",
    "collision": "connection collision: one session remains (RFC 4271 section 6.8)",
    "four-octet-as": "four-octet AS numbers (RFC 6793)",
    "old-speaker": "with a speaker of two-octet AS numbers only (RFC 6793)",
    "communities": "communities and large communities (RFC 1997, 8092)",
    "extended-messages": "messages longer than 4,096 octets (RFC 8654)",
    "route-refresh-sent": "route refresh, requested by us (RFC 2918)",
    "route-refresh-received": "route refresh, requested by the peer (RFC 2918)",
    "enhanced-route-refresh": "enhanced route refresh (RFC 7313)",
    "add-path-send": "ADD-PATH, send (RFC 7911)",
    "add-path-receive": "ADD-PATH, receive (RFC 7911)",
    "restarting": "graceful restart: we restart, the peer keeps our routes (RFC 4724)",
    "helper": "graceful restart: the peer restarts, we keep its routes (RFC 4724)",
    "long-lived": "long-lived graceful restart: the peer keeps our routes, least preferred (RFC 9494)",
    "long-lived-helper": "long-lived graceful restart: we keep its routes, least preferred (RFC 9494)",
    "limit-theirs": "prefix limit of the peer (RFC 4486)",
    "limit-ours": "prefix limit of ours (RFC 4486)",
    "shutdown-sent": "shutdown communication, sent (RFC 9003)",
    "shutdown-received": "shutdown communication, received (RFC 9003)",
    "role": "roles and Only to Customer, and no session with a wrong one (RFC 9234)",
    "confederation": "members of one confederation (RFC 5065)",
    "confederation-outside": "peer of a confederation, outside of it (RFC 5065)",
}

CANNOT: dict[tuple[str, str], str] = {
    ("ipv4-over-ipv6", "openbgpd"): "has no extended next hop encoding",
    ("unnumbered", "gobgp"): "sends no router advertisements, by which neighbours are discovered",
    ("unnumbered", "openbgpd"): "requires the neighbour's address",
    ("unnumbered", "exabgp"): "requires the neighbour's address",
    ("old-speaker", "gobgp"): "always has four-octet AS numbers",
    ("extended-messages", "gobgp"): "has no extended messages",
    ("extended-messages", "openbgpd"): "has no extended messages",
    ("route-refresh-sent", "openbgpd"): "counts requests of Waggle and BIRD, and answers none",
    ("route-refresh-received", "gobgp"): "sends no requests",
    ("enhanced-route-refresh", "gobgp"): "has no enhanced route refresh",
    ("restarting", "exabgp"): "keeps no routes of neighbours that restart",
    ("helper", "openbgpd"): "is a helper only: its capability lists no family",
    ("long-lived", "openbgpd"): "has no long-lived graceful restart",
    ("long-lived", "exabgp"): "has no long-lived graceful restart",
    ("long-lived-helper", "openbgpd"): "has no long-lived graceful restart",
    ("long-lived-helper", "exabgp"): "has no long-lived graceful restart",
    ("limit-theirs", "exabgp"): "has no limit",
    ("role", "gobgp"): "has no roles",
    ("role", "exabgp"): "has no roles",
    ("confederation", "openbgpd"): "has no confederations",
    ("confederation", "exabgp"): "has no confederations",
}

NOTES: dict[tuple[str, str], str] = {
    ("ipv6-over-ipv4", "openbgpd"): (
        "announces the loopback address as next hop, which Waggle rejects, unless another is"
        " configured, which it uses in multihop sessions only"
    ),
    ("md5", "openbgpd"): (
        "has to connect: it sets keys on its listening sockets before it reads neighbours"
    ),
    ("gtsm", "exabgp"): ("has to connect: its listening socket has the TTL of the system"),
    ("route-refresh-sent", "frr"): (
        "answers no request before it has sent End-of-RIB, which it sends to neighbours with graceful"
        " restart only"
    ),
    ("confederation", "gobgp"): "sends no local preference to other members",
    ("shutdown-received", "exabgp"): ('always sends "Administrative Shutdown", and connects again'),
}
"""Remarks on cells that pass."""

BFD_COLUMNS = ("bird", "frr")

BFD_FEATURES: dict[str, str] = {
    "bfd-ipv4": "one hop over IPv4 (RFC 5881)",
    "bfd-ipv6": "one hop over IPv6",
    "bfd-link-local": "one hop between link-local addresses",
    "bfd-multihop": "several hops, through another router (RFC 5883)",
    "bfd-intervals": "different intervals and multipliers at both ends (RFC 5880 section 6.8.4)",
    "bfd-poll-ours": "intervals that we change, by a Poll Sequence, with the session Up",
    "bfd-poll-theirs": "intervals that the router changes, likewise",
    "bfd-keyed": "keyed SHA1, and no session with another key (RFC 5880 section 6.7.4)",
    "bfd-meticulous": "meticulous keyed SHA1, and no session with keyed SHA1",
    "bfd-echo": "echo packets of both ends; a forwarding that stops is a loss (RFC 5880 section 6.4)",
    "bfd-admin-down-ours": "AdminDown of our end, and the return",
    "bfd-admin-down-theirs": "AdminDown of the router, and the return",
    "bfd-dropped": "packets dropped by nftables in each direction and in both, and the return",
    "bfd-link-down": "a link that goes down, and the return",
    "bfd-killed": "the router is killed, and started: a loss, and the return",
}

BFD_CANNOT: dict[tuple[str, str], str] = {
    ("bfd-keyed", "frr"): "has no authentication of BFD",
    ("bfd-meticulous", "frr"): "has no authentication of BFD",
    ("bfd-echo", "bird"): "has no echo function",
    ("bfd-admin-down-theirs", "bird"): (
        "sends no AdminDown: a session that is removed is silent, and lost after the detection time"
    ),
}

BFD_NOTES: dict[tuple[str, str], str] = {
    ("bfd-multihop", "bird"): (
        "sends packets of several hops with a TTL of 64, so that our least TTL has to be lower"
    ),
}


class Matrix(NamedTuple):
    """A table of the page."""

    columns: tuple[str, ...]
    features: Mapping[str, str]
    cannot: Mapping[tuple[str, str], str]
    notes: Mapping[tuple[str, str], str]

    @property
    def cells(self) -> tuple[tuple[str, str], ...]:
        """Every cell that is a test."""
        return tuple(
            (feature, kind)
            for feature in self.features
            for kind in self.columns
            if (feature, kind) not in self.cannot
        )

    def lines(self, versions: Mapping[str, str]) -> Iterator[str]:
        """Yield the table, and its remarks."""
        reasons: dict[str, int] = {}
        yield f"| | {' | '.join(versions[kind] for kind in self.columns)} |"
        yield f"| --- |{' --- |' * len(self.columns)}"
        for feature, title in self.features.items():
            cells = []
            for kind in self.columns:
                reason = self.cannot.get((feature, kind))
                note = reason or self.notes.get((feature, kind))
                words = [] if reason else ["yes"]
                if note is not None:
                    text = f"{versions[kind].split()[0]} {note}."
                    words.append(f"({reasons.setdefault(text, len(reasons) + 1)})")
                cells.append(" ".join(words))
            yield f"| {title} | {' | '.join(cells)} |"
        yield ""
        yield from (f"{number}. {text}" for text, number in reasons.items())


BGP: Final = Matrix(COLUMNS, FEATURES, CANNOT, NOTES)
BFD: Final = Matrix(BFD_COLUMNS, BFD_FEATURES, BFD_CANNOT, BFD_NOTES)
CELLS: Final = (*BGP.cells, *BFD.cells)
"""Every cell that is a test."""


def kinds(feature: str) -> list[str]:
    """Return the routers that support a feature."""
    return [kind for each, kind in CELLS if each == feature]


INTRODUCTION = """\
# Interop

The speaker together with other implementations. Every "yes" is a test (`tests/interop/test_matrix.py`,
`test_matrix_alone.py`) that runs both in network namespaces and reads the result at both ends; a number
without "yes" refers to the reason why there is no test. `make test` with all of these routers writes
this page when every cell has passed.
"""
BFD_INTRODUCTION = """
## BFD

`waggle-bfd` together with the [BFD](bfd.md) of other implementations, likewise
(`tests/interop/test_matrix_bfd.py`).
"""


BFD_APART = """
Three sessions to one address in three VRFs are tried in a virtual machine, whose kernel has VRFs,
with three BIRDs and with three of FRR's bfdd (`make test-vm`, `tests/interop/test_vrf_bfd.py`): by the
tables of the routers each session has its own neighbor, is lost alone and returns. Intervals are 1 s,
as the machine is emulated.

An Established BGP session ends at most 50 ms after the detection time, by the logs of BIRD and of FRR
(`pytest tests/interop/test_bfd.py -k 50_ms`). An agent that is killed a hundred times is noticed by
BIRD, whose detection time is 0.3 s (100 ms x 3), neither as a loss of BFD nor as a missing route
(`make bfd-kills`; without real-time scheduling the test has 100 ms x 20). `strict` is tried between
two of ours, as no router here has it (`tests/interop/test_router_bfd.py`).

GoBGP 4.8.0 is tried apart, over one hop (`tests/interop/test_gobgp_bfd.py`).

* It ends BFD together with BGP, and starts both again. A GoBGP that is killed and started is one
  loss and one return here, twenty times in sequence (`GOBGP_KILLS=20`, 16 minutes, as pauses double): a
  Down right after the end of BGP is not a second failure.
* It sends in its own interval, whatever the other end requires, and its detection time is its own
  receive interval times its own multiplier. With longer intervals here than there it misses packets
  that this node has not promised, and ends sessions again and again: give both ends the same
  intervals, or this node the shorter ones.
* It does not look at the TTL of received packets."""


def render(versions: Mapping[str, str]) -> str:
    """Return the page; ``versions`` are names with versions by kind, as ``BIRD 2.0.12``."""
    lines = (
        INTRODUCTION,
        *BGP.lines(versions),
        BFD_INTRODUCTION,
        *BFD.lines(versions),
        BFD_APART,
    )
    return "\n".join(lines) + "\n"


def versions_of(page: str) -> dict[str, str]:
    """Return the versions that a page names. Raises ValueError for another text."""
    head = re.search(r"^\| \|(.*)\|$", page, re.MULTILINE)
    found = [] if head is None else [cell.strip() for cell in head[1].split("|")]
    return dict(zip(COLUMNS, found, strict=True))
