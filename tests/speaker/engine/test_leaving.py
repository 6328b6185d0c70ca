"""Many peers that leave at once: the changes of all are not collected until the end of the turn."""

from __future__ import annotations

import pytest

from speaker.api import PeerConfig, RouteAttributes
from speaker.engine.instance import instance as instance_module
from speaker.iana import IPV4_UNICAST
from tests.speaker.network import INSTANCE, Network

PEERS = 5


def config(name: str, address: str, asn: int, **options: object) -> PeerConfig:
    values: dict[str, object] = {"import_": "all", "export": "all", **options}
    return PeerConfig(name=name, address=address, peer_asn=asn, **values)  # type: ignore[arg-type]


@pytest.mark.parametrize(("limit", "collected"), [(10, 10), (1000, 50)])
def test_withdrawals_of_many_ended_sessions_are_sent_within_the_turn(
    monkeypatch: pytest.MonkeyPatch, limit: int, collected: int
) -> None:
    monkeypatch.setattr(instance_module, "UNSENT_ROUTES", limit)
    network = Network()
    hub = network.host("hub", "10.0.0.1", 65000)
    for number in range(PEERS):
        leaf = network.host(f"leaf{number}", f"10.0.1.{number + 1}", 65001 + number)
        hub.peer(config(leaf.name, leaf.address, 65001 + number, passive=True))
        leaf.peer(config("hub", "10.0.0.1", 65000))
        leaf.routes({f"10.{number}.{n}.0/24": RouteAttributes() for n in range(10)})
    network.run(3)
    watcher = network.host("watcher", "10.0.1.99", 65099)
    hub.peer(config("watcher", watcher.address, 65099, passive=True))
    watcher.peer(config("hub", "10.0.0.1", 65000))
    network.run(3)
    instance = hub.engine.instance(INSTANCE)
    assert len(watcher.available(IPV4_UNICAST)) == 10 * PEERS
    connections = {
        established.session.connection
        for peer, established in instance.established.items()
        if peer.name != "watcher" and established.session.connection is not None
    }
    taken: list[int] = []
    table = instance.outbound.loc.tables[IPV4_UNICAST]
    original = type(table).take_changes

    def counted(self: object) -> list[object]:
        changes = original(self)  # type: ignore[arg-type]
        taken.append(sum(len(nlri) for _, _, nlri in changes))
        return changes  # type: ignore[return-value]

    monkeypatch.setattr(type(table), "take_changes", counted)
    for connection in sorted(connections):
        # Without the sending of the turn's end in between.
        hub.give_closed(connection)
    network.run(2)
    assert max(taken) == collected
    assert not watcher.available(IPV4_UNICAST)
