"""A session and a station: octets are sent to the engine, and inspected at the station."""

from __future__ import annotations

from speaker.api import BmpCollector, RouteAttributes
from speaker.bmp import Message, RouteMonitoring
from speaker.engine.inputs import UpdateRoutes, WallClock
from speaker.iana import IPV4_UNICAST
from speaker.nlri import prefix_to_wire
from tests.speaker.engine.monitoring.collector import ADDRESS, Collector
from tests.speaker.raw import ATTRIBUTES, INSTANCE, NLRI, Raw, update

PRE = BmpCollector(name="c", address=ADDRESS)
UPDATE = update(ATTRIBUTES, NLRI)


def watched(raw: Raw, config: BmpCollector = PRE) -> Collector:
    """Give the engine a station that is connected."""
    collector = Collector(raw.engine, raw.give, config)
    collector.configure()
    collector.accept()
    return collector


def settle(raw: Raw) -> None:
    """Let the engine do all that waits for turns of the loop."""
    while raw.engine.updates_pending:
        raw.give(WallClock(1_700_000_000.0))


def monitored(collector: Collector) -> list[RouteMonitoring]:
    return [m for m in collector.station.messages if isinstance(m, RouteMonitoring)]


def last(collector: Collector) -> Message:
    return collector.station.messages[-1]


def originate(raw: Raw, *prefixes: str) -> None:
    raw.give(
        UpdateRoutes(
            INSTANCE,
            None,
            {IPV4_UNICAST: {prefix_to_wire(prefix)[1]: RouteAttributes() for prefix in prefixes}},
        )
    )
