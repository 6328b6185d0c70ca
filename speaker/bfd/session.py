"""One BFD session: reception, transmission and the detection time (RFC 5880 sections 6.2 to 6.8).

A session neither sends nor waits. `receive` takes a packet, `transmit` returns the octets of the next
one, `expire` declares the neighbor lost; the engine calls them when `next_transmission` and
`detection_deadline` are due.

Choices where the RFC leaves one:

* Until the session is Up, packets are sent once a second (section 6.8.3), or in the configured
  interval if that is longer.
* A change of state and the answer to a Poll are sent at once, between the periodic packets.
* A Down packet with Your Discriminator 0 and another My Discriminator is from a neighbor that has
  restarted. A session that is Up goes Down by it at once, if it is single hop: a TTL of 255 proves that
  the packet is from the link. A multihop session without authentication ignores it, as its addresses
  are the only proof, and is Down after the detection time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from speaker.bfd.authentication import ReceivedSequence, sign
from speaker.bfd.neighbor import UNKNOWN, neighbor_of, neighbor_of_saved
from speaker.bfd.packet import Packet, encode
from speaker.bfd.poll_sequence import PollSequence
from speaker.bfd.recent import RecentMaximum
from speaker.bfd.schedule import NEVER, Scheduled
from speaker.bfd.session_values import (
    SLOW_INTERVAL,
    Diagnostic,
    Discard,
    Saved,
    SessionKey,
    Settings,
    State,
)
from speaker.bfd.state_machine import transition

_SEQUENCES: Final = 1 << 32


class Session(Scheduled):
    """The variables of RFC 5880 section 6.8.1, and what is sent next."""

    def __init__(
        self,
        key: SessionKey,
        settings: Settings,
        discriminator: int,
        now: int,
        random: Callable[[], float],
        jitter: Callable[[], float] | None = None,
    ) -> None:
        """``random`` returns numbers from 0 up to 1, for the first sequence number.

        ``jitter`` does so for each packet, by default ``random``: nothing depends on its secrecy.
        """
        self.key = key
        self.settings = settings
        self.state = State.ADMIN_DOWN if settings.admin_down else State.DOWN
        self.diagnostic = (
            Diagnostic.ADMINISTRATIVELY_DOWN if settings.admin_down else Diagnostic.NONE
        )
        self.since = now
        self.local_discriminator: Final = discriminator
        self.neighbor = UNKNOWN
        """As the last packet had it."""
        self.revision = 0
        """Grows with each change of what `saved` returns, but for sequence numbers."""
        self.next_transmission = now
        self._sent_at = now
        """When a periodic packet was due last, or one was sent for a change of state."""
        self.detection_deadline = NEVER
        self.last_received: int | None = None
        self._gaps = RecentMaximum()
        self.packets_received = 0
        self.packets_sent = 0
        self.ups = 0
        """How often the session came Up."""
        self.echo_possible = False
        """Whether echo packets can be sent: the neighbor's link-layer address is known."""
        self.echo_is_proven = False
        """Whether an echo packet has ever returned."""
        self.echo_unanswered = False
        """The neighbor has returned none since the session came Up, and is sent none."""
        self.echoes_sent = 0
        self.echoes_received = 0
        self._jitter = jitter or random
        self.poll = PollSequence(self._desired_tx(), self._required_rx())
        self.transmit_sequence = int(random() * _SEQUENCES)
        """The next sequence number of authentication (bfd.XmitAuthSeq)."""
        self.received_sequence = ReceivedSequence()
        self._octets = b""
        """The encoded periodic packet without authentication; empty when a field of it has changed."""
        self._steady = 0
        """The interval in which this packet is sent as it is; 0: something else may be due."""
        self._last_octets = b""
        """The last received packet; an equal one changes no variable."""
        self._detection = 0
        """The detection time at the last packet."""

    # What is negotiated

    def _desired_tx(self) -> int:
        """Return bfd.DesiredMinTxInterval: at least a second while the session is not Up."""
        configured = self.settings.desired_min_tx
        return configured if self.state is State.UP else max(configured, SLOW_INTERVAL)

    def _required_rx(self) -> int:
        """Return bfd.RequiredMinRxInterval: at least a second while echo packets are sent (6.8.3)."""
        configured = self.settings.required_min_rx
        return max(configured, SLOW_INTERVAL) if self.echo_transmit_interval else configured

    @property
    def transmit_interval(self) -> int:
        """The interval of periodic packets before jitter; 0: none are sent (6.8.7)."""
        required = self.neighbor.min_rx
        if not required or not self._may_send:
            return 0
        if self._is_asked_for_silence and not self.poll.active:
            return 0
        return max(self.poll.tx, required)

    @property
    def _is_asked_for_silence(self) -> bool:
        """True while demand mode is active on the neighbor: it takes what is new from Polls (6.6)."""
        return self.neighbor.demand and self.state is self.neighbor.state is State.UP

    @property
    def _may_send(self) -> bool:
        """False in the passive role before the first packet of the neighbor (6.8.7)."""
        return not self.settings.passive or self.neighbor.discriminator != 0

    @property
    def detection_time(self) -> int:
        """The time without a packet after which the neighbor is lost; 0: no packets are wanted."""
        return self._silence if self.poll.rx else 0

    @property
    def _silence(self) -> int:
        """The detection time of section 6.8.4, also where no periodic packets are wanted."""
        neighbor = self.neighbor
        return neighbor.detect_multiplier * max(self.poll.rx, neighbor.desired_min_tx)

    def longest_gap(self, now: int) -> int:
        """Return the longest time between packets while Up, in microseconds; of the last minutes."""
        return self._gaps.at(now)

    @property
    def echo_transmit_interval(self) -> int:
        """The interval of our echo packets; 0: none are sent (6.8.9)."""
        wanted = self.settings.echo_interval
        if not wanted or not self.neighbor.min_echo_rx or self.state is not State.UP:
            return 0
        if not self.echo_possible or self.echo_unanswered:
            return 0
        return max(wanted, self.neighbor.min_echo_rx)

    def set_echo_possible(self, *, possible: bool) -> None:
        """Take whether echo packets can be sent; intervals of control packets follow."""
        if possible != self.echo_possible:
            self.echo_possible = possible
            self._apply_intervals()
            self._detect_again()

    def jittered(self, interval: int) -> int:
        """Return an interval less 0 to 25 %, or 10 to 25 % with a multiplier of 1 (6.8.7)."""
        least = 0.1 if self.settings.detect_multiplier == 1 else 0.0
        return int(interval * (1.0 - least - (0.25 - least) * self._jitter()))

    # Reception

    def receive_unchanged(self, octets: bytes, now: int) -> bool:
        """Take a packet that is the last one again: it moves the detection deadline alone.

        Returns False where the packet has to be decoded.
        """
        if octets != self._last_octets:
            return False
        self._take_time(now)
        # What the detection time is made of changes with another packet, or with `_renew`.
        self.detection_deadline = now + self._detection if self._detection else NEVER
        return True

    def _detect_from(self, now: int) -> None:
        """Set the detection deadline by the time of the last packet."""
        time = self.detection_time
        if time != self._detection:
            # Gaps are judged beside the detection time: earlier ones belong to other intervals.
            self._detection = time
            self._gaps.clear()
        awaited = time and self.neighbor.discriminator and self.state is not State.ADMIN_DOWN
        self.detection_deadline = now + time if awaited else NEVER

    def _detect_again(self) -> None:
        """Set the detection deadline by what the detection time is now."""
        if self.last_received is not None:
            self._detect_from(self.last_received)

    def _take_time(self, now: int) -> None:
        """Take the time of a packet."""
        self.packets_received += 1
        last = self.last_received
        if last is not None and self.state is State.UP:
            self._gaps.note(now - last, now)
        self.last_received = now

    def receive(self, packet: Packet, now: int) -> Discard | bytes | None:
        """Take a packet that was demultiplexed to this session (6.8.6).

        Returns why it was discarded, or the octets of an answer that is sent at once, or None.
        """
        key, last = self.settings.key, self.last_received
        if key is not None or packet.authenticated:
            silent = last is not None and now - last >= 2 * self._silence
            discarded = self.received_sequence.check(packet, key, silent=silent)
            if discarded is not None:
                return discarded
        if self._is_unproven_restart(packet):
            return Discard.STATE
        echo_before = self.echo_transmit_interval
        known, neighbor = self.neighbor.discriminator, neighbor_of(packet)
        if neighbor != self.neighbor:
            self.neighbor = neighbor
            self.revision += 1
            self._renew()
        if self.state is State.ADMIN_DOWN:
            return Discard.ADMIN_DOWN
        self._take_time(now)
        if packet.final and self.poll.sent:
            self._renew()
            self.poll.end(self._desired_tx(), self._required_rx())
        elif self.poll.follows and not (self.poll.active or packet.final):
            # A packet without F parts two Poll Sequences (6.8.3).
            self._renew()
            self.poll.begin_next()
        before = self.state
        changed = transition(before, packet.state)
        if changed is not None:
            self._change(*changed, now)
        elif self.echo_transmit_interval != echo_before:
            self._apply_intervals()
        if self._is_asked_for_silence and neighbor.discriminator != known:
            self.poll.begin()
        if self.state is not before:
            self._sent_at = now
        self._detect_from(now)
        self.hasten(now)
        plain = not (packet.poll or packet.final or packet.authenticated)
        self._last_octets = packet.octets if plain and self.state is State.UP else b""
        if packet.poll:
            return self._encoded(final=True)
        return self._encoded() if self.state is not before else None

    def _is_unproven_restart(self, packet: Packet) -> bool:
        """True of a Down packet from nowhere, for a multihop session that is Up."""
        return (
            self.key.multihop
            and self.settings.key is None
            and self.state is State.UP
            and not packet.your_discriminator
            and packet.my_discriminator != self.neighbor.discriminator
        )

    def _change(self, state: State, diagnostic: Diagnostic | None, now: int) -> None:
        """Enter another state; without a diagnostic the last one stays."""
        self.state, self.since = state, now
        if diagnostic is not None:
            self.diagnostic = diagnostic
        self.revision += 1
        self.echo_unanswered = False
        if state is State.UP:
            self.ups += 1
        self._apply_intervals()
        self._detect_again()

    def _apply_intervals(self) -> None:
        """Advertise the present intervals; behind a Poll Sequence where the RFC demands it (6.8.3)."""
        self._renew()
        up = self.state is State.UP
        self.poll.apply(self._desired_tx(), self._required_rx(), up=up)

    # Time

    def expire(self, now: int) -> bytes | None:
        """Declare the neighbor lost: the detection deadline has passed (6.8.4).

        A session that is Down forgets the neighbor's discriminator, which the neighbor's next process
        does not know (6.8.1). Returns a packet that is sent at once, if any.
        """
        self.neighbor = self.neighbor._replace(discriminator=0, min_rx=1)
        if self.state is State.DOWN:
            self.revision += 1
            self._renew()
            self._detect_again()
            self.hasten(now)
            return None
        return self._down(Diagnostic.CONTROL_DETECTION_TIME_EXPIRED, now)

    def echo_failed(self, now: int) -> bytes | None:
        """Take the session down as echo packets do not return (6.8.5).

        A neighbor that has never returned one does not do so, whatever its packets have: the session
        goes on with control packets alone.
        """
        if self.state is not State.UP:
            return None
        if not self.echo_is_proven:
            self.echo_unanswered = True
            self._apply_intervals()
            return None
        return self._down(Diagnostic.ECHO_FUNCTION_FAILED, now)

    def _down(self, diagnostic: Diagnostic, now: int) -> bytes | None:
        self._change(State.DOWN, diagnostic, now)
        self.hasten(now)
        return self._encoded() if self._may_send else None

    def transmit(self, now: int) -> bytes | None:
        """Return the periodic packet that is due, and set the time of the next one."""
        self._sent_at = now
        steady = self._steady
        interval = steady or self.transmit_interval
        if not interval:
            self.next_transmission = NEVER
            return None
        # From the due time, so that lateness does not add up; but no burst after a pause.
        due = self.next_transmission
        self.next_transmission = max(due, now - interval) + self.jittered(interval)
        if steady:
            self.packets_sent += 1
            return self._octets
        octets, poll = self._encoded(), self.poll
        if poll.follows and not (poll.active or poll.rx):
            # The neighbor shall send nothing that would part two Poll Sequences.
            self._renew()
            poll.begin_next()
        elif self.state is State.UP and not poll.active and self.settings.key is None:
            self._steady = interval
        return octets

    def hasten(self, now: int) -> None:
        """Move the next transmission to what the present interval demands, if that is sooner."""
        interval = self.transmit_interval
        if not interval:
            self.next_transmission = NEVER
        elif self.next_transmission > now + interval:
            self.next_transmission = max(now, self._sent_at + self.jittered(interval))

    # Settings

    def configure(self, settings: Settings, now: int) -> bytes | None:
        """Change settings; the state changes with ``admin_down`` alone.

        Returns a packet that is sent at once, if any.
        """
        before, self.settings = self.settings, settings
        if settings.admin_down != before.admin_down:
            if settings.admin_down:
                self._change(State.ADMIN_DOWN, Diagnostic.ADMINISTRATIVELY_DOWN, now)
            else:
                self._change(State.DOWN, Diagnostic.NONE, now)
                self._detect_from(now)
            self.hasten(now)
            return self._encoded() if self._may_send else None
        if settings.key != before.key:
            self.received_sequence = ReceivedSequence()
        self._apply_intervals()
        if self._is_asked_for_silence:
            self.poll.begin()
        self._detect_again()
        self.hasten(now)
        return None

    # Octets

    def _renew(self) -> None:
        """Forget what is kept of packets: a field has changed, or an interval.

        The next periodic packet is encoded anew, and the next received one is decoded.
        """
        self._octets, self._steady, self._last_octets = b"", 0, b""

    def _encoded(self, *, final: bool = False) -> bytes:
        """Return the present packet. A packet with F has no P (6.5)."""
        octets, poll = self._octets, self.poll
        if final or not octets:
            packet = Packet(
                diagnostic=self.diagnostic,
                state=self.state,
                poll=poll.active and not final,
                final=final,
                independent=self.settings.independent,
                demand=False,
                detect_multiplier=self.settings.detect_multiplier,
                my_discriminator=self.local_discriminator,
                your_discriminator=self.neighbor.discriminator,
                desired_min_tx=self._desired_tx(),
                required_min_rx=self._required_rx(),
                required_min_echo_rx=self.settings.required_min_echo_rx,
                authenticated=self.settings.key is not None,
                octets=b"",
            )
            octets = encode(packet)
            if not final:
                self._octets = octets
        self.packets_sent += 1
        poll.sent = poll.active and (poll.sent or not final)
        key = self.settings.key
        if key is None:
            return octets
        sequence = self.transmit_sequence
        self.transmit_sequence = (sequence + 1) % _SEQUENCES
        return sign(octets, key, sequence)

    # Another process

    def saved(self) -> Saved:
        """Return what another process has to have to continue the session."""
        ours = (self.key, self.state, self.diagnostic, self.local_discriminator)
        # All of the neighbor but demand mode, which is in its next packet.
        return Saved(*(*ours, *self.neighbor[:-1], self.transmit_sequence))

    def restore(self, saved: Saved, now: int) -> None:
        """Continue a session of another process; its detection time begins now.

        The first authentic packet gives the neighbor's sequence number (bfd.AuthSeqKnown is 0).
        A sequence number has room for what the other process sent after it was saved: less than the
        neighbor accepts (3 times Detect Mult).

        A session that was AdminDown as its process ended begins with Down.
        """
        if (saved.state is State.ADMIN_DOWN) is self.settings.admin_down:
            self.state, self.diagnostic = saved.state, saved.diagnostic
        self.neighbor = neighbor_of_saved(saved)
        ahead = 2 * self.settings.detect_multiplier
        self.transmit_sequence = (saved.transmit_sequence + ahead) % _SEQUENCES
        required = self._required_rx()
        if self.settings.echo_interval:
            # Of echo packets that the other process sent: the neighbor sends once a second.
            required = max(required, SLOW_INTERVAL)
        # The neighbor may know other intervals: it confirms the present ones.
        self.poll = PollSequence(self._desired_tx(), required, active=self.state is State.UP)
        self.last_received = now
        self._detect_from(now)
        self._renew()
        self.next_transmission = now
