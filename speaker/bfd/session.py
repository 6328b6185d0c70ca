"""One BFD session: state machine, negotiated timers, Poll Sequences (RFC 5880 sections 6.2 to 6.8).

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

from speaker.bfd.authentication import accepted_sequence, sign
from speaker.bfd.packet import Packet, encode
from speaker.bfd.recent import RecentMaximum
from speaker.bfd.values import (
    SLOW_INTERVAL,
    Diagnostic,
    Discard,
    Saved,
    SessionKey,
    Settings,
    State,
)

NEVER: Final = 1 << 62
"""A time that does not come, in microseconds."""
_SEQUENCES: Final = 1 << 32


class Session:
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
        self.remote_discriminator = 0
        self.remote_state = State.DOWN
        self.remote_diagnostic = 0
        self.remote_min_rx = 1
        self.remote_desired_min_tx = 0
        self.remote_detect_multiplier = 0
        self.remote_min_echo_rx = 0
        self.remote_independent = False
        self.remote_demand = False
        self._remote: tuple[object, ...] = ()
        """The variables above as the last packet had them."""
        self.revision = 0
        """Grows with each change of what `saved` returns, but for sequence numbers."""
        self.polling = False
        """A Poll Sequence is in progress: packets have P until one with F is received (6.5)."""
        self._poll_sent = False
        """A packet of the present Poll Sequence was sent: a Final may be its answer."""
        self._polls_again = False
        """Another Poll Sequence follows: an interval has changed during this one."""
        self.next_transmission = now
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
        self._effective_tx = self._desired_tx()
        """bfd.DesiredMinTxInterval as it limits what is sent, behind a Poll Sequence (6.8.3)."""
        self._effective_rx = self._required_rx()
        """bfd.RequiredMinRxInterval as it is part of the detection time, behind a Poll Sequence."""
        self._transmit_sequence = int(random() * _SEQUENCES)
        self._received_sequence: int | None = None
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
        if not self.remote_min_rx or not self._may_send:
            return 0
        if self.remote_demand and self.state is self.remote_state is State.UP and not self.polling:
            return 0
        return max(self._effective_tx, self.remote_min_rx)

    @property
    def _may_send(self) -> bool:
        """False in the passive role before the first packet of the neighbor (6.8.7)."""
        return not self.settings.passive or self.remote_discriminator != 0

    @property
    def detection_time(self) -> int:
        """The time without a packet after which the neighbor is lost (6.8.4).

        0 before the first packet, and where no periodic packets are wanted.
        """
        if not self._effective_rx:
            return 0
        return self.remote_detect_multiplier * max(self._effective_rx, self.remote_desired_min_tx)

    def longest_gap(self, now: int) -> int:
        """Return the longest time between two packets while the session was Up, in microseconds.

        Of the last minutes (`speaker.bfd.recent`), and since the detection time changed last.
        """
        return self._gaps.at(now)

    @property
    def echo_transmit_interval(self) -> int:
        """The interval of our echo packets; 0: none are sent (6.8.9)."""
        wanted = self.settings.echo_interval
        if not wanted or not self.remote_min_echo_rx or self.state is not State.UP:
            return 0
        if not self.echo_possible or self.echo_unanswered:
            return 0
        return max(wanted, self.remote_min_echo_rx)

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
        self.detection_deadline = now + time if time and self.state > State.DOWN else NEVER

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
        discarded = self._authenticate(packet, now)
        if discarded is not None:
            return discarded
        if self._is_unproven_restart(packet):
            return Discard.STATE
        echo_before = self.echo_transmit_interval
        self._take_variables(packet)
        if self.state is State.ADMIN_DOWN:
            return Discard.ADMIN_DOWN
        self._take_time(now)
        if packet.final and self._poll_sent:
            self._end_poll()
        before = self.state
        self._take_state(packet, now)
        if self.state is before and self.echo_transmit_interval != echo_before:
            self._apply_intervals()
        self._detect_from(now)
        self.hasten(now)
        plain = not (packet.poll or packet.final or packet.authenticated)
        self._last_octets = packet.octets if plain and self.state is State.UP else b""
        if packet.poll:
            return self._encoded(final=True)
        return self._encoded() if self.state is not before else None

    def _end_poll(self) -> None:
        """Apply the intervals that the neighbor has confirmed."""
        self.polling = self._poll_sent = False
        self._renew()
        if not self._polls_again:
            self._effective_tx, self._effective_rx = self._desired_tx(), self._required_rx()

    def _authenticate(self, packet: Packet, now: int) -> Discard | None:
        """Check the authentication section (6.7)."""
        key = self.settings.key
        if key is None:
            return Discard.AUTHENTICATION_UNEXPECTED if packet.authenticated else None
        if not packet.authenticated:
            return Discard.AUTHENTICATION_MISSING
        last = self.last_received
        if last is not None and now - last > 2 * self.detection_time:
            self._received_sequence = None
        sequence = accepted_sequence(packet, key, self._received_sequence)
        if sequence is None:
            return Discard.AUTHENTICATION_FAILED
        self._received_sequence = sequence
        return None

    def _is_unproven_restart(self, packet: Packet) -> bool:
        """True of a Down packet from nowhere, for a multihop session that is Up."""
        return (
            self.key.multihop
            and self.settings.key is None
            and self.state is State.UP
            and not packet.your_discriminator
            and packet.my_discriminator != self.remote_discriminator
        )

    def _take_variables(self, packet: Packet) -> None:
        """Set what the packet has of the neighbor."""
        received = (
            packet.my_discriminator,
            packet.state,
            packet.diagnostic,
            packet.required_min_rx,
            packet.desired_min_tx,
            packet.detect_multiplier,
            packet.required_min_echo_rx,
            packet.independent,
            packet.demand,
        )
        if received == self._remote:
            return
        self._remote = received
        self.revision += 1
        self._renew()
        (
            self.remote_discriminator,
            self.remote_state,
            self.remote_diagnostic,
            self.remote_min_rx,
            self.remote_desired_min_tx,
            self.remote_detect_multiplier,
            self.remote_min_echo_rx,
            self.remote_independent,
            self.remote_demand,
        ) = received

    def _take_state(self, packet: Packet, now: int) -> None:
        """Change the state as the packet's state demands (6.2, 6.8.6)."""
        theirs = packet.state
        if theirs is State.ADMIN_DOWN or (theirs is State.DOWN and self.state is State.UP):
            if self.state is not State.DOWN:
                self._change(State.DOWN, Diagnostic.NEIGHBOR_SIGNALED_SESSION_DOWN, now)
        elif self.state is State.DOWN:
            if theirs is State.DOWN:
                self._change(State.INIT, self.diagnostic, now)
            elif theirs is State.INIT:
                self._change(State.UP, Diagnostic.NONE, now)
        elif self.state is State.INIT and theirs is not State.DOWN:
            self._change(State.UP, Diagnostic.NONE, now)

    def _change(self, state: State, diagnostic: Diagnostic, now: int) -> None:
        """Enter another state."""
        self.state, self.diagnostic, self.since = state, diagnostic, now
        self.revision += 1
        self.echo_unanswered = False
        if state is State.UP:
            self.ups += 1
        elif state <= State.DOWN:
            self.detection_deadline = NEVER
        self._apply_intervals()

    def _apply_intervals(self) -> None:
        """Advertise the present intervals; behind a Poll Sequence where the RFC demands it (6.8.3)."""
        self._renew()
        desired, required = self._desired_tx(), self._required_rx()
        if self.state is not State.UP:
            self.polling = self._poll_sent = self._polls_again = False
            self._effective_tx, self._effective_rx = desired, required
            return
        if desired != self._effective_tx or required != self._effective_rx:
            # A Final may answer a packet with the intervals before.
            self._polls_again = self.polling
            self.polling = True
        # A longer transmit interval and a shorter receive interval wait for the neighbor's Final.
        self._effective_tx = min(desired, self._effective_tx)
        self._effective_rx = max(required, self._effective_rx)

    # Time

    def expire(self, now: int) -> bytes | None:
        """Declare the neighbor lost: the detection deadline has passed (6.8.4).

        Returns a packet that is sent at once, if any.
        """
        self.remote_discriminator = 0
        self.remote_min_rx = 1
        self._remote = ()
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
        if interval := self._steady:
            self.next_transmission = max(self.next_transmission, now - interval) + self.jittered(
                interval
            )
            self.packets_sent += 1
            return self._octets
        interval = self.transmit_interval
        if not interval:
            self.next_transmission = NEVER
            return None
        # From the due time, so that lateness does not add up; but no burst after a pause.
        due = self.next_transmission
        self.next_transmission = max(due, now - interval) + self.jittered(interval)
        octets = self._encoded()
        if self._polls_again and not self.polling:
            # One packet without P parts two Poll Sequences.
            self._polls_again = False
            self.polling = True
            self._renew()
        elif self.state is State.UP and not self.polling and self.settings.key is None:
            self._steady = interval
        return octets

    def hasten(self, now: int) -> None:
        """Move the next transmission to what the present interval demands, if that is sooner."""
        interval = self.transmit_interval
        if not interval:
            self.next_transmission = NEVER
        elif self.next_transmission > now + interval:
            self.next_transmission = now + self.jittered(interval)

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
            self.hasten(now)
            return self._encoded() if self._may_send else None
        if settings.key != before.key:
            self._received_sequence = None
        self._apply_intervals()
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
        octets = self._octets
        if final or not octets:
            packet = Packet(
                diagnostic=self.diagnostic,
                state=self.state,
                poll=self.polling and not final,
                final=final,
                independent=self.settings.independent,
                demand=False,
                detect_multiplier=self.settings.detect_multiplier,
                my_discriminator=self.local_discriminator,
                your_discriminator=self.remote_discriminator,
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
        self._poll_sent = self.polling and (self._poll_sent or not final)
        key = self.settings.key
        if key is None:
            return octets
        sequence = self._transmit_sequence
        self._transmit_sequence = (sequence + 1) % _SEQUENCES
        return sign(octets, key, sequence)

    # Another process

    @property
    def transmit_sequence(self) -> int:
        """The next sequence number of authentication (bfd.XmitAuthSeq)."""
        return self._transmit_sequence

    def saved(self) -> Saved:
        """Return what another process has to have to continue the session."""
        return Saved(
            self.key,
            self.state,
            self.diagnostic,
            self.local_discriminator,
            self.remote_discriminator,
            self.remote_state,
            self.remote_diagnostic,
            self.remote_min_rx,
            self.remote_desired_min_tx,
            self.remote_detect_multiplier,
            self.remote_min_echo_rx,
            self.remote_independent,
            self._transmit_sequence,
        )

    def restore(self, saved: Saved, now: int) -> None:
        """Continue a session of another process; its detection time begins now.

        The first authentic packet gives the neighbor's sequence number (bfd.AuthSeqKnown is 0).
        A sequence number has room for what the other process sent after it was saved: less than the
        neighbor accepts (3 times Detect Mult).

        A session that was AdminDown as its process ended begins with Down.
        """
        if (saved.state is State.ADMIN_DOWN) is self.settings.admin_down:
            self.state, self.diagnostic = saved.state, saved.diagnostic
        self.remote_discriminator = saved.remote_discriminator
        self.remote_state, self.remote_diagnostic = saved.remote_state, saved.remote_diagnostic
        self.remote_min_rx = saved.remote_min_rx
        self.remote_desired_min_tx = saved.remote_desired_min_tx
        self.remote_detect_multiplier = saved.remote_detect_multiplier
        self.remote_min_echo_rx = saved.remote_min_echo_rx
        self.remote_independent = saved.remote_independent
        ahead = 2 * self.settings.detect_multiplier
        self._transmit_sequence = (saved.transmit_sequence + ahead) % _SEQUENCES
        self._effective_tx, self._effective_rx = self._desired_tx(), self._required_rx()
        if self.settings.echo_interval:
            # Of echo packets that the other process sent: the neighbor sends once a second.
            self._effective_rx = max(self._effective_rx, SLOW_INTERVAL)
        # The neighbor may know other intervals: it confirms the present ones.
        self.polling = self.state is State.UP
        self.last_received = now
        self._detect_from(now)
        self._renew()
        self.next_transmission = now
