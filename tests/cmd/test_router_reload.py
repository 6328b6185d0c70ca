"""What a reload of the router's configuration calls of its speaker: the differences."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.support.engine_speaker import EngineSpeaker
from waggle.commands.router import reload
from waggle.commands.router.log import RouterLog
from waggle.commands.router.program import _reload_at
from waggle.commands.router.reload import (
    SLICE_PREFIXES,
    TURN_SECONDS,
    apply,
    changes_between,
    steps,
)
from waggle.router_config import Config, load

HEAD = "asn: 65000\nrouterID: 192.0.2.1\n"
ROUTES = "originate: [10.1.0.0/16, 10.2.0.0/16]\n"
TOR_1 = "{name: tor-1, address: 192.0.2.11, asn: 65001, export: all}"
TOR_2 = "{name: tor-2, address: 192.0.2.12, asn: 65002, export: all}"
RACKS = "{name: racks, prefix: 10.9.0.0/16}"
HOST = "{name: host, address: 10.9.0.5, asn: 65009}"


def config(*neighbors: str, routes: str = ROUTES) -> str:
    return f"{HEAD}{routes}neighbors: [{', '.join(neighbors)}]\n"


BEFORE = config(TOR_1, TOR_2, RACKS)


@pytest.mark.parametrize(
    ("after", "calls"),
    [
        (BEFORE, []),
        (config(TOR_2, RACKS, TOR_1), []),
        (config(TOR_1, RACKS), [("remove_peer", "tor-2")]),
        (config(TOR_1, TOR_2.replace("all", "none"), RACKS), [("set_peer", "tor-2")]),
        (
            config(TOR_1, TOR_2.replace("tor-2", "tor-3"), RACKS),
            [("remove_peer", "tor-2"), ("set_peer", "tor-3")],
        ),
        (config(TOR_1, TOR_2, RACKS.replace("}", ", limit: 5}")), [("set_peer", "racks")]),
        (config(TOR_1, TOR_2, RACKS, routes="originate: [10.2.0.0/16]\n"), [("update_local", 1)]),
        (
            config(TOR_1, "{name: tor-2, prefix: 192.0.2.12/32}", RACKS),
            [("remove_peer", "tor-2"), ("set_peer", "tor-2")],
        ),
        (
            # The entry takes a session over from the range, before another rule of that is in force.
            config(TOR_1, TOR_2, RACKS.replace("}", ", export: all}"), HOST),
            [("set_peer", "host"), ("set_peer", "racks")],
        ),
    ],
    ids=[
        "same",
        "order",
        "gone",
        "changed",
        "another name",
        "range",
        "routes",
        "now a range",
        "an entry beside a range that changes",
    ],
)
def test_a_reload_changes_what_differs_and_nothing_else(
    after: str, calls: list[tuple[str, Any]], tmp_path: Path
) -> None:
    path = tmp_path / "router.yaml"
    path.write_text(BEFORE)
    before = load(path)
    speaker = EngineSpeaker()
    collectors: list[object] = []
    speaker.set_collectors = collectors.append  # type: ignore[attr-defined]
    apply(cast("Any", speaker), None, before)
    speaker.take()
    collectors.clear()
    path.write_text(after)
    apply(cast("Any", speaker), before, load(path))
    found = [
        (call[0], sum(map(len, call[-1].values())) if call[0] == "update_local" else call[-1])
        for call in speaker.take()
        if call[0] != "set_instance"
    ]
    assert found == calls
    assert collectors == []


def test_a_setting_that_only_a_start_applies_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "router.yaml"
    path.write_text(BEFORE)
    config_before = load(path)
    speaker = EngineSpeaker()
    speaker.set_collectors = lambda _: None  # type: ignore[attr-defined]
    apply(cast("Any", speaker), None, config_before)

    def reload(text: str) -> str:
        path.write_text(text)
        return asyncio.run(reloaded(path, config_before, speaker, capsys))

    for key, value in (
        ("apiSocket", f"{tmp_path}/api"),
        ("kernel", "{}"),
        ("selectionDeferralTime", "30"),
    ):
        shown = reload(f"{BEFORE}{key}: {value}\n")
        assert f"{path}: {key}: takes effect at the next start" in shown
        assert shown.count("next start") == 1
    assert "next start" not in reload(BEFORE)


async def reloaded(
    path: Path, before: Config, speaker: EngineSpeaker, capsys: pytest.CaptureFixture[str]
) -> str:
    """Have the program reload a file, until it has reported it; return what it printed."""
    hangup = asyncio.Event()
    hangup.set()
    program: Any = _reload_at(
        hangup,
        path,
        before,
        cast("Any", SimpleNamespace(configured=lambda _: None, log=RouterLog())),
        lambda before, after, changes: steps(
            cast("Any", speaker), before, after, changes, lambda _: None, lambda peer: peer
        ),
    )
    task = asyncio.create_task(program)
    shown = ""
    while "reloaded" not in shown:
        assert not task.done()
        await asyncio.sleep(0.01)
        shown += capsys.readouterr().err
    task.cancel()
    return shown


def test_many_prefixes_change_in_several_turns_of_the_loop(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All in one would keep keepalives waiting; neighbors change once all prefixes have."""
    path = tmp_path / "router.yaml"
    path.write_text(BEFORE)
    before = load(path)
    many = [
        f"10.{20 + n // 65536}.{n // 256 % 256}.{n % 256}/32" for n in range(3 * SLICE_PREFIXES)
    ]
    path.write_text(config(TOR_1, routes=f"originate: [10.1.0.0/16, {', '.join(many)}]\n"))
    speaker = EngineSpeaker()
    speaker.set_collectors = lambda _: None  # type: ignore[attr-defined]
    apply(cast("Any", speaker), None, before)
    speaker.take()
    turns: list[list[tuple[str, int]]] = []

    def note() -> None:
        """Note the calls of a turn."""
        found = [
            (call[0], sum(map(len, call[-1].values())) if call[0] == "update_local" else 1)
            for call in speaker.take()
            if call[0] != "set_instance"
        ]
        if found:
            turns.append(found)
        if not done:
            asyncio.get_running_loop().call_soon(note)

    done: list[object] = []

    async def scenario() -> None:
        note()
        await reloaded(path, before, speaker, capsys)
        done.append(None)

    asyncio.run(scenario())
    # With the withdrawal, one more than three slices.
    last = [("update_local", 1), ("remove_peer", 1), ("remove_peer", 1)]
    assert turns == [*[[("update_local", SLICE_PREFIXES)]] * 3, last]


def test_files_are_compared_outside_of_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Policies of many prefixes are: the sessions go on meanwhile."""
    path = tmp_path / "router.yaml"
    path.write_text(BEFORE)
    before = load(path)
    path.write_text(config(TOR_1, RACKS))
    speaker = EngineSpeaker()
    speaker.set_collectors = lambda _: None  # type: ignore[attr-defined]
    apply(cast("Any", speaker), None, before)
    speaker.take()
    threads: list[threading.Thread] = []

    def noted(*arguments: Any) -> Any:  # noqa: ANN401
        threads.append(threading.current_thread())
        return compare(*arguments)

    compare = reload.peer_changes
    monkeypatch.setattr(reload, "peer_changes", noted)

    asyncio.run(reloaded(path, before, speaker, capsys))
    assert [call[0] for call in speaker.take()] == ["set_instance", "remove_peer"]
    (thread,) = threads
    assert thread is not threading.main_thread()


def test_neighbors_that_take_long_change_in_several_turns_of_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another export policy sends a neighbor the difference of a whole table."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    calls: list[str] = []

    class Slow(EngineSpeaker):
        def set_peer(self, instance: str, config: Any) -> None:  # noqa: ANN401
            super().set_peer(instance, config)
            calls.append(config.name)
            now[0] += TURN_SECONDS / 2

    path = tmp_path / "router.yaml"
    path.write_text(BEFORE)
    before = load(path)
    path.write_text(BEFORE.replace("export: all", "export: local").replace("}]", ", limit: 5}]"))
    after = load(path)
    speaker = Slow()
    speaker.set_collectors = lambda _: None  # type: ignore[attr-defined]
    apply(cast("Any", speaker), None, before)
    calls.clear()
    changes = changes_between(before, after)._replace(prefixes=())
    turns = [
        len(calls)
        for _ in steps(
            cast("Any", speaker), before, after, changes, lambda _: None, lambda peer: peer
        )
    ]
    assert turns == [2]
    assert calls == ["tor-1", "tor-2", "racks"]
