"""The running agent: sessions, probes, its end, and what it does when something is wrong."""

from __future__ import annotations

import json
import signal
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.cmd.lab import NODE, PYTHON, configuration, established, routers, service
from tests.support.agent import Agent
from tests.support.ports import free_port
from tests.support.quickest import once_within
from tests.support.wait import eventually

pytestmark = pytest.mark.program


def fetch(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=60) as response:  # noqa: S310
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_a_service_becomes_a_route_and_a_change_is_advertised_within_a_second(
    tmp_path: Path,
) -> None:
    with routers(tmp_path, 1) as ports:
        agent = Agent(None, tmp_path, node=NODE)
        agent.write_objects("bgp.json", *configuration(ports))
        agent.write_objects("web.json", service("web", "198.51.100.10"))
        agent.start()
        try:
            established(agent, 1)

            def advertised(*expected: str) -> None:
                routes = agent.routes("advertised")
                assert sorted(route["prefix"] for route in routes) == sorted(expected)

            eventually(lambda: advertised("198.51.100.10/32"))
            (route,) = agent.routes("advertised", peer="tor-1")
            assert route["origins"] == [{"kind": "Service", "namespace": "shop", "name": "web"}]

            def change(number: int) -> None:
                address = f"198.51.100.{11 + number}"
                agent.write_objects("web.json", service("web", address))
                eventually(lambda: advertised(f"{address}/32"))

            once_within(1, change)
            agent.remove("web.json")
            eventually(lambda: advertised())
            (peer,) = agent.command("peers")["items"]
            assert peer["advertised"] == [{"family": "ipv4-unicast", "routes": 0}]
        finally:
            agent.stop()


def test_routes_of_an_address_are_its_longest_match_at_each_peer(tmp_path: Path) -> None:
    with routers(tmp_path, 2, originate=("0.0.0.0/0", "198.51.0.0/16")) as ports:
        agent = Agent(None, tmp_path, node=NODE)
        agent.write_objects("bgp.json", *configuration(ports))
        agent.write_objects("web.json", service("web", "198.51.100.10"))
        agent.start()
        try:

            def found(*arguments: str) -> list[tuple[str, str]]:
                items = agent.command("routes", *arguments)["items"]
                return [(item.get("peer", ""), item["prefix"]) for item in items]

            def complete() -> None:
                assert len(agent.routes("received")) == 4
                assert len(agent.routes("advertised")) == 2

            established(agent, 2)
            eventually(complete)
            default, sixteen, web = "0.0.0.0/0", "198.51.0.0/16", "198.51.100.10/32"
            assert found("received", "198.51.100.10") == [("tor-1", sixteen), ("tor-2", sixteen)]
            assert found("received", "192.0.2.1", "--peer", "tor-2") == [("tor-2", default)]
            assert found("received", sixteen, "--peer", "tor-1") == [("tor-1", sixteen)]
            assert found("198.51.100.10") == [("tor-1", web), ("tor-2", web)]
            assert found("available", "198.51.100.10") == [("", web)]
            (item, _) = agent.command("routes", "ipv4", "198.51.100.10")["items"]
            assert item["origins"] == [{"kind": "Service", "namespace": "shop", "name": "web"}]
            # Nothing is advertised for the address: exit status 4.
            with pytest.raises(RuntimeError, match="status 4"):
                found("198.51.100.11")
            with pytest.raises(RuntimeError, match="status 2"):
                found("ipv6", "198.51.100.10")
        finally:
            agent.stop()


def test_explanations_know_the_sessions(tmp_path: Path) -> None:
    with routers(tmp_path, 1) as ports:
        agent = Agent(None, tmp_path, node=NODE)
        agent.write_objects("bgp.json", *configuration([*ports, free_port("127.0.0.3")]))
        agent.write_objects("web.json", service("web", "198.51.100.10"))
        agent.start()
        try:

            def advertised() -> None:
                assert agent.routes("advertised", peer="tor-1")

            # Before all objects are read nothing is explained.
            eventually(advertised)

            def explained() -> None:
                found = agent.command("explain", "shop/web")["items"]
                reasons = {
                    item["peer"]: item["reason"] for item in found if item.get("prefix") is not None
                }
                assert reasons == {"tor-1": "Advertised", "tor-2": "SessionDown"}

            eventually(explained)
            (item,) = agent.command("explain", "198.51.100.10", "--peer", "tor-2")["items"]
            assert item["advertisedPrefixes"] == ["198.51.100.10/32"]
            assert item["message"].startswith("the session is ")
        finally:
            agent.stop()


def test_a_watch_prints_changes_of_manifests_until_the_agent_stops(tmp_path: Path) -> None:
    agent = Agent(None, tmp_path, node=NODE)
    # In a directory that is then empty, a deletion would be confirmed for a minute.
    agent.write_objects("bgp.json", *configuration([]))
    agent.write_objects("web.json", service("web", "198.51.100.10"))
    agent.start()
    agent.wait_ready()
    command = [*PYTHON, "waggle", "watch", "service", "--socket", str(agent.socket)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watch:
        try:
            assert watch.stdout is not None
            found = [watch.stdout.readline().split()[1:]]
            agent.write_objects("web.json", service("web", "198.51.100.11"))
            found.append(watch.stdout.readline().split()[1:])
            agent.remove("web.json")
            found.append(watch.stdout.readline().split()[1:])
            assert found == [
                ["ADDED", "Service", "shop/web"],
                ["MODIFIED", "Service", "shop/web"],
                ["DELETED", "Service", "shop/web"],
            ]
            agent.daemon.signal(signal.SIGTERM)
            assert agent.daemon.wait(60) == 0
            assert watch.wait(60) == 1
        finally:
            watch.kill()
            agent.stop()


class Hangup:
    """An agent with files of which only SIGHUP has it notice a change at once.

    The kernel reports no change of a file by another name of it; a scan, every five seconds, finds it.
    """

    def __init__(self, directory: Path, ports: list[int]) -> None:
        self.ports = ports
        self.settings = directory / "waggle.yaml"
        self.settings.write_text("cells: {logging: {level: info}}\n")
        self.agent = Agent(None, directory, node=NODE, arguments=["--config", str(self.settings)])
        self.objects = directory / "objects.json"
        self.give("198.51.100.10", ports)
        (self.agent.manifests / "all.json").hardlink_to(self.objects)

    def give(self, address: str, ports: list[int]) -> None:
        """Write the objects: a peer for each port, and a Service."""
        items = [*configuration(ports), service("web", address)]
        self.overwrite(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))

    def overwrite(self, text: str) -> None:
        """Write the objects as they stand in the file, which is empty at no moment.

        A scan may come at any: an empty file has no peers. Of one text over another it has an error.
        """
        self.objects.touch()
        with self.objects.open("r+") as file:
            file.write(text)
            file.truncate()

    def lines_of(self, *events: str, settings: str | None = None) -> list[str]:
        """Send SIGHUP, with other settings; return the new lines of the log with these events."""
        log = self.agent.directory / "log"
        before = len(log.read_text())
        if settings is not None:
            self.settings.write_text(settings)
        self.agent.daemon.signal(signal.SIGHUP)

        def found() -> list[str]:
            self.agent.daemon.check()
            lines = log.read_text()[before:].rpartition("\n")[0].splitlines()
            some = [line for line in lines if any(f"event={one} " in line for one in events)]
            assert some
            return some

        return eventually(found)

    def sessions(self) -> dict[str, str]:
        """Return since when each session is up."""
        return {
            name: peer["sinceTime"]
            for name, peer in self.agent.peers().items()
            if peer["state"] == "Established"
        }

    def check(self, address: str, peers: int) -> None:
        """Check the address that is advertised to the routers, and the number of peers."""
        prefixes = {route["prefix"] for route in self.agent.routes("advertised")}
        assert (prefixes, len(self.agent.peers())) == ({f"{address}/32"}, peers)


def _check_reloads(it: Hangup) -> None:
    """Check what SIGHUP has an agent with two sessions do, right after its start."""
    sessions = it.sessions()
    it.check("198.51.100.10", 2)
    # Differences of the objects; of the settings one is in effect, and the others are named.
    it.give("198.51.100.11", [*it.ports, free_port("127.0.0.4")])
    changed = "cells: {logging: {level: debug}, apply: {verifyInterval: 7}, host: {enabled: false}}"
    (reloaded,) = it.lines_of("agent.reload", settings=changed)
    eventually(lambda: it.check("198.51.100.11", 3))
    assert it.sessions() == sessions
    assert it.agent.health()["logging"]["message"] == "level debug"
    lines = (it.agent.directory / "log").read_text().partition(reloaded)[0].splitlines()
    pending = [line for line in lines if "event=agent.setting_pending " in line]
    assert [line.rpartition("setting=")[2] for line in pending] == [
        "cells.host.enabled",
        "cells.apply.verifyInterval",
    ]
    (applied,) = [line for line in lines if "event=agent.setting_applied " in line]
    assert applied.endswith("setting=cells.logging.level")
    # Files that cannot be used change nothing, and are named.
    it.overwrite('{"kind": [')
    wrong = "cells: {logging: {level: error}, http: {adress: 9100}}"
    (failed,) = it.lines_of("agent.reload_failed", settings=wrong)
    text = f"{it.settings}: cells.http.adress: unknown key (did you mean address?)"
    assert failed.endswith(f'reason="{text}"')
    eventually(lambda: _in("all.json", it.agent.health()["manifests"]["message"]))
    it.check("198.51.100.11", 3)
    assert it.sessions() == sessions
    assert it.agent.health()["logging"]["message"] == "level debug"


def test_sighup_applies_differences_and_sigterm_closes_the_sessions_and_ends_with_0(
    tmp_path: Path,
) -> None:
    with routers(tmp_path, 2) as ports:
        it = Hangup(tmp_path, ports)
        agent = it.agent
        agent.start()
        try:
            established(agent, 2)
            _check_reloads(it)
            established(agent, 2)
            agent.daemon.signal(signal.SIGTERM)
            assert agent.daemon.wait(60) == 0
        finally:
            agent.stop()
        assert not agent.socket.exists()
        for number in (1, 2):
            log = tmp_path / f"router-{number}.log"
            eventually(lambda log=log: _contains(log, "Cease"))  # type: ignore[misc]


def _contains(path: Path, text: str) -> None:
    assert text in path.read_text()


def test_probes_succeed_after_the_first_pass(tmp_path: Path) -> None:
    port = free_port("127.0.0.1")
    url, address = f"http://127.0.0.1:{port}", ["--http-address", str(port)]
    objects = configuration([free_port("127.0.0.2")])
    # A peer that is down holds it up for a while, and no longer.
    patient = Agent(
        None, tmp_path / "patient", node=NODE, arguments=[*address, "--ready-timeout-seconds=1000"]
    )
    patient.write_objects("bgp.json", *objects)
    patient.start()
    try:
        patient.wait_ready()
        assert fetch(f"{url}/livez") == (200, "ok\n")
        text = "waits for peer main/tor-1, for 1000 s at most"
        eventually(lambda: _in(text, fetch(f"{url}/readyz")[1]))
    finally:
        patient.stop()
    agent = Agent(None, tmp_path, node=NODE, arguments=[*address, "--ready-timeout-seconds=1"])
    agent.write_objects("bgp.json", *objects)
    agent.start()
    try:
        agent.wait_ready()
        eventually(lambda: _equals(fetch(f"{url}/readyz"), (200, "ok\n")))
        # The log has a thread of its own.
        eventually(lambda: _in("event=readiness.timeout ", (tmp_path / "log").read_text()))
        agent.write("broken.yaml", "kind: [\n")
        eventually(lambda: _in("broken.yaml", fetch(f"{url}/healthz?verbose")[1]))
        # A peer that refuses the connection and an invalid file degrade the health, and fail no probe.
        status, text = fetch(f"{url}/healthz?verbose")
        assert status == 200
        assert "broken.yaml" in text
        eventually(lambda: _in("main/tor-1 degraded: ", fetch(f"{url}/healthz?verbose")[1]))
        metrics = fetch(f"{url}/metrics")[1]
        for name in (
            "waggle_bgp_session_up{",
            'waggle_reconcile_duration_seconds_count{controller="intent"}',
            'waggle_source_objects{kind="nodes"} 1.0',
            "waggle_ready 1.0",
        ):
            assert name in metrics
        (peer,) = eventually(lambda: _with_reason("refused", agent))
        assert peer["state"] != "Established"
        assert "advertised" not in peer
    finally:
        agent.stop()


def _with_reason(text: str, agent: Agent) -> list[dict[str, Any]]:
    """Return the peers, of which each has such a reason: none while it connects."""
    peers = list(agent.peers().values())
    assert all(text in peer["reason"] for peer in peers)
    return peers


def _equals(found: object, expected: object) -> None:
    assert found == expected


def _in(part: str, whole: str) -> None:
    assert part in whole


def test_the_cells_of_a_running_agent_show_its_health(tmp_path: Path) -> None:
    agent = Agent(None, tmp_path, node=NODE)
    agent.start()
    try:
        agent.wait_ready()
        done = subprocess.run(
            [sys.executable, "-m", "waggle_agent", "cells", "--api-socket", agent.socket],
            capture_output=True,
            text=True,
            check=True,
        )
        assert f"api: ok: listening on {agent.socket}" in done.stdout
        # The agent has not imported it; its wiring is known all the same.
        off = done.stdout.partition("\nhttp: disabled (--http-address is not set)\n")[2]
        assert off.splitlines()[1] == "    needs Metrics (metrics)"
        (http,) = [item for item in agent.ask("/v1/cells") if item["name"] == "http"]
        assert (http["enabled"], http["needs"]) == (False, [])
        assert stat.S_IMODE(agent.socket.stat().st_mode) == 0o600
    finally:
        agent.stop()


def test_a_second_agent_on_the_same_socket_exits_and_leaves_the_first_unaffected(
    tmp_path: Path,
) -> None:
    agent = Agent(None, tmp_path, node=NODE)
    agent.start()
    try:
        agent.wait_ready()
        second = subprocess.run(
            [sys.executable, "-m", "waggle_agent", "--api-socket", agent.socket],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert second.returncode == 1
        assert f"waggle-agent: --api-socket: another agent listens on {agent.socket}" in (
            second.stderr
        )
        assert agent.peers() == {}
    finally:
        agent.stop()


def test_an_agent_starts_after_a_killed_one(tmp_path: Path) -> None:
    agent = Agent(None, tmp_path, node=NODE)
    agent.start()
    agent.wait_ready()
    agent.daemon.kill()
    assert agent.socket.exists()
    agent.start()
    try:
        agent.wait_ready()
    finally:
        agent.stop()


def test_f35_a_permanently_failed_job_ends_the_process_with_1(tmp_path: Path) -> None:
    code = """
import sys
import cells.observability.metrics

async def broken(self):
    raise ZeroDivisionError("on purpose")

cells.observability.metrics.Metrics._measure_lag = broken
from waggle_agent.__main__ import main
sys.exit(main(sys.argv[1:]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code,
         "--api-socket", tmp_path / "s", "--log-format", "json"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )  # fmt: skip
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    events = [json.loads(line) for line in lines if line.startswith("{")]
    assert [event["event"] for event in events].count("job.failed") == 5
    assert lines[-1] == (
        "waggle-agent: job metrics.loop-lag failed for good after 5 restarts: "
        "ZeroDivisionError: on purpose"
    )
