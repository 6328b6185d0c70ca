"""F58: an agent that starts without the configuration that it should have is not ready."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from cells.hive import Level, load
from cells.hive.hive import Hive
from cells.intent.cell import IntentLoop
from cells.intent.configuration_gate import GATE
from reconcilers.intent_tables import IntentTables
from statedb import Database
from tests.cmd.lab import NODE, configuration, service
from tests.support.ports import free_port
from tests.support.wait import until
from waggle_agent.__main__ import CELLS


class Agent:
    """An agent on manifests with a state directory; it may run several times."""

    def __init__(self, directory: Path) -> None:
        self.manifests = directory / "manifests"
        self.manifests.mkdir()
        self._state = directory / "state"
        self.bgp = self.manifests / "bgp.yaml"
        items = configuration([free_port("127.0.0.2")])
        self.content = "---\n".join(json.dumps(item) + "\n" for item in items)
        (self.manifests / "web.json").write_text(json.dumps(service("web", "198.51.100.10")))

    def run(self, scenario: Callable[[Hive], Awaitable[None]], *, hold: str = "60") -> None:
        """Run the agent while the scenario lasts."""
        flags = {
            "--manifests": [str(self.manifests)],
            "--state-directory": str(self._state),
            "--node-name": NODE,
            "--ready-timeout-seconds": "0",
            "--mass-withdraw-hold": hold,
            "disable_cell": ["logging", "api"],
        }
        hive = Hive(CELLS, load(CELLS, flags=flags))

        async def whole() -> None:
            task = asyncio.create_task(hive.run())
            try:
                async with asyncio.timeout(120):
                    await scenario(hive)
            finally:
                hive.shutdown()
                await task

        asyncio.run(whole())


def peers(hive: Hive) -> int:
    return hive.get(IntentTables).peers.count(hive.get(Database).snapshot())


async def ready(hive: Hive) -> None:
    await until(lambda: hive.readiness.ready)


def waiting(hive: Hive) -> str:
    """Return why the agent is not ready, once the sources have been read."""
    found = hive.readiness.waiting()
    return found.get(GATE, "") if "sources" not in found else ""


def test_the_gate_is_closed_until_the_objects_are_compiled(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    agent.bgp.write_text(agent.content)

    async def scenario(hive: Hive) -> None:
        await until(lambda: not waiting(hive) and GATE not in hive.readiness.waiting())
        assert hive.get(IntentLoop).ready

    agent.run(scenario)


@pytest.mark.parametrize("at_its_end", [False, True])
def test_f58_a_restart_with_a_broken_file_has_its_peers_from_the_state_directory(
    at_its_end: bool, tmp_path: Path
) -> None:
    agent = Agent(tmp_path)
    agent.bgp.write_text(agent.content)
    agent.run(ready)
    agent.bgp.write_text(agent.content * at_its_end + "broken: [")

    async def scenario(hive: Hive) -> None:
        await ready(hive)
        assert peers(hive) == 1
        assert hive.health.scope("manifests").level() is Level.DEGRADED

    agent.run(scenario)


def test_f58_a_restart_with_a_broken_file_is_not_ready_until_it_is_repaired(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    agent.bgp.write_text("broken: [")

    async def scenario(hive: Hive) -> None:
        text = f"a usable configuration: a file cannot be used: {agent.bgp}:2: "
        await until(lambda: waiting(hive).startswith(text))
        assert hive.health.scope("readiness").level() is Level.DEGRADED
        agent.bgp.write_text(agent.content)
        await ready(hive)
        assert peers(hive) == 1
        assert hive.health.scope("readiness").level() is Level.OK
        agent.bgp.write_text("broken: [")
        await until(lambda: hive.health.scope("manifests").level() is Level.DEGRADED)
        assert hive.readiness.ready
        assert peers(hive) == 1

    agent.run(scenario)


def test_f58_a_file_whose_end_is_broken_is_not_ready_though_its_peers_are_there(
    tmp_path: Path,
) -> None:
    agent = Agent(tmp_path)
    agent.bgp.write_text(agent.content + "---\nbroken: [")
    text = f"a usable configuration: a file cannot be used: {agent.bgp}:"

    async def broken(hive: Hive) -> None:
        await until(lambda: waiting(hive).startswith(text))
        assert peers(hive) == 1

    async def scenario(hive: Hive) -> None:
        await broken(hive)
        first = waiting(hive)
        # Read again, it has still had no version that was complete.
        agent.bgp.write_text(agent.content + "---\n\nbroken: [")
        await until(lambda: waiting(hive).startswith(text) and waiting(hive) != first)
        agent.bgp.write_text(agent.content)
        await ready(hive)

    agent.run(broken)
    # Nor is the part that was read one of the last valid versions of a restart.
    agent.run(scenario)


def test_f58_an_invalid_object_without_a_valid_version_is_not_ready_where_no_peer_is(
    tmp_path: Path,
) -> None:
    agent = Agent(tmp_path)
    agent.bgp.write_text(agent.content.replace('"localASN": 65001', '"localASN": "many"'))

    async def scenario(hive: Hive) -> None:
        await until(lambda: "CiliumBGPClusterConfig/rack" in waiting(hive))
        agent.bgp.write_text(agent.content)
        await ready(hive)

    agent.run(scenario)


def test_values_of_a_later_release_leave_an_agent_without_a_session_not_ready(
    tmp_path: Path,
) -> None:
    agent = Agent(tmp_path)
    later = agent.content.replace('"peerAddress": "127.0.0.2"', '"autoDiscovery": {"mode": "Lldp"}')
    assert later != agent.content
    agent.bgp.write_text(later)

    async def scenario(hive: Hive) -> None:
        text = "peer 'tor-1' is not configured: the mode 'Lldp' is not known; DefaultGateway"
        await until(lambda: text in waiting(hive))
        assert waiting(hive).startswith("a usable configuration: there is no peer, as none can be")
        assert hive.health.scope("readiness").level() is Level.DEGRADED
        agent.bgp.write_text(agent.content)
        await ready(hive)

    # Whatever the last run had, and without one.
    agent.run(scenario, hold="0")
    agent.bgp.write_text(later)
    agent.run(scenario)


def test_f58_an_invalid_service_does_not_concern_readiness(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    (agent.manifests / "web.json").write_text(json.dumps(service("web", "198.51.100.10")) * 1)
    broken = service("bad", "198.51.100.11")
    broken["spec"]["type"] = "Mail"
    (agent.manifests / "bad.json").write_text(json.dumps(broken))
    agent.run(ready)


def test_f58_a_restart_without_the_peers_of_the_last_run_is_not_ready(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    agent.bgp.write_text(agent.content)
    agent.run(ready)
    agent.bgp.unlink()

    async def not_ready(hive: Hive) -> None:
        await until(lambda: "there is no peer, and the last run had 1" in waiting(hive))

    agent.run(not_ready)
    agent.run(not_ready)
    agent.run(ready, hold="0")

    async def back(hive: Hive) -> None:
        await until(lambda: "the last run had 1" in waiting(hive))
        agent.bgp.write_text(agent.content)
        await ready(hive)
        agent.bgp.unlink()
        await until(lambda: not peers(hive))

    agent.run(back)
    # Deleted while it ran, and so on purpose.
    agent.run(ready)


def test_f58_an_agent_without_its_directory_is_not_ready(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    agent.bgp.write_text(agent.content)
    away = agent.manifests.rename(tmp_path / "away")

    async def scenario(hive: Hive) -> None:
        await until(lambda: "there is no such file or directory" in waiting(hive))
        away.rename(agent.manifests)
        await ready(hive)
        assert peers(hive) == 1

    agent.run(scenario)
