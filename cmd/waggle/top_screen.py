"""The screen of ``waggle top`` as lines: what fits a width and a height, the worst sessions first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from cells.safe_text import escape
from waggle import output
from waggle.history import line, type_style
from waggle.sessions import ESTABLISHED, reason, state_style
from waggle.sessions import columns as columns_of_sessions
from waggle.tables import text_width

Item = Mapping[str, Any]
Line = tuple[str, str]
"""A line, and the name of its style: red, green, dim, head, or empty."""
SHOWN: Final = ("PEER", "STATE", "SINCE")
"""The columns of ``waggle peers`` that are the first ones here; numbers are sums and rates."""
UNITS: Final = ("", "K", "M", "G", "T")
NAME_WIDTH: Final = 22
"""Of the column PEER on a screen of 80 columns; a wider screen has more for longer names."""
STATE_WIDTH: Final = 11
NUMBER_WIDTHS: Final = (7, 7, 7, 7, 9, 9)
"""Of the columns behind the state: a full table has more than a million routes."""


class Reading(NamedTuple):
    """One reading of an agent."""

    at: float
    """In seconds of a steady clock."""
    time: datetime
    process: Item
    sessions: Sequence[Item]
    changes: Sequence[Item]
    """The newest first."""

    def item(self) -> dict[str, Any]:
        """Return the reading as an item of an answer."""
        return {
            "node": self.process["node"],
            "process": self.process,
            "sessions": self.sessions,
            "changes": self.changes,
        }


class Rates(NamedTuple):
    """UPDATEs of a session a second, between two readings; None at the first one."""

    received: float | None
    sent: float | None


def lines(now: Reading, before: Reading, width: int, height: int, trouble: str = "") -> list[Line]:
    """Return the lines of the screen, none wider than it, and no more than it has."""
    sessions = sorted(now.sessions, key=_worst_first)
    name_width = _name_width(sessions, width)
    columns = {column.title: column.cell for column in columns_of_sessions(now.time)}
    cells = [columns[title] for title in SHOWN]
    head: list[Line] = [(summary(now, before), "")]
    head.append((trouble, "red") if trouble else ("", ""))
    room = max(0, height - len(head) - 3)
    of_changes = min(len(now.changes), max(3, room // 3, room - len(sessions)))
    of_sessions = max(0, room - of_changes)
    body = [(_columns(name_width, *SHOWN, "IN/s", "OUT/s", "QUEUE", "RECV", "SENT"), "head")]
    rates = _rates(now, before)
    body += [
        _session(item, rates[_identity(item)], [cell(item) for cell in cells], name_width)
        for item in sessions[:of_sessions]
    ]
    if len(sessions) > of_sessions:
        body[-1:] = [(f"... {len(sessions) - of_sessions + 1} more sessions", "dim")]
    body += [("", ""), ("LAST CHANGES".ljust(width), "head")]
    body += [(line(item)[11:], type_style(item["type"])) for item in now.changes[:of_changes]]
    fitted = ((_fit(text, width), style) for text, style in (*head, *body))
    return list(fitted)[:height]


def summary(now: Reading, before: Reading) -> str:
    """Return the state of the agent as one line."""
    process, sessions = now.process, now.sessions
    up = sum(item["state"] == ESTABLISHED for item in sessions)
    parts = [
        str(process["node"]),
        f"{up}/{len(sessions)} Established",
        f"cpu {_cpu(now, before)}",
        f"rss {size(process['residentOctets'])}",
        f"up {output.age(output.read_time(process['startTime']), now.time)}",
    ]
    rates = _rates(now, before).values()
    if any(rate.received is not None for rate in rates):
        received = sum(rate.received or 0.0 for rate in rates)
        sent = sum(rate.sent or 0.0 for rate in rates)
        parts.append(f"updates in {received:.0f}/s out {sent:.0f}/s")
    parts.append(f"queue {size(sum(item.get('queuedOctets', 0) for item in sessions))}")
    return "  ".join(parts)


def size(octets: float) -> str:
    """Return a number of octets with a unit: ``87M``."""
    for unit in UNITS:
        if octets < 1000 or unit == UNITS[-1]:
            break
        octets /= 1000
    return f"{octets:.0f}{unit}" if unit == "" or octets >= 10 else f"{octets:.1f}{unit}"


def _cpu(now: Reading, before: Reading) -> str:
    elapsed = now.at - before.at
    same = now.process["pid"] == before.process["pid"]
    if elapsed <= 0 or not same:
        return "-"
    used = now.process["cpuSeconds"] - before.process["cpuSeconds"]
    return f"{100 * used / elapsed:.0f}%"


def _identity(item: Item) -> tuple[str, str]:
    return item["instance"], item["name"]


def _rates(now: Reading, before: Reading) -> dict[tuple[str, str], Rates]:
    earlier = {_identity(item): item for item in before.sessions}
    elapsed = now.at - before.at

    def rate(item: Item, name: str) -> float | None:
        old = earlier.get(_identity(item))
        if elapsed <= 0 or old is None:
            return None
        # A new session counts from 0 again.
        return float(max(0, item.get(name, 0) - old.get(name, 0)) / elapsed)

    return {
        _identity(item): Rates(rate(item, "updatesReceived"), rate(item, "updatesSent"))
        for item in now.sessions
    }


def _worst_first(item: Item) -> tuple[Any, ...]:
    queued = -item.get("queuedOctets", 0)
    return (item["state"] == ESTABLISHED, queued, *output.peer_order(dict(item)))


def _session(item: Item, rate: Rates, shown: Sequence[str], name_width: int) -> Line:
    text = _columns(
        name_width,
        *shown,
        _rate(rate.received),
        _rate(rate.sent),
        size(item.get("queuedOctets", 0)),
        _routes(item, "received"),
        _routes(item, "advertised"),
    )
    if why := reason(item):
        # In place of the rates, so that it is seen at 80 columns.
        text = f"{_columns(name_width, *shown)}  {why}"
    style = state_style(item["state"])
    return text, "" if style == "green" else "red"


def _rate(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}"


def _routes(item: Item, name: str) -> str:
    counts = item.get(name)
    return "-" if counts is None else str(sum(count["routes"] for count in counts))


def _name_width(sessions: Sequence[Item], width: int) -> int:
    """Return the width of the column PEER: half of the screen at the most, for a reason beside it."""
    longest = max((text_width(escape(item["name"])) for item in sessions), default=0)
    room = min(width - 1 - STATE_WIDTH - sum(NUMBER_WIDTHS), width // 2)
    return max(NAME_WIDTH, min(longest, room))


def _columns(name_width: int, *cells: str) -> str:
    name, state, *others = map(escape, cells)
    shown = _shortened(name, name_width)
    numbers = zip(others, NUMBER_WIDTHS, strict=False)
    padding = " " * (name_width - text_width(shown))
    text = f"{shown}{padding} {state:<{STATE_WIDTH}}"
    return text + "".join(f"{cell:>{width}}" for cell, width in numbers)


def _shortened(name: str, width: int) -> str:
    """Return a name that is too long without its middle: names often differ at their ends."""
    if text_width(name) <= width:
        return name
    head = _head(name, (width - 1) // 2)
    tail = _head(name[::-1], width - 1 - text_width(head))[::-1]
    return f"{head}~{tail}"


def _head(text: str, width: int) -> str:
    """Return the first characters, as many as fit a width."""
    head = text[:width]
    while text_width(head) > width:
        head = head[:-1]
    return head


def _fit(text: str, width: int) -> str:
    text = escape(text)
    return text if text_width(text) <= width else f"{_head(text, width - 1)}~"
