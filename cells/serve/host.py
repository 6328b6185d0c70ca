"""The host of an agent as an item of the API: what ``waggle doctor`` has to know of each node.

Read when it is requested: instances from the speaker, the rest from the kernel.
"""

from __future__ import annotations

import ctypes
import functools
import gzip
import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from cells.api.model import HostInstanceItem, HostItem, InterfaceItem, SupportItem
from cells.state.node import ThisNode
from speaker.api import SpeakerPort

TCP_MD5SIG: Final = 14
"""Of setsockopt(2), see tcp(7)."""
TIME_ERROR: Final = 5
"""The value of adjtimex(2) while the clock is not synchronized."""
TIMEX_OCTETS: Final = 1024
"""More than a struct timex has."""
TIMEX: Final = struct.Struct("@I3l")
"""Its first members: modes, offset, freq, maxerror, the last one in microseconds."""
UNKNOWN_ERROR: Final = 16_000_000
"""The kernel's limit of maxerror, which it reaches if nothing corrects the clock for hours."""
MAX_CONFIG: Final = 1 << 21
"""Octets of the configuration of a kernel, which has some 250,000."""
MAX_INTERFACES: Final = 64
DOWN: Final = "down"
"""The operstate of an interface without a link; that of some drivers is unknown."""
VIRTUAL: Final = (
    *("lo", "veth", "cali", "lxc", "cni", "docker", "dummy", "kube-ipvs", "nodelocaldns", "virbr"),
    *("cilium_", "flannel", "vxlan", "geneve", "genev_sys", "tunl", "antrea-", "ovn-k8s", "ovs-"),
)
"""Beginnings of the names of interfaces that lead to no router."""


class AgentHost:
    """The host of the agent."""

    def __init__(self, node: ThisNode, speaker: SpeakerPort) -> None:
        self._node = node.name
        self._speaker = speaker

    def host(self) -> HostItem:
        """Return the host as it is now."""
        return HostItem(
            node=self._node,
            kernel=os.uname().release,
            clock_synchronized=_is_synchronized(),
            supports=SupportItem(tcp_md5=_has_md5(), vrf=has_vrf(), ipv6=_has_ipv6()),
            interfaces=list(interfaces(Path("/sys/class/net"))),
            instances=[
                HostInstanceItem(
                    name=instance.name,
                    local_asn=instance.local_asn,
                    router_id=instance.router_id,
                    vrf=instance.vrf,
                    listening=[f"{address}:{port}" for address, port in instance.listening],
                    listen_error=instance.listen_error,
                )
                for instance in self._speaker.instances()
            ],
        )


def _is_synchronized() -> bool | None:
    """Return whether the kernel's clock is synchronized; None where it does not report it."""
    timex = ctypes.create_string_buffer(TIMEX_OCTETS)
    try:
        state = ctypes.CDLL(None).adjtimex(timex)
    except (AttributeError, OSError):
        return None
    return is_synchronized(state, TIMEX.unpack_from(timex)[3])


def is_synchronized(state: int, maximum_error: int) -> bool | None:
    """Return what adjtimex(2) means: chrony without ``rtcsync`` leaves the state, not the error."""
    return None if state < 0 else state != TIME_ERROR or maximum_error < UNKNOWN_ERROR


def _has_md5() -> bool | None:
    """Return whether a socket takes a TCP MD5 key; None where that cannot be tried."""
    address = struct.pack("=HH4s120x", socket.AF_INET, 0, socket.inet_aton("127.0.0.1"))
    key = struct.pack("=xxHI80s", 1, 0, b"x")
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
            sock.setsockopt(socket.IPPROTO_TCP, TCP_MD5SIG, address + key)
    except PermissionError:
        return None
    except OSError:
        return False
    return True


def has_vrf(proc: Path = Path("/proc")) -> bool | None:
    """Return whether the kernel has VRFs; None where they may be a module that is not loaded."""
    if os.path.exists(proc / "sys/net/vrf"):  # noqa: PTH110  False, whatever the system raises
        return True
    return False if _is_without_vrf(proc / "config.gz") else None


@functools.cache
def _is_without_vrf(config: Path) -> bool:
    """Return whether the configuration of the kernel, where it has it, excludes VRFs."""
    try:
        with gzip.open(config) as file:
            return b"# CONFIG_NET_VRF is not set\n" in file.read(MAX_CONFIG)
    except OSError:
        return False


def _has_ipv6() -> bool:
    return os.path.exists("/proc/net/if_inet6")  # noqa: PTH110  as `has_vrf`


def interfaces(directory: Path) -> Iterator[InterfaceItem]:
    """Yield the interfaces that may lead to routers and are not down, with their MTUs."""
    try:
        listed = os.listdir(directory)  # noqa: PTH208  names alone
    except OSError:
        return  # there is no sysfs, or this process may not read it
    names = sorted(name for name in listed if not name.startswith(VIRTUAL))
    for name in names[:MAX_INTERFACES]:
        try:
            mtu = int((directory / name / "mtu").read_text())
            is_down = (directory / name / "operstate").read_text().strip() == DOWN
        except (OSError, ValueError):
            continue  # it has gone meanwhile
        if not is_down:
            yield InterfaceItem(name=name, mtu=mtu)
