"""Limits that peers make known, in the whole agent: from the end of a session to fewer routes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from cells.apply.peer_limits import FILE, FORMAT, PeerLimitReport
from cells.hive.hive import Hive
from cells.speaker.events import SpeakerEvents
from reconcilers.intent import learned_limits
from reconcilers.intent_tables import IntentTables
from reconcilers.model import AdvertiseLimit, LearnedLimit
from speaker.api import PeerPrefixLimit, SpeakerPort, StateChanged
from speaker.nlri import IPV4_UNICAST
from statedb import Database
from tests.cells.test_apply import advertised, agent, running
from tests.cmd.lab import service
from tests.support.wait import until

ENDED = StateChanged(
    instance="main",
    peer="tor-1",
    address="127.0.0.2",
    old="Established",
    new="Idle",
    reason="",
    peer_limit=PeerPrefixLimit(family=IPV4_UNICAST, limit=2, advertised=((IPV4_UNICAST, 4),)),
)


def node(tmp_path: Path, **flags: str) -> Hive:
    """Make an agent with four Services of one address."""
    hive = agent(tmp_path, state_directory=str(tmp_path / "state"), **flags)
    for number in range(3):
        written = service(f"s{number}", f"198.51.100.{number + 20}")
        (tmp_path / "manifests" / f"s{number}.json").write_text(json.dumps(written))
    return hive


def run_until(
    hive: Hive, routes: int, *events: StateChanged, also: Callable[[], bool] = lambda: True
) -> None:
    """Run an agent with these events until it advertises so many routes."""
    speaker, published = hive.get(SpeakerPort), hive.get(SpeakerEvents)  # type: ignore[type-abstract]

    async def scenario() -> None:
        for event in events:
            published.publish(event)
        await until(lambda: advertised(speaker) == routes and also())

    running(hive, scenario)


def test_a_peer_is_sent_no_more_than_it_accepts_also_after_a_restart(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "state" / FILE
    row = LearnedLimit("main", "tor-1", IPV4_UNICAST, 2, end="127.0.0.2")
    run_until(node(tmp_path), 2, ENDED)
    assert capfd.readouterr().err.count("event=peer.limit_learned") == 1
    assert FORMAT.decode(file.read_bytes()) == (row,)
    run_until(node(tmp_path), 2)
    # The administrator sets a limit: it is in effect in place of that one.
    run_until(node(tmp_path, advertise_peer_limit="3"), 3)


def test_after_an_hour_of_the_next_session_the_peer_is_sent_everything_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learned_limits, "LIFTED_AFTER_SECONDS", 0.2)
    up = replace(ENDED, old="OpenConfirm", new="Established", peer_limit=None)
    hive = node(tmp_path)
    speaker, published = hive.get(SpeakerPort), hive.get(SpeakerEvents)  # type: ignore[type-abstract]

    async def scenario() -> None:
        published.publish(ENDED)
        await until(lambda: advertised(speaker) == 2)
        published.publish(up)
        await until(lambda: advertised(speaker) == 4)

    running(hive, scenario)


@pytest.mark.parametrize("octets", [b"", b"[]", FORMAT.encode(()).replace(b"/1", b"/2")])
def test_a_file_of_limits_that_is_not_its_own_is_refused(octets: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        FORMAT.decode(octets)


def test_a_limit_that_comes_near_is_logged_once_and_has_metrics(tmp_path: Path) -> None:
    hive = node(tmp_path)
    report, database = hive.get(PeerLimitReport), hive.get(Database)
    table = hive.get(IntentTables).advertise_limits

    def put(prefixes: int, waiting: int = 0) -> list[str]:
        with database.write(table) as txn:
            row = AdvertiseLimit("i", "p", IPV4_UNICAST, 100, False, prefixes, waiting)
            table.upsert(txn, row)
        with capture_logs() as logs:
            report.report()
        return [str(line["event"]) for line in logs]

    assert put(74) == []
    assert put(75) == ["limit of a peer is near"]
    assert put(90) == []
    assert put(10) == []
    assert put(120, 20) == ["limit of a peer is reached"]
    values = {metric.name: [s.value for s in metric.samples] for metric in report.collect()}
    assert values == {"waggle_bgp_advertise_limit": [100], "waggle_bgp_waiting_routes": [20]}
