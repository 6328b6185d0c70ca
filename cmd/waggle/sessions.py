"""Sessions in tables and sentences: the columns, and the notes below the table."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, TypeAlias

from resources.enumeration import counted, counted_are
from waggle import output
from waggle.output import member
from waggle.tables import Column

ESTABLISHED = "Established"
Item: TypeAlias = Mapping[str, Any]


def state_style(state: str) -> str:
    """Return the style of a session's state in a table."""
    if state == ESTABLISHED:
        return "green"
    return "dim" if state == "Disabled" else "red" if state == "Idle" else "yellow"


def columns(now: datetime) -> tuple[Column, ...]:
    """Return the columns of a table of sessions."""
    return (
        Column("NODE", member("node"), minor=3),
        Column("PEER", member("name")),
        Column("ADDRESS", _address, minor=6, beneath=True),
        Column("LOCAL-AS", member("localASN"), right=True, minor=5),
        Column("PEER-AS", _peer_asn, right=True, minor=7, beneath=True),
        Column("STATE", member("state"), style=state_style),
        Column("SINCE", output.age_of("sinceTime", now), right=True),
        Column("BFD", member("bfd"), minor=4),
        Column("FAMILIES", _families, minor=4),
        Column("RECV", _counts("received"), right=True, minor=8, beneath=True),
        Column("SENT", _counts("advertised"), right=True, minor=9, beneath=True),
        Column("INSTANCE", member("instance"), wide=True),
        Column("ROUTER-ID", member("peerRouterID"), wide=True),
        Column("HOLD/KA", _timers, wide=True),
        Column("MSG-IN/OUT", _messages, wide=True),
        Column("FLAPS", member("flaps"), wide=True, right=True),
        Column("AUTH", member("authentication", "none"), wide=True),
        Column("GR", _restart_time, wide=True),
        Column("CAPABILITIES", _capabilities, wide=True, minor=10, beneath=True),
        Column("NEXT-RETRY", _next_retry, wide=True, right=True),
        Column("LAST-ERROR", member("lastError"), wide=True, minor=2, beneath=True),
        Column("REASON", reason, minor=2, beneath=True),
        Column("LIKELY-CAUSE", member("likelyCause"), wide=True, minor=1, beneath=True),
    )


def left_out(items: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield a sentence for each family in which a peer does not get all routes."""
    for item in items:
        for family in item.get("advertised", ()):
            if count := family.get("leftOut", 0):
                noun = f"{family['family']} prefix"
                what = f"{counted_are(count, noun, f'{noun}es')} not advertised"
                yield f"{item['name']}: {what}: {family.get('reason', 'unknown')}"


def malformed(items: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield a sentence for each peer some of whose UPDATEs cannot be used."""
    for item in items:
        for text in malformed_updates(item):
            yield f"{item['name']}: {text}"


def malformed_updates(item: dict[str, Any]) -> Iterator[str]:
    """Yield how many UPDATEs of a session are malformed, and why; nothing without any."""
    count = item.get("malformedUpdates", 0)
    if count:
        yield f"{counted(count, 'malformed UPDATE')}: {item.get('malformed', '')}"


def _address(item: Item) -> str:
    return item.get("address") or item.get("interface") or ""


def _peer_asn(item: Item) -> str:
    return str(item.get("peerASN") or item.get("peerType", "any"))


def _families(item: Item) -> str:
    return ",".join(map(output.short_family, item["families"]))


def _timers(item: Item) -> str:
    hold = item.get("holdSeconds")
    return "" if hold is None else f"{hold:g}/{item.get('keepaliveSeconds') or 0:g}"


def _messages(item: Item) -> str:
    received = item.get("messagesReceived")
    return "" if received is None else f"{received}/{item.get('messagesSent')}"


def _restart_time(item: Item) -> str:
    seconds = item.get("gracefulRestartSeconds")
    return "" if seconds is None else f"{seconds}s"


def _capabilities(item: Item) -> str:
    return ",".join(item.get("capabilities", ()))


def _next_retry(item: Item) -> str:
    seconds = item.get("retrySeconds")
    return "" if seconds is None else _countdown(seconds) or "now"


def reason(item: Item) -> str:
    """Return why a session is not Established, with the time to the next attempt; else empty."""
    if item["state"] == ESTABLISHED:
        return ""
    text, retry = item.get("reason") or "unknown", item.get("retrySeconds")
    if retry is None:
        return text
    countdown = _countdown(retry)
    return f"{text} ({f'retry in {countdown}' if countdown else 'retry now'})"


def _countdown(seconds: float) -> str:
    """Return the time to an attempt, begun seconds as whole ones; empty if it is due."""
    return output.duration(math.ceil(seconds)) if seconds > 0 else ""


def _counts(name: str) -> Callable[[Item], str]:
    """Return the cell of the routes of each family; one number where there are none."""

    def cell(item: Item) -> str:
        counts = item.get(name)
        if counts is None:
            return ""
        return ",".join(str(count["routes"]) for count in counts) or "0"

    return cell
