"""The apply cell in the whole agent: reconcilers as a group, their list, and full verification."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from cells.apply import status
from cells.apply.loop import ApplyLoop, FirstPass
from cells.apply.session_addresses import FILE, FORMAT, decode
from cells.apply.verification import NotReadyError, VerificationLoop
from cells.declarations import APPLY, SPEAKER
from cells.hive import Level, load, provide
from cells.hive.hive import Hive
from cells.intent.cell import IntentLoop
from cells.speaker.events import SpeakerEvents
from cells.speaker.sessions import Sessions
from reconcilers.apply.instances import Instances
from reconcilers.intent_tables import IntentTables
from reconcilers.model import SessionAddress
from reconcilers.report.status_rows import StatusRows
from reconcilers.sliced_work import Slices
from reconcilers.target import Description, Reconciler, RoundSummary, Runner
from reconcilers.target.reconciler import ObjectKey, Parts
from speaker.api import DynamicPeerConfig, PeerConfig, SpeakerPort, StateChanged
from statedb import Database, Snapshot
from tests.cells.stand_in_speaker import StandInSpeaker
from tests.cmd.lab import NODE, configuration, service
from tests.support.cells import rewired
from tests.support.metrics import scrape
from tests.support.wait import until
from waggle.__main__ import main
from waggle_agent.__main__ import CELLS

T = TypeVar("T")


def agent(tmp_path: Path, **flags: Any) -> Hive:  # noqa: ANN401
    """Make an agent with a stand-in for the speaker; its socket is ``agent.sock``."""
    manifests = tmp_path / "manifests"
    manifests.mkdir(exist_ok=True)
    for item in (*configuration([1179]), service("web", "198.51.100.10")):
        path = manifests / f"{item['kind']}-{item['metadata']['name']}.json"
        path.write_text(json.dumps(item))
    stand_in = rewired(
        SPEAKER,
        provides=(SpeakerEvents, Sessions, provide(StandInSpeaker, as_=SpeakerPort)),
        invokes=(Sessions,),
    )
    cells = tuple(stand_in if cell is SPEAKER else cell for cell in CELLS)
    given = {
        "--manifests": [str(manifests)],
        "--node-name": NODE,
        "--ready-timeout-seconds": "0",
        "--api-socket": str(tmp_path / "agent.sock"),
        **{f"--{name.replace('_', '-')}": value for name, value in flags.items()},
    }
    return Hive(cells, load(cells, flags=given))


def running(hive: Hive, scenario: Callable[[], Awaitable[T]]) -> T:
    """Run an agent for as long as a scenario takes, which begins after the first round.

    The agent answers on its socket then: everything has started.
    """

    async def run() -> T:
        started = asyncio.Event()
        task = asyncio.create_task(hive.run(started.set))
        for begun in (started, hive.get(FirstPass)):
            await asyncio.wait_for(begun.wait(), 60)
        try:
            return await scenario()
        finally:
            hive.shutdown()
            await task

    return asyncio.run(run())


async def waggle(tmp_path: Path, *arguments: str) -> int:
    """Run the waggle command against the agent; returns its exit status."""
    return await asyncio.to_thread(
        main, [*arguments, "--socket", str(tmp_path / "agent.sock"), "--color", "never"]
    )


def test_verify_finds_repairs_prints_counts_and_logs_drift(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    hive = agent(tmp_path, verify_interval="0")
    speaker = hive.get(SpeakerPort)  # type: ignore[type-abstract]

    async def scenario() -> tuple[int, int]:
        assert await waggle(tmp_path, "verify") == 0
        assert "no drift" in capfd.readouterr().out
        (instance,) = speaker.instance_configs()
        (peer,) = speaker.peer_configs(instance)
        (route_set,) = speaker.route_sets(instance)
        speaker.remove_peer(instance, peer)
        prefixes = speaker.route_set_prefixes(instance, route_set)
        assert prefixes is not None
        for family, held in prefixes.items():
            speaker.update_routes(instance, route_set, {family: dict.fromkeys(held)})
        drifted = await waggle(tmp_path, "verify")
        assert list(speaker.peer_configs(instance)) == [peer]
        assert speaker.route_set_prefixes(instance, route_set) == prefixes
        return drifted, await waggle(tmp_path, "verify", "-o", "json")

    assert running(hive, scenario) == (1, 0)
    shown, logged = capfd.readouterr()
    assert "198.51.100.10/32" in shown
    assert "route-set" in shown
    assert "yes" in shown
    assert '"kind": "DriftList"' in shown
    assert logged.count("event=apply.drift ") == 2
    assert "reconciler=peer" in logged
    metrics = scrape(hive)
    assert 'waggle_reconcile_drift_total{reconciler="peer"} 1.0' in metrics
    assert 'waggle_reconcile_drift_total{reconciler="route-set"} 1.0' in metrics
    assert 'waggle_reconcile_drift_total{reconciler="instance"} 0.0' in metrics
    health = {"/".join(status.path): status.message for status in hive.health.report()}
    assert health["apply/verification"] != ""


def test_a_failed_repair_is_shown_and_degrades_the_health_until_the_next_verification(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hive = agent(tmp_path, verify_interval="0")
    speaker = hive.get(SpeakerPort)  # type: ignore[type-abstract]

    def health() -> tuple[Level, str]:
        statuses = {"/".join(status.path): status for status in hive.health.report()}
        return statuses["apply/verification"].level, statuses["apply/verification"].message

    def refuse(*_: object) -> None:
        raise OSError("refused")

    async def scenario() -> None:
        (instance,) = speaker.instance_configs()
        (peer,) = speaker.peer_configs(instance)
        (route_set,) = speaker.route_sets(instance)
        speaker.remove_route_set(instance, route_set)
        speaker.remove_peer(instance, peer)
        with monkeypatch.context() as patch:
            patch.setattr(speaker, "set_peer", refuse)
            assert await waggle(tmp_path, "verify") == 1
        lines = {line.split()[0]: line for line in capfd.readouterr().out.splitlines() if line}
        assert " yes " in lines["route-set"]
        assert "no: OSError: refused" in lines["peer"]
        level, message = health()
        assert level is Level.DEGRADED
        repaired, failed = message.split("; ")[1:]
        assert repaired == f"drifted and repaired: route-set {instance}/{route_set}"
        assert failed == f"failed: peer {instance}/{peer}: OSError: refused"
        await until(lambda: list(speaker.peer_configs(instance)) == [peer])
        assert await waggle(tmp_path, "verify") == 0
        await until(lambda: health()[0] is Level.OK)

    running(hive, scenario)


def test_an_object_that_cannot_be_compared_is_shown_with_the_error(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hive = agent(tmp_path, verify_interval="0")
    speaker = hive.get(SpeakerPort)  # type: ignore[type-abstract]

    def unreadable(*_: object) -> Any:  # noqa: ANN401
        raise OSError("unreadable")

    async def scenario() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(speaker, "routes_of_set", unreadable)
            assert await waggle(tmp_path, "verify") == 1

    running(hive, scenario)
    # Read after the stop, which writes the last lines of the log.
    shown, logged = capfd.readouterr()
    assert "no: OSError: unreadable" in shown
    assert "event=apply.drift " not in logged
    assert "event=apply.failed" in logged


def test_drift_is_repaired_without_a_request_every_interval(tmp_path: Path) -> None:
    hive = agent(tmp_path, verify_interval="0.05")
    speaker = hive.get(SpeakerPort)  # type: ignore[type-abstract]

    async def scenario() -> None:
        (instance,) = speaker.instance_configs()
        (peer,) = speaker.peer_configs(instance)
        speaker.remove_peer(instance, peer)
        await until(lambda: list(speaker.peer_configs(instance)) == [peer])

    running(hive, scenario)


OPENED = StateChanged(
    instance="main",
    peer="tor-1",
    address="127.0.0.2",
    old="Connect",
    new="OpenSent",
    reason="",
    local_address="198.51.100.10",
)
"""The connection has the address of the Service."""


def advertised(speaker: SpeakerPort) -> int:
    """Return the number of routes that the peers get."""
    return sum(
        len(prefixes)
        for instance in speaker.instance_configs()
        for name in speaker.route_sets(instance)
        for prefixes in (speaker.route_set_prefixes(instance, name) or {}).values()
    )


def test_the_local_address_of_a_connection_starts_a_round_that_withdraws_it_from_services(
    tmp_path: Path,
) -> None:
    hive = agent(tmp_path)
    speaker, events = hive.get(SpeakerPort), hive.get(SpeakerEvents)  # type: ignore[type-abstract]
    table, database = hive.get(IntentTables).session_addresses, hive.get(Database)

    async def scenario() -> None:
        (instance,) = speaker.instance_configs()
        opened = msgspec.structs.replace(OPENED, instance=instance)
        assert advertised(speaker) == 1
        events.publish(msgspec.structs.replace(opened, local_address=""))
        events.publish(opened)
        await until(lambda: advertised(speaker) == 0)
        before = table.revision(database.snapshot())
        # An outage, and the session again: nothing is written, so nothing is compiled.
        for state in ("Idle", "OpenSent", "Established"):
            address = "" if state == "Idle" else "198.51.100.10"
            events.publish(msgspec.structs.replace(opened, new=state, local_address=address))
            await asyncio.sleep(0.01)
        events.publish(
            msgspec.structs.replace(opened, new="Established", local_address="192.0.2.7")
        )
        await until(lambda: advertised(speaker) == 1)
        assert table.revision(database.snapshot()) == before + 1

    running(hive, scenario)


def run_until(
    hive: Hive, routes: int, *events: StateChanged, also: Callable[[], bool] = lambda: True
) -> None:
    """Run an agent with these events of its sessions until it advertises so many routes."""
    speaker, published = hive.get(SpeakerPort), hive.get(SpeakerEvents)  # type: ignore[type-abstract]

    async def scenario() -> None:
        for event in events:
            published.publish(event)
        await until(lambda: advertised(speaker) == routes and also())

    running(hive, scenario)


def test_a_restart_knows_the_local_address_of_a_session_that_is_down(tmp_path: Path) -> None:
    state = tmp_path / "state"
    rows = (SessionAddress("main", "tor-1", "198.51.100.10"),)

    def stored() -> bool:
        return (state / FILE).exists() and decode((state / FILE).read_bytes()) == rows

    run_until(agent(tmp_path, state_directory=str(state)), 0, OPENED, also=stored)
    run_until(agent(tmp_path, state_directory=str(state)), 0)
    assert stored()
    # Another peer takes its place: the file forgets it.
    hive = agent(tmp_path, state_directory=str(state))
    manifest = tmp_path / "manifests" / "CiliumBGPClusterConfig-rack.json"
    manifest.write_text(manifest.read_text().replace('"tor-1", "peerASN"', '"other", "peerASN"'))
    run_until(hive, 1, also=lambda: decode((state / FILE).read_bytes()) == ())


@pytest.mark.parametrize(
    "octets",
    [
        b"",
        b"[]",
        FORMAT.encode(()).replace(b"/1", b"/2"),
        FORMAT.encode((SessionAddress("i", "p", "192.0.2.1/32"),)),
        FORMAT.encode((SessionAddress("i", "p", ""),)),
    ],
)
def test_a_file_of_local_addresses_that_is_not_its_own_is_refused(octets: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        decode(octets)


def test_the_list_of_reconcilers_has_order_needs_and_the_last_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hive = agent(tmp_path)

    async def scenario() -> list[dict[str, Any]]:
        assert await waggle(tmp_path, "reconcilers") == 0
        table = capsys.readouterr().out
        assert await waggle(tmp_path, "reconcilers", "-o", "json") == 0
        items: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["items"]
        names = [line.split()[1] for line in table.splitlines()[1:]]
        assert names == [item["name"] for item in items]
        return items

    items = running(hive, scenario)
    assert [(item["order"], item["name"], item["objects"]) for item in items] == [
        (10, "instance", 1),
        (20, "route-set", 1),
        (30, "import-policy", 1),
        (40, "peer", 1),
    ]
    for item in items:
        assert item["target"] == "speaker"
        assert (item["errors"], item["waiting"], item["drifted"]) == (0, 0, 0)
        assert item["lastRunTime"].endswith("Z")
        assert item["durationSeconds"] > 0
    assert items[3]["tables"] == ["instances", "peers", "secrets", "bfd-sessions"]
    health = {"/".join(status.path): status.message for status in hive.health.report()}
    assert health["apply/peer"].startswith("1 object, last run took ")


class Forwarding(Instances):
    """A reconciler with another target than the speaker: a list of the instances of the intent."""

    description = Description(
        name="forwarding",
        order=50,
        tables=("instances",),
        target="list",
        summary="one entry per instance",
    )
    entries: dict[ObjectKey, object]

    def changes(self, snapshot: Snapshot) -> Slices[dict[ObjectKey, Parts]]:
        self.entries = self.__dict__.setdefault("entries", {})
        return super().changes(snapshot)

    def actual_objects(self) -> list[ObjectKey]:
        return list(self.entries)

    def still_used(self, keys: object) -> tuple[()]:  # noqa: ARG002  nothing uses an entry
        return ()

    def actual_value(self, key: ObjectKey) -> Any:  # noqa: ANN401
        return self.entries.get(key)

    def set_value(self, key: ObjectKey, value: object) -> None:
        self.entries[key] = value

    def delete(self, key: ObjectKey) -> None:
        del self.entries[key]


def test_only_a_change_of_the_intent_makes_a_round(tmp_path: Path) -> None:
    hive = agent(tmp_path, verify_interval="0")
    runner, intent = hive.get(Runner), hive.get(IntentLoop)
    rounds: list[str] = []
    compiled: list[None] = []
    intent.done.subscribe(compiled.append)
    slices = runner.slices

    def counted(*arguments: Any) -> Slices[RoundSummary]:  # noqa: ANN401
        rounds.append("round")
        return slices(*arguments)

    runner.slices = counted  # type: ignore[method-assign,assignment]

    def save(name: str, address: str, **labels: str) -> None:
        value = service(name, address)
        value["metadata"]["labels"] = labels
        partial = tmp_path / "partial"
        partial.write_text(json.dumps(value))
        partial.rename(tmp_path / "manifests" / f"Service-{name}.json")

    async def scenario() -> None:
        rounds.clear()
        compiled.clear()
        save("other", "198.51.100.11")
        await until(lambda: bool(compiled))
        save("web", "198.51.100.12", expose="true")
        await until(lambda: bool(rounds))
        assert rounds == ["round"]

    running(hive, scenario)


def test_another_cell_contributes_a_reconciler_with_another_target(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    original = agent(tmp_path)
    extra = rewired(
        APPLY, contributes=(*APPLY.wired().contributes, provide(Forwarding, as_=Reconciler))
    )
    cells = tuple(extra if cell is APPLY else cell for cell in original.cells)
    hive = Hive(cells, original.settings)

    async def scenario() -> list[dict[str, Any]]:
        assert await waggle(tmp_path, "verify") == 0
        capsys.readouterr()
        assert await waggle(tmp_path, "reconcilers", "-o", "json") == 0
        found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["items"]
        return found

    items = running(hive, scenario)
    assert [(item["name"], item["target"], item["objects"]) for item in items][-2:] == [
        ("peer", "speaker", 1),
        ("forwarding", "list", 1),
    ]


class Unlisted(Forwarding):
    """A reconciler that cannot list its objects for some rounds."""

    failures = 2

    def objects(self, snapshot: Snapshot) -> Iterable[ObjectKey]:
        if self.failures:
            self.failures -= 1
            raise OSError("no list")
        return super().objects(snapshot)


def test_an_agent_is_not_ready_before_every_reconciler_could_list_its_objects(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    original = agent(tmp_path)
    extra = rewired(
        APPLY, contributes=(*APPLY.wired().contributes, provide(Unlisted, as_=Reconciler))
    )
    cells = tuple(extra if cell is APPLY else cell for cell in original.cells)
    hive = Hive(cells, original.settings)
    speaker = hive.get(SpeakerPort)  # type: ignore[type-abstract]
    seen: list[tuple[bool, bool]] = []

    async def whole() -> None:
        task = asyncio.create_task(hive.run())
        scope = hive.health.scope("apply").scope("forwarding")
        await until(lambda: scope.level() == "degraded")
        # Another target does not wait for it.
        assert speaker.instance_configs()
        seen.append((hive.get(FirstPass).is_set(), hive.readiness.ready))
        await until(lambda: hive.readiness.ready)
        seen.append((hive.get(FirstPass).is_set(), hive.readiness.ready))
        hive.shutdown()
        await task

    asyncio.run(whole())
    assert seen == [(False, False), (True, True)]
    logged = capfd.readouterr().err
    assert "OSError: no list" in logged
    assert "event=apply.recovered" in logged


@pytest.mark.parametrize(
    ("flags", "kept", "limit", "enforced"),
    [
        ({}, 1000, 2_000_000, True),
        ({"keep_received": "7", "received_limit": "5"}, 7, 5, True),
        ({"keep_received": "all", "received_limit": "0"}, None, None, True),
        ({"enforce_first_as": "false"}, 1000, 2_000_000, False),
    ],
)
def test_received_routes_of_a_peer_are_kept_and_limited_as_set(
    flags: dict[str, str], kept: int | None, limit: int | None, enforced: bool, tmp_path: Path
) -> None:
    hive = agent(tmp_path, **flags)
    speaker = hive.get(SpeakerPort)  # type: ignore[type-abstract]

    async def scenario() -> PeerConfig | DynamicPeerConfig:
        (instance,) = speaker.instance_configs()
        (peer,) = speaker.peer_configs(instance).values()
        return peer

    peer = running(hive, scenario)
    assert peer.keep_received == kept
    limits = {one.limit for one in peer.maximum_prefixes}
    assert limits == (set() if limit is None else {limit})
    assert peer.first_as_enforced is enforced


def test_verify_before_the_first_round_is_refused_at_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    hive = agent(tmp_path, verify_interval="0")

    async def scenario() -> None:
        verification = hive.get(VerificationLoop)
        verification._first_pass = FirstPass()
        async with asyncio.timeout(120):
            with pytest.raises(NotReadyError, match="not all sources have been read"):
                await verification.request()
            assert await waggle(tmp_path, "verify") == 1
        assert "nothing has been applied yet" in capfd.readouterr().err

    running(hive, scenario)


def test_statuses_are_computed_once_for_a_change_when_the_speaker_has_followed_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hive = agent(tmp_path, verify_interval="0")
    peers = hive.get(IntentTables).peers
    runner = hive.get(Runner)
    at_runs: list[tuple[int, int]] = []
    """The number of peers that the speaker has, and how often it has followed, at each computation."""
    followed: list[None] = []
    run = StatusRows.run

    def counted(statuses: StatusRows, now: float) -> bool:
        count = 0 if runner.applied is None else peers.count(runner.applied)
        at_runs.append((count, len(followed)))
        return run(statuses, now)

    monkeypatch.setattr(status, "EVERY", 3600.0)
    monkeypatch.setattr(StatusRows, "run", counted)

    def save(kind: str, name: str, ports: Sequence[int] = (1179, 1180)) -> None:
        values = configuration(ports)
        (value,) = (v for v in values if (v["kind"], v["metadata"]["name"]) == (kind, name))
        partial = tmp_path / "partial"
        partial.write_text(json.dumps(value))
        partial.rename(tmp_path / "manifests" / f"{kind}-{name}.json")

    save("CiliumBGPPeerConfig", "tor-2")

    async def scenario() -> None:
        hive.get(ApplyLoop).followed([peers]).subscribe(followed.append)
        save("CiliumBGPClusterConfig", "rack")
        await until(lambda: 2 in dict(at_runs))
        save("CiliumBGPClusterConfig", "rack", [1179])
        await until(lambda: at_runs[-1][0] == 1)
        first = next(at for at, (count, _) in enumerate(at_runs) if count == 2)
        # Neither again after the first change, nor too early after the second one.
        (_, times), last = at_runs[first], at_runs[first + 1 :]
        assert last == [(1, times + 1)]

    running(hive, scenario)
