"""TTL security (RFC 5082) two hops away: namespaces in a row, and peers that disagree about the TTL."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from cells.api.client import at_socket
from tests.support.daemon import Daemon
from tests.support.netns import Link, Namespace, linked_namespaces, router_between
from tests.support.wait import eventually

pytestmark = [pytest.mark.interop, pytest.mark.netns, pytest.mark.program]

PORT = 1790
HERE = "10.98.0.1"
OPEN = "ff" * 16 + "001d01" + "04fdf3005a0a62000b00"
"""Of AS 65011, without capabilities; `SENT` octets come back if the connection is accepted."""
WITHIN, BEYOND = "10.98.0.11", "10.98.0.12"
"""Both two hops away: the first may be, of the other only one hop is permitted."""
ATTEMPTS = 20

CONNECT = f"""
import socket, sys
source, attempts, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
answered = 0
for _ in range(attempts):
    with socket.socket() as sock:
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, 255)
        sock.settimeout(seconds)
        sock.bind((source, 0))
        try:
            sock.connect(({HERE!r}, {PORT}))
            sock.send(bytes.fromhex({OPEN!r}))
            answered += len(sock.recv(100)) > 0
        except OSError:
            pass
print(answered)
"""


def answers(link: Link, source: str, attempts: int, seconds: float) -> int:
    """Return how many connections from an address of the far namespace received an answer.

    ``seconds``: for which each waits for it.
    """
    done = subprocess.run(
        [*link.right.command(), sys.executable, "-c", CONNECT, source, str(attempts), str(seconds)],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return int(done.stdout)


def start_router(
    stack: contextlib.ExitStack, namespace: Namespace, path: Path, document: dict[str, Any]
) -> Daemon:
    """Start a router with a file."""
    path.write_text(json.dumps(document))
    router = Daemon(
        path.stem,
        [sys.executable, "-m", "waggle", "router", "-c", path],
        log=path.with_suffix(".log"),
        namespace=namespace,
    )
    router.start()
    stack.callback(router.stop)
    eventually(lambda: _listens(router), context=router.tail)
    return router


def _listens(router: Daemon) -> None:
    assert "listens on" in router.tail()


def test_two_hops_in_place_of_one_bring_the_session_up_at_once(tmp_path: Path) -> None:
    """The router connects again after SIGHUP, and its listener takes the other's connections."""

    def file(number: int, address: str, other: str, **neighbor: object) -> dict[str, Any]:
        return {
            "asn": 65000 + number,
            "routerID": address,
            "listen": [{"address": address, "port": PORT}],
            "apiSocket": str(tmp_path / f"api{number}"),
            "neighbors": [{"address": other, "port": PORT, "localAddress": address, **neighbor}],
        }

    here = tmp_path / "here.yaml"

    def established() -> bool:
        (peer,) = at_socket(tmp_path / "api1").get("/v1/peers", {})["items"]
        return bool(peer["state"] == "Established")

    with linked_namespaces() as link, contextlib.ExitStack() as stack:
        stack.enter_context(router_between(link, (HERE, WITHIN)))
        far = file(2, WITHIN, HERE, ttlSecurity=2, connectRetryTime=1)
        start_router(stack, link.right, tmp_path / "far.yaml", far)
        near = start_router(stack, link.left, here, file(1, HERE, WITHIN, ttlSecurity=1))
        # The other end tries each second, and its packets are dropped.
        time.sleep(2)
        assert not established()
        here.write_text(json.dumps(file(1, HERE, WITHIN, ttlSecurity=2)))
        near.signal(signal.SIGHUP)

        def up() -> None:
            assert established()

        # The default of connectRetryTime is 120 seconds.
        eventually(up, context=near.tail)
        here.write_text(json.dumps(file(1, HERE, WITHIN, ttlSecurity=1)))
        near.signal(signal.SIGHUP)
        eventually(lambda: _is(not established()), context=near.tail)


def _is(holds: bool) -> None:
    assert holds


def test_h02_a_host_two_hops_away_gets_in_only_where_two_are_permitted(tmp_path: Path) -> None:
    others = [
        {"address": f"10.{200 + n // 250}.{n % 250}.1", "passive": True, "ttlSecurity": 1 + n % 2}
        for n in range(1000)
    ]
    document = {
        "asn": 65001,
        "routerID": HERE,
        "listen": [{"address": "0.0.0.0", "port": PORT}],
        "apiSocket": str(tmp_path / "api"),
        "neighbors": [
            {"address": WITHIN, "passive": True, "ttlSecurity": 2},
            {"address": BEYOND, "passive": True, "ttlSecurity": 1},
            *others,
        ],
    }
    with linked_namespaces() as link, contextlib.ExitStack() as stack:
        stack.enter_context(router_between(link, (HERE, WITHIN), ("10.98.0.2", BEYOND)))
        # The second pair is there for its far address alone.
        link.right.batch(f"route replace {HERE}/32 via 169.254.2.2")
        link.left.batch(f"route replace {BEYOND}/32 via 169.254.1.2 src {HERE}")
        router = start_router(stack, link.left, tmp_path / "router.yaml", document)
        assert answers(link, WITHIN, 1, 60.0) == 1
        assert answers(link, BEYOND, ATTEMPTS, 0.2) == 0
        assert "could not be set" not in router.tail()
