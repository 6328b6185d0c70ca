"""Sockets whose device goes, and connections that wait for one."""

from __future__ import annotations

import asyncio
import errno
import functools
import socket
from collections.abc import Callable, Coroutine
from typing import ParamSpec

import pytest

from speaker.engine.inputs import DeviceFound, Input
from speaker.server import bound_devices
from speaker.server.bound_devices import POLL_SECONDS, BoundDevices
from speaker.server.listener import Listener
from speaker.server.sockets import bound_device
from tests.support import looptime
from tests.support.wait import until

P = ParamSpec("P")


class BoundSocket:
    """A socket as far as its device goes."""

    family = socket.AF_INET

    def __init__(self, device: str | None) -> None:
        self.device = device

    def setsockopt(self, *_: int) -> None:
        """Set nothing."""

    def getsockopt(self, _level: int, name: int, _size: int) -> bytes:
        assert name == socket.SO_BINDTODEVICE
        if self.device is None:
            raise OSError(errno.ENODEV, "No such device")
        return self.device.encode() + b"\0"


class Watched:
    """The devices of sockets, looked for often."""

    def __init__(self) -> None:
        self.inputs: list[Input] = []
        self.lost: list[str] = []
        self.devices = BoundDevices(self.inputs.append)

    def watch(self, device: str | None, key: int = 1) -> BoundSocket:
        sock = BoundSocket(device)
        self.devices.watch(key, sock, self.lost.append)
        return sock


def run(test: Callable[P, Coroutine[None, None, None]]) -> Callable[P, None]:
    """Run a test in virtual time."""

    @functools.wraps(test)
    def ran(*args: P.args, **kwargs: P.kwargs) -> None:
        looptime.run(test(*args, **kwargs))

    return ran


@pytest.mark.parametrize("after", [None, "blue"])
@run
async def test_a_socket_loses_a_device_that_is_deleted_or_renamed(after: str | None) -> None:
    watched = Watched()
    sock, other = watched.watch("red"), watched.watch("green", 2)
    await asyncio.sleep(10 * POLL_SECONDS)
    assert not watched.lost
    sock.device = after
    await until(lambda: watched.lost)
    await asyncio.sleep(10 * POLL_SECONDS)
    assert watched.lost == ["interface red is gone"]
    other.device = None
    await until(lambda: len(watched.lost) == 2)
    watched.devices.close()


@run
async def test_a_forgotten_device_reports_no_loss_and_without_sockets_no_timer_runs() -> None:
    watched = Watched()
    sock = watched.watch("red")
    watched.devices.forget(1)
    sock.device = None
    await asyncio.sleep(10 * POLL_SECONDS)
    assert not watched.lost
    assert watched.devices._timer is None


@run
async def test_a_socket_that_is_bound_to_no_device_is_not_watched() -> None:
    watched = Watched()
    watched.watch("")
    with socket.socket() as plain:
        assert bound_device(plain) is None
        watched.devices.watch(2, plain, watched.lost.append)
    assert watched.devices._timer is None


@run
async def test_a_device_that_is_there_again_is_an_input_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    present: set[str] = set()
    monkeypatch.setattr(bound_devices, "_exists", present.__contains__)
    watched = Watched()
    watched.devices.missing("red")
    watched.devices.missing("red")
    await asyncio.sleep(10 * POLL_SECONDS)
    assert not watched.inputs
    present.add("red")
    await until(lambda: watched.inputs)
    await asyncio.sleep(10 * POLL_SECONDS)
    assert watched.inputs == [DeviceFound("red")]


def test_the_kernel_says_what_exists() -> None:
    assert bound_devices._exists("lo")
    assert not bound_devices._exists("nowhere0")


@run
async def test_a_listening_socket_is_opened_again_on_the_device_of_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watched = Watched()
    listener = Listener(
        instance="red",
        address="127.0.0.1",
        port=0,
        device="lo",
        accept=lambda: pytest.fail("no connection"),
        changed=lambda changed: errors.append(changed.error),
        devices=watched.devices,
    )
    errors: list[str | None] = []
    listener.start({}, {})
    await until(lambda: listener.bound is not None)
    first = listener.bound
    with monkeypatch.context() as patch:
        patch.setattr(bound_devices, "bound_device", lambda _: None)
        await until(lambda: len(errors) > 1)
    await until(lambda: errors[-1] is None and len(errors) > 2)
    assert errors == [None, "listen on 127.0.0.1 port 0: interface lo is gone", None]
    assert listener.bound not in (None, first)
    await listener.close()
    watched.devices.close()
