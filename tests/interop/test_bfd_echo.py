"""The echo function with FRR's bfdd: both ends send echo packets, and both kernels return them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from speaker.bfd.values import Diagnostic, SessionKey, Settings, State
from tests.interop.conftest import NeedRouter
from tests.support.bfd_process import bfd_in
from tests.support.daemon import Daemon
from tests.support.netns import DEVICE, Namespace, linked_namespaces
from tests.support.wait import NotReadyError, eventually

pytestmark = [pytest.mark.interop, pytest.mark.netns, pytest.mark.program]

OURS, THEIRS = "192.0.2.1", "192.0.2.2"
KEY = SessionKey(THEIRS, "")
ECHO, CONTROL = 50, 100
CONFIGURATION = f"""bfd
 peer {OURS} interface {DEVICE}
  echo-mode
  echo transmit-interval {ECHO}
  echo receive-interval {ECHO}
  receive-interval {CONTROL}
  transmit-interval {CONTROL}
 !
!
"""


class Bfdd:
    """FRR's ``bfdd`` and its ``zebra``, by which it knows interfaces."""

    def __init__(self, namespace: Namespace, directory: Path) -> None:
        self._namespace, self._directory = namespace, directory
        (directory / "bfdd.conf").write_text(CONFIGURATION)
        (directory / "zebra.conf").touch()
        # It insists on a user of its own group for vtysh, which root need not be in.
        (directory / "group").write_text("root:x:0:\nfrrvty:x:999:root\n")
        self.zebra = self._daemon("zebra")
        self.bfdd = self._daemon("bfdd", "--bfdctl", str(directory / "bfdd.sock"))

    def _daemon(self, name: str, *flags: str) -> Daemon:
        here = self._directory
        mount = 'mount --bind "$0" /etc/group && exec "$@"'
        command: list[str | Path] = [
            *("unshare", "--mount", "sh", "-c", mount, here / "group"),
            *(f"/usr/lib/frr/{name}", "-f", here / f"{name}.conf", "-i", here / f"{name}.pid"),
            *("-z", here / "zserv", "--vty_socket", here, "-A", "127.0.0.1", "-P", "0"),
            *("-u", "root", "-g", "root", "--log", "stdout", *flags),
        ]
        return Daemon(name, command, log=here / f"{name}.log", namespace=self._namespace)

    def show(self, what: str) -> dict[str, Any]:
        question = ("--vty_socket", str(self._directory), "-c", f"show bfd peers {what} json")
        try:
            (peer,) = json.loads(self._namespace.run("vtysh", *question))
        except RuntimeError as error:
            raise NotReadyError(str(error)) from error
        return dict(peer)


@contextlib.contextmanager
def bfdd_in(namespace: Namespace, directory: Path) -> Iterator[Bfdd]:
    router = Bfdd(namespace, directory)
    try:
        router.zebra.start()

        def listens() -> None:
            assert (directory / "zserv").exists()

        eventually(listens, context=router.zebra.tail)
        router.bfdd.start()
        yield router
    finally:
        router.bfdd.stop()
        router.zebra.stop()


def test_both_ends_send_echo_packets_and_a_forwarding_that_stops_is_a_loss(
    need_router: NeedRouter, tmp_path: Path
) -> None:
    need_router("frr")
    with linked_namespaces() as link:
        for side, address in ((link.left, OURS), (link.right, THEIRS)):
            side.add_address(f"{address}/24")
            side.run("sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward")
        with bfdd_in(link.right, tmp_path) as router, bfd_in(link.left) as process:
            settings = Settings(
                desired_min_tx=CONTROL * 1000,
                required_min_rx=CONTROL * 1000,
                echo_interval=ECHO * 1000,
                required_min_echo_rx=ECHO * 1000,
            )
            process.set(KEY, settings)

            def echoing() -> None:
                status, theirs = process.status(KEY), router.show("")
                counted = router.show("counters")
                assert (status.state, theirs["status"]) == (State.UP, "up")
                assert status.echoes_received > 20
                assert counted["echo-packet-input"] > 20
                # Control packets are slow meanwhile: read from their side.
                assert theirs["remote-receive-interval"] == 1000

            eventually(echoing, within=60, context=router.bfdd.tail)
            link.right.run("sh", "-c", "echo 0 >/proc/sys/net/ipv4/ip_forward")

            def lost() -> None:
                status = process.status(KEY)
                assert status.ups > 1 or status.diagnostic == Diagnostic.ECHO_FUNCTION_FAILED

            eventually(lost, within=30, context=router.bfdd.tail)
