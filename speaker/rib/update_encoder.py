"""Encodes the UPDATEs of one update group: attributes once per path, messages once for all peers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, final

from speaker.nlri import IPV4_UNICAST, Family
from speaker.rib import pack
from speaker.rib.export import ExportRules, rewrite
from speaker.rib.left_out import LeftOutRoutes
from speaker.rib.path import Path, SourceSession

LARGEST_NLRI: Final = 4 + 1 + 16
"""Octets of the largest prefix: a path identifier, a length, an IPv6 address. Attributes that do not
leave room for it are too long for any prefix, so that one path is advertised with all or with none."""
_LOCAL_PATHS: Final = 4096
_RECENT_PATHS: Final = 64
"""The number of encoded attribute sets that are cached, of local and of received paths."""


class UpdateBatch(NamedTuple):
    """UPDATEs for the peers of an update group, one behind the other."""

    octets: bytes
    messages: int
    prefixes: int
    exclude: SourceSession | None = None
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

    __slots__ = ("_local", "_recent", "_rules", "left_out")

    def __init__(self, rules: ExportRules) -> None:
        self._rules = rules
        self.left_out = LeftOutRoutes()
        """The routes that cannot be encoded."""
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
        exclude: SourceSession | None,
        batches: list[UpdateBatch],
    ) -> bool:
        """Add UPDATEs that announce prefixes; False if the path cannot be encoded.

        Then the prefixes are withdrawn: the peers must not keep the path before.
        """
        limit = self._rules.max_message
        try:
            next_hop, attributes, mp = self._attributes(path, family)
            if mp:
                messages = pack.announce_mp(family, next_hop, attributes, nlri, limit)
            else:
                messages = pack.announce(attributes, nlri, limit)
        except Exception as error:  # noqa: BLE001  one route must not cost the others of its table
            self.left_out.add(family, nlri, error)
            batches.append(self.withdraw(family, nlri))
            return False
        batches.append(UpdateBatch(b"".join(messages), len(messages), len(nlri), exclude))
        return True

    def encoding_error(self, family: Family, path: Path) -> Exception | None:
        """Return why a path cannot be encoded, or None if it can."""
        try:
            self._attributes(path, family)
        except Exception as error:  # noqa: BLE001  as in `announce`
            return error
        return None

    def _attributes(self, path: Path, family: Family) -> tuple[bytes, bytes, bool]:
        """Return `rewrite` of a path, from the cache where possible.

        Raises `AttributesTooLong` and `EncodingError`.
        """
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
            known = rewrite(path, family, self._rules)
            next_hop, attributes, mp = known
            room = pack.room_for_nlri(next_hop if mp else None, attributes, self._rules.max_message)
            if room < LARGEST_NLRI:
                raise pack.AttributesTooLong(
                    f"its attributes take {len(attributes)} octets,"
                    f" a message has at most {self._rules.max_message}"
                )
            cache[key] = known
        return known

    def withdraw(self, family: Family, nlri: Sequence[bytes]) -> UpdateBatch:
        """Return the UPDATEs that withdraw prefixes."""
        limit = self._rules.max_message
        if family == IPV4_UNICAST and not self._rules.uses_mp(family):
            messages = pack.withdraw(nlri, limit)
        else:
            messages = pack.withdraw_mp(family, nlri, limit)
        return UpdateBatch(b"".join(messages), len(messages), len(nlri), None)
