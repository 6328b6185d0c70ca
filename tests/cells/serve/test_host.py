"""What an agent says of its host."""

from __future__ import annotations

import ctypes
import errno
import gzip
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cells.serve.host import (
    TIME_ERROR,
    TIMEX,
    UNKNOWN_ERROR,
    _is_synchronized,
    has_vrf,
    interfaces,
    is_synchronized,
)


@pytest.mark.parametrize(
    ("state", "error", "expected"),
    [
        pytest.param(0, 2000, True, id="by the kernel's own state"),
        pytest.param(TIME_ERROR, 2000, True, id="by chrony without rtcsync"),
        pytest.param(TIME_ERROR, UNKNOWN_ERROR, False, id="nothing corrects the clock"),
        pytest.param(-1, 0, None, id="not permitted"),
    ],
)
def test_a_clock_is_synchronized(state: int, error: int, expected: bool | None) -> None:
    assert is_synchronized(state, error) is expected


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ("CONFIG_VETH=y\n# CONFIG_NET_VRF is not set\n", False),
        ("CONFIG_NET_VRF=m\n", None),  # it may be loaded
        (None, None),
    ],
)
def test_a_kernel_without_vrfs_is_reported(
    tmp_path: Path, config: str | None, expected: bool | None
) -> None:
    if config is not None:
        (tmp_path / "config.gz").write_bytes(gzip.compress(config.encode()))
    assert has_vrf(tmp_path) is expected
    (tmp_path / "sys/net/vrf").mkdir(parents=True)
    assert has_vrf(tmp_path) is True


def test_interfaces_that_lead_to_no_router_have_no_mtu(tmp_path: Path) -> None:
    given = (("eth0", 9000, "up"), ("eth1", 1500, "down"), ("bond0", 9000, "unknown"))
    for name, mtu, state in (*given, ("cilium_host", 1450, "up"), ("flannel.1", 1450, "unknown")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mtu").write_text(f"{mtu}\n")
        (tmp_path / name / "operstate").write_text(f"{state}\n")
    assert [(one.name, one.mtu) for one in interfaces(tmp_path)] == [
        ("bond0", 9000),
        ("eth0", 9000),
    ]


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO, errno.ENOENT])
def test_what_the_kernel_does_not_show_is_not_known_and_hides_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", fails)
        patch.setattr(os, "listdir", fails)
        found = has_vrf(tmp_path), list(interfaces(tmp_path))
    assert found == (None, [])


@pytest.mark.parametrize(
    "name",
    [
        "lo", "veth12ab", "cali0123", "lxc45cd", "cni0", "docker0", "dummy0", "kube-ipvs0",
        "nodelocaldns", "virbr0", "cilium_net", "flannel.1", "vxlan.calico", "geneve0",
        "genev_sys_6081", "tunl0", "antrea-gw0", "ovn-k8s-mp0", "ovs-system",
    ],
)  # fmt: skip
def test_an_interface_of_pods_tunnels_or_bridges_leads_to_no_router(
    name: str, tmp_path: Path
) -> None:
    for directory in (tmp_path / name, tmp_path / f"x{name}"):
        directory.mkdir()
        (directory / "mtu").write_text("1500\n")
        (directory / "operstate").write_text("up\n")
    assert [interface.name for interface in interfaces(tmp_path)] == [f"x{name}"]


@pytest.mark.parametrize(
    ("state", "error", "expected"),
    [(0, 2000, True), (TIME_ERROR, UNKNOWN_ERROR, False), (TIME_ERROR, 2000, True), (-1, 0, None)],
)
def test_the_state_of_the_clock_is_what_the_kernel_answers(
    state: int, error: int, expected: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def adjtimex(timex: Any) -> int:  # noqa: ANN401  a buffer of ctypes
        TIMEX.pack_into(timex, 0, 0, 0, 0, error)
        return state

    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace(adjtimex=adjtimex))
    assert _is_synchronized() is expected
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace())
    assert _is_synchronized() is None
