"""Turn an event into one line: the same keys in logfmt and JSON, UTC times, nothing secret.

Whatever a value holds, the line stays one line and valid UTF-8. The order is fixed: time, level,
logger, event, message, the event's own keys, trace IDs, exception.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from opentelemetry import trace

from cells.safe_text import escape, shorten
from resources.enumeration import MAX_MESSAGE_CHARACTERS

REDACTED = "[redacted]"
MAX_VALUE = MAX_MESSAGE_CHARACTERS
"""Characters kept of one value; exceptions may be longer."""

_SECRET = re.compile(
    r"password|passwd|md5|token|authorization|private_?key|credential", re.IGNORECASE
)
_BARE = re.compile(r"[^\s\"=\\]+")
_encoder = msgspec.json.Encoder()


def event(
    *, when: float, level: str, logger: str, message: str, values: Mapping[str, Any]
) -> dict[str, Any]:
    """Order and clean one event. ``when`` is a POSIX time; ``values`` the keys of the caller.

    Of ``values``, ``event_name`` is the stable name of the event and ``exc_info`` an exception.
    """
    rest = dict(values)
    name, error = rest.pop("event_name", None), rest.pop("exc_info", None)
    out: dict[str, Any] = {
        "ts": datetime.fromtimestamp(when, UTC).isoformat(timespec="milliseconds")[:-6] + "Z",
        "level": level,
        "logger": logger,
    }
    if name is not None:
        out["event"] = name
    out["msg"] = shorten(str(message), MAX_VALUE)
    for key, value in rest.items():
        if value is not None:
            out[escape(str(key))] = REDACTED if _SECRET.search(str(key)) else _plain(value)
    context = trace.get_current_span().get_span_context()
    if context.is_valid:
        out["trace_id"] = f"{context.trace_id:032x}"
        out["span_id"] = f"{context.span_id:016x}"
    if isinstance(error, BaseException):
        out["error"] = shorten(f"{type(error).__name__}: {error}", MAX_VALUE)
        out["exception"] = "".join(traceback.format_exception(error)).rstrip()
    return out


def logfmt(values: Mapping[str, Any]) -> str:
    """Render ``key=value`` pairs, quoted where they contain a space, quote or equals sign."""
    return " ".join(f"{key}={_quoted(value)}" for key, value in values.items())


def json(values: Mapping[str, Any]) -> str:
    """Render one JSON object; line ends within a value are JSON's own escapes."""
    clean = {
        key: escape(value, keep="\n\t") if isinstance(value, str) else value
        for key, value in values.items()
    }
    return _encoder.encode(clean).decode()


def _plain(value: object) -> Any:  # noqa: ANN401 - what JSON has
    if isinstance(value, bool | int | float):
        return value
    return shorten(str(value), MAX_VALUE)


def _quoted(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value)
    if _BARE.fullmatch(text) and text.isprintable():
        return text
    return '"' + escape(text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")) + '"'
