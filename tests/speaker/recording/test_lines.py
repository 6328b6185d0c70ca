"""The lines of a recording: every input can be decoded, and no password is in them."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, get_args

import msgspec
import pytest

from speaker.api import (
    BmpCollector,
    Confederation,
    DynamicPeerConfig,
    GracefulRestart,
    InstanceConfig,
    Match,
    MaximumPrefixes,
    Multipath,
    PathDown,
    PeerConfig,
    Policy,
    PrefixRule,
    RouteAttributes,
    Secret,
    Set,
    Term,
)
from speaker.engine.inputs import (
    AdvertiseAgain,
    BestPathsTaken,
    BytesReceived,
    DeviceFound,
    EnablePeer,
    FollowBestPaths,
    Input,
    NeighborFound,
    PathsDown,
    QueueChanged,
    RemoveInstance,
    RemovePeer,
    RemoveRouteSet,
    RequestRefresh,
    ResetPeer,
    SendUpdates,
    SetCollectors,
    SetInstance,
    SetNextHopMetrics,
    SetPeer,
    Shutdown,
    ShutDownPeer,
    TimersDue,
    TransportAccepted,
    TransportClosed,
    TransportConnected,
    TransportFailed,
    UnfollowBestPaths,
    UpdateRoutes,
    WallClock,
)
from speaker.iana import IPV4_UNICAST, IPV6_UNICAST, Role
from speaker.recording.lines import (
    INPUTS,
    BadRecording,
    Header,
    InputLine,
    Passwords,
    decode,
    encode,
    input_fields,
    read_input,
    rng_state,
)

SECRET = "a password that must stay secret"
RED = RouteAttributes(
    med=0,
    local_preference=5,
    communities=(65000 << 16 | 1,),
    large_communities=((1, 2, 3),),
    extended_communities=(b"\x00\x02\xfe\xed\x00\x00\x00\xff",),
    next_hop="192.0.2.9",
)
POLICY = Policy(
    name="p",
    terms=(
        Term(
            match=Match(
                prefixes=(PrefixRule("10.0.0.0/8", 9, 24),), families=(IPV4_UNICAST,), received=True
            ),
            set=Set(local_preference=5, prepend=(65000,)),
            action="next",
        ),
    ),
)
PEER = PeerConfig(
    name="tor",
    address="192.0.2.1",
    peer_asn=65001,
    role=Role.CUSTOMER,
    password=Secret(SECRET),
    graceful_restart=GracefulRestart(restart_time=9),
    maximum_prefixes=(MaximumPrefixes(5, IPV6_UNICAST),),
    families=(IPV4_UNICAST,),
    import_=POLICY,
    export_policy=POLICY,
)
EXAMPLES: list[Input] = [
    TransportConnected(1, ("192.0.2.2", 40000), ("192.0.2.1", 179)),
    TransportFailed(1, "connection refused"),
    TransportAccepted(-1, "i", ("fe80::1%eth0", 179), ("fe80::2%eth0", 40000)),
    TransportClosed(-1, "reset\nby the peer"),
    BytesReceived(1, bytes(range(256))),
    NeighborFound("eth0", None),
    DeviceFound("red"),
    QueueChanged(1, 12345),
    TimersDue(),
    SetInstance(
        InstanceConfig(
            name="i",
            local_asn=65000,
            router_id="192.0.2.2",
            listen=(("::", 179),),
            confederation=Confederation(65100, (65001,)),
        )
    ),
    RemoveInstance("i"),
    SetPeer("i", PEER),
    SetPeer("i", msgspec.structs.replace(PEER, import_=(PrefixRule("10.0.0.0/8"),))),
    SetPeer("i", DynamicPeerConfig(name="d", prefix="10.0.0.0/8", password=Secret("x"))),
    RemovePeer("i", "tor"),
    ShutDownPeer("i", "tor", "maintenance"),
    EnablePeer("i", "tor"),
    ResetPeer("i", "tor"),
    PathsDown(
        (
            PathDown("i", "tor", "Control Detection Time Expired", independent=False),
            PathDown("i", "leaf"),
        )
    ),
    UpdateRoutes(
        "i", None, {IPV4_UNICAST: {b"\x08\x0a": RED, b"\x08\x0b": None, b"\x08\x0c": RED}}
    ),
    UpdateRoutes("i", "set", {IPV6_UNICAST: {b"\x00": RouteAttributes()}}),
    RequestRefresh("i", "tor", (IPV4_UNICAST,)),
    AdvertiseAgain("i", "tor"),
    RemoveRouteSet("i", "set"),
    SetCollectors((BmpCollector(name="c", address="192.0.2.9", monitor=("loc-rib",)),)),
    SetCollectors(()),
    WallClock(1_700_000_000.25),
    SetNextHopMetrics("i", {"192.0.2.1": 10, "2001:db8::1": 0}),
    FollowBestPaths(1, "i", Multipath(64, relax=True)),
    BestPathsTaken(1, 2),
    UnfollowBestPaths(1),
    SendUpdates(),
    Shutdown("bye"),
]


def written(item: Input, passwords: Passwords | None = None) -> InputLine:
    fields = input_fields(item, passwords or Passwords())
    line = encode(InputLine(seq=1, now=0.1, input=type(item).__name__, fields=fields))
    found = decode(line, 2)
    assert isinstance(found, InputLine)
    return found


def without_password(item: Input) -> Input:
    if isinstance(item, SetPeer):
        config = msgspec.structs.replace(item.config, password=None)
        return SetPeer(item.instance, config)
    return item


def test_there_is_an_example_of_every_input() -> None:
    assert {type(item) for item in EXAMPLES} == set(get_args(Input))
    assert len(INPUTS) == len(get_args(Input))


@pytest.mark.parametrize("item", EXAMPLES, ids=lambda item: type(item).__name__)
def test_an_input_is_decoded_as_it_was_encoded(item: Input) -> None:
    found = read_input(written(item), 2)
    assert without_password(found) == without_password(item)
    if isinstance(found, UpdateRoutes) and isinstance(item, UpdateRoutes):
        # The order of routes is an order of messages.
        for family, routes in item.changes.items():
            assert list(found.changes[family]) == list(routes)


def test_equal_passwords_are_recorded_as_equal_numbers() -> None:
    passwords = Passwords()
    other = SetPeer("i", msgspec.structs.replace(PEER, password=Secret("another")))
    lines = [written(item, passwords) for item in (SetPeer("i", PEER), other, SetPeer("i", PEER))]
    assert [line.fields["config"]["password"] for line in lines] == [
        {"password": 1},
        {"password": 2},
        {"password": 1},
    ]
    assert SECRET.encode() not in b"".join(map(encode, lines))
    first, second, third = (read_input(line, 2) for line in lines)
    assert first == third
    assert first != second
    assert isinstance(first, SetPeer)
    assert first.config.password is not None


def test_the_random_number_generator_continues_in_its_recorded_state() -> None:
    rng = random.Random(5)  # noqa: S311  a seed, no secret
    rng.random()
    header = Header(
        format=1,
        version="1",
        python="3",
        started=0.0,
        now=0.0,
        rng=rng_state(rng),
        restarting=False,
        max_queue=1,
    )
    assert header.random().random() == rng.random()


def spoil(**changes: object) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda fields: {**fields, **changes}


@pytest.mark.parametrize(
    ("item", "spoilt", "rule"),
    [
        (BytesReceived(1, b"a"), spoil(data="zz"), "BytesReceived: non-hexadecimal"),
        (BytesReceived(1, b"a"), lambda _: {}, "BytesReceived: 'connection'"),
        (TransportFailed(1, ""), spoil(connection="one"), "TransportFailed: Expected `int`"),
        (SetPeer("i", PEER), spoil(config={"name": 1}), "SetPeer: Expected `str`"),
        (
            SetPeer("i", PEER),
            lambda fields: {**fields, "config": {**fields["config"], "password": SECRET}},
            "SetPeer: Secret has no such form",
        ),
        (
            UpdateRoutes("i", None, {IPV4_UNICAST: {b"\x00": None}}),
            spoil(changes={"ipv5": []}),
            "UpdateRoutes: 'ipv5' is not an address family",
        ),
    ],
)
def test_an_invalid_line_is_named(
    item: Input, spoilt: Callable[[dict[str, Any]], dict[str, Any]], rule: str
) -> None:
    line = written(item)
    bad = msgspec.structs.replace(line, fields=spoilt(line.fields))
    with pytest.raises(BadRecording, match=f"line 7: {rule}"):
        read_input(bad, 7)


def test_an_input_of_another_version_is_named() -> None:
    with pytest.raises(BadRecording, match="line 3: 'Dream' is no input of this version"):
        read_input(InputLine(seq=1, now=0.0, input="Dream", fields={}), 3)
