"""Features of the kernel, and what it permits this process."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from pathlib import Path
from typing import Final

from reconcilers.kernel.writer import listings
from reconcilers.kernel.writer.netlink import Kernel

_NET_ADMIN: Final = 1 << 12
_NS_GET_USERNS: Final = 0xB701
"""linux/nsfs.h: the user namespace that owns a namespace; EPERM if it is beyond our own."""
_COMPATIBLE: Final = Path("/proc/sys/net/ipv4/nexthop_compat_mode")


def has_objects(kernel: Kernel) -> bool:
    """True if the kernel has the feature of nexthop objects, and shows their gateways beside them.

    Readers that know no objects need them, as OVN-Kubernetes.
    """
    with contextlib.suppress(OSError):
        if _COMPATIBLE.read_text().strip() == "0":
            return False
    try:
        listings.objects(kernel)
    except OSError as error:
        if error.errno != errno.EOPNOTSUPP:
            raise
        return False
    return True


def refusal() -> str:
    """Return why the kernel does not permit this process to write routes; empty if it does."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:") and not int(line.split()[1], 16) & _NET_ADMIN:
            return "the writer of kernel routes lacks the capability NET_ADMIN"
    try:
        with Path("/proc/self/ns/net").open() as namespace:
            os.close(fcntl.ioctl(namespace, _NS_GET_USERNS))
    except PermissionError:
        return (
            "the network namespace belongs to another user namespace: NET_ADMIN of the writer of "
            "kernel routes has no effect in it"
        )
    except OSError:
        # Before Linux 4.9 the kernel does not answer.
        pass
    return ""
