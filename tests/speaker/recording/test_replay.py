"""A recorded run can be replayed, and a difference is found."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speaker.api import (
    BestPathChange,
    GracefulRestart,
    InstanceConfig,
    InstanceImport,
    Match,
    Multipath,
    PeerConfig,
    Policy,
    PrefixRule,
    RecordingEnded,
    RouteAttributes,
    Secret,
    Set,
    Term,
    UnknownName,
)
from speaker.engine import Engine
from speaker.engine.inputs import (
    BestPathsTaken,
    EnablePeer,
    FollowBestPaths,
    ResetPeer,
    SendUpdates,
    SetInstance,
    SetNextHopMetrics,
    SetPeer,
    Shutdown,
    ShutDownPeer,
    UnfollowBestPaths,
    UpdateRoutes,
)
from speaker.iana import IPV4_UNICAST, IPV6_UNICAST
from speaker.peer.actions import ReportEvent, SendBestPaths
from speaker.recording import BadRecording, Player, Recorder
from tests.speaker.network import INSTANCE, Host, Lines, Network
from tests.support.examples import examples

PASSWORD = "a password that must stay secret"
ROOT = Path(__file__).parents[3]


POLICIES = (
    Policy(default="accept"),
    Policy(
        terms=(
            Term(match=Match(prefixes=(PrefixRule("10.0.0.0/13", le=16),)), action="reject"),
            Term(match=Match(communities=("0:3",)), set=Set(add_communities=("1:1",), med=9)),
            Term(set=Set(prepend=(65009,), local_preference=50)),
        )
    ),
)


def config(host: Host, asn: int, **changes: object) -> PeerConfig:
    values: dict[str, Any] = {
        "import_": "all",
        "export": "all",
        "graceful_restart": GracefulRestart(restart_time=20, long_lived_time=30),
        "add_path": "both",
        "password": Secret(PASSWORD),
        **changes,
    }
    return PeerConfig(name=host.name, address=host.address, peer_asn=asn, **values)


def session(seed: int, steps: int = 30) -> Network:
    """A random life of three routers, each recorded."""
    network = Network(seed, (0.001, 0.3), record=True)
    rng = network.rng
    hosts = [network.host(f"r{n}", f"10.0.0.{n + 1}", 65001 + n) for n in range(3)]
    for host in hosts:
        for n, other in enumerate(hosts):
            if other is not host:
                host.peer(config(other, 65001 + n))
    for _ in range(steps):
        host, other = rng.sample(hosts, 2)
        match rng.randrange(11):
            case 0 | 1 | 2:
                prefixes = [f"10.{rng.randrange(20)}.0.0/16", f"2001:db8:{rng.randrange(9)}::/48"]
                attributes = RouteAttributes(med=rng.randrange(3), communities=(rng.randrange(9),))
                host.routes(dict.fromkeys(prefixes, attributes))
            case 3:
                host.routes({f"10.{rng.randrange(20)}.0.0/16": None})
            case 4:
                for connection in list(host.ends)[:1]:
                    network.cut(host, connection)
                    host.give_closed(connection)
            case 5:
                changed = {
                    "export": rng.choice(("all", "local", "none")),
                    "import_": rng.choice(("all", "none", *POLICIES)),
                    "export_policy": rng.choice((None, *POLICIES)),
                }
                host.peer(config(other, int(other.name[1:]) + 65001, **changed))
            case 6:
                host.give(ResetPeer(INSTANCE, other.name, "because"))
            case 7:
                give_instances(host, rng)
            case 8:
                give_reader(host, rng)
            case 9:
                metrics = {f"10.0.0.{n + 1}": rng.randrange(9) for n in range(3)}
                host.give(SetNextHopMetrics(INSTANCE, metrics))
            case _:
                host.refresh(other.name)
        network.run(rng.choice((0.05, 1.0, 12.0)))
    return network


def give_reader(host: Host, rng: random.Random) -> None:
    """Open a stream of best paths, close one, or take some of what was sent."""
    reader = rng.randrange(3)
    match rng.randrange(4):
        case 0:
            multipath = Multipath(rng.choice((1, 2, 64)), relax=rng.random() < 0.5)
            host.give(FollowBestPaths(reader, rng.choice((INSTANCE, "vrf")), multipath))
        case 1:
            host.give(UnfollowBestPaths(reader))
        case _:
            sent = sum(action.reader == reader for action in host.streamed)
            host.streamed = [action for action in host.streamed if action.reader != reader]
            if sent:
                host.give(BestPathsTaken(reader, sent))


def give_instances(host: Host, rng: random.Random) -> None:
    """Change what an instance originates and imports, and another instance beside it."""
    own = host.engine.instance(INSTANCE).config
    names = ["vrf", *(() if rng.random() < 0.5 else ("vrf2",))]
    for name in names:
        prefixes = tuple(f"10.{n}.0.0/16" for n in range(20) if rng.random() < 0.3)
        host.give(
            SetInstance(
                InstanceConfig(
                    name=name,
                    local_asn=rng.choice((own.local_asn, 65100)),
                    router_id=host.address,
                    originate=prefixes,
                    imports=(InstanceImport(INSTANCE, rng.choice(("all", *POLICIES))),),
                )
            )
        )
    imports = tuple(InstanceImport(name) for name in names if rng.random() < 0.7)
    host.give(SetInstance(msgspec.structs.replace(own, imports=imports)))


def finished(host: Host) -> list[bytes]:
    assert host.recorder is not None
    host.recorder.finish(host.network.now)
    return list(host.lines)


def tables(engine: Engine, now: float) -> object:
    """Everything that people can see."""
    return [
        sorted(repr(status) for status in engine.views.peers(now)),
        *(
            sorted(map(repr, found))
            for family in (IPV4_UNICAST, IPV6_UNICAST)
            for found in (
                engine.views.routes_available(INSTANCE, family),
                engine.views.routes_received(INSTANCE, None, family),
                engine.views.routes_advertised(INSTANCE, None, family),
            )
        ),
    ]


def played(lines: list[bytes], until: int | None = None) -> Player:
    player = Player(lines)
    for _ in player.play(until):
        pass
    return player


@settings(max_examples=examples(12), deadline=None, derandomize=True)
@given(st.integers(0, 2**32))
def test_a_recorded_run_replays_to_the_same_state(seed: int) -> None:
    network = session(seed)
    for host in network.hosts.values():
        lines = finished(host)
        player = played(lines)
        assert player.difference is None
        assert player.end == "stopped"
        assert player.digests >= 1
        assert tables(player.engine, network.now) == tables(host.engine, network.now)
        assert PASSWORD.encode() not in b"".join(lines)


def test_a_stream_of_best_paths_is_replayed_with_what_its_reader_was_sent() -> None:
    network = Network(record=True)
    host, other = (network.host(f"r{n}", f"10.0.0.{n + 1}", 65001 + n) for n in range(2))
    for one, peer, asn in ((host, other, 65002), (other, host, 65001)):
        one.peer(config(peer, asn))
    host.give(FollowBestPaths(1, INSTANCE, Multipath(64)))
    sent = []
    for n in range(30):
        other.routes({f"10.{n}.{k}.0/24": RouteAttributes(med=k) for k in range(5)})
        host.routes({f"10.{n}.0.0/24": RouteAttributes()})
        network.run(5 if n % 3 == 0 else 0.01)
        if n % 7 == 0:
            sent += host.streamed
            host.give(BestPathsTaken(1, len(host.streamed)))
            host.streamed.clear()
    sent += host.streamed
    replayed = [
        action
        for step in Player(finished(host)).play()
        for action in step.actions
        if isinstance(action, SendBestPaths)
    ]
    assert replayed == sent
    items = [item for a in sent if isinstance(a, SendBestPaths) for item in a.items]
    assert sum(len(item.prefixes) for item in items if isinstance(item, BestPathChange)) > 20


def test_the_order_of_hashes_and_objects_in_memory_does_not_matter(tmp_path: Path) -> None:
    lines = finished(session(3, steps=60).hosts["10.0.0.1"])
    path = tmp_path / "recording"
    path.write_bytes(b"".join(lines))
    code = (
        "import sys; from speaker.recording import Player\n"
        "with open(sys.argv[1], 'rb') as file:\n"
        "    player = Player(file)\n"
        "    for _ in player.play(): pass\n"
        "print(player.inputs, player.difference)"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code, path],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert found == {f"{json.loads(lines[-1])['seq']} None\n"}


def test_a_replay_stops_at_the_requested_input() -> None:
    lines = finished(session(1, steps=5).hosts["10.0.0.1"])
    player = played(lines, until=7)
    assert (player.inputs, player.end) == (7, None)
    assert player.difference is None


def changed(lines: list[bytes], seq: int, **fields: object) -> list[bytes]:
    """The recording with one input changed."""
    out = []
    for line in lines:
        value = json.loads(line)
        if value["line"] == "input" and value["seq"] == seq:
            value.update(fields)
        out.append(json.dumps(value).encode() + b"\n")
    return out


def test_the_first_input_with_other_actions_is_named() -> None:
    lines = finished(session(1, steps=5).hosts["10.0.0.1"])
    with_actions = [v for v in map(json.loads, lines) if v.get("out")]
    spoilt = with_actions[3]["seq"]
    player = played(changed(lines, spoilt, out="00000000"))
    assert player.difference is not None
    assert player.difference.seq == spoilt
    assert player.difference.since == spoilt - 1
    assert player.difference.what == ("actions",)
    assert str(player.difference).startswith(f"after input {spoilt} (")


def test_a_different_state_is_found_by_the_digest() -> None:
    network = Network(record=True)
    host = network.host("a", "10.0.0.1", 65001)
    host.routes({"10.0.0.0/8": RouteAttributes()})
    lines = finished(host)
    routes = json.loads(lines[2])["fields"]
    routes["changes"]["ipv4-unicast"][0]["attributes"]["med"] = 7
    player = played(changed(lines, 2, fields=routes))
    assert player.difference is not None
    assert player.difference.what == ("locRib",)


def test_an_error_of_the_engine_is_recorded_and_replayed() -> None:
    network = Network(record=True)
    host = network.host("a", "10.0.0.1", 65001)
    with pytest.raises(UnknownName):
        host.give(EnablePeer(INSTANCE, "unknown"))
    lines = finished(host)
    player = Player(lines)
    *_, last = player.play()
    assert isinstance(last.error, UnknownName)
    assert player.difference is None
    player = played(changed(lines, 2, raised=""))
    assert player.difference is not None
    assert player.difference.what == ("error",)


def test_an_incomplete_last_line_is_ignored() -> None:
    lines = finished(session(1, steps=5).hosts["10.0.0.1"])
    inputs = [i for i, line in enumerate(lines) if b'"line":"input"' in line]
    cut = [*lines[: inputs[-1]], lines[inputs[-1]][:20]]
    player = played(cut)
    assert player.truncated
    assert player.difference is None
    assert (player.inputs, player.end) == (len(inputs) - 1, None)


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda _: [], "line 1: the file is empty"),
        (lambda lines: lines[1:], "line 1: a recording begins with its header"),
        (lambda _: [b"hello\n"], "line 1: "),
        (lambda lines: [lines[0].replace(b'"format":2', b'"format":9')], "line 1: format 9"),
        (lambda lines: [lines[0].replace(b'"rng":"', b'"rng":"00')], "line 1: rng"),
        (lambda lines: [lines[0], lines[2]], "line 2: input 2 follows input 0"),
        (lambda lines: [lines[0], b"{\n", lines[1]], "line 2: "),
        (lambda lines: [lines[0], b"{\n"], "line 2: "),
        (lambda lines: [lines[0], lines[0]], "line 2: another header"),
    ],
)
def test_a_file_that_is_no_recording_is_rejected(
    spoil: Callable[[list[bytes]], list[bytes]], sentence: str
) -> None:
    network = Network(record=True)
    network.host("a", "10.0.0.1", 65001).routes({"10.0.0.0/8": None})
    with pytest.raises(BadRecording, match=sentence):
        played(spoil(list(network.hosts["10.0.0.1"].lines)))


# -------------------------------------------------------------------- the recorder


def recorder(lines: Lines, limit: int = 1_000_000) -> tuple[Recorder, Engine]:
    rng = random.Random(1)  # noqa: S311  a seed, no secret
    engine = Engine(rng)
    return Recorder(engine, lines, rng=rng, now=0.0, started=0.0, limit=limit), engine


INSTANCE_CONFIG = SetInstance(InstanceConfig(name="i", local_asn=65000, router_id="192.0.2.1"))


def test_a_recording_ends_at_its_limit_and_the_speaker_continues() -> None:
    lines = Lines()
    wrapped, engine = recorder(lines, limit=10_000)
    wrapped.handle(INSTANCE_CONFIG, 0.0)
    actions = []
    for n in range(100):
        change = {bytes((24, 10, 0, n)): RouteAttributes()}
        actions += wrapped.handle(UpdateRoutes("i", None, {IPV4_UNICAST: change}), float(n))
    assert actions == [ReportEvent(RecordingEnded(reason="the recording has reached its limit"))]
    assert sum(map(len, lines)) < 12_000
    player = played(lines)
    assert player.end == "the recording has reached its limit"
    assert player.difference is None
    assert player.digests == 1
    assert len(list(engine.views.routes_available("i", IPV4_UNICAST))) == 100


def test_a_failed_sink_ends_the_recording_and_the_speaker_continues() -> None:
    lines = Lines()
    wrapped, _ = recorder(lines)
    wrapped.handle(INSTANCE_CONFIG, 0.0)
    lines.trouble = "No space left on device"
    (actions,) = wrapped.handle(SendUpdates(), 0.0)
    assert actions == ReportEvent(RecordingEnded(reason="No space left on device"))
    count = len(lines)
    assert wrapped.handle(SendUpdates(), 0.0) == []
    assert len(lines) == count


def test_digests_are_recorded_periodically_and_before_the_end() -> None:
    lines = Lines()
    wrapped, _ = recorder(lines)
    wrapped.handle(INSTANCE_CONFIG, 0.0)
    for n in range(300):
        wrapped.handle(SendUpdates(), n * 0.01)
    assert not any(b'"line":"digest"' in line for line in lines)
    wrapped.handle(SendUpdates(), 61.0)
    assert b'"line":"digest"' in lines[-1]
    for n in range(3000):
        wrapped.handle(SendUpdates(), 61.0 + n * 0.001)
    assert sum(b'"line":"digest"' in line for line in lines) == 3
    wrapped.handle(Shutdown(), 65.0)
    assert b'"line":"digest"' in lines[-2]
    wrapped.finish(65.0)
    assert [json.loads(line)["line"] for line in lines[-3:]] == ["input", "digest", "end"]
    player = played(lines)
    assert (player.digests, player.difference) == (5, None)


def test_a_shutdown_communication_is_recorded() -> None:
    network = Network(record=True)
    host = network.host("a", "10.0.0.1", 65001)
    host.peer(config(network.host("b", "10.0.0.2", 65002), 65002))
    host.give(ShutDownPeer(INSTANCE, "b", "new cable"))
    text = b"".join(finished(host))
    assert b"new cable" in text
    assert b'"password":{"password":1}' in text
    assert isinstance(played(list(host.lines)).engine, Engine)
    assert SetPeer.__name__.encode() in text
