"""Durations of the Kubernetes API (metav1.Duration): the notation of Go's ``time.ParseDuration``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Final

from resources.errors import FieldError, shortened

NANOSECONDS: Final = 1_000_000_000
"""In a second."""
_UNITS: Final = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": NANOSECONDS,
    "m": 60 * NANOSECONDS,
    "h": 3600 * NANOSECONDS,
}
"""Nanoseconds of each unit; microseconds with either of the two mu."""
_LIMIT: Final = 1 << 63
_MAX_TEXT: Final = 64
"""Characters; no duration that fits 63 bits needs more."""
_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")


def parse_duration(text: str) -> int:
    """Return a duration in nanoseconds: ``1m30s``, ``1.5h``, ``-20ms``, ``0``.

    Raises `ValueError` naming the rule; fractions of a nanosecond are cut.
    """
    sign, rest = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    if rest == "0":
        return 0
    end = 0
    total = Fraction(0)
    while end < len(rest) <= _MAX_TEXT:
        part = _PART.match(rest, end)
        if part is None:
            break
        number, unit = part.groups()
        total += int(Fraction(number if number[-1] != "." else number[:-1]) * _UNITS[unit])
        end = part.end()
    if not rest or end != len(rest):
        raise ValueError(f"{shortened(text)} is not a duration such as 90s, 1m30s or 500ms")
    if total >= _LIMIT:
        raise ValueError(f"{shortened(text)} is longer than 292 years")
    return sign * int(total)


def duration_errors(text: str | None, path: str) -> Iterator[FieldError]:
    """Yield an error when a text is not a duration."""
    if text is not None:
        try:
            parse_duration(text)
        except ValueError as error:
            yield FieldError(path, str(error))
