"""Why the kernel refused a request."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from typing import Final

from reconcilers.kernel.writer.changes import packed
from reconcilers.kernel.writer.protocol_messages import Failure, Reason, RouteTable

_REASONS: Final = {
    errno.EPERM: Reason.NOT_PERMITTED,
    errno.EACCES: Reason.NOT_PERMITTED,
    errno.EROFS: Reason.NOT_PERMITTED,
    errno.ENOSPC: Reason.TABLE_FULL,
    errno.ENOMEM: Reason.TABLE_FULL,
    errno.ENOBUFS: Reason.TABLE_FULL,
    errno.ENETUNREACH: Reason.UNUSABLE_NEXT_HOP,
    errno.EHOSTUNREACH: Reason.UNUSABLE_NEXT_HOP,
    errno.ENETDOWN: Reason.UNUSABLE_NEXT_HOP,
    errno.ENODEV: Reason.UNUSABLE_NEXT_HOP,
    errno.EEXIST: Reason.OCCUPIED,
}
_ABOUT_NEXT_HOPS: Final = ("nexthop", "next hop", "gateway", "device", "carrier")


def reason_of(error: int, text: str) -> Reason:
    """Return the reason of a failure by its errno; of EINVAL the kernel's text decides."""
    if error == errno.EINVAL and any(word in text.lower() for word in _ABOUT_NEXT_HOPS):
        return Reason.UNUSABLE_NEXT_HOP
    return _REASONS.get(error, Reason.REFUSED)


class Failures:
    """Gathers the failures of a batch by their reasons."""

    def __init__(self) -> None:
        self._prefixes: dict[tuple[Reason, int, str], dict[RouteTable, list[bytes]]] = {}

    def add(self, table: RouteTable, prefixes: Iterable[bytes], error: int, text: str) -> None:
        """Add routes that the kernel refused to the failures of a batch."""
        key = (reason_of(error, text), error, text or os.strerror(error))
        self._prefixes.setdefault(key, {}).setdefault(table, []).extend(prefixes)

    def values(self) -> tuple[Failure, ...]:
        """Return the failures of a batch, one for each reason."""
        return tuple(
            Failure(reason, error, text, packed(tables))
            for (reason, error, text), tables in self._prefixes.items()
        )
