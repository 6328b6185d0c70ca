"""A monitoring station for engines in virtual time, and the tables that it must have."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

from msgspec.structs import replace

from speaker.api import BmpCollector
from speaker.engine import Engine
from speaker.engine.established_peer import EstablishedPeer
from speaker.engine.inputs import (
    BytesReceived,
    Input,
    QueueChanged,
    SetCollectors,
    TransportClosed,
    TransportConnected,
    TransportFailed,
    WallClock,
)
from speaker.engine.instance import Instance
from speaker.iana import Afi
from speaker.peer.actions import Action, Close, Connect, Write
from tests.support.bmp import Station, Table

ADDRESS = "10.99.0.1"
EVERYTHING = BmpCollector(
    name="c", address=ADDRESS, monitor=("pre-policy", "post-policy", "loc-rib", "adj-rib-out")
)


class Collector:
    """Stands between an engine and its shell, and takes what is for the station out."""

    def __init__(
        self, engine: Engine, give: Callable[[Input], object], config: BmpCollector = EVERYTHING
    ) -> None:
        self.engine = engine
        self.config = config
        self.station = Station()
        self.attempts: list[tuple[float, Connect]] = []
        self.aborted: list[int] = []
        self.closed: list[int] = []
        self.octets = 0
        self.writes = 0
        self._give = give
        self._handle = engine.handle
        engine.handle = self._see  # type: ignore[method-assign]  # between engine and shell

    def _see(self, item: Input, now: float) -> list[Action]:
        return [a for a in self._handle(item, now) if not self._took(a, now)]

    def _took(self, action: Action, now: float) -> bool:
        match action:
            case Connect(instance=None, address=self.config.address):
                self.attempts.append((now, action))
                return True
            case Write(connection, parts) if connection in self.numbers:
                octets = b"".join(parts)
                self.octets += len(octets)
                self.writes += 1
                self.station.feed(octets)
                return True
            case Close(connection, abort) if connection in self.numbers:
                (self.aborted if abort else self.closed).append(connection)
                return True
        return False

    @property
    def numbers(self) -> set[int]:
        """All connections so far."""
        return {attempt.connection for _, attempt in self.attempts}

    @property
    def number(self) -> int:
        """The last attempt's connection."""
        return self.attempts[-1][1].connection

    def configure(self, *configs: BmpCollector) -> None:
        """Configure the stations of the engine; this one where none is given."""
        self._give(WallClock(1_700_000_000.0))
        self._give(SetCollectors(configs or (self.config,)))

    def accept(self) -> Station:
        """Let the last attempt succeed; the station starts without tables."""
        self.station = Station()
        self._give(
            TransportConnected(self.number, ("10.99.0.9", 50000), (self.config.address, 11019))
        )
        return self.station

    def refuse(self) -> None:
        """Let the last attempt fail."""
        self._give(TransportFailed(self.number, "connection refused"))

    def lose(self) -> None:
        """End the connection."""
        self._give(TransportClosed(self.number, "connection reset by peer"))

    def talk(self, octets: int) -> None:
        """Send octets, which a station does not do."""
        self._give(BytesReceived(self.number, bytes(octets)))

    def wait_queue(self, octets: int) -> None:
        """Let octets wait."""
        self._give(QueueChanged(self.number, octets))


# ------------------------------------------------------------- what the speaker holds


def _tidy(table: Table) -> Table:
    return {family: routes for family, routes in table.items() if routes}


def differences(exported: Table, held: Table) -> list[object]:
    """Return the routes that differ: key, as exported, as held."""
    return [
        (str(family), key.hex(), exported.get(family, {}).get(key), held.get(family, {}).get(key))
        for family in exported.keys() | held.keys()
        for key in exported.get(family, {}).keys() | held.get(family, {}).keys()
        if exported.get(family, {}).get(key) != held.get(family, {}).get(key)
    ]


def held_before_policy(member: EstablishedPeer) -> Table:
    """Return an Adj-RIB-In."""
    return _tidy(
        {
            family: {key: path.attributes for key, path in member.adj_in.items(family)}
            for family in member.adj_in.families
        }
    )


def held_behind_policy(member: EstablishedPeer) -> Table:
    """Return what of an Adj-RIB-In is imported, as it is imported."""
    found: Table = {}
    for family in member.adj_in.families:
        table = dict(member.adj_in.items(family))
        by_nlri = list(chain.from_iterable(member.adj_in.routes(family, 7)))
        assert len(by_nlri) == len(table)
        for key, (_, _, used) in zip(table, by_nlri, strict=True):
            if used is not None:
                found.setdefault(family, {})[key] = used.attributes
    return found


def held_best(instance: Instance) -> Table:
    """Return the best routes; our own have the unspecified next hop, which IPv4 reads as none."""
    found: Table = {}
    for family, table in instance.outbound.loc.tables.items():
        for nlri, (best, *_) in table.items():
            hop = best.attributes.next_hop or (b"" if family.afi == Afi.IPV4 else bytes(16))
            found.setdefault(family, {})[nlri] = replace(best.attributes, next_hop=hop)
    return found


def assert_same(station: Station, instance: Instance) -> None:
    """Compare the tables of a station with `EVERYTHING` with the instance's."""
    loc_rib = station.loc_rib.loc_rib.routes
    assert not differences(_tidy(loc_rib), held_best(instance))
    for member in instance.established.values():
        exported = station.of(member.session.remote[0])
        assert not differences(_tidy(exported.pre_policy.routes), held_before_policy(member))
        assert not differences(_tidy(exported.post_policy.routes), held_behind_policy(member))
    assert len(station.monitored) == 1 + len(instance.established)
