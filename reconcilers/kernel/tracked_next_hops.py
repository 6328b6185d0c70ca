"""The next hops that the writer looks up: for the wanted routes, and for path selection."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import final

from reconcilers.kernel.next_hop_metrics import Metrics, next_hop_metrics
from reconcilers.kernel.resolved_next_hops import TrackedRouting
from reconcilers.kernel.writer.port import KernelWriter
from reconcilers.kernel.writer.protocol_messages import Track, TrackedAddress
from reconcilers.model import NextHops


@final
class TrackedNextHops:
    """The next hops that were sent to the writer last."""

    def __init__(self, routing: TrackedRouting, writer: KernelWriter) -> None:
        self._routing = routing
        self._writer = writer
        self._sent: set[TrackedAddress] = set()
        self._received: tuple[NextHops, ...] = ()
        self._of_received: Collection[TrackedAddress] = ()
        self.metrics: Metrics = {}
        """Of received next hops, for route selection."""

    def receive(self, rows: Iterable[NextHops]) -> None:
        """Have `select` look up the next hops of all received routes."""
        self._received = tuple(rows)

    def select(self, vrfs: Mapping[str, str]) -> bool:
        """Look the received next hops up; returns whether their metrics have changed.

        ``vrfs``: the VRF of each instance whose routes are wanted.
        """
        with self._routing.collecting() as self._of_received:
            metrics = next_hop_metrics(self._received, vrfs, self._routing, self.metrics)
        before, self.metrics = self.metrics, metrics
        return metrics != before

    def send(self) -> None:
        """Send the next hops to look up to the writer, if they are others than before."""
        wanted = self._routing.wanted.union(self._of_received)
        if wanted != self._sent:
            self._sent = wanted
            self._writer.send(Track(tuple(sorted(wanted))))

    def send_again(self) -> None:
        """Send the next hops to look up to a new writer.

        What is known of them is kept until it reports a change.
        """
        self._sent = set()
        self.send()
