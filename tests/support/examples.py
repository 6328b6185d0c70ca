"""How many examples a property is tried with: all of them, or a share of them where time counts.

`make unit` asks for the profile ``quick``; whatever else runs the tests, `make test` among it, tries
all. A test that wants another number than hypothesis' own says it by `examples`, so that it has its
share as well.
"""

from __future__ import annotations

from typing import Final

from hypothesis import settings

FULL: Final = 100
"""What hypothesis does by itself, and a share is measured against."""
LEAST: Final = 2
"""The first example is the simplest there is, which alone would say little."""


def register_profiles() -> None:
    """Make ``quick`` known to hypothesis; before its plugin looks for the profile that is asked for."""
    settings.register_profile("quick", max_examples=30)


def examples(count: int) -> int:
    """Return the share of ``count`` that the profile has; all where it is hypothesis' own."""
    return max(LEAST, count * settings().max_examples // FULL)
