"""A large initial table is sent in steps; what changes meanwhile is part of it, and none is missing."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import pytest

from speaker.api import PeerConfig, RouteAttributes
from speaker.engine import sliced_work
from speaker.iana import IPV4_UNICAST
from speaker.rib import initial_table, update_group
from tests.speaker.network import INSTANCE, Host, Network

HUB = "10.0.0.1"
END_OF_RIB = b"\xff" * 16 + b"\x00\x17\x02" + bytes(4)
PREFIXES = [f"10.{n}.0.0/16" for n in range(120)]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps so small that a table of a hundred prefixes has many."""
    monkeypatch.setattr(sliced_work, "SLICE_UNITS", 10)
    monkeypatch.setattr(update_group, "LARGE_TABLE", 20)
    monkeypatch.setattr(initial_table, "STEP_PREFIXES", 7)
    monkeypatch.setattr(initial_table, "STEP_UNITS", 10)
    monkeypatch.setattr(initial_table, "LAST_PREFIXES", 3)


def config(name: str, address: str, asn: int, **options: Any) -> PeerConfig:  # noqa: ANN401
    values: dict[str, Any] = {"import_": "all", "export": "all", **options}
    return PeerConfig(name=name, address=address, peer_asn=asn, **values)


class Lab:
    """A hub with two sources of the same prefixes, and watchers that come later."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = random.Random(seed)  # noqa: S311  a test
        self.network = Network(seed)
        self.hub = self.network.host("hub", HUB, 65000)
        self.sources: list[Host] = []
        for number in range(2):
            source = self.network.host(f"s{number}", f"10.0.1.{number + 1}", 65001 + number)
            self.sources.append(source)
            self.hub.peer(config(source.name, source.address, 65001 + number, passive=True))
            source.peer(config("hub", HUB, 65000, connect_retry_time=1))
            source.routes({prefix: self.attributes() for prefix in PREFIXES[: 100 - 50 * number]})
        self.network.run(5)
        self.before = list(self.hub.ends)
        """The connections with the sources."""
        self.watchers: list[Host] = []
        self.without_routes: set[str] = set()
        """Watchers to which nothing is exported any more."""

    def attributes(self) -> RouteAttributes:
        return RouteAttributes(communities=(self.rng.randrange(1, 6),))

    def watch(self, **options: Any) -> Host:  # noqa: ANN401
        """Add a watcher, which has a route of its own."""
        number = len(self.watchers)
        address, asn = f"10.0.9.{number + 1}", 65090 + number
        watcher = self.network.host(f"w{number}", address, asn)
        self.watchers.append(watcher)
        watcher.routes({PREFIXES[number]: self.attributes(), "10.200.0.0/16": self.attributes()})
        self.hub.peer(config(watcher.name, address, asn, passive=True, **options))
        watcher.peer(config("hub", HUB, 65000, connect_retry_time=1))
        return watcher

    def change(self) -> None:
        """Change a few routes of a source."""
        source = self.rng.choice(self.sources)
        some = self.rng.sample(PREFIXES, 5)
        source.routes({p: self.rng.choice([None, self.attributes()]) for p in some})

    def check(self) -> None:
        """Check that each watcher has all routes of the hub but its own ones."""
        best = self.hub.available(IPV4_UNICAST)
        for watcher in self.watchers:
            status = self.hub.status(watcher.name)
            assert status.initial_table_sent
            wanted = {
                prefix: route.communities
                for prefix, route in best.items()
                if route.peer != watcher.name and watcher.name not in self.without_routes
            }
            received = watcher.received(IPV4_UNICAST)
            assert {prefix: route.communities for prefix, route in received.items()} == wanted
            (family,) = [one for one in status.families if one.family == IPV4_UNICAST]
            assert family.advertised == len(wanted)


def in_steps(lab: Lab) -> bool:
    """Return whether a table is on its way."""
    groups = lab.hub.engine.instance(INSTANCE).outbound.groups()
    return any(group.initial_table is not None for group in groups)


def test_a_large_table_is_sent_in_steps_and_ends_with_the_end_of_rib() -> None:
    lab = Lab()
    lab.watch()
    lab.hub.writes.clear()
    lab.network.run(5)
    (to_watcher,) = {end.number for end in lab.hub.ends.values()} - set(lab.before)
    written = [b"".join(one.parts) for one in lab.hub.writes if one.connection == to_watcher]
    updates = [octets for octets in written if octets[18] == 2]
    assert len(updates) > 5
    assert END_OF_RIB in updates[-1]
    assert not any(END_OF_RIB in octets for octets in updates[:-1])
    lab.check()


@pytest.mark.parametrize("seed", range(42))
def test_whatever_changes_meanwhile_no_route_is_missing_or_left_behind(seed: int) -> None:
    lab = Lab(seed)
    network, rng = lab.network, lab.rng
    lab.watch()
    met = []
    for number in range(120):
        network.later(network.now + 0.002 + number * 0.0002, lab.change)
        network.later(network.now + 0.002 + number * 0.0002, lambda: met.append(in_steps(lab)))
    if seed % 2:
        network.later(network.now + rng.uniform(0, 0.02), lab.watch)
    if seed % 3 == 0:
        asks = partial(lab.watchers[0].refresh, "hub")
        network.later(network.now + rng.uniform(0.003, 0.02), asks)
    if seed % 5 == 0:
        network.later(network.now + rng.uniform(0.003, 0.02), lambda: lose(lab, 0))
    if seed % 7 == 0:
        watcher = lab.watchers[0]
        other = config(watcher.name, watcher.address, 65090, passive=True, export="none")
        network.later(network.now + rng.uniform(0.003, 0.02), partial(lab.hub.peer, other))
        lab.without_routes.add(watcher.name)
    network.run(10)
    assert any(met)
    lab.check()


def test_an_error_in_a_step_takes_no_table_from_other_sessions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lab = Lab()
    encode = update_group.UpdateGroup.encode_path
    fails = [True]

    def broken(*arguments: Any) -> Any:  # noqa: ANN401
        if fails:
            fails.clear()
            raise RuntimeError("on purpose")
        return encode(*arguments)

    monkeypatch.setattr(update_group.UpdateGroup, "encode_path", broken)
    first = lab.watch()
    lab.network.run(2)
    assert not fails
    assert lab.hub.status(first.name).established
    lab.sources[0].routes({"10.250.0.0/16": lab.attributes()})
    second = lab.watch()
    lab.network.run(2)
    assert "10.250.0.0/16" in first.received(IPV4_UNICAST)
    wanted = lab.hub.available(IPV4_UNICAST).keys() - {"10.200.0.0/16"}
    assert wanted <= second.received(IPV4_UNICAST).keys()


def lose(lab: Lab, number: int) -> None:
    """Cut the session of a source, which comes again."""
    name = lab.sources[number].name
    for peer, established in lab.hub.engine.instance(INSTANCE).established.items():
        connection = established.session.connection
        if peer.name == name and connection is not None:
            lab.network.cut(lab.hub, connection)
            lab.hub.give_closed(connection)
            return
