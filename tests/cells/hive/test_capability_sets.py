"""Which capabilities a process has and gives up, from files in the form of proc(5)."""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cells.hive import capabilities
from cells.hive.capabilities import IPC_LOCK, NET_ADMIN, children_have, give_up, keep_only

SETS = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")


class Kernel:
    """The sets of one process, in a directory in place of /proc, and the calls that change them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.sets = dict.fromkeys(SETS, 0)
        self.threads: dict[str, dict[str, int]] = {}
        self.calls: list[tuple[Any, ...]] = []
        self.fails: dict[str, int] = {}
        """The errno of a call."""
        self.write()

    def write(self) -> None:
        for place, sets in {"self": self.sets, **self.threads}.items():
            name = place if place == "self" else f"self/task/{place}"
            (self.directory / name).mkdir(parents=True, exist_ok=True)
            lines = ["Name:\twaggle", *(f"{name}:\t{value:016x}" for name, value in sets.items())]
            (self.directory / name / "status").write_text("\n".join(lines))
        (self.directory / "self/task").mkdir(exist_ok=True)
        (self.directory / "sys/kernel").mkdir(parents=True, exist_ok=True)
        (self.directory / "sys/kernel/cap_last_cap").write_text("40\n")

    def path(self, text: str) -> Path:
        assert text.startswith("/proc/")
        return self.directory / text.removeprefix("/proc/")

    def _result(self, name: str) -> int:
        ctypes.set_errno(self.fails.get(name, 0))
        return -1 if name in self.fails else 0

    # The C library

    def prctl(self, *arguments: int) -> int:
        self.calls.append(("prctl", *arguments))
        return self._result("drop" if arguments[0] == 24 else "lower")

    def capget(self, header: Any, data: Any) -> int:  # noqa: ANN401
        assert (header._obj.version, header._obj.pid) == (0x20080522, 0)
        for word, of in enumerate(data):
            shift = 32 * word
            of.effective = self.sets["CapEff"] >> shift & 0xFFFFFFFF
            of.permitted = self.sets["CapPrm"] >> shift & 0xFFFFFFFF
            of.inheritable = self.sets["CapInh"] >> shift & 0xFFFFFFFF
        return self._result("capget")

    def capset(self, header: Any, data: Any) -> int:  # noqa: ANN401
        assert (header._obj.version, header._obj.pid) == (0x20080522, 0)
        values = {"CapEff": 0, "CapPrm": 0, "CapInh": 0}
        for word, of in enumerate(data):
            values["CapEff"] |= of.effective << 32 * word
            values["CapPrm"] |= of.permitted << 32 * word
            values["CapInh"] |= of.inheritable << 32 * word
        self.sets.update(values)
        self.write()
        return self._result("capset")


@pytest.fixture(name="kernel")
def _kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    kernel = Kernel(tmp_path)

    def library(name: object, *, use_errno: bool) -> Kernel:
        assert (name, use_errno) == (None, True)
        return kernel

    monkeypatch.setattr(capabilities, "Path", kernel.path)
    monkeypatch.setattr(
        capabilities,
        "ctypes",
        SimpleNamespace(CDLL=library, byref=ctypes.byref, get_errno=ctypes.get_errno),
    )
    return kernel


Holding = Callable[..., None]


@pytest.fixture(name="hold")
def _hold(kernel: Kernel) -> Holding:
    def hold(*numbers: int, sets: tuple[str, ...] = SETS) -> None:
        for name in sets:
            kernel.sets[name] = sum(1 << number for number in numbers)
        kernel.write()

    return hold


def test_a_capability_that_a_process_has_not_is_not_given_up(kernel: Kernel, hold: Holding) -> None:
    assert not give_up(NET_ADMIN)
    # In the bounding set alone no program gains it by itself.
    hold(NET_ADMIN, sets=("CapBnd", "CapAmb"))
    assert not give_up(NET_ADMIN)
    assert kernel.calls == []


@pytest.mark.parametrize("name", SETS[:3])
def test_a_capability_of_any_set_is_removed_from_all(
    kernel: Kernel, hold: Holding, name: str
) -> None:
    hold(NET_ADMIN, IPC_LOCK, 38, sets=(name,))
    assert give_up(NET_ADMIN)
    assert kernel.sets[name] == 1 << IPC_LOCK | 1 << 38
    assert kernel.calls == [("prctl", 24, NET_ADMIN, 0, 0, 0), ("prctl", 47, 3, NET_ADMIN, 0, 0)]


def test_capabilities_of_the_second_word_are_removed(kernel: Kernel, hold: Holding) -> None:
    hold(6, 38)
    assert give_up(38)
    assert [kernel.sets[name] for name in SETS[:3]] == [1 << 6] * 3


@pytest.mark.parametrize("call", ["drop", "capget", "capset"])
def test_a_call_that_fails_is_its_error(kernel: Kernel, hold: Holding, call: str) -> None:
    hold(NET_ADMIN)
    kernel.fails[call] = errno.EINVAL
    with pytest.raises(OSError, match="Invalid argument") as caught:
        give_up(NET_ADMIN)
    assert caught.value.errno == errno.EINVAL


def test_without_the_right_the_bounding_set_stays_and_old_kernels_have_no_ambient_one(
    kernel: Kernel, hold: Holding
) -> None:
    hold(NET_ADMIN)
    kernel.fails = {"drop": errno.EPERM, "lower": errno.EINVAL}
    assert give_up(NET_ADMIN)
    assert kernel.sets["CapPrm"] == 0


def test_threads_that_keep_it_are_counted(kernel: Kernel, hold: Holding) -> None:
    hold(NET_ADMIN)
    of = dict.fromkeys(SETS, 0)
    kernel.threads = {
        "1": of,
        "2": {**of, "CapPrm": 1 << NET_ADMIN},
        "3": {**of, "CapEff": 1 << NET_ADMIN},
        "4": {**of, "CapInh": 1 << NET_ADMIN},
    }
    kernel.write()
    (kernel.directory / "self/task/5").mkdir()  # it has ended
    with pytest.raises(OSError, match="2 threads keep the capability") as caught:
        give_up(NET_ADMIN)
    assert caught.value.errno == errno.EBUSY


@pytest.mark.parametrize(
    ("user", "sets", "expected"),
    [
        (0, ("CapEff",), True),
        (0, ("CapAmb",), False),
        (1000, ("CapEff", "CapPrm", "CapInh"), False),
        (1000, ("CapAmb",), True),
    ],
)
def test_programs_that_are_started_have_the_effective_set_of_root_or_the_ambient_set(
    hold: Holding,
    monkeypatch: pytest.MonkeyPatch,
    user: int,
    sets: tuple[str, ...],
    *,
    expected: bool,
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    hold(NET_ADMIN, sets=sets)
    assert children_have(NET_ADMIN) is expected
    assert not children_have(IPC_LOCK)


def test_all_but_some_are_dropped_and_the_right_to_do_so_last(
    kernel: Kernel, hold: Holding
) -> None:
    hold(0, 8, NET_ADMIN, IPC_LOCK, 40)
    keep_only({NET_ADMIN})
    assert [kernel.sets[name] for name in SETS[:3]] == [1 << NET_ADMIN] * 3
    dropped = [call[2] for call in kernel.calls if call[1] == 24]
    assert dropped == [0, IPC_LOCK, 40, 8]


@pytest.mark.parametrize("error", [FileNotFoundError, ProcessLookupError])
def test_a_thread_that_ends_while_it_is_looked_at_keeps_nothing(
    kernel: Kernel, hold: Holding, monkeypatch: pytest.MonkeyPatch, error: type[OSError]
) -> None:
    hold(NET_ADMIN)
    kernel.threads["2"] = {**kernel.sets, "CapPrm": 1 << NET_ADMIN}
    kernel.write()
    original = Path.read_text

    def read_text(path: Path) -> str:
        if path.parent.name == "2":
            raise error
        return original(path)

    monkeypatch.setattr(Path, "read_text", read_text)
    assert give_up(NET_ADMIN)
