"""The right to write routes of one protocol number in one network namespace.

Two writers with one number would adopt, and remove, each other's routes. The name of an abstract Unix
socket belongs to a network namespace, as routes do, and the kernel frees it when its process ends,
however that ends. Any process may take such a name: that of another user is no writer, and holds
nothing up.
"""

from __future__ import annotations

import contextlib
import errno
import socket
from typing import Final, final

from reconcilers.process.connection import is_trusted
from reconcilers.process.log import log

_WAITING: Final = 128
"""Connections of writers that wait, until `answer` accepts them."""
MAX_UNANSWERED: Final = 150
"""Attempts in a row, one a second, that a holder leaves unanswered; a writer accepts each minute."""


@final
class ProtocolLock:
    """The lock of one writer; it has the one of at most one protocol number."""

    def __init__(self) -> None:
        self._protocol = 0
        self._holder: socket.socket | None = None
        self._unanswered = 0

    def take(self, protocol: int) -> bool:
        """Take the lock of a protocol number in place of the former one.

        Returns False if another writer has it. Raises `OSError`.
        """
        if self._holder is not None and self._protocol == protocol:
            return True
        self.release()
        name = f"\0waggle-kernel/{protocol}"
        holder = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            holder.bind(name)
            holder.listen(_WAITING)
        except OSError as error:
            holder.close()
            if error.errno != errno.EADDRINUSE:
                raise
            return self._is_usurped(name)
        holder.setblocking(False)
        self._protocol, self._holder = protocol, holder
        return True

    def _is_usurped(self, name: str) -> bool:
        """Return whether a process that is no writer has the name."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as question:
            question.setblocking(False)
            try:
                question.connect(name)
            except OSError as error:
                self._unanswered += 1
                usurped = error.errno == errno.EPROTOTYPE or self._unanswered >= MAX_UNANSWERED
            else:
                self._unanswered = 0
                usurped = not is_trusted(question)
        if usurped:
            log(
                "error",
                f"a process that is no waggle-kernel has the socket @{name[1:]}, by which two of "
                "them would know each other; routes are written without it",
            )
        return usurped

    def answer(self) -> None:
        """Accept the connections of writers that wait: they see whose process has the lock."""
        if self._holder is not None:
            with contextlib.suppress(OSError):
                while True:
                    self._holder.accept()[0].close()

    def release(self) -> None:
        """Release the lock of the protocol number to another writer."""
        if self._holder is not None:
            self._holder.close()
            self._holder = None
