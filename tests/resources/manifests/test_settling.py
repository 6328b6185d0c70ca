"""Changed files settle: read once they have been quiet, or after a while."""

from __future__ import annotations

from resources.manifests.files import Signature
from resources.manifests.settling import LONGEST_SECONDS, QUIET_SECONDS, Settling

FILE = "/manifests/services.yaml"
FIRST, SECOND = Signature(1, 2, 3), Signature(2, 2, 3)


def test_a_file_is_due_once_it_has_been_quiet() -> None:
    settling = Settling()
    settling.add(FILE, FIRST, 10.0)
    assert settling.next_due == 10.0 + QUIET_SECONDS
    assert settling.take(10.0 + QUIET_SECONDS / 2) == []
    assert settling.take(10.0 + QUIET_SECONDS) == [(FILE, FIRST)]


def test_a_change_while_a_file_settles_starts_the_quiet_time_again() -> None:
    settling = Settling()
    settling.add(FILE, FIRST, 10.0)
    settling.add(FILE, SECOND, 10.0 + 0.9 * QUIET_SECONDS)
    assert settling.take(10.0 + QUIET_SECONDS) == []
    assert settling.take(10.0 + 1.9 * QUIET_SECONDS) == [(FILE, SECOND)]


def test_a_file_that_keeps_changing_is_read_after_a_while() -> None:
    settling = Settling()
    now = 10.0
    while now < 10.0 + LONGEST_SECONDS:
        settling.add(FILE, FIRST, now)
        assert settling.take(now) == []
        now += QUIET_SECONDS / 2
    assert settling.take(10.0 + LONGEST_SECONDS) == [(FILE, FIRST)]


def test_a_scan_that_finds_the_recorded_state_does_not_delay_a_file() -> None:
    settling = Settling()
    settling.add(FILE, FIRST, 10.0)
    settling.see(FILE, FIRST, 10.0 + 0.9 * QUIET_SECONDS)
    assert settling.take(10.0 + QUIET_SECONDS) == [(FILE, FIRST)]


def test_a_whole_file_is_due_at_once() -> None:
    settling = Settling()
    settling.add(FILE, FIRST, 10.0, whole=True)
    assert settling.take(10.0) == [(FILE, FIRST)]
