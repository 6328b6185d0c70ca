"""Python calls of the tracing API and its SDK, which no load of the machine changes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import opentelemetry.trace

_PACKAGE = f"{Path(opentelemetry.trace.__file__).parent.parent}/"


def tracing_calls(action: Callable[[], object]) -> list[str]:
    """Return the functions of OpenTelemetry that are called in an action, in order."""
    calls: list[str] = []

    def count(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(_PACKAGE):
            calls.append(frame.f_code.co_qualname)

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        action()
    finally:
        sys.setprofile(before)
    return calls
