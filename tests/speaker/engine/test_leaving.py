"""Routes of lost sessions leave in slices: failover first, other sessions in between, no route kept."""

from __future__ import annotations

import random
from typing import Any

import pytest

from speaker.api import (
    GracefulRestart,
    InstanceConfig,
    MaximumPrefixes,
    PeerConfig,
    RouteAttributes,
    RouteView,
)
from speaker.engine import Engine, sliced_work, stale_routes
from speaker.engine.inputs import (
    BytesReceived,
    RemoveInstance,
    SendUpdates,
    SetInstance,
    Shutdown,
    TimersDue,
)
from speaker.iana import IPV4_UNICAST
from speaker.nlri import prefix_to_wire
from speaker.peer.actions import Write
from speaker.recording import Player
from speaker.rib.loc_rib import LocRib, TableChanges
from tests.speaker.network import INSTANCE, Host, Network

HUB, WATCHER = "10.0.0.1", "10.0.9.9"
STEP = 5
SLICE = 20


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices so small that a table of a hundred routes has many."""
    monkeypatch.setattr(sliced_work, "SLICE_UNITS", SLICE)
    monkeypatch.setattr(sliced_work, "STEP_ROUTES", STEP)
    monkeypatch.setattr(stale_routes, "STEP_ROUTES", STEP)


def config(name: str, address: str, asn: int, **options: object) -> PeerConfig:
    values: dict[str, object] = {"import_": "all", "export": "all", **options}
    return PeerConfig(name=name, address=address, peer_asn=asn, **values)  # type: ignore[arg-type]


class Lab:
    """A hub with leaves that announce routes, and a watcher that receives them."""

    def __init__(
        self, leaves: int = 1, routes: int = 100, *, record: bool = False, **options: object
    ) -> None:
        self.network = Network(record=record)
        self.hub = self.network.host("hub", HUB, 65000)
        self.leaves: list[Host] = []
        self.options = options
        for number in range(leaves):
            leaf = self.network.host(f"leaf{number}", f"10.0.1.{number + 1}", 65001 + number)
            self.leaves.append(leaf)
            self.hub.peer(self.peer_of(leaf, **options))
            leaf.peer(config("hub", HUB, 65000, **self._restart))
            leaf.routes({f"10.{number}.{n}.0/24": RouteAttributes() for n in range(routes)})
        self.network.run(5)
        self.watcher = self.network.host("watcher", WATCHER, 65099)
        self.hub.peer(config("watcher", WATCHER, 65099, passive=True))
        self.watcher.peer(config("hub", HUB, 65000))
        self.network.run(5)
        self.hub.writes.clear()

    @property
    def _restart(self) -> dict[str, object]:
        restart = self.options.get("graceful_restart")
        return {} if restart is None else {"graceful_restart": restart}

    def peer_of(self, leaf: Host, **options: object) -> PeerConfig:
        asn = 65001 + int(leaf.name[4:])
        return config(leaf.name, leaf.address, asn, passive=True, **options)

    def connection(self, name: str) -> int:
        for peer, established in self.hub.engine.instance(INSTANCE).established.items():
            if peer.name == name and established.session.connection is not None:
                return established.session.connection
        raise AssertionError(name)

    def lose(self, *leaves: int) -> None:
        """Cut sessions, without the sending of UPDATEs that follows."""
        for number in leaves:
            self.leaves[number].listens = False
            connection = self.connection(f"leaf{number}")
            self.hub.ends.pop(connection)
            self.hub.give_closed(connection)

    def slices(self) -> list[dict[str, RouteView]]:
        """Send UPDATEs until none is left; the routes of the hub after each sending."""
        found = []
        while self.hub.engine.updates_pending:
            self.hub.give(SendUpdates())
            found.append(self.hub.available(IPV4_UNICAST))
        return found


def test_a_lost_table_leaves_in_slices_and_other_sessions_go_on_in_between() -> None:
    lab = Lab()
    lab.lose(0)
    left = [len(routes) for routes in lab.slices()]
    # The first slice is that of the input itself.
    assert left == [60, 40, 20, 0, 0]  # the last one ends the sequence
    lab.network.run(1)
    assert not lab.watcher.available(IPV4_UNICAST)


def test_a_small_table_leaves_at_once() -> None:
    lab = Lab(routes=SLICE - 1)
    lab.lose(0)
    assert not lab.hub.available(IPV4_UNICAST)


def test_prefixes_with_another_path_come_first() -> None:
    lab = Lab(2)
    backed_up = {f"10.0.{n}.0/24": RouteAttributes() for n in range(40, 55)}
    lab.leaves[1].routes(backed_up)
    lab.network.run(2)
    lab.lose(0)
    for routes in lab.slices():
        waiting = [prefix for prefix in backed_up if routes[prefix].peer == "leaf0"]
        gone = [f"10.0.{n}.0/24" for n in range(100) if f"10.0.{n}.0/24" not in routes]
        assert not (waiting and gone)
    assert set(routes) == {*backed_up, *(f"10.1.{n}.0/24" for n in range(100))}


def test_sessions_that_end_in_one_turn_share_its_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Lab(5, routes=40)
    table = type(lab.hub.engine.instance(INSTANCE).outbound.loc.tables[IPV4_UNICAST])
    taken: list[int] = []
    original = table.take_changes

    def counted(self: LocRib) -> TableChanges:
        changes = original(self)
        taken.append(sum(len(nlri) for _, _, nlri in changes.best))
        return changes

    monkeypatch.setattr(table, "take_changes", counted)
    lab.lose(*range(5))
    lab.network.run(2)
    assert max(taken) <= 2 * SLICE
    assert not lab.watcher.available(IPV4_UNICAST)


def test_a_peer_that_is_back_before_its_routes_are_gone_does_not_get_them() -> None:
    lab = Lab()
    lab.hub.give(BytesReceived(lab.connection("leaf0"), b"\0" * 19))  # an error: no idle hold
    lab.leaves[0].listens = True
    instance = lab.hub.engine.instance(INSTANCE)
    (departed,) = instance.kept_routes.departed.values()
    peer = departed.peer
    session = departed.session
    sent_before = len(lab.hub.writes)
    instance.session_up(peer, session)
    again = instance.established[peer]
    assert again.source.session is departed.source.session
    assert again.source is not departed.source
    connection = session.connection
    lab.slices()
    written = b"".join(
        b"".join(write.parts)
        for write in lab.hub.writes[sent_before:]
        if write.connection == connection
    )
    assert prefix_to_wire("10.0.50.0/24")[1] not in written
    assert not instance.kept_routes.departed


def test_a_restart_leaves_the_routes_and_sends_no_withdrawal() -> None:
    lab = Lab(3)
    actions = lab.hub.give(Shutdown())
    types = [part[18] for a in actions if isinstance(a, Write) for part in a.parts]
    assert 2 not in types  # UPDATE
    assert not lab.hub.engine.updates_pending


def test_a_removed_instance_is_released() -> None:
    lab = Lab()
    lab.hub.give(RemoveInstance(INSTANCE))
    while lab.hub.engine.updates_pending:
        lab.hub.give(SendUpdates())
    assert not lab.hub.engine.names()


@pytest.mark.parametrize("import_", ["all", "none"])
def test_stale_routes_are_swept_in_slices(import_: str) -> None:
    restart = GracefulRestart(restart_time=60, stale_time=30)
    lab = Lab(1, 100, graceful_restart=restart, import_=import_)
    lab.lose(0)
    lab.slices()
    instance = lab.hub.engine.instance(INSTANCE)
    (kept,) = instance.kept_routes.peers.values()
    assert kept.adj_in.stale(IPV4_UNICAST) == 100
    lab.network.now += 61
    lab.hub.give(TimersDue())
    assert lab.hub.engine.updates_pending
    slices = lab.slices()
    assert len(slices) >= (3 if import_ == "all" else 1)
    assert not slices[-1]
    assert not instance.kept_routes.peers


def test_a_limit_counts_no_stale_route_beside_a_new_one() -> None:
    restart = GracefulRestart(restart_time=60, stale_time=30)
    limit = MaximumPrefixes(limit=110)
    lab = Lab(1, 100, graceful_restart=restart, maximum_prefixes=(limit,))
    leaf = lab.leaves[0]
    lab.lose(0)
    leaf.engine = Engine(lab.network.rng, restarting=True)
    leaf.ends.clear()
    leaf.give(SetInstance(InstanceConfig(name=INSTANCE, local_asn=65001, router_id=leaf.address)))
    leaf.routes({f"10.7.{n}.0/24": RouteAttributes() for n in range(100)})
    leaf.peer(config("hub", HUB, 65000, graceful_restart=restart))
    lab.network.run(60)
    assert lab.hub.status("leaf0").established
    assert set(lab.hub.available(IPV4_UNICAST)) == {f"10.7.{n}.0/24" for n in range(100)}


def test_a_recording_replays_a_loss() -> None:
    lab = Lab(2, record=True)
    lab.leaves[1].routes({f"10.0.{n}.0/24": RouteAttributes() for n in range(40, 55)})
    lab.network.run(2)
    lab.lose(0)
    lab.network.run(5)
    recorder = lab.hub.recorder
    assert recorder is not None
    recorder.finish(lab.network.now)
    player = Player(lab.hub.lines)
    for _ in player.play():
        pass
    assert player.difference is None
    assert player.inputs > 20


@pytest.mark.parametrize("seed", range(30))
def test_whatever_happens_in_between_the_watcher_has_what_the_leaves_announce(seed: int) -> None:
    """Losses, returns, refreshes and changes at random moments of a removal."""
    rng = random.Random(seed)  # noqa: S311  a seed, no secret
    restart = GracefulRestart(restart_time=2, stale_time=20, long_lived_time=rng.choice([0, 3]))
    options: dict[str, Any] = rng.choice(
        [{}, {"graceful_restart": restart}, {"add_path": "both"}, {"connect_retry_time": 1}]
    )
    lab = Lab(3, 30, **options)
    own = [{f"10.{n}.{m}.0/24" for m in range(30)} for n in range(3)]
    for _ in range(25):
        number = rng.randrange(3)
        leaf = lab.leaves[number]
        match rng.randrange(6):
            case 0 | 1:
                for end in list(leaf.ends):
                    lab.network.cut(leaf, end)
            case 2:
                lab.hub.refresh(leaf.name)
            case 3:
                shared = {f"10.{rng.randrange(3)}.{m}.0/24" for m in rng.sample(range(30), 10)}
                leaf.routes({prefix: RouteAttributes(med=rng.randrange(3)) for prefix in shared})
                own[number] |= shared
            case 4:
                some = rng.sample(sorted(own[number]), len(own[number]) // 3)
                leaf.routes(dict.fromkeys(some))
                own[number] -= set(some)
            case _:
                lab.hub.give(SendUpdates())
        lab.network.run(rng.choice([0.0, 0.001, 0.002, 0.01, 1.0]))
    lab.network.run(120)
    expected = set().union(*own)
    assert all(lab.hub.status(leaf.name).established for leaf in lab.leaves)
    assert set(lab.hub.available(IPV4_UNICAST)) == expected
    assert set(lab.watcher.available(IPV4_UNICAST)) == expected
    instance = lab.hub.engine.instance(INSTANCE)
    table = instance.outbound.loc.tables[IPV4_UNICAST]
    assert sum(len(paths) for _, paths in table.items()) == sum(map(len, own))
    assert table.several == sum(len(paths) > 1 for _, paths in table.items())
    assert not instance.kept_routes.departed
