"""``waggle-kernel`` and ``waggle-bfd``: what their flags are to the services, sockets, and errors."""

from __future__ import annotations

import gc
import os
import resource
import signal
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from cells.hive.capabilities import IPC_LOCK
from cells.unix_socket import SHARED_MODE
from reconcilers.bfd.process import realtime
from reconcilers.bfd.process.service import Policy
from reconcilers.kernel.writer.service import VERIFY_SECONDS
from waggle_bfd import __main__ as bfd
from waggle_kernel import __main__ as kernel


class Service:
    """In place of what serves: has what it was given."""

    made: list[Service]

    def __init__(self, listener: socket.socket, *given: Any, **named: Any) -> None:  # noqa: ANN401
        self.given, self.named = given, named
        self.listener = listener
        self.socket = listener.getsockname()
        self.mode = stat.S_IMODE(Path(self.socket).stat().st_mode) if self.socket else None
        self.listens = listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        self.handlers: list[Any] = []
        self.ended = self.ran = 0
        self.made.append(self)

    def run(self) -> None:
        """Serve: call what the signals call."""
        self.ran += 1
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
        for number in (signal.SIGTERM, signal.SIGINT):
            handler: Any = signal.getsignal(number)
            assert handler not in (signal.SIG_DFL, signal.default_int_handler)
            handler(number, None)

    def end(self) -> None:
        """Count."""
        self.ended += 1


@pytest.fixture(autouse=True)
def _signals() -> Iterator[None]:
    handled = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in handled}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(name="kept")
def _kept(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[Any, ...]]]:
    kept: list[tuple[Any, ...]] = []

    def keep(run: Callable[[], int], *given: Any, **named: Any) -> int:  # noqa: ANN401
        kept.append((*given, named))
        return run()

    Service.made = []
    for program, name in ((kernel, "Service"), (bfd, "BfdService")):
        monkeypatch.setattr(program, name, Service)
        monkeypatch.setattr(program, "keep", keep)
        monkeypatch.setattr(gc, "freeze", lambda: None)
    monkeypatch.setattr(resource, "setrlimit", lambda *_: None)
    monkeypatch.setattr(realtime, "enter", lambda: "the scheduling")
    monkeypatch.setattr(bfd, "serve", lambda _: None)
    monkeypatch.setattr(bfd, "keep_only", lambda _: None)
    monkeypatch.setattr(bfd, "open_echo_sockets", lambda: "the echo sockets")
    yield kept
    for service in Service.made:
        service.listener.close()


def test_a_writer_of_a_container_of_its_own_has_a_socket_until_it_ends(
    tmp_path: Path, kept: list[tuple[Any, ...]]
) -> None:
    path = tmp_path / "s"
    assert kernel.main(["--socket", str(path)]) == 0
    (service,) = Service.made
    assert (service.given, service.named) == (
        ("waggle-kernel",),
        {"objects": True, "lifeline": None, "verify_seconds": VERIFY_SECONDS},
    )
    assert (service.socket, service.listens, service.ran) == (str(path), 1, 1)
    assert service.mode == SHARED_MODE
    assert service.ended == 2, "by either signal"
    assert (kept, path.exists()) == ([], False)


def test_bfd_is_kept_by_a_parent_and_given_its_policy(
    tmp_path: Path, kept: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    capabilities: list[set[int]] = []
    limits: list[tuple[int, int]] = []
    monkeypatch.setattr(bfd, "keep_only", capabilities.append)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 4096))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limit: limits.append(limit))
    path = tmp_path / "s"
    flags = ["--state-directory", str(tmp_path), "--least-interval", "50.5", "--alone", "7"]
    assert bfd.main(["--socket", str(path), *flags, "--at-end", "admin-down"]) == 0
    (service,) = Service.made
    policy = Policy(50_500, "admin-down", 7.0)
    assert service.given == ("waggle-bfd", "the scheduling", policy)
    assert service.named == {"directory": tmp_path, "echo_sockets": "the echo sockets"}
    assert (service.socket, service.listens, service.mode) == (str(path), 1, SHARED_MODE)
    named = {"first_pause": 0.0, "forgotten": 1.0}
    assert kept == [("the process with the sessions", named)]
    assert (capabilities, limits) == ([{IPC_LOCK}], [(4096, 4096)])
    assert not path.exists()


def test_without_flags_bfd_stays_and_its_intervals_are_at_least_300_ms(
    tmp_path: Path, kept: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    capabilities: list[set[int]] = []
    monkeypatch.setattr(bfd, "keep_only", capabilities.append)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert bfd.main(["--socket", str(tmp_path / "s")]) == 0
    (service,) = Service.made
    assert service.given[2] == Policy(300_000, "keep", None)
    assert service.named == {"directory": None, "echo_sockets": "the echo sockets"}
    assert capabilities == [], "without root there is none to drop"


@pytest.mark.parametrize("program", [kernel, bfd], ids=["kernel", "bfd"])
def test_a_socket_that_cannot_be_made_is_an_error(
    program: ModuleType,
    tmp_path: Path,
    kept: list[tuple[Any, ...]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "file").touch()
    path = tmp_path / "file" / "s"
    assert program.main(["--socket", str(path)]) == program.EXIT_ERROR != 0
    assert str(path.parent) in capsys.readouterr().err
    assert (kept, Service.made) == ([], [])


@pytest.mark.parametrize("program", [kernel, bfd], ids=["kernel", "bfd"])
@pytest.mark.parametrize("flags", [[], ["--socket", "s", "--listener", "3"]], ids=["none", "both"])
def test_there_is_one_way_to_the_agent(
    program: ModuleType, flags: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        program.main(flags)
    assert ended.value.code == 2
    assert "--socket" in capsys.readouterr().err
