"""`kernel` of `waggle router`: received routes in the kernel of its namespace."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.interop.conftest import NeedRouter
from tests.support.daemon import Daemon
from tests.support.netns import linked_namespaces
from tests.support.routers import KINDS, PeerSettings, Router, RouterSettings
from tests.support.routers.base import IPV4
from tests.support.wait import eventually

pytestmark = [pytest.mark.interop, pytest.mark.netns, pytest.mark.program]

OURS, THEIRS, PORT = "10.99.0.1", "10.99.0.2", 1790
PREFIX, OTHER = "203.0.113.0/24", "198.51.100.0/24"
FILE = """asn: 64710
routerID: 10.99.0.1
kernel: {metric: 33, keep: false}
policies:
  some: {terms: [{match: {prefixes: [203.0.113.0/24]}}]}
neighbors:
  - {address: 10.99.0.2, asn: 64701, port: 1790, import: some, connectRetryTime: 1}
"""


def test_routes_that_the_import_policy_accepts_are_installed(
    need_router: NeedRouter, tmp_path: Path
) -> None:
    need_router("bird")
    session = PeerSettings(OURS, 64710, port=PORT, families=(IPV4,), passive=True)
    file = tmp_path / "router.yaml"
    socket = tmp_path / "api"
    file.write_text(f"{FILE}apiSocket: {socket}\n")
    with linked_namespaces() as link, contextlib.ExitStack() as stack:
        link.left.add_address(f"{OURS}/24")
        link.right.add_address(f"{THEIRS}/24")
        bird: Router = KINDS["bird"](
            RouterSettings(64701, THEIRS, (THEIRS,), (session,), PORT),
            link.right,
            tmp_path / "bird",
        )
        ours = Daemon(
            "waggle router",
            [sys.executable, "-m", "waggle", "router", "-c", file],
            log=tmp_path / "log",
            namespace=link.left,
        )

        def installed(*expected: str) -> None:
            rows = json.loads(link.left.run("ip", "-j", "route", "show", "proto", "186"))
            assert [(row["dst"], row["gateway"], row["metric"]) for row in rows] == [
                (prefix, THEIRS, 33) for prefix in expected
            ]

        def logs() -> str:
            return f"{ours.tail()}\n{bird.daemon.tail()}"

        for part in (bird, ours):
            part.start()
            stack.callback(part.stop)
        bird.wait_ready()
        bird.announce(PREFIX, OTHER)
        eventually(lambda: installed(PREFIX), context=logs)
        bird.withdraw(PREFIX)
        eventually(installed, context=logs)
        bird.announce(PREFIX)
        eventually(lambda: installed(PREFIX), context=logs)
        ask = [sys.executable, "-m", "waggle", "routes", "kernel", "--socket", str(socket)]
        listed = subprocess.run([*ask, "-o", "json"], capture_output=True, check=True).stdout
        (item,) = json.loads(listed)["items"]
        assert (item["node"], item["prefix"], item["state"]) == (OURS, PREFIX, "Installed")
        assert subprocess.run([*ask, "--approve"], capture_output=True, check=False).returncode == 0
        ours.stop()
        installed()
