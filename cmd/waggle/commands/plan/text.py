"""The plan as text: a line for each change, peers and nodes with the same change in one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from resources.enumeration import bounded, enumerate_nodes, enumerate_some, problem_line

Json = dict[str, Any]
SYMBOLS: Final = {
    "add": "+",
    "advertise": "+",
    "install": "+",
    "start": "+",
    "remove": "-",
    "withdraw": "-",
    "stop": "-",
    "recreate": "!",
    "reset": "!",
    "replace": "!",
    "update": "~",
}
WORDS: Final = {
    "reset": "resets",
    "replace": "is replaced by another peer",
    "stop": "ends and stays down",
    "start": "starts",
    "update": "stays up",
    "recreate": "is recreated, all of its sessions reset",
}
STYLES: Final = {"+": "green", "-": "red", "!": "red", "~": "yellow"}
SHOWN_ROUTES: Final = 50
"""Of one node; ``-o json`` has all."""
SHOWN_NODES: Final = 3
SHOWN_PEERS: Final = 3
SHOWN_VALUE: Final = 60
"""Characters of a value."""
CONTEXT: Final = 12
"""Of these, before the first difference of two long values."""


def lines(answer: Json) -> Iterator[tuple[str, str]]:
    """Yield the lines of a plan, each with its style."""
    for item in answer["items"]:
        yield "", f"on {enumerate_nodes(item['nodes'], SHOWN_NODES)}:"
        for symbol, text in changes(item):
            yield STYLES[symbol], f"  {symbol} {text}"
    for problem in answer["problems"]:
        if problem["change"] != "remains":
            symbol = "!" if problem["change"] == "new" else "+"
            yield STYLES[symbol], f"{symbol} {line_of_problem(problem)}"
    yield "", summary_line(answer)


def changes(item: Json) -> Iterator[tuple[str, str]]:
    """Yield the changes of nodes: a symbol and a text each."""
    for instance in item.get("instances", ()):
        text = _words(instance, f"instance {instance['name']}")
        yield SYMBOLS[instance["change"]], text
    for session in item.get("sessions", ()):
        where = f" ({session['address']})" if "address" in session else ""
        text = _words(session, f"session {session_name(session)}{where}")
        if session["change"] in ("add", "remove"):
            text += f", {count(session.get('routes', 0), 'route')}"
        yield SYMBOLS[session["change"]], text
    listed = list(routes(item))
    for route, peers in listed[:SHOWN_ROUTES]:
        origin = f" ({enumerate_some(route['origins'], 1)})" if route.get("origins") else ""
        towards = "from" if route["change"] == "withdraw" else "to"
        text = f"route {route['prefix']}{origin} {towards} {enumerate_some(peers, SHOWN_PEERS)}"
        yield SYMBOLS[route["change"]], _with_fields(text, route)
    if len(listed) > SHOWN_ROUTES:
        yield "~", f"and {count(len(listed) - SHOWN_ROUTES, 'more route')}; -o json has all"
    for route in item.get("kernel", ()):
        text = f"kernel route {route['prefix']} in table {route['table']}"
        yield SYMBOLS[route["change"]], _with_fields(text, route)


def routes(item: Json) -> Iterator[tuple[Json, list[str]]]:
    """Yield the changed routes, each with the peers that have the same change."""
    joined: dict[str, tuple[Json, list[str]]] = {}
    for route in item.get("routes", ()):
        change = {name: route[name] for name in route if name not in ("instance", "peer")}
        key = json.dumps(change, sort_keys=True)
        joined.setdefault(key, (change, []))[1].append(session_name(route))
    yield from joined.values()


def session_name(item: Json) -> str:
    """Return the name of a session: its instance and its peer."""
    return f"{item['instance']}/{item['peer']}"


def _words(item: Json, subject: str) -> str:
    word = WORDS.get(item["change"], "")
    text = f"{subject} {word}".rstrip()
    if item.get("message"):
        text += f": {item['message']}"
    return _with_fields(text, item)


def _with_fields(text: str, item: Json) -> str:
    parts = [field_text(field) for field in item.get("fields", ())]
    return f"{text}: {', '.join(parts)}" if parts else text


def field_text(field: Json) -> str:
    """Return a changed field: ``holdTime 90 -> 30``."""
    if field["before"] == field["after"]:
        return f"{field['name']} changes"  # of a password
    before, after = _value(field["before"]), _value(field["after"])
    pairs = enumerate(zip(before, after, strict=False))
    common = next((place for place, (old, new) in pairs if old != new), 0)
    if max(len(before), len(after)) > SHOWN_VALUE and common > CONTEXT:
        # The difference is shown, not a beginning that both have.
        before, after = (f"…{value[common - CONTEXT :]}" for value in (before, after))
    return f"{field['name']} {_cut(before)} -> {_cut(after)}"


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN_VALUE else f"{text[: SHOWN_VALUE - 1]}…"


def _value(value: object) -> str:
    if isinstance(value, list) and all(isinstance(part, dict) and "via" in part for part in value):
        value = [_hop(part) for part in value]
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return ",".join(value) or "none"
    if isinstance(value, str):
        return value
    return "none" if value is None else json.dumps(value, ensure_ascii=False)


def _hop(hop: Json) -> str:
    """Return a next hop as ``ip route`` has it."""
    device, weight = hop["dev"], hop["weight"]
    words = (f"via {hop['via']}", device and f"dev {device}", weight > 1 and f"weight {weight}")
    return " ".join(filter(None, words))


def line_of_problem(problem: Json) -> str:
    """Return a problem in one line, with its nodes."""
    text = problem_line(problem["objects"], problem["field"], problem["message"])
    where = enumerate_nodes(problem["nodes"], SHOWN_NODES)
    solved = "solved: " if problem["change"] == "solved" else "problem: "
    return solved + bounded(text, f" ({where})")


_SESSIONS: Final = {
    "add": "to add",
    "reset": "to reset",
    "replace": "to replace",
    "stop": "to stop",
    "start": "to start",
    "remove": "to remove",
    "update": "to update",
}
_ROUTES: Final = {
    "advertise": "to advertise",
    "update": "to update",
    "withdraw": "to withdraw",
}
_KERNEL: Final = {"install": "to install", "update": "to update", "remove": "to remove"}


def summary_line(answer: Json) -> str:
    """Return the numbers of a plan in one sentence."""
    summary = answer["summary"]
    new = [problem for problem in answer["problems"] if problem["change"] == "new"]
    parts = [
        *_counted(summary["sessions"], _SESSIONS, "session"),
        *_counted(summary["routes"], _ROUTES, "route"),
        *_counted(summary["kernel"], _KERNEL, "kernel route"),
        *([count(len(new), "new problem")] if new else []),
    ]
    of_nodes = f"on {summary['changedNodes']} of {count(summary['nodes'], 'node')}"
    if not parts:
        same = "no changes" if not answer["items"] else of_nodes
        return f"Plan: {same} ({count(summary['nodes'], 'node')})."
    return f"Plan: {'; '.join(parts)}, {of_nodes}."


def _counted(numbers: Json, words: Json, noun: str) -> Iterator[str]:
    parts = [(numbers[name], word) for name, word in words.items() if numbers.get(name)]
    if parts:
        (first, word), *others = parts
        yield ", ".join([f"{count(first, noun)} {word}", *(f"{n} {text}" for n, text in others)])


def count(number: int, noun: str) -> str:
    """Return ``1 route`` or ``2 routes``."""
    return f"{number} {noun}{'s' * (number != 1)}"
