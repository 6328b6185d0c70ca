"""How many examples a property is tried with: all of them, or a share of them where time is short.

`make unit` uses the profile ``quick``, `make properties` the profile ``thorough``; every other run of
the tests, as `make test`, tries all. A test that needs another number than hypothesis' default sets it
by `examples`, so that it has its share as well.
"""

from __future__ import annotations

from typing import Final

from hypothesis import HealthCheck, settings

FULL: Final = 100
"""What hypothesis does by itself, and a share is measured against."""
LEAST: Final = 2
"""The first example is the simplest one, which alone proves little."""


def register_profiles() -> None:
    """Register ``quick`` with hypothesis, before its plugin looks for the selected profile.

    No example has a deadline, and slow ones are no failure: on a busy machine that would be a test of
    the machine.
    """
    slow = [HealthCheck.too_slow]
    settings.register_profile("whole", deadline=None, suppress_health_check=slow)
    settings.load_profile("whole")
    settings.register_profile("quick", settings.get_profile("whole"), max_examples=30)
    settings.register_profile("thorough", settings.get_profile("whole"), max_examples=500)


def examples(count: int) -> int:
    """Return the share of ``count`` that the profile has; all where it is hypothesis' own."""
    return max(LEAST, count * settings().max_examples // FULL)
