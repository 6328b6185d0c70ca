"""Two writers in one network namespace, with one protocol number and with two."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconcilers.kernel.writer.protocol import prefixes
from reconcilers.kernel.writer.protocol_messages import Health, Reason, Settings
from tests.reconcilers.kernel.writer.conftest import OTHER, Ground
from tests.support.kernel_writer import WriterProcess, gateways, routes, wire
from tests.support.netns import DEVICE

pytestmark = [pytest.mark.netns, pytest.mark.program]


def test_the_second_writer_of_a_protocol_number_waits_until_the_first_has_ended(
    ground: Ground, object_writer: WriterProcess, tmp_path: Path
) -> None:
    object_writer.install((ground.a,), "10.1.0.0/16")
    second = WriterProcess(ground.side, tmp_path / "second.sock")
    try:
        second.greet()
        second.send(Settings())
        assert second.expect(Health).problem == (
            "another waggle-kernel writes routes with the protocol number 186 in this network "
            "namespace; nothing is written until it has ended: end it, or use another --fib-protocol"
        )
        object_writer.install((ground.b,), "10.2.0.0/16")
        object_writer.kill()
        assert second.expect(Health).problem == ""
        listed = {p for each in second.listing() for r in each.routes for p in prefixes(r.prefixes)}
        assert listed == {wire("10.1.0.0/16"), wire("10.2.0.0/16")}
        second.install((ground.b,), "10.1.0.0/16")
        assert gateways(routes(ground.side)["10.1.0.0/16"]) == {("198.51.100.2", OTHER, 1)}
    finally:
        second.end()


def test_writers_of_two_protocol_numbers_share_a_namespace(
    ground: Ground, object_writer: WriterProcess, tmp_path: Path
) -> None:
    second = WriterProcess(ground.side, tmp_path / "second.sock")
    try:
        assert second.connect(Settings(protocol=187)) == []
        object_writer.install((ground.a,), "10.1.0.0/16")
        second.install((ground.a,), "10.2.0.0/16")
        (failure,) = second.install((ground.b,), "10.1.0.0/16").failures
        assert failure.reason is Reason.OCCUPIED
        assert gateways(routes(ground.side)["10.1.0.0/16"]) == {("192.0.2.2", DEVICE, 1)}
    finally:
        second.end()
    assert "10.2.0.0/16" in ground.side.run("ip", "route", "show", "proto", "187")
