"""What an instance originates changes in slices, each change after the last one."""

from __future__ import annotations

import random
from typing import Any

import pytest

from speaker.api import InstanceConfig, PeerConfig, RouteAttributes
from speaker.engine import Engine
from speaker.engine.inputs import Input, SendUpdates, SetInstance
from speaker.engine.instance.outbound_updates import OutboundUpdates
from speaker.engine.sliced_work import SLICE_UNITS
from speaker.nlri import IPV4_UNICAST
from speaker.rib.loc_rib import LocRib
from speaker.rib.path import Path
from tests.speaker.network import Network

COUNT = 5000


def prefixes(first: int, count: int = COUNT) -> tuple[str, ...]:
    return tuple(f"10.{n >> 8}.{n & 255}.0/24" for n in range(first, first + count))


class Changes:
    """An engine, and the most originated prefixes that change in one input."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.engine = Engine(random.Random(1))  # noqa: S311  jitter
        self.most = self._now = 0
        update = OutboundUpdates.update_routes

        def counted(outbound: OutboundUpdates, route_set: str | None, changes: Any) -> None:  # noqa: ANN401
            self._now += sum(map(len, changes.values()))
            update(outbound, route_set, changes)

        monkeypatch.setattr(OutboundUpdates, "update_routes", counted)

    def give(self, item: Input) -> None:
        self._now = 0
        self.engine.handle(item, 0.0)
        self.most = max(self.most, self._now)

    def originate(self, *texts: str, asn: int = 65000) -> None:
        self.give(
            SetInstance(
                InstanceConfig(name="i", local_asn=asn, router_id="192.0.2.1", originate=texts)
            )
        )

    def settle(self) -> None:
        while self.engine.updates_pending:
            self.give(SendUpdates())


def originated(changes: Changes) -> set[bytes]:
    (instance,) = changes.engine._instances.values()
    return set(instance.outbound.loc.table(IPV4_UNICAST).prefixes())


def test_many_prefixes_are_originated_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    changes = Changes(monkeypatch)
    changes.originate(*prefixes(0))
    changes.settle()
    assert len(originated(changes)) == COUNT
    assert 0 < changes.most <= SLICE_UNITS // 2


@pytest.mark.parametrize("asn", [65000, 65001])
def test_a_change_during_a_change_follows_it(monkeypatch: pytest.MonkeyPatch, asn: int) -> None:
    changes = Changes(monkeypatch)
    changes.originate(*prefixes(0))
    changes.originate(*prefixes(1000))
    changes.originate(*prefixes(2000), "192.0.2.0/24", asn=asn)
    changes.settle()
    found = originated(changes)
    assert len(found) == COUNT + 1
    assert b"\x18\x0a\x00\x00" not in found
    if asn == 65000:  # Another AS makes another router, of which all sessions are reset.
        assert changes.most <= SLICE_UNITS // 2


def test_the_same_prefixes_in_another_order_are_no_change(monkeypatch: pytest.MonkeyPatch) -> None:
    changes = Changes(monkeypatch)
    changes.originate(*prefixes(0, 300))
    changes.settle()
    changes.most = 0
    changes.originate(*reversed(prefixes(0, 300)))
    changes.settle()
    assert changes.most == 0


def test_an_initial_table_is_grouped_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    group = LocRib.best_by_path

    def counted(table: LocRib) -> dict[Path, list[bytes]]:
        calls.append(len(table))
        return group(table)

    monkeypatch.setattr(LocRib, "best_by_path", counted)
    network = Network()
    hub, leaf = network.host("hub", "10.0.0.1", 65000), network.host("leaf", "10.0.1.1", 65001)
    hub.routes({"10.9.0.0/16": RouteAttributes(), "10.8.0.0/16": RouteAttributes()})
    for host, other, asn in ((hub, "10.0.1.1", 65001), (leaf, "10.0.0.1", 65000)):
        host.peer(PeerConfig(name="p", address=other, peer_asn=asn, import_="all", export="all"))
    network.run(5)
    assert calls.count(2) == 1
