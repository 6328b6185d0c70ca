"""The running operator: ended in order, so that the next leader waits for no Lease to expire."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.cmd.lab import PYTHON
from tests.support.apiserver import BackgroundApiServer
from tests.support.daemon import Daemon
from tests.support.wait import eventually

pytestmark = pytest.mark.program


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_an_operator_that_is_ended_releases_its_lease(
    number: signal.Signals, tmp_path: Path
) -> None:
    with BackgroundApiServer() as server:
        command = [*PYTHON, "waggle_operator", "--operator-identity", "one", "--kubeconfig"]
        kubeconfig = server.kubeconfig(tmp_path / "kubeconfig")
        operator = Daemon("operator", [*command, kubeconfig], log=tmp_path / "log")

        def run() -> None:
            """Run it once; the server has some seconds, which a busy machine may not have for it."""
            operator.start()
            try:
                eventually(lambda: _holds(operator, server, "one"))
                operator.signal(number)
                assert operator.wait(60) == 0
                _holds(None, server, "")
            finally:
                operator.stop()

        eventually(run)


def _holds(operator: Daemon | None, server: BackgroundApiServer, identity: str) -> None:
    if operator is not None:
        operator.check()
    assert server.holders == {"waggle-operator": identity}
