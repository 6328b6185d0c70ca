"""The right to write routes of one protocol number in one network namespace.

Two writers with one number would adopt, and remove, each other's routes. The name of an abstract Unix
socket belongs to a network namespace, as routes do, and the kernel frees it when its process ends,
however that ends.
"""

from __future__ import annotations

import errno
import socket
from typing import final


@final
class ProtocolLock:
    """The lock of one writer; it has the one of at most one protocol number."""

    def __init__(self) -> None:
        self._protocol = 0
        self._holder: socket.socket | None = None

    def take(self, protocol: int) -> bool:
        """Take the lock of a protocol number in place of the former one.

        Returns False if another process has it. Raises `OSError`.
        """
        if self._holder is not None and self._protocol == protocol:
            return True
        self.release()
        holder = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            holder.bind(f"\0waggle-kernel/{protocol}")
        except OSError as error:
            holder.close()
            if error.errno != errno.EADDRINUSE:
                raise
            return False
        self._protocol, self._holder = protocol, holder
        return True

    def release(self) -> None:
        """Let another writer have it."""
        if self._holder is not None:
            self._holder.close()
            self._holder = None
