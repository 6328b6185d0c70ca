"""Pages that list what the code has: paths of the local API, answers of the router, messages."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from waggle.router.api import items

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("cells", "cmd", "reconcilers", "resources", "speaker")


def page(name: str) -> str:
    return (ROOT / "docs" / f"{name}.md").read_text()


def code() -> str:
    """Return the text of all modules, with messages that span lines joined."""
    files = (path.read_text() for room in ROOMS for path in sorted((ROOT / room).rglob("*.py")))
    return re.sub(r'"\s*\n\s*f?"', "", "\n".join(files))


def test_every_path_of_the_local_api_is_listed_with_its_parameters() -> None:
    listed = {
        path: set(re.findall(r"`(\w+)`", parameters))
        for path, parameters in re.findall(
            r"^\| `(?:GET|POST) (/v1/[\w-]+)` \| [^|]+\| ([^|]*) ?\|$",
            page("local-api"),
            re.MULTILINE,
        )
    }
    text = "".join(path.read_text() for path in sorted((ROOT / "cells").rglob("*.py")))
    declared = re.split(r'path="(?=/v1/)', text)[1:]
    assert listed.keys() == {one.partition('"')[0] for one in declared}
    for one in declared:
        path = one.partition('"')[0]
        parameters = re.match(r'[^"]*"[^()]*?parameters=\(([^)]*)\)', one)
        for name in re.findall(r'"(\w+)"', parameters[1]) if parameters else ():
            assert name in listed[path], f"{path}: {name}"


class _Any:
    """A value of any attribute."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return [] if name == "families" else ""


@pytest.mark.parametrize(
    ("title", "make"),
    [
        ("peer", items.peer_object),
        ("route", items.route_object),
        ("collector", items.collector_object),
    ],
)
def test_every_member_of_an_answer_of_the_router_is_described(
    title: str, make: Callable[[Any], dict[str, Any]]
) -> None:
    _, _, rest = page("router").partition(f"| member of a {title} | |\n")
    rows = re.findall(r"^\| ([^|]+) \|", rest.partition("\n\n")[0], re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", "".join(rows))) == set(make(_Any()))


NOT_OURS = {
    "violates PodSecurity": "the API server",
    "ImagePullBackOff": "the kubelet",
    "Pending": "a phase of Pods",
    "waggle peers": "a command",
    "permission denied": "the system, in lower case",
    "connection refused": "the system, in lower case",
}
"""What the page quotes of other programs."""


def test_messages_of_the_troubleshooting_are_those_of_the_code() -> None:
    _, _, section = page("install").partition("\n## Troubleshooting\n")
    rows = re.findall(r"^\| ([^|]+) \|", section.partition("\n## ")[0], re.MULTILINE)
    quoted = [text for row in rows for text in re.findall(r"`([^`]+)`", row)]
    assert len(quoted) > 12
    text = code()
    variable = re.compile(r"\.\.\.|127\.0\.0\.1:9877|OPEN Message Error / Bad Peer AS")
    for message in quoted:
        for part in variable.split(message) if message not in NOT_OURS else ():
            constant = re.sub("(?<=may not )(list|patch).*", "{verb}", part.strip(" ,"))
            assert constant in text, message
