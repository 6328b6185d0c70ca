"""The deadlines of waits: a machine under load makes no test fail."""

from __future__ import annotations

import pytest

from tests.support import wait
from tests.support.wait import FACTOR, PATIENCE, eventually


class Clock:
    """A time that passes by sleeping alone."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(wait, "time", made)
    return made


@pytest.mark.parametrize(("within", "seconds"), [(1.0, PATIENCE), (200.0, 200.0)])
def test_a_deadline_is_never_shorter_than_a_minute(
    clock: Clock, within: float, seconds: float
) -> None:
    seconds *= FACTOR
    began = clock.now

    def check() -> None:
        assert clock.now >= began + seconds - 1

    eventually(check, within=within, interval=0.5)
    with pytest.raises(AssertionError, match=f"not within {seconds:g} s"):
        eventually(_never, within=within)
    assert clock.now - began < 2 * seconds + 1


def _never() -> None:
    raise wait.NotReadyError("never")
