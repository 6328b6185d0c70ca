"""The next hops that the writer looks up: for the wanted routes, and for path selection."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Final, final

from reconcilers.kernel.next_hop_metrics import Metrics, next_hop_metrics
from reconcilers.kernel.resolved_next_hops import TrackedRouting
from reconcilers.kernel.routing import DEFAULT_VRF
from reconcilers.kernel.writer.port import KernelWriter
from reconcilers.kernel.writer.protocol_messages import Resolution, Track, TrackedAddress
from reconcilers.model import NextHops
from reconcilers.sliced_work import Pieces, Slices

LOOKED_UP: Final = 500
"""Received next hops of a slice, which ends with the next hops of a peer: two to four milliseconds."""


@final
class TrackedNextHops:
    """The next hops that were sent to the writer last."""

    def __init__(self, routing: TrackedRouting, writer: KernelWriter) -> None:
        self._routing = routing
        self._writer = writer
        self._sent: set[TrackedAddress] = set()
        self._compared: int | None = None
        """The revision of the routing that `_sent` is of; None to compare them."""
        self._of_received: AbstractSet[TrackedAddress] = frozenset()
        self.metrics: Metrics = {}
        """Of received next hops, for route selection, as of the last complete pass."""

    def select(self, rows: Iterable[NextHops], vrfs: Mapping[str, str]) -> Slices[Metrics]:
        """Look the next hops of all received routes up, in slices, and return their metrics.

        ``vrfs``: the VRF of each instance whose routes are wanted.
        """
        metrics: Metrics = {name: {} for name in vrfs}
        looked_up: set[TrackedAddress] = set()
        pieces = Pieces(LOOKED_UP)
        for row in rows:
            vrf = vrfs.get(row.instance)
            if vrf is None:
                continue
            before = self.metrics.get(row.instance, {})
            with self._routing.collecting() as some:
                metrics[row.instance].update(
                    next_hop_metrics(row.addresses, vrf or DEFAULT_VRF, self._routing, before)
                )
            looked_up.update(some)
            if pieces.fill_slice(1 + len(row.addresses)):
                yield
        self._of_received, self._compared = looked_up, None
        self.metrics = metrics
        return metrics

    def send(self) -> None:
        """Send the next hops to look up to the writer, if they are others than before."""
        if self._compared == self._routing.revision:
            return
        self._compared = self._routing.revision
        wanted = self._routing.wanted.union(self._of_received)
        if wanted != self._sent:
            self._routing.keep(wanted)
            self._sent = wanted
            self._writer.send(Track(tuple(sorted(wanted))))

    def resolved(self, resolutions: Iterable[Resolution]) -> None:
        """Take what the writer has found of the next hops that it looks up, and of no others."""
        self._routing.resolved(each for each in resolutions if each.address in self._sent)

    def send_again(self) -> None:
        """Send the next hops to look up to a new writer.

        What is known of them is kept until it reports a change.
        """
        self._sent, self._compared = set(), None
        self.send()
