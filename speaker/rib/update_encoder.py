"""Encodes the UPDATEs of one update group: attributes once per path, messages once for all peers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, final

from speaker.errors import EncodingError
from speaker.nlri import IPV4_UNICAST, Family
from speaker.rib import pack
from speaker.rib.export import ExportRules, rewrite
from speaker.rib.path import Path, Source

_LOCAL_PATHS: Final = 4096
_RECENT_PATHS: Final = 64
"""The number of encoded attribute sets that are cached, of local and of received paths."""


class UpdateBatch(NamedTuple):
    """UPDATEs for the peers of an update group, one behind the other."""

    octets: bytes
    messages: int
    prefixes: int
    exclude: Source | None = None
    """The source whose peer does not get them: the routes are its own."""


def join_batches(batches: Sequence[UpdateBatch]) -> UpdateBatch:
    """Return all UPDATEs as one batch, for one peer."""
    if len(batches) == 1:
        return batches[0]
    return UpdateBatch(
        b"".join([batch.octets for batch in batches]),
        sum(batch.messages for batch in batches),
        sum(batch.prefixes for batch in batches),
    )


@final
class UpdateEncoder:
    """Encodes routes by the export rules of an update group."""

    __slots__ = ("_local", "_recent", "_rules", "oversized")

    def __init__(self, rules: ExportRules) -> None:
        self._rules = rules
        self.oversized = 0
        """Prefixes that were withdrawn instead: their attributes do not fit a message."""
        self._local: dict[tuple[Path, Family], tuple[bytes, bytes, bool]] = {}
        """Encoded attributes of local paths."""
        self._recent: dict[tuple[Path, Family], tuple[bytes, bytes, bool]] = {}
        """Encoded attributes of the last received paths: a flapping route has the same again."""

    def forget_received(self) -> None:
        """Release received paths: a session ended, and its paths may be among them."""
        self._recent.clear()

    def announce(
        self,
        family: Family,
        path: Path,
        nlri: Sequence[bytes],
        exclude: Source | None,
        batches: list[UpdateBatch],
    ) -> None:
        """Add UPDATEs that announce prefixes, or withdraw them if the attributes are too long."""
        limit = self._rules.max_message
        try:
            next_hop, attributes, mp = self._attributes(path, family)
            if mp:
                messages = pack.announce_mp(family, next_hop, attributes, nlri, limit)
            else:
                messages = pack.announce(attributes, nlri, limit)
        except (pack.AttributesTooLong, EncodingError):
            # Received attributes, extended by a policy. The peers must not keep the path before.
            self.oversized += len(nlri)
            batches.append(self.withdraw(family, nlri))
            return
        batches.append(UpdateBatch(b"".join(messages), len(messages), len(nlri), exclude))

    def _attributes(self, path: Path, family: Family) -> tuple[bytes, bytes, bool]:
        """Return `rewrite` of a path, from the cache where possible."""
        # A received path is encoded once for each change; caching them all would be a second table.
        if path.source.local:
            cache, limit = self._local, _LOCAL_PATHS
        else:
            cache, limit = self._recent, _RECENT_PATHS
        key = (path, family)
        known = cache.get(key)
        if known is None:
            if len(cache) >= limit:
                cache.clear()
            known = cache[key] = rewrite(path, family, self._rules)
        return known

    def withdraw(self, family: Family, nlri: Sequence[bytes]) -> UpdateBatch:
        """Return the UPDATEs that withdraw prefixes."""
        limit = self._rules.max_message
        if family == IPV4_UNICAST and not self._rules.uses_mp(family):
            messages = pack.withdraw(nlri, limit)
        else:
            messages = pack.withdraw_mp(family, nlri, limit)
        return UpdateBatch(b"".join(messages), len(messages), len(nlri), None)
