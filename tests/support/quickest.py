"""How fast a program is, on a machine whose other programs may keep it from running at any moment."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

ATTEMPTS: Final = 10


def once_within(seconds: float, attempt: Callable[[int], object]) -> None:
    """Pass as soon as an attempt takes less than so many seconds; fails if none does.

    A busy machine makes some attempts slow, and what waits for a period makes each one slow that
    follows another at once. ``attempt`` gets its number, from 0 on.
    """
    took: list[float] = []
    for number in range(ATTEMPTS):
        began = time.monotonic()
        attempt(number)
        took.append(time.monotonic() - began)
        if took[-1] < seconds:
            return
    raise AssertionError(f"none of them took less than {seconds:g} s: {took}")
