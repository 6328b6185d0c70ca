"""The intervals in use, and the Poll Sequence behind which they change (RFC 5880 sections 6.5, 6.8.3).

A session advertises its present intervals at once. While it is Up, a longer transmit interval and a
shorter receive interval are in use only after the neighbor has confirmed them, by a packet with F.
"""

from __future__ import annotations


class PollSequence:
    """The intervals of one session in microseconds, and its present Poll Sequence."""

    __slots__ = ("active", "follows", "rx", "sent", "tx")

    def __init__(self, desired: int, required: int, *, active: bool = False) -> None:
        """Use intervals at once."""
        self.tx = desired
        """bfd.DesiredMinTxInterval as it limits what is sent."""
        self.rx = required
        """bfd.RequiredMinRxInterval as it is part of the detection time."""
        self.active = active
        """A Poll Sequence is in progress: packets have P until one with F is received."""
        self.sent = False
        """A packet of the present Poll Sequence was sent: a Final may be its answer."""
        self.follows = False
        """Another Poll Sequence follows: something has changed during this one."""

    def apply(self, desired: int, required: int, *, up: bool) -> None:
        """Apply the present intervals; ``up``: behind a Poll Sequence where the RFC demands it."""
        if not up:
            self.active = self.sent = self.follows = False
            self.tx, self.rx = desired, required
            return
        if desired != self.tx or required != self.rx:
            self.begin()
        self.tx = min(desired, self.tx)
        self.rx = max(required, self.rx)

    def begin(self) -> None:
        """Begin a Poll Sequence; behind the present one, as a Final may be of the packets before."""
        if not self.follows:
            self.follows = self.active
            self.active = True

    def end(self, desired: int, required: int) -> None:
        """End the Poll Sequence: the neighbor has confirmed the intervals, unless one follows."""
        self.active = self.sent = False
        if not self.follows:
            self.tx, self.rx = desired, required

    def begin_next(self) -> None:
        """Begin the Poll Sequence that follows: the neighbor's last packet was no Final."""
        self.follows = False
        self.active = True
