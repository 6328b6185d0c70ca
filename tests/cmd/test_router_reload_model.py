"""Any two settings change in one reload: the routes are the new file's.

Whatever the session does meanwhile. A router is started with one file and reloads another file; a
second router has the other file from the start. Both live through the same hours, in virtual time, and
are compared. A seed is one run; ``WAGGLE_MODEL_RUNS`` makes more of them.
"""

from __future__ import annotations

import itertools
import json
import os
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from speaker.api import PeerConfig
from speaker.engine import Engine
from speaker.iana import IPV4_UNICAST
from tests.cmd.reload_world import (
    BEHIND,
    BEHIND_ROUTES,
    LEFT,
    LONG_LIVED,
    RIGHT,
    ROUTER,
    World,
    picture,
    routes_in_use,
)
from waggle.router_config import Config
from waggle.router_config.neighbor import Neighbor

RUNS = int(os.environ.get("WAGGLE_MODEL_RUNS", "20"))
SOON = 60.0
"""Seconds after which a reload has come to its end, where the neighbour on the left is not away."""
ONE = {"terms": [{"match": {"prefixList": "wanted"}}]}
MARKED = {"terms": [{"set": {"addCommunities": ["65000:9"]}}]}
POLICIES: dict[str, dict[str, Any]] = {
    "usual": {"one": ONE, "marked": MARKED},
    "other prefixes": {
        "one": {"terms": [{"match": {"prefixes": ["10.2.0.0/16", "10.9.0.0/16"]}}]},
        "marked": MARKED,
    },
    "other default": {"one": {**ONE, "default": "accept"}, "marked": {"default": "reject"}},
    "other values": {
        "one": {"terms": [{**ONE["terms"][0], "set": {"localPreference": 200}}]},
        "marked": {"terms": [{"set": {"addCommunities": ["65000:10"], "med": 5}}]},
    },
}
"""Contents of the policies `one` and `marked`."""
SETTINGS: dict[str, list[Any]] = {
    "import": ["all", "none", "one", "marked"],
    "export": ["all", "none", "local", "one", "marked"],
    "holdTime": [90, 30],
    "enforceFirstAS": [False, None, True],
    "role": [None, "rs-client"],
    "localASN": [None, 65010],
    "families": [[], ["ipv4-unicast"], ["ipv6-unicast"]],
    "addPath": ["none", "receive", "both"],
    "gracefulRestart": [
        {"restartTime": 60},
        None,
        {"restartTime": 60, "longLivedTime": LONG_LIVED},
        {"restartTime": 60, "notification": False},
    ],
    "maximumPrefixes": [[], [{"limit": 4, "warningOnly": True}], [{"limit": 4}]],
    "passive": [False, True],
    "connectRetryTime": [5, 20],
    "nextHopIPv4": [None, "10.0.0.77"],
    "nextHopIPv6": [None, "2001:db8::1"],
    "ebgpMultihop": [1, 2],
    "ttlSecurity": [0, 1],
    "asn": [65001, 0, "external"],
    "allowASInOrigin": [False, True],
    "allowASIn": [0, 2],
    "roleStrict": [False, True],
    "localAddress": [None, ROUTER],
    "keepaliveTime": [None, 7],
    "delayOpenTime": [0, 3],
    "password": [None, "pw"],
    "bfd": [None, {"transmitInterval": 100}],
}
"""The values of each key of the neighbour on the left, the usual one first."""
RANGE_SETTINGS: dict[str, list[Any]] = {
    **{
        key: values
        for key, values in SETTINGS.items()
        if key not in ("bfd", "localAddress", "passive")
    },
    "prefix": ["10.0.0.2/31", "10.0.0.0/24"],
    "asn": [65001, 0, 65009],
    "limit": [1000, 1],
}
"""The values of each key of the prefix that contains the neighbour on the left."""
FILE_SETTINGS: dict[str, list[Any]] = {
    "asn": [65000, 65020],
    "routerID": [ROUTER, "10.0.0.99"],
    "neighbors": ["neighbor", "prefix", "both", "named", "named and prefix"],
    "wide": [False, True],
    "originate": [["10.8.0.0/16"], [], ["10.8.0.0/16", "10.3.0.0/16"]],
    "confederation": [None, {"identifier": 65100, "members": [65002]}],
    "prefixLists": [
        {"wanted": ["10.1.0.0/16"]},
        {"wanted": ["10.2.0.0/16", {"prefix": "10.8.0.0/15", "le": 16}]},
        {"wanted": []},
    ],
    "policies": ["usual", "other prefixes", "other default", "other values"],
    "selectionDeferralTime": [120, 30],
}
ALL = {
    (section, key): values
    for section, of_section in (
        ("left", SETTINGS),
        ("range", RANGE_SETTINGS),
        ("file", FILE_SETTINGS),
    )
    for key, values in of_section.items()
}
STATES = ("absent", "up", "up", "away", "away", "long away", "coming back")
"""What the neighbour on the left is doing when the file changes."""
SETTLED = ("up", "absent", "coming back")
"""States in which nothing waits for the neighbour on the left: each router has done all that it can."""


def write(path: Path, settings: Mapping[tuple[str, str], Any]) -> Path:
    """Write a file with the settings, by section and key."""

    def section(name: str) -> dict[str, Any]:
        return {
            key: value
            for (part, key), value in settings.items()
            if part == name and value not in (None, [])
        }

    file, left, prefix = section("file"), section("left"), section("range")
    kind, wide = file.pop("neighbors"), file.pop("wide")
    for settings_of in (left, prefix):
        if "role" not in settings_of:
            settings_of.pop("roleStrict", None)
        if settings_of["ebgpMultihop"] != 1:
            settings_of.pop("ttlSecurity", None)
    neighbors = [{"address": RIGHT, "export": "all", "import": "all", "asn": 65002}]
    if kind != "prefix":
        name = {"name": "tor"} if kind.startswith("named") else {}
        neighbors.append({"address": LEFT, "asn": 65001, **left, **name})
    if kind in ("prefix", "both", "named and prefix"):
        neighbors.append({"name": "range", **prefix})
    if wide:
        restart = {"gracefulRestart": {"restartTime": 60}}
        neighbors.append(
            {"prefix": "10.0.0.0/16", "import": "marked", "export": "local", **restart}
        )
    path.write_text(
        json.dumps({**file, "policies": POLICIES[file["policies"]], "neighbors": neighbors})
    )
    return path


NOT_CHANGED = {
    "address": "decides which neighbour it is; `neighbors` of `FILE_SETTINGS` is about that",
    "name": "as `address`",
    "interface": "a network in memory has no interfaces",
    "port": "a network in memory has one port a host",
    "limit": "of a prefix alone",
}
"""Keys of a neighbour that no run changes on its own, and the reason."""
NOT_CHANGED_IN_RANGE = {
    "bfd": "refused with a prefix",
    "interface": "refused with a prefix",
    "address": "refused with a prefix",
    "localAddress": "not of a prefix: its connections are accepted ones",
    "passive": "not of a prefix: its connections are accepted ones",
    "port": "not of a prefix: its connections are accepted ones",
    "name": "the name of all runs",
}
"""Keys of a neighbour with a prefix that no run changes, and the reason."""
FILE_NOT_CHANGED = {
    "apiSocket": "no route depends on it; `tests.cmd.test_router_reload` has its change",
    "bfdProfiles": "`bfd` of a neighbour has settings",
    "bfdSocket": "no route depends on it",
    "bmp": "no route depends on it",
    "kernel": "no kernel is there",
    "listen": "a network in memory has one address a host",
    "vrf": "a network in memory has no VRFs",
}
"""Keys of the file that no run changes, and the reason."""


def keys_of(struct: type[msgspec.Struct]) -> set[str]:
    """Return the keys that the file accepts in an object."""
    return set(struct.__struct_encode_fields__)


def test_each_key_of_the_file_is_changed_or_has_a_reason() -> None:
    """A new key is refused here until it is among the settings that change in a reload."""
    for keys, changed, reasons in (
        (keys_of(Neighbor) - {"prefix"}, {*SETTINGS}, NOT_CHANGED),
        (keys_of(Neighbor), {*RANGE_SETTINGS}, NOT_CHANGED_IN_RANGE),
        (keys_of(Config), {*FILE_SETTINGS} - {"wide"}, FILE_NOT_CHANGED),
    ):
        assert not changed & reasons.keys()
        assert changed | reasons.keys() == keys


KIND = ("file", "neighbors")
FREQUENT = [KIND] * 4 + [("left", "import"), ("left", "enforceFirstAS")] * 3
"""Settings that change more often than others."""


def usual(rng: random.Random) -> dict[tuple[str, str], Any]:
    """Return a value of each setting, mostly the usual one."""
    return {
        key: values[0] if key != KIND and rng.random() < 0.8 else rng.choice(values)
        for key, values in ALL.items()
    }


def other(rng: random.Random, key: tuple[str, str], before: object) -> object:
    """Return another value of a setting."""
    return rng.choice([value for value in ALL[key] if value != before])


def compare(
    seed: int,
    state: str,
    first: Mapping[tuple[str, str], Any],
    then: Mapping[tuple[str, str], Any],
    folder: Path,
) -> None:
    """Check that a router that reloads is in the end as a router that was started with the file."""
    changed = {key: then[key] for key in then if first[key] != then[key]}
    before, after = write(folder / "first.yaml", first), write(folder / "then.yaml", then)
    reloaded, started = World(seed), World(seed)
    reloaded.live(before, after, state)
    started.live(after, after, state)
    # A limit ends the session of the one router, and no session is there to be ended of the other.
    limited = any(then[part, "maximumPrefixes"] == [{"limit": 4}] for part in ("left", "range"))
    if state in ("away", "long away") and not limited:
        # No session can correct anything: kept routes are permitted by the new file.
        for world in (reloaded, started):
            world.network.run(1)
        kept, permitted = (routes_in_use(world.router) for world in (reloaded, started))
        for family, routes in kept.items():
            assert routes <= permitted[family], (changed, state)
    if state in SETTLED and not limited:
        for world in (reloaded, started):
            world.network.run(SOON)
        assert picture(reloaded) == picture(started), (changed, state, "soon")
    for world in (reloaded, started):
        world.come_back()
    assert picture(reloaded) == picture(started), (changed, state)


@pytest.mark.parametrize("seed", range(RUNS))
def test_after_a_reload_the_router_is_as_if_started_with_the_file(
    seed: int, tmp_path: Path
) -> None:
    rng = random.Random(seed)  # noqa: S311  a seed, no secret
    first = usual(rng)
    keys: set[tuple[str, str]] = set()
    while len(keys) < 2:
        keys.add(rng.choice([*ALL, *FREQUENT]))
    then = {**first, **{key: other(rng, key, first[key]) for key in sorted(keys)}}
    compare(seed, rng.choice(STATES), first, then, tmp_path)


@pytest.mark.parametrize(("section", "key"), [key for key in ALL if key[0] != "file"])
def test_each_setting_of_a_neighbour_that_is_down_changes_beside_another_setting(
    section: str, key: str, tmp_path: Path
) -> None:
    rng = random.Random(f"{section} {key}")  # noqa: S311  a seed, no secret
    usual_values = {key: values[0] for key, values in ALL.items()}
    first = {**usual_values, KIND: "neighbor" if section == "left" else "prefix"}
    changed = {(section, key), rng.choice([key for key in ALL if key != KIND])}
    then = {**first, **{key: other(rng, key, first[key]) for key in sorted(changed)}}
    compare(len(key), "away", first, then, tmp_path)


@pytest.mark.parametrize("state", SETTLED)
@pytest.mark.parametrize(
    ("key", "value"),
    [(key, number) for key in FILE_SETTINGS for number in range(1, len(FILE_SETTINGS[key]))],
)
def test_each_value_of_the_file_changes_beside_a_session_that_is_reset(
    key: str, value: int, state: str, tmp_path: Path
) -> None:
    first = {each: values[0] for each, values in ALL.items()}
    for section in ("left", "range"):
        # Policies and prefix lists have an effect.
        first |= {(section, "import"): "one", (section, "export"): "one"}
    changed = {("file", key): FILE_SETTINGS[key][value]}
    changed |= {("left", "holdTime"): 30, ("range", "holdTime"): 30}
    compare(value, state, first, {**first, **changed}, tmp_path)


@pytest.mark.parametrize("state", ["up", "away"])
@pytest.mark.parametrize(("before", "after"), list(itertools.permutations(ALL[KIND], 2)))
def test_a_neighbour_leaves_and_joins_a_prefix_and_another_setting_changes(
    before: str, after: str, state: str, tmp_path: Path
) -> None:
    seed = f"{before} {after} {state}"
    rng = random.Random(seed)  # noqa: S311  a seed, no secret
    first = {**usual(rng), KIND: before}
    key = rng.choice([key for key in ALL if key != KIND])
    then = {**first, KIND: after, key: other(rng, key, first[key])}
    compare(len(seed), state, first, then, tmp_path)


def deferring(seconds: int, folder: Path) -> Path:
    """Write a file for a router that restarts: the neighbour on the left has yet to come back."""
    restart = {"gracefulRestart": {"restartTime": 60}}
    neighbors = [
        {"address": LEFT, "asn": 65001, "import": "all", **restart},
        {"address": BEHIND, "asn": 65003, "import": "all"},
        {"address": RIGHT, "asn": 65002, "export": "all"},
    ]
    path = folder / f"{seconds}.yaml"
    file = {"asn": 65000, "routerID": ROUTER, "selectionDeferralTime": seconds}
    path.write_text(json.dumps({**file, "neighbors": neighbors}))
    return path


def restarted(path: Path) -> World:
    """Return a router that restarts with a file while the neighbour on the left is away."""
    world = World(1)
    world.stop_left()
    world.behind.peer(PeerConfig(name="r", address=ROUTER, export="all", connect_retry_time=5))
    world.router.engine = Engine(random.Random(1), restarting=True)  # noqa: S311  a seed
    world.load(path)
    return world


def test_a_restarting_router_defers_selection_for_the_time_of_the_file_that_it_started_with(
    tmp_path: Path,
) -> None:
    """`selectionDeferralTime` is a setting of the start: a reload changes no wait."""
    short, long = deferring(30, tmp_path), deferring(120, tmp_path)
    for first, then, seconds in ((short, short, 30), (short, long, 30), (long, short, 120)):
        world = restarted(first)
        world.network.run(10)
        world.load(then)
        world.network.run(seconds - 11)
        assert world.router.status("10.0.0.3").established
        assert not world.right.available(IPV4_UNICAST)
        world.network.run(2)
        assert world.right.available(IPV4_UNICAST).keys() == BEHIND_ROUTES.keys()
