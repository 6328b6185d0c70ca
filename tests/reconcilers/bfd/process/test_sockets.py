"""The sockets of a BFD process in namespaces: forged packets, interfaces made anew, 2,000 peers."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from reconcilers.bfd.process.process_messages import ProcessStatus, SetSessions, Statuses, Wanted
from reconcilers.bfd.process.service import BY_KERNEL
from speaker.bfd.packet import Packet, encode
from speaker.bfd.session_values import Discard, SessionKey, Settings, State
from speaker.bfd.transport import MULTIHOP_PORT, SINGLE_HOP_PORT
from tests.speaker.bfd.test_packet import PACKET
from tests.support.bfd_process import BfdProcess, bfd_in
from tests.support.netns import Link, router_between
from tests.support.packet_flood import BATCH, flood_from, packet

pytestmark = [pytest.mark.netns, pytest.mark.program]

LEFT, RIGHT = "192.0.2.1", "192.0.2.2"
ONE_HOP, MULTIHOP = SessionKey(RIGHT, ""), SessionKey(RIGHT, "", multihop=True)
PATIENT = Settings(desired_min_tx=50_000, required_min_rx=50_000, detect_multiplier=100)
SEVERAL_HOPS = Settings(50_000, 50_000, 100, minimum_ttl=250)
PEERS = 2000


def forged(ours: BfdProcess, key: SessionKey) -> Packet:
    """Return a Down packet with both discriminators of a session, as a stranger forges it."""
    status = ours.status(key)
    return PACKET._replace(
        state=State.DOWN,
        my_discriminator=status.remote_discriminator,
        your_discriminator=status.local_discriminator,
    )


def discarded(status: ProcessStatus) -> int:
    """Return how many packets were of no session, or of afar."""
    reasons = {Discard.YOUR_DISCRIMINATOR.value, BY_KERNEL}
    return sum(each.packets for each in status.discarded if each.reason in reasons)


@pytest.mark.parametrize("key", [ONE_HOP, MULTIHOP], ids=["one-hop", "multihop"])
def test_a_packet_of_the_other_port_or_from_afar_ends_no_session(
    link: Link, key: SessionKey
) -> None:
    """Raw packets with both discriminators and the neighbor's address, through the kernel."""
    link.connect(LEFT, RIGHT)
    settings = SEVERAL_HOPS if key.multihop else PATIENT
    other = SessionKey(RIGHT, "", multihop=not key.multihop)
    with bfd_in(link.left) as ours, bfd_in(link.right) as theirs:
        ours.set(key, settings)
        # A session of the other kind has its port open.
        ours.set(other, PATIENT if key.multihop else SEVERAL_HOPS)
        theirs.set(SessionKey(LEFT, "", multihop=key.multihop), settings)
        ours.wait_up(key)
        octets = encode(forged(ours, key))
        port = MULTIHOP_PORT if key.multihop else SINGLE_HOP_PORT
        wrong = SINGLE_HOP_PORT if key.multihop else MULTIHOP_PORT
        low = settings.minimum_ttl - 1
        bad = [(wrong, 255), (wrong, 254), (port, low), (port, 1)]
        packets = [packet(RIGHT, LEFT, ttl, to, octets) for to, ttl in bad]
        # Of packets with a low TTL one of 64 passes the filter.
        for _ in range(8):
            assert flood_from(link.right, 0, LEFT, packets) == BATCH
        # Reports of the time in which they were sent may wait before the one with all of them.
        ours.expect(ProcessStatus, lambda seen: discarded(seen) >= 8 * BATCH / 2)
        status = ours.status(key)
        assert (status.state, status.ups) == (State.UP, 1)
        # The right port and TTL: the same octets end it.
        flood_from(link.right, 0, LEFT, [packet(RIGHT, LEFT, 255, port, octets)])
        while (status := ours.status(key)).state is State.UP and status.ups == 1:
            pass


def test_rfc5881_6_a_session_of_one_hop_never_comes_up_over_a_router(link: Link) -> None:
    """Whatever the kernel's route is: the TTL of its packets is 254 at the other end."""
    left, right = "10.98.0.1", "10.98.0.2"
    with (
        router_between(link, (left, right)),
        bfd_in(link.left) as ours,
        bfd_in(link.right) as theirs,
    ):
        ours.set(SessionKey(right, ""), Settings())
        theirs.set(SessionKey(left, ""), Settings())
        for end, key in ((ours, SessionKey(right, "")), (theirs, SessionKey(left, ""))):
            end.expect(ProcessStatus, lambda seen: sum(d.packets for d in seen.discarded) >= 3)
            status = end.status(key)
            assert (status.state, status.ups) == (State.DOWN, 0)


def test_an_interface_that_was_deleted_and_made_again_has_its_session_again(link: Link) -> None:
    """By its address, and by its name: the sockets of a link-local neighbor are bound to it."""
    to_right = SessionKey("fe80::2", "fe80::1", "loose")
    to_left = SessionKey("fe80::1", "fe80::2", "loose")

    def make() -> None:
        link.left.batch(
            f"link add loose type veth peer name loose netns {link.right.name}",
            "link set loose up",
            "addr add fe80::1/64 dev loose nodad",
        )
        link.right.batch("link set loose up", "addr add fe80::2/64 dev loose nodad")

    make()
    quick = Settings(desired_min_tx=50_000, required_min_rx=50_000, detect_multiplier=8)
    with bfd_in(link.left) as ours, bfd_in(link.right) as theirs:
        ours.set(to_right, quick)
        theirs.set(to_left, quick)
        before = ours.wait_up(to_right)
        link.left.batch("link delete loose")
        while ours.status(to_right).state is State.UP:
            pass
        make()
        after = ours.wait_up(to_right)
        assert after.ups == before.ups + 1
        assert after.problem == ""


@contextmanager
def few_descriptors() -> Iterator[None]:
    """Start programs with a soft limit of 256, as many shells and runtimes have it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2 * PEERS:
        pytest.skip(f"the hard limit of descriptors is {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_two_thousand_peers_have_a_socket_each_and_one_filter(link: Link) -> None:
    """Whatever the soft limit of descriptors is: the process raises it."""
    link.left.batch("addr add 10.0.0.1/8 dev cable", "addr add 2001:db8::1/64 dev cable nodad")
    half = PEERS // 2
    keys = [SessionKey(f"10.1.{i >> 8}.{i & 255}", "") for i in range(half)]
    keys += [SessionKey(f"2001:db8::1:{i:x}", "") for i in range(half)]
    with few_descriptors(), bfd_in(link.left) as ours:
        # A neighbor that has none yet is no problem: packets to it are lost.
        ours.send(SetSessions(tuple(Wanted(key, Settings()) for key in keys)))
        ours.expect(Statuses, lambda seen: len(seen.sessions) == PEERS)
        statuses = ours.connect()
        assert len(statuses) == PEERS
        refused = {each.problem for each in statuses.values()} - {"", "No route to host"}
        assert not refused
        assert len(list(Path(f"/proc/{ours.worker()}/fd").iterdir())) > PEERS
        right = SessionKey("10.1.0.2", "")
        link.right.batch("addr add 10.1.0.2/8 dev cable")
        with bfd_in(link.right) as theirs:
            theirs.set(SessionKey("10.0.0.1", ""), Settings())
            ours.wait_up(right)
