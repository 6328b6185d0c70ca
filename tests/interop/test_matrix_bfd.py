"""The cells of the interop matrix of BFD: one ``waggle-bfd`` with all sessions of one router.

Sessions are started together; a test disturbs the sessions of its name. The last test kills the router.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator

import pytest
from msgspec.structs import replace

from speaker.bfd.session_values import Diagnostic, Key, Settings, State
from tests.interop.bfd_lab import (
    INTERVAL,
    KEY_ID,
    LINES,
    MANY,
    MS,
    PATIENT,
    SECRET,
    SETTINGS,
    Bfdd,
    Lab,
    Reading,
    lab,
)
from tests.interop.conftest import NeedRouter
from tests.interop.matrix_rows import cell
from tests.support.wait import eventually

pytestmark = [
    pytest.mark.interop,
    pytest.mark.netns,
    pytest.mark.program,
    pytest.mark.xdist_group("matrix-bfd"),
]

DETECTION = 3 * INTERVAL
SLOW = 1000
"""Milliseconds between control packets beside echo packets (RFC 5880 section 6.8.3)."""
Labs = Callable[[str], Lab]


@pytest.fixture(scope="module")
def labs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Labs]:
    """Return the lab of a router, started when it is first needed."""
    started: dict[str, Lab] = {}
    with contextlib.ExitStack() as stack:

        def of(kind: str) -> Lab:
            if kind not in started:
                started[kind] = stack.enter_context(lab(kind, tmp_path_factory.mktemp(kind)))
            return started[kind]

        yield of


@pytest.fixture
def both(kind: str, labs: Labs, need_router: NeedRouter) -> Lab:
    """Return both ends."""
    need_router(kind)
    return labs(kind)


def plain(both: Lab, name: str) -> None:
    """Check a session whose ends have the same settings."""

    def up() -> None:
        assert both.theirs.read(name) == Reading(True, INTERVAL, DETECTION)
        status = both.ours.status(LINES[name].key)
        assert (status.transmit_interval, status.detection_time) == (INTERVAL * MS, DETECTION * MS)

    eventually(up, context=both.theirs.tail)


@cell("bfd-ipv4")
def test_ipv4(both: Lab) -> None:
    plain(both, "ipv4")


@cell("bfd-ipv6")
def test_ipv6(both: Lab) -> None:
    plain(both, "ipv6")


@cell("bfd-link-local")
def test_link_local(both: Lab) -> None:
    plain(both, "link-local")


@cell("bfd-multihop")
def test_multihop(both: Lab) -> None:
    plain(both, "multihop")


@cell("bfd-intervals")
def test_each_direction_has_the_longer_interval_of_its_two_ends(both: Lab) -> None:
    def up() -> None:
        # We send every max(200, 100) ms, 4 of which may be missing; they every max(500, 400), 5.
        assert both.theirs.read("intervals") == Reading(True, 500, 4 * 200)
        status = both.ours.status(LINES["intervals"].key)
        assert (status.transmit_interval, status.detection_time) == (200 * MS, 5 * 500 * MS)

    eventually(up, context=both.theirs.tail)


@cell("bfd-poll-ours")
def test_our_new_intervals_are_negotiated_without_a_change_of_state(both: Lab) -> None:
    both.both("poll-ours", up=True)
    before = both.ups("poll-ours")
    longer = replace(PATIENT, desired_min_tx=400 * MS, required_min_rx=500 * MS)
    both.ours.set(LINES["poll-ours"].key, longer)

    def negotiated() -> None:
        assert both.theirs.read("poll-ours") == Reading(True, 500, MANY * 400)
        status = both.ours.status(LINES["poll-ours"].key)
        assert (status.transmit_interval, status.detection_time) == (400 * MS, MANY * 500 * MS)

    eventually(negotiated, context=both.theirs.tail)
    assert both.ups("poll-ours") == before


@cell("bfd-poll-theirs")
def test_their_new_intervals_are_negotiated_without_a_change_of_state(both: Lab) -> None:
    both.both("poll-theirs", up=True)
    before = both.ups("poll-theirs")
    both.theirs.set_intervals("poll-theirs", 500, 400)

    def negotiated() -> None:
        assert both.theirs.read("poll-theirs") == Reading(True, 500, MANY * 400)
        status = both.ours.status(LINES["poll-theirs"].key)
        assert (status.transmit_interval, status.detection_time) == (400 * MS, MANY * 500 * MS)

    eventually(negotiated, context=both.theirs.tail)
    assert both.ups("poll-theirs") == before


def refused(both: Lab, name: str, settings: Settings) -> None:
    """Check that a session ends with another key."""
    both.both(name, up=True)
    both.ours.set(LINES[name].key, settings)
    both.both(name, up=False)


@cell("bfd-keyed")
def test_keyed_sha1(both: Lab) -> None:
    other = Key(KEY_ID, b"another secret", meticulous=False)
    refused(both, "keyed", replace(SETTINGS, key=other))


@cell("bfd-meticulous")
def test_meticulous_keyed_sha1(both: Lab) -> None:
    # The same secret without a new sequence number for each packet is another type.
    refused(both, "meticulous", replace(SETTINGS, key=Key(KEY_ID, SECRET.encode(), False)))


@cell("bfd-echo")
def test_both_ends_send_echo_packets_and_a_forwarding_that_stops_is_a_loss(both: Lab) -> None:
    router = both.theirs
    assert isinstance(router, Bfdd)

    def echoing() -> None:
        status = both.ours.status(LINES["echo"].key)
        assert status.echoes_received > 10
        assert (status.state, status.diagnostic) == (State.UP, Diagnostic.NONE)
        assert router.show("echo", "counters")["echo-packet-input"] > 10
        # Control packets are slow meanwhile: read from their side.
        assert router.show("echo")["remote-receive-interval"] == SLOW

    eventually(echoing, context=router.tail)
    before = both.ups("echo")
    both.link.right.run("sh", "-c", "echo 0 >/proc/sys/net/ipv4/ip_forward")

    def lost() -> None:
        status = both.ours.status(LINES["echo"].key)
        assert status.ups > before or status.diagnostic == Diagnostic.ECHO_FUNCTION_FAILED

    eventually(lost, context=router.tail)


@cell("bfd-admin-down-ours")
def test_a_session_that_we_switch_off_is_down_there_and_comes_back(both: Lab) -> None:
    both.both("our-end", up=True)
    both.ours.set(LINES["our-end"].key, replace(SETTINGS, admin_down=True))
    both.both("our-end", up=False)
    if isinstance(both.theirs, Bfdd):
        router = both.theirs

        def heard() -> None:
            assert router.show("our-end")["remote-diagnostic"] == "administratively down"

        eventually(heard, context=router.tail)
    both.ours.set(LINES["our-end"].key, SETTINGS)
    both.both("our-end", up=True)


@cell("bfd-admin-down-theirs")
def test_a_session_that_they_switch_off_is_down_here_and_comes_back(both: Lab) -> None:
    both.both("their-end", up=True)
    both.theirs.switch("their-end", on=False)
    both.both("their-end", up=False)

    def heard() -> None:
        status = both.ours.status(LINES["their-end"].key)
        assert status.remote_state is State.ADMIN_DOWN
        assert status.diagnostic == Diagnostic.NEIGHBOR_SIGNALED_SESSION_DOWN

    eventually(heard, context=both.theirs.tail)
    both.theirs.switch("their-end", on=True)
    both.both("their-end", up=True)


@cell("bfd-dropped")
def test_packets_that_a_filter_drops_in_either_direction_or_both_are_a_loss(both: Lab) -> None:
    if shutil.which("nft") is None:
        pytest.skip("nft is not installed (Debian: nftables)")
    names = ("lost-in", "lost-out", "lost-both")
    both.both(*names, up=True)
    incoming = ", ".join(LINES[name].theirs for name in names if name != "lost-out")
    outgoing = ", ".join(LINES[name].theirs for name in names if name != "lost-in")
    both.link.left.run(
        "nft",
        "table ip lossy {"
        f" chain incoming {{ type filter hook input priority 0; ip saddr {{ {incoming} }} drop; }};"
        f" chain outgoing {{ type filter hook output priority 0; ip daddr {{ {outgoing} }} drop; }};"
        "}",
    )
    both.both(*names, up=False)
    diagnostics = [both.ours.status(LINES[name].key).diagnostic for name in names]
    expired, signaled = (
        Diagnostic.CONTROL_DETECTION_TIME_EXPIRED,
        Diagnostic.NEIGHBOR_SIGNALED_SESSION_DOWN,
    )
    # Of packets that are lost on the way to the router it is the one to notice.
    assert diagnostics == [expired, signaled, expired]
    both.link.left.run("nft", "delete table ip lossy")
    both.both(*names, up=True)


@cell("bfd-link-down")
def test_link_down_is_a_loss_and_link_up_is_not(both: Lab) -> None:
    both.both("link-down", up=True)
    device = LINES["link-down"].device
    both.link.right.batch(f"link set {device} down")

    def lost() -> None:
        assert both.ours.status(LINES["link-down"].key).state is State.DOWN

    eventually(lost, context=both.theirs.tail)
    both.link.right.batch(f"link set {device} up")
    both.both("link-down", up=True)


@cell("bfd-killed")
def test_a_killed_router_is_a_loss_and_its_start_a_return(both: Lab) -> None:
    names = ("ipv4", "ipv6", "link-local", "multihop")
    both.both(*names, up=True)
    both.theirs.kill()

    def lost() -> None:
        sessions = both.ours.connect()
        for name in names:
            status = sessions[LINES[name].key]
            assert (status.state, status.diagnostic) == (
                State.DOWN,
                Diagnostic.CONTROL_DETECTION_TIME_EXPIRED,
            )

    eventually(lost, context=both.theirs.tail)
    both.theirs.start()
    both.both(*names, up=True)
