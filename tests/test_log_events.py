"""docs/log-events.md: every event that the programs log, with its level, message and values."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("cells", "cmd", "reconcilers", "resources", "speaker", "statedb")
PAGE = ROOT / "docs" / "log-events.md"
ROW = re.compile(r"^\| `([^`]+)` \| (\w+) \| ([^|]+) \| ([^|]*) \|", re.MULTILINE)

LOGGER = re.compile(r"(?:get_logger\(|getLogger\(|LogLines\(\s*|logger=)\"([^\"]+)\"")
"""A logger in the code."""

NAMED = re.compile(r"structlog\.get_logger\((\S*)\)")
"""The name that a logger of a module is given."""

NEW_PROBLEM = frozenset({"object", "field", "reason", "count", "of_tenant"})
SOLVED_PROBLEM = frozenset({"object", "field"})
"""The values that `cells.intent.problem_log` logs under the events that it is given."""


class Event(NamedTuple):
    """An event in the code."""

    name: str
    level: str
    message: str
    values: frozenset[str] | None = None
    """The keys that the call names; None where they are computed."""


def _texts(node: ast.expr | None) -> list[str]:
    """Return the texts that an expression may be: of a condition both, of another value none."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, ast.IfExp):
        return [*_texts(node.body), *_texts(node.orelse)]
    return []


def events() -> tuple[Event, ...]:
    """Return the events of log calls, and of helpers that log what they are given."""
    return tuple(_events())


def _events() -> Iterator[Event]:
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            text = path.read_text()
            # Most modules log nothing, and parsing takes its time.
            if not re.search(r"event_name|LogLines\(|DialectFailures\(|ProblemLog\(", text):
                continue
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Call):
                    yield from _of_call(node)
                elif isinstance(node, ast.Dict):
                    for key, value in zip(node.keys, node.values, strict=True):
                        if _texts(key) == ["event_name"]:
                            yield from (Event(name, "", "") for name in _texts(value))


def _of_call(call: ast.Call) -> Iterator[Event]:
    called = ast.unparse(call.func).rpartition(".")[2]
    texts = [text for argument in call.args for text in _texts(argument)]
    if called == "LogLines":
        _, message, *names = texts
        yield from (Event(name, "warning", message) for name in names)
    elif called == "ProblemLog":
        new, solved = texts
        yield Event(new, "warning", "problem", NEW_PROBLEM)
        yield Event(solved, "info", "problem solved", SOLVED_PROBLEM)
    elif called == "DialectFailures":
        message, name = texts
        yield Event(name, "error", message)
    for keyword in call.keywords:
        if keyword.arg == "event_name":
            names, messages = _texts(keyword.value), _texts(call.args[0]) if call.args else []
            for i, name in enumerate(names):
                one = messages[i : i + 1] if len(messages) == len(names) else messages
                yield Event(name, called, ", or ".join(one), _values(call))


def _values(call: ast.Call) -> frozenset[str] | None:
    keys = {keyword.arg for keyword in call.keywords}
    named = frozenset(key for key in keys if key is not None)
    return named - {"event_name", "exc_info"} if None not in keys else None


def test_every_event_is_listed_with_its_level_and_message() -> None:
    listed = {
        name: (level, message.strip()) for name, level, message, _ in ROW.findall(PAGE.read_text())
    }
    found = {event.name: event for event in events()}
    assert len(found) > 70
    assert sorted(listed) == sorted(found)
    for event in found.values():
        level, message = listed[event.name]
        # That of the logging cell itself is not a call.
        if event.name != "logging.dropped":
            logged = "error" if event.level == "exception" else event.level
            assert (level, message) == (logged, event.message), event.name


def test_an_event_has_the_values_of_all_its_calls() -> None:
    listed = {
        name: set(re.findall(r"`([^`]+)`", values))
        for name, _, _, values in ROW.findall(PAGE.read_text())
    }
    found: dict[str, set[str]] = {}
    for event in events():
        if event.values is not None:
            found.setdefault(event.name, set()).update(event.values)
    assert len(found) > 60
    assert {name: listed[name] for name in found} == found


def test_the_loggers_are_listed() -> None:
    page = PAGE.read_text()
    listed = re.findall(r"`([\w.]+)`", page.partition("`logger` is one of")[2].partition(".\n")[0])
    names = set[str]()
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.py"):
            names.update(LOGGER.findall(path.read_text()))
    assert sorted(listed) == sorted(names)


def test_every_logger_has_a_name_of_the_page() -> None:
    listed = set(re.findall(r"`([\w.]+)`", PAGE.read_text()))
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.py"):
            for name in NAMED.findall(path.read_text()):
                is_given = name == "name" or name.endswith(".logger")
                assert is_given or name.strip('"') in listed, f"{path}: {name}"


def test_a_page_names_no_event_that_there_is_not() -> None:
    known = {event.name for event in events()}
    for page in (ROOT / "docs").rglob("*.md"):
        for name in re.findall(r"event=([a-z][\w.-]+)", page.read_text()):
            assert name.rstrip(".") in known, f"{page.name}: {name}"
