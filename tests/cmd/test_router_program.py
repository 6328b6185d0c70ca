"""``waggle router`` as a process: routes, reloads, its socket, monitoring."""

from __future__ import annotations

import re
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cells.api.client import AgentError, at_socket
from speaker.nlri import IPV4_UNICAST
from tests.cmd.router_process import MINIMAL, Process, command, write
from tests.support.bmp import Station


def left_out(router: Process) -> int:
    """Return how many IPv4 routes the only peer of a router does not get."""
    (peer,) = router.ask("peers")
    return sum(count.get("leftOut", 0) for count in peer["advertised"])


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[Process, Process]]:
    one = Process(
        tmp_path,
        "one",
        "asn: 65000\nrouterID: 192.0.2.1\nlisten: [{address: 127.0.0.1, port: 0}]\n"
        "originate: [10.1.0.0/16, 'fd01::/32']\n"
        "neighbors: [{prefix: 127.0.0.0/8, import: all, export: all}]",
    )
    port = int(one.line.rsplit(" ", 1)[1])
    other = Process(
        tmp_path,
        "two",
        "asn: 65002\nrouterID: 192.0.2.2\noriginate: [10.2.0.0/16]\n"
        f"neighbors: [{{address: 127.0.0.1, port: {port}, asn: 65000, localAddress: 127.0.0.2,\n"
        "  import: all, export: local, connectRetryTime: 1}]",
    )
    try:
        yield one, other
    finally:
        one.end()
        other.end()


@pytest.mark.program
def test_two_routers_exchange_routes_and_end_in_order(two: tuple[Process, Process]) -> None:
    one, other = two
    assert one.line.startswith("waggle router AS 65000 (192.0.2.1) listens on 127.0.0.1 port ")
    assert "runs without a listening address" in other.line
    one.until(lambda: one.prefixes() == {"10.1.0.0/16", "fd01::/32", "10.2.0.0/16"})
    other.until(lambda: other.prefixes() == {"10.1.0.0/16", "fd01::/32", "10.2.0.0/16"})
    (peer,) = one.ask("peers")
    assert (peer["state"], peer["peerASN"], peer["dynamic"]) == ("Established", 65002, True)
    assert peer["received"][0] == {"family": "ipv4-unicast", "routes": 1, "accepted": 1}

    assert command("announce", "10.3.0.0/16", "fd03::/32", "--socket", str(other.socket),
                   "--community", "65002:3", "--med", "7") == 0  # fmt: skip
    one.until(lambda: {"10.3.0.0/16", "fd03::/32"} <= one.prefixes())
    (route,) = [r for r in one.ask("routes", table="available") if r["prefix"] == "10.3.0.0/16"]
    assert (route["asPath"], route["communities"], route["med"]) == ("65002", ["65002:3"], 7)
    assert route["nextHop"] == "127.0.0.2"
    # A route that does not fit a message is not advertised, and reported with its reason.
    too_long = [f"1:2:{number}" for number in range(5_461)]
    at_socket(other.socket).post(
        "/v1/announce",
        {"prefixes": ["10.9.0.0/16"], "largeCommunities": too_long},
    )
    other.until(lambda: left_out(other) == 1)
    assert "10.9.0.0/16" in other.prefixes()
    assert "10.9.0.0/16" not in other.prefixes("advertised")
    assert command("withdraw", "10.3.0.0/16", "10.9.0.0/16", "-c", str(other.path)) == 0
    other.until(lambda: left_out(other) == 0)
    one.until(lambda: "10.3.0.0/16" not in one.prefixes())

    assert other.end() == 0
    (line,) = [line for line in other.errors.splitlines() if "is not advertised" in line]
    assert re.fullmatch(r".+: 10\.9\.0\.0/16 is not advertised: .+ \(1 so far\)", line)
    one.until(lambda: one.prefixes() == {"10.1.0.0/16", "fd01::/32"})
    assert one.end() == 0
    assert not one.socket.exists()


@pytest.mark.program
def test_sighup_applies_the_differences_and_an_invalid_file_changes_nothing(
    two: tuple[Process, Process],
) -> None:
    one, other = two
    one.until(lambda: "10.2.0.0/16" in one.prefixes())
    (peer,) = one.ask("peers")
    assert command("announce", "10.7.0.0/16", "--socket", str(one.socket)) == 0
    text = one.path.read_text()
    changed = text.replace("'fd01::/32'", "10.4.0.0/16").replace(
        "neighbors: [", "neighbors: [{address: 127.0.0.9, name: added, asn: 65009, passive: true}, "
    )

    def reload(content: str) -> str:
        one.path.write_text(content)
        one.process.send_signal(signal.SIGHUP)
        assert one.process.stderr is not None
        while f"{one.path}: " not in (line := one.process.stderr.readline()):
            pass
        return line

    assert reload(changed + "lisen: []\n") == (
        f'waggle router: {one.path}: unknown key "lisen"; did you mean listen?: nothing is changed\n'
    )
    assert {p["name"] for p in one.ask("peers")} == {peer["name"]}
    assert reload(changed) == f"waggle router: {one.path}: reloaded\n"
    assert one.prefixes() == {"10.1.0.0/16", "10.4.0.0/16", "10.7.0.0/16", "10.2.0.0/16"}
    other.until(lambda: "10.4.0.0/16" in other.prefixes() and "fd01::/32" not in other.prefixes())
    # The session that did not change is the same one.
    peers = {p["name"]: p for p in one.ask("peers")}
    assert set(peers) == {peer["name"], "added"}
    same = peers[peer["name"]]
    assert (same["sinceTime"], same["flaps"]) == (peer["sinceTime"], 0)
    # A change of the neighbour's own configuration applies: its routes are no longer imported.
    assert reload(changed.replace("import: all, ", "")) == f"waggle router: {one.path}: reloaded\n"
    one.until(lambda: "10.2.0.0/16" not in one.prefixes())
    assert reload(text.replace("{prefix: 127.0.0.0/8, import: all, export: all}", "")) == (
        f"waggle router: {one.path}: reloaded\n"
    )
    assert one.ask("peers") == []
    other.until(lambda: other.ask("peers")[0]["state"] != "Established")
    assert "de-configured" in str(other.ask("peers")[0]["lastError"]).lower()
    assert one.end() == 0


@pytest.mark.program
def test_a_monitoring_station_receives_all_messages(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        port = server.getsockname()[1]
        router = Process(
            tmp_path,
            "watched",
            f"{MINIMAL}originate: [10.1.0.0/16]\nbmp: {{collectors: [{{address: 127.0.0.1,"
            f" port: {port}}}], systemName: r1}}",
        )
        try:
            client, _ = server.accept()
            with client:
                client.settimeout(60)
                station = Station()
                while not any(m.loc_rib.ended for m in station.monitored.values()):
                    station.feed(client.recv(65536))
                (collector,) = router.ask("collectors")
                assert (collector["connected"], collector["synchronized"]) == (True, True)
                assert command("announce", "10.2.0.0/16", "--socket", str(router.socket)) == 0
                while len(station.loc_rib.loc_rib.routes[IPV4_UNICAST]) < 2:
                    station.feed(client.recv(65536))
                assert router.end() == 0
                while not station.terminated:
                    station.feed(client.recv(65536))
        finally:
            router.end()


@pytest.mark.program
def test_the_socket_is_private_and_survives_invalid_requests(two: tuple[Process, Process]) -> None:
    one, _ = two
    assert stat.S_IMODE(one.socket.stat().st_mode) == 0o600
    invalid = (
        b"nonsense\n",
        b"GET /v1/explode HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /v1/peers?x=1 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /v1/routes?table=received&peer=absent HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /v1/announce HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}",
    )
    for octets in invalid:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(one.socket))
            client.sendall(octets)
            assert client.recv(65536).startswith((b"HTTP/1.0 4", b"HTTP/1.1 4")), octets
    for body in (
        {"prefixes": ["10.0.0.1/24"]},
        {"prefixes": ["10.0.0.0/24"], "communities": ["1:99999"]},
    ):
        with pytest.raises(AgentError):
            at_socket(one.socket).post("/v1/announce", body)
    assert one.ask("peers")


def resident(router: Process) -> int:
    """Return the memory of a router in MiB."""
    status = Path(f"/proc/{router.process.pid}/status").read_text()
    return int(next(x for x in status.splitlines() if x.startswith("VmRSS")).split()[1]) // 1024


@pytest.mark.program
def test_a_router_uses_little_memory_and_imports_its_server_for_the_first_question(
    two: tuple[Process, Process],
) -> None:
    one, _ = two
    assert resident(one) < 45
    with socket.socket(socket.AF_UNIX) as controller:
        controller.settimeout(60)
        controller.connect(str(one.socket))
        for action in (b"announce", b"withdraw"):
            body = b'{"prefixes":["10.9.0.0/16"]}'
            fields = b"Host: x\r\nContent-Length: %d" % len(body)
            controller.sendall(b"POST /v1/%s HTTP/1.1\r\n%s\r\n\r\n%s" % (action, fields, body))
            assert controller.recv(65536).startswith(b"HTTP/1.1 200 ")
    assert resident(one) < 45
    one.until(lambda: "10.2.0.0/16" in one.prefixes())
    assert resident(one) < 56


@pytest.mark.program
def test_a_file_at_the_path_of_the_socket_is_kept(tmp_path: Path) -> None:
    precious = tmp_path / "x.sock"
    precious.write_text("precious")
    path = write(tmp_path, MINIMAL + f"apiSocket: {precious}\n")
    done = subprocess.run(
        [sys.executable, "-m", "waggle", "router", "-c", str(path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "exists and is not a socket" in done.stderr
    assert precious.read_text() == "precious"
