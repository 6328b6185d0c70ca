"""A recording played again ends where it ended, holds no password, and never gets in the way."""

from __future__ import annotations

import random
import stat
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speaker.api import (
    DynamicPeerConfig,
    InstanceConfig,
    Match,
    PeerConfig,
    Policy,
    PrefixRule,
    RouteAttributes,
    Secret,
    Set,
    Term,
)
from speaker.engine import Engine
from speaker.engine.inputs import (
    BytesReceived,
    Flush,
    Input,
    NeighborFound,
    QueueChanged,
    RemoveInstance,
    RemovePeer,
    RemoveRouteSet,
    RequestRefresh,
    ResetPeer,
    SetInstance,
    SetPeer,
    Shutdown,
    TimersDue,
    TransportAccepted,
    TransportClosed,
    TransportConnected,
    TransportFailed,
    UpdateRoutes,
)
from speaker.iana import IPV4_UNICAST
from speaker.peer.actions import Action
from speaker.recording import BadRecording, Recorder, Replay
from speaker.recording.lines import Header, Writer, read
from tests.speaker.network import INSTANCE, Network

HEADER = Header(waggle="0", seed=7, restarting=False, max_queue=1000)
MATCH = Match(prefixes=(PrefixRule("10.0.0.0/8", ge=9),), communities=("1:*",))
POLICY = Policy(terms=(Term(match=MATCH, set=Set(med=1)),))
INPUTS: list[Input] = [
    SetInstance(
        InstanceConfig(name="i", local_asn=65000, router_id="192.0.2.1", listen=(("::", 0),))
    ),
    SetPeer("i", PeerConfig(name="p", address="10.0.0.1", peer_asn=1, password=Secret("geheim"))),
    SetPeer("i", PeerConfig(name="q", address="10.0.0.2", import_=POLICY, export_policy=POLICY)),
    SetPeer("i", PeerConfig(name="r", address="10.0.0.3", import_=(PrefixRule("10.0.0.0/8"),))),
    SetPeer("i", DynamicPeerConfig(name="d", prefix="10.1.0.0/16", import_="all")),
    NeighborFound("eth0", "fe80::1%eth0"),
    TransportConnected(1, ("10.0.0.9", 4711), ("10.0.0.1", 179)),
    TransportFailed(2, "connection refused"),
    TransportAccepted(-1, "i", ("10.0.0.9", 179), ("10.0.0.2", 4712)),
    BytesReceived(1, b"\xff" * 19),
    QueueChanged(1, 77),
    TimersDue(),
    UpdateRoutes(
        "i",
        None,
        {
            IPV4_UNICAST: {
                b"\x08\x0a": RouteAttributes(
                    communities=(1,),
                    large_communities=((1, 2, 3),),
                    extended_communities=(bytes(8),),
                ),
                b"\x08\x0b": None,
            }
        },
    ),
    UpdateRoutes("i", "s", {}),
    RemoveRouteSet("i", "s"),
    RequestRefresh("i", "p", (IPV4_UNICAST,)),
    ResetPeer("i", "p", "new cable"),
    Flush(),
    TransportClosed(1, "gone"),
    RemovePeer("i", "p"),
    RemoveInstance("i"),
    Shutdown(),
]


@pytest.mark.parametrize("item", INPUTS, ids=[type(item).__name__ for item in INPUTS])
def test_every_input_can_be_written_and_read(item: Input) -> None:
    encoded = msgspec.json.encode(Writer()(item))
    assert b"geheim" not in encoded
    back = read(1, msgspec.json.decode(encoded))
    if isinstance(item, SetPeer) and item.config.password is not None:
        assert isinstance(back, SetPeer)
        assert back.config.password is not None
        back = msgspec.structs.replace(
            back, config=msgspec.structs.replace(back.config, password=item.config.password)
        )
    assert back == item


def test_equal_passwords_stay_equal_and_others_others() -> None:
    writer = Writer()

    def password(text: str) -> object:
        config = PeerConfig(name="p", address="10.0.0.1", password=Secret(text))
        item = read(1, msgspec.json.decode(msgspec.json.encode(writer(SetPeer("i", config)))))
        assert isinstance(item, SetPeer)
        return item.config.password

    assert password("one") == password("one")
    assert password("one") != password("two")


class Recorded(Engine):
    """An engine whose inputs are written down."""

    def __init__(self, path: Path, seed: int) -> None:
        super().__init__(random.Random(seed), max_queue=1000)  # noqa: S311  a seed, no secret
        header = msgspec.structs.replace(HEADER, seed=seed)
        self.recorder = Recorder(path, header, digest_every=7)

    def handle(self, item: Input, now: float) -> list[Action]:
        self.recorder.note(item, now)
        actions = super().handle(item, now)
        self.recorder.noted(self, now)
        return actions


def state(engine: Engine, now: float) -> object:
    """Everything that people can see."""
    families = [IPV4_UNICAST]
    return (
        list(engine.peers(now)),
        [list(engine.routes_available(INSTANCE, family)) for family in families],
        [list(engine.routes_received(INSTANCE, None, family)) for family in families],
        [list(engine.routes_advertised(INSTANCE, None, family)) for family in families],
    )


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_whatever_happens_the_replay_ends_in_the_same_state(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    path = tmp_path_factory.mktemp("recording") / "file"
    rng = random.Random(seed)  # noqa: S311  a seed, no secret
    network = Network(seed, latency=(0.0, 0.05))
    a = network.host("a", "10.0.0.1", 65001)
    a.engine = recorded = Recorded(path, seed)
    a.give(SetInstance(InstanceConfig(name=INSTANCE, local_asn=65001, router_id="10.0.0.1")))
    others = [network.host(f"h{n}", f"10.0.0.{n + 2}", 65002 + n) for n in range(2)]
    for other in others:
        other.peer(PeerConfig(name="a", address="10.0.0.1", import_="all", export="all"))
        a.peer(PeerConfig(name=other.name, address=other.address, import_="all", export="all"))
    for _ in range(20):
        network.run(rng.random())
        host = rng.choice([a, *others])
        if rng.random() < 0.2 and host.ends:
            number = rng.choice(list(host.ends))
            network.cut(host, number)
            host.give_closed(number)
        else:
            attributes = rng.choice([None, RouteAttributes(med=rng.randrange(4))])
            host.routes({f"10.8.{rng.randrange(4)}.0/24": attributes})
    recorded.recorder.close(recorded, network.now)
    with path.open("rb") as file:
        replay = Replay(file)
        replay.run()
    assert replay.difference is None
    assert replay.end == "closed"
    assert state(replay.engine, network.now) == state(recorded, network.now)


def write(path: Path, *items: Input, **options: int) -> Recorder:
    engine = Engine(random.Random(1))  # noqa: S311  a seed, no secret
    recorder = Recorder(path, HEADER, **options)
    for now, item in enumerate(items):
        recorder.note(item, float(now))
    recorder.close(engine, 0.0)
    return recorder


def replayed(path: Path) -> Replay:
    with path.open("rb") as file:
        replay = Replay(file)
        replay.run()
    return replay


def test_a_recording_is_its_owners_and_never_overwrites(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write(path, Flush())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(FileExistsError):
        Recorder(path, HEADER)


def test_a_full_file_ends_the_recording_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "file"
    recorder = write(path, *[Flush()] * 100, max_file=1000)
    assert not recorder.running
    assert recorder.error == "the file is full"
    assert path.stat().st_size < 1100
    assert replayed(path).end == "the file is full"


def test_a_slow_disk_ends_the_recording_and_says_so(tmp_path: Path) -> None:
    recorder = write(tmp_path / "file", BytesReceived(1, bytes(1000)), max_waiting=500)
    assert recorder.error == "the disk is too slow"


def test_another_state_is_found_where_it_begins(tmp_path: Path) -> None:
    path = tmp_path / "file"
    engine = Recorded(path, 1)
    for item in INPUTS[:4]:
        engine.handle(item, 1.0)
    engine.recorder.close(engine, 1.0)
    assert replayed(path).difference is None
    lines = path.read_bytes().splitlines(keepends=True)
    del lines[3]
    path.write_bytes(b"".join(lines))
    assert replayed(path).difference == (
        "after input 4: i/q was Connect flaps=0 in=0 out=0 ipv4-unicast=0/0/0/0"
        " ipv6-unicast=0/0/0/0 and is None"
    )


def test_a_last_line_that_is_cut_short_is_the_end(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write(path, *INPUTS[:3])
    path.write_bytes(path.read_bytes()[:-40])
    replay = replayed(path)
    assert replay.end is None
    assert replay.inputs == 3


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "line 1: not the beginning"),
        (b'{"a": 1}\n', "line 1: not the beginning"),
        (msgspec.json.encode(msgspec.structs.replace(HEADER, recording=9)), "version 9"),
        (msgspec.json.encode(HEADER) + b"\nnonsense\n", "line 2: not JSON"),
        (
            msgspec.json.encode(HEADER) + b'\n{"input": "Nothing"}\n',
            "'Nothing' is missing or unknown",
        ),
        (
            msgspec.json.encode(HEADER) + b'\n{"input": "BytesReceived"}\n',
            "'connection' is missing",
        ),
        (msgspec.json.encode(HEADER) + b'\n{"input": "RemovePeer"}\n', "RemovePeer: "),
    ],
)
def test_what_is_no_recording_is_said(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(BadRecording, match=words):
        replayed(path)
