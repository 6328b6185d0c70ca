"""Every span and attribute in the source: names by OpenTelemetry's conventions, and documented."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import opentelemetry.semconv._incubating.attributes as incubating
import pytest
from opentelemetry.semconv import attributes as stable

ROOT = Path(__file__).parent.parent
ROOMS = ("cells", "cmd", "reconcilers", "resources", "speaker")
OURS = re.compile(r"(waggle|bgp)(\.[a-z][a-z0-9]*(_[a-z0-9]+)*)+")
"""Namespaces of our own, in lower case with underscores."""
SPAN = re.compile(r"[a-z]+(\.[a-z_-]+)+")
STARTS = {"start_as_current_span", "start_span", "round_span", "start_round_span"}


def conventional() -> set[str]:
    """Return the attributes of OpenTelemetry's registry, as the SDK's own package has them."""
    names = set()
    for package in (stable, incubating):
        for module in pkgutil.iter_modules(package.__path__):
            values = vars(importlib.import_module(f"{package.__name__}.{module.name}")).values()
            names |= {value for value in values if isinstance(value, str) and "." in value}
    return names


def _calls() -> Iterator[tuple[str, ast.Call]]:
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.py"):
            text = path.read_text()
            if "span" not in text and "ProcessAttributes" not in text:
                continue
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Call):
                    function = node.func
                    name = function.attr if isinstance(function, ast.Attribute) else ""
                    name = function.id if isinstance(function, ast.Name) else name
                    yield name, node


def _texts(nodes: list[ast.expr | None]) -> list[str]:
    values = (node.value for node in nodes if isinstance(node, ast.Constant))
    return [value for value in values if isinstance(value, str)]


def attributes() -> set[str]:
    """Return the attributes that are set anywhere."""
    names: set[str] = set()
    for name, call in _calls():
        if name == "set_attribute":
            names.update(_texts([call.args[0]]))
        given = [*call.args, *(word.value for word in call.keywords)]
        if name in STARTS | {"set_attributes", "add_event", "ProcessAttributes"}:
            for each in given:
                if isinstance(each, ast.Dict):
                    names.update(_texts(each.keys))
    return names


def spans() -> set[str]:
    """Return the names of spans; what only a call knows is not among them."""
    return {
        text
        for name, call in _calls()
        if name in STARTS
        for text in _texts(list(call.args[:2]))
        if SPAN.fullmatch(text)
    }


def test_the_search_finds_spans_and_attributes() -> None:
    assert {"resource.event", "intent.round", "bgp.update.send", "kernel.batch"} <= spans()
    assert {"waggle.object", "bgp.peer_count", "k8s.node.name"} <= attributes()
    assert {"k8s.node.name", "network.peer.address", "service.version"} <= conventional()


def test_attributes_are_of_the_conventions_or_in_a_namespace_of_our_own() -> None:
    known = conventional()
    assert {n for n in attributes() if n not in known and not OURS.fullmatch(n)} == set()


def test_no_attribute_is_a_prefix_of_another_attribute() -> None:
    """A rule of OpenTelemetry's naming."""
    names = attributes()
    assert {n for n in names for other in names if other.startswith(f"{n}.")} == set()


@pytest.mark.parametrize("found", [spans, attributes])
def test_spans_and_attributes_are_documented(found: Callable[[], set[str]]) -> None:
    text = (ROOT / "docs" / "tracing.md").read_text()
    assert {name for name in found() if f"`{name}`" not in text} == set()
