"""TCP ports for servers that listen later, or again: no other test and no connection takes them.

A port that the kernel has chosen, and that was closed, is given to the next server of another worker,
or to an outgoing connection. The ports here are outside the kernel's range for both, and each process
that runs tests has blocks of its own. An abstract Unix socket stands for a block: a network namespace
has its own names of these, as it has its own ports, and the kernel frees them when the process ends.
"""

from __future__ import annotations

import errno
import random
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

PORTS_OF_BLOCK: Final = 100
_LOWEST: Final = 10_000
"""Programs of this project, and others that tests start, have their usual ports below it."""
_RANGE: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")


def chosen_by_kernel() -> range:
    """Return the ports of outgoing connections, and of servers that listen on port 0."""
    lowest, highest = map(int, _RANGE.read_text().split())
    return range(lowest, highest + 1)


def _blocks() -> list[range]:
    all_ports = range(_LOWEST, 65_536 - PORTS_OF_BLOCK, PORTS_OF_BLOCK)
    blocks = [range(first, first + PORTS_OF_BLOCK) for first in all_ports]
    taken = chosen_by_kernel()
    outside = [each for each in blocks if each[-1] < taken[0] or each[0] > taken[-1]]
    # Where the kernel may choose all ports, a block is still no other worker's.
    found = outside or blocks
    random.SystemRandom().shuffle(found)
    return found


class Ports:
    """The ports of one process; each is given once."""

    def __init__(self, blocks: Sequence[range]) -> None:
        self._ports = self._claimed(blocks)

    def free(self, address: str) -> int:
        """Return a port at which no one listens at this address, and no one will."""
        for port in self._ports:
            with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as probe:
                try:
                    probe.bind((address, port))
                except OSError as error:
                    if error.errno != errno.EADDRINUSE:
                        raise
                else:
                    return port
        raise RuntimeError("all blocks of ports have been claimed by processes that run tests")

    @staticmethod
    def _claimed(blocks: Sequence[range]) -> Iterator[int]:
        for block in blocks:
            claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            try:
                claim.bind(f"\0waggle-tests-ports-{block[0]}")
            except OSError as error:
                claim.close()
                if error.errno != errno.EADDRINUSE:
                    raise
            else:
                claim.detach()  # open until the process ends
                yield from block


_OURS: Final = Ports(_blocks())


def free_port(address: str) -> int:
    """Return a TCP port that is free at this address, and stays this process's."""
    return _OURS.free(address)
