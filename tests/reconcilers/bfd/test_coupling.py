"""Which changes of a BFD session end a BGP session: RFC 5882 section 4, in virtual time."""

from __future__ import annotations

import pytest

from reconcilers.bfd.coupling import (
    AFTER_BGP_SECONDS,
    RECHECK_SECONDS,
    REMEMBERED_SECONDS,
    Coupling,
)
from reconcilers.bfd.process.process_messages import Change
from speaker.api import PathDown
from speaker.bfd.session_values import Diagnostic, SessionKey, State
from tests.reconcilers.bfd.build import status_of

KEY = SessionKey("192.0.2.9", "")
PEER, OTHER = ("i", "p"), ("j", "p")
EXPIRED = "Control Detection Time Expired"
DETECTION = 0.9


def coupling(*peers: tuple[str, str]) -> Coupling:
    return Coupling(lambda key: (peers or (PEER,)) if key == KEY else ())


def change(
    before: State,
    after: State,
    *,
    remote: State = State.UP,
    diagnostic: Diagnostic = Diagnostic.CONTROL_DETECTION_TIME_EXPIRED,
    independent: bool = True,
) -> Change:
    return Change(KEY, before, after, diagnostic, remote, 0, independent, 7, int(DETECTION * 1e6))


UP = change(State.DOWN, State.UP, diagnostic=Diagnostic.NONE)
LOST = change(State.UP, State.DOWN)


def test_a_session_that_goes_down_ends_bgp_of_each_peer_that_it_serves() -> None:
    bfd = coupling(PEER, OTHER)
    assert bfd.changed([UP], 1) == []
    bfd.bgp_changed(PEER, 2, established=True)
    assert bfd.changed([LOST], 100) == [
        PathDown(*PEER, EXPIRED, independent=True),
        PathDown(*OTHER, EXPIRED, independent=True),
    ]


def test_the_c_bit_of_the_neighbor_is_passed_on() -> None:
    lost = change(State.UP, State.DOWN, independent=False)
    assert coupling().changed([UP, lost], 1) == [PathDown(*PEER, EXPIRED, independent=False)]


@pytest.mark.parametrize(
    "changes",
    [
        [change(State.DOWN, State.INIT), change(State.INIT, State.DOWN)],
        [UP, change(State.UP, State.DOWN, remote=State.ADMIN_DOWN)],
        [UP, change(State.UP, State.ADMIN_DOWN, diagnostic=Diagnostic.ADMINISTRATIVELY_DOWN)],
    ],
    ids=["never Up", "AdminDown of the neighbor", "AdminDown of this end"],
)
def test_what_is_no_failure(changes: list[Change]) -> None:
    assert coupling().changed(changes, 1) == []


def test_a_down_without_a_connection_is_found_in_the_listing() -> None:
    bfd = coupling()
    bfd.reported([status_of(KEY, State.UP)], 1)
    assert bfd.reported([status_of(KEY, State.DOWN)], 9) == [
        PathDown(*PEER, EXPIRED, independent=True)
    ]
    assert bfd.reported([status_of(KEY, State.DOWN)], 14) == [], "once"


def test_a_process_that_begins_anew_is_no_failure() -> None:
    """Another discriminator: the former process and its sessions are lost, not the path."""
    bfd = coupling()
    bfd.reported([status_of(KEY, State.UP, discriminator=7)], 1)
    assert bfd.reported([status_of(KEY, State.DOWN, discriminator=8)], 9) == []


SIGNALED = Diagnostic.NEIGHBOR_SIGNALED_SESSION_DOWN


def continued() -> Coupling:
    """Return a coupling whose BFD process was replaced at 100 s: the session is Up, its count anew."""
    bfd = coupling()
    bfd.bgp_changed(PEER, 1, established=True)
    bfd.reported([status_of(KEY)], 1)
    bfd.reported([status_of(KEY)._replace(ups=0)], 100)
    return bfd


def test_a_neighbor_that_missed_the_process_for_a_moment_ends_nothing() -> None:
    bfd = continued()
    assert bfd.changed([change(State.UP, State.DOWN, diagnostic=SIGNALED)], 100.5) == []
    bfd.changed([UP], 102)
    assert bfd.due(200) == []


def test_a_neighbor_that_stays_down_after_that_is_lost() -> None:
    bfd = continued()
    bfd.changed([change(State.UP, State.DOWN, diagnostic=SIGNALED)], 100.5)
    (path,) = bfd.due(100.5 + RECHECK_SECONDS)
    assert path.reason == "Neighbor Signaled Session Down"


def test_a_neighbor_that_went_down_before_the_agent_was_connected_again() -> None:
    bfd = coupling()
    bfd.bgp_changed(PEER, 1, established=True)
    bfd.reported([status_of(KEY)], 1)
    down = status_of(KEY, State.DOWN)._replace(ups=0, diagnostic=SIGNALED)
    assert bfd.reported([down], 100) == []


def test_a_path_that_is_lost_beside_the_process_is_lost() -> None:
    """The process that continues the session has waited for a detection time."""
    assert continued().changed([LOST], 100.9) == [PathDown(*PEER, EXPIRED, independent=True)]


def test_a_neighbor_that_signals_down_later_is_lost() -> None:
    signaled = change(State.UP, State.DOWN, diagnostic=SIGNALED)
    assert continued().changed([signaled], 100 + DETECTION + AFTER_BGP_SECONDS + 0.1)


def after_bgp_end(seconds: float) -> tuple[Coupling, list[PathDown]]:
    """Return what a loss brings about, this long after a BGP session; the next one has begun."""
    bfd = coupling()
    bfd.bgp_changed(PEER, 0, established=True)
    bfd.changed([UP], 1)
    bfd.bgp_changed(PEER, 100, established=False)
    bfd.bgp_changed(PEER, 100.1, established=True)
    return bfd, bfd.changed([LOST], 100 + seconds)


def test_a_neighbor_that_ends_bfd_with_bgp_does_not_end_the_next_session() -> None:
    """As GoBGP 4.8.0 does, with which a router that takes it for a failure loops for ever."""
    bfd, paths = after_bgp_end(DETECTION)
    assert paths == []
    assert bfd.next_due == pytest.approx(100 + DETECTION + RECHECK_SECONDS)
    bfd.changed([UP], 102)
    assert bfd.due(200) == []
    assert bfd.next_due is None


def test_the_end_of_one_bgp_session_ends_no_other_that_shares_its_bfd_session() -> None:
    bfd = coupling(PEER, OTHER)
    bfd.changed([UP], 1)
    for peer in (PEER, OTHER):
        bfd.bgp_changed(peer, 2, established=True)
    bfd.bgp_changed(PEER, 100, established=False)
    assert bfd.changed([change(State.UP, State.DOWN, diagnostic=SIGNALED)], 100.2) == [
        PathDown(*PEER, "Neighbor Signaled Session Down", independent=True)
    ], "of a session that is down already"
    bfd.changed([UP], 101)
    assert bfd.due(200) == []


def test_a_neighbor_that_does_not_come_back_is_judged_again_once() -> None:
    bfd, _ = after_bgp_end(DETECTION)
    assert bfd.due(103) == []
    assert bfd.due(107) == [PathDown(*PEER, EXPIRED, independent=True)]
    bfd.bgp_changed(PEER, 107, established=False)
    bfd.bgp_changed(PEER, 108, established=True)
    assert bfd.due(1000) == [], "no loop: BFD has not been Up since"


def test_the_next_session_that_ends_meanwhile_is_not_judged() -> None:
    bfd, _ = after_bgp_end(DETECTION)
    bfd.bgp_changed(PEER, 103, established=False)
    assert bfd.due(200) == []


def test_later_a_loss_is_a_failure() -> None:
    _, paths = after_bgp_end(DETECTION + AFTER_BGP_SECONDS + 0.1)
    assert paths == [PathDown(*PEER, EXPIRED, independent=True)]


def test_a_strict_peer_waits_until_bfd_is_up_and_again_after_a_loss() -> None:
    bfd = coupling()
    assert bfd.holds(PEER, None)
    assert bfd.holds(PEER, KEY)
    bfd.changed([UP], 1)
    assert not bfd.holds(PEER, KEY)
    bfd.reported([status_of(KEY, State.DOWN, discriminator=8)], 2)
    assert not bfd.holds(PEER, KEY), "the loss of the process holds nothing"
    bfd.changed([UP, LOST], 3)
    assert bfd.holds(PEER, KEY)


def test_a_peer_that_becomes_strict_keeps_its_session_until_that_ends() -> None:
    bfd = coupling()
    bfd.bgp_changed(PEER, 1, established=True)
    assert not bfd.holds(PEER, KEY), "BFD has not been Up"
    assert not bfd.holds(PEER, None)
    assert bfd.holds(OTHER, KEY), "which is not Established"
    bfd.bgp_changed(PEER, 2, established=False)
    assert bfd.holds(PEER, KEY)


def test_a_strict_peer_waits_from_the_loss_of_its_path() -> None:
    """Before the end of its BGP session is reported, too: the next one would begin."""
    bfd = coupling()
    bfd.changed([UP], 1)
    bfd.bgp_changed(PEER, 2, established=True)
    bfd.changed([LOST], 100)
    assert bfd.holds(PEER, KEY)
    bfd.bgp_changed(PEER, 100, established=False)
    assert bfd.holds(PEER, KEY)


def test_a_strict_peer_does_not_wait_for_a_neighbor_without_bfd() -> None:
    """AdminDown: its operator has switched BFD off, and BGP on."""
    bfd = coupling()
    bfd.reported([status_of(KEY, State.DOWN, remote=State.ADMIN_DOWN)], 1)
    assert not bfd.holds(PEER, KEY)


def test_a_strict_peer_waits_for_a_neighbor_that_switches_bfd_on_again() -> None:
    bfd = coupling()
    bfd.changed([UP, change(State.UP, State.DOWN, remote=State.ADMIN_DOWN)], 1)
    assert not bfd.holds(PEER, KEY)
    bfd.reported([status_of(KEY, State.DOWN, remote=State.DOWN)], 2)
    assert bfd.holds(PEER, KEY)
    bfd.changed([UP], 3)
    assert not bfd.holds(PEER, KEY)


def test_a_neighbor_that_switches_bfd_off_after_a_restart_is_not_lost() -> None:
    """Its Down is judged again, and AdminDown is no failure (RFC 5882 section 4.2)."""
    bfd = continued()
    assert bfd.changed([change(State.UP, State.DOWN, diagnostic=SIGNALED)], 100.5) == []
    bfd.reported([status_of(KEY, State.DOWN, remote=State.ADMIN_DOWN)], 102)
    assert bfd.due(100.5 + RECHECK_SECONDS) == []


def test_a_session_that_is_removed_and_set_again_at_once_is_no_failure() -> None:
    """The process continues it with its discriminator, from AdminDown: its neighbor has to return."""
    bfd = coupling()
    bfd.bgp_changed(PEER, 0, established=True)
    bfd.reported([status_of(KEY, State.UP)], 1)
    again = status_of(KEY, State.DOWN)._replace(diagnostic=Diagnostic.NONE)
    assert bfd.reported([again], 2) == []


def test_removed_sessions_are_forgotten() -> None:
    bfd = coupling()
    bfd.changed([UP], 1)
    bfd.forget({})
    assert bfd.holds(PEER, KEY)
    assert bfd.reported([status_of(KEY, State.DOWN)], 2) == []


def test_dynamic_peers_that_come_and_go_leave_nothing() -> None:
    bfd = coupling()
    for number in range(100):
        peer = ("i", f"dynamic-{number}")
        bfd.bgp_changed(peer, number * REMEMBERED_SECONDS, established=True)
        bfd.bgp_changed(peer, number * REMEMBERED_SECONDS + 1, established=False)
    assert len(bfd._ended) <= 2
