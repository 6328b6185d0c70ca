"""Pages that list what the code has: paths of the local API, answers of the router, messages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import msgspec
import pytest

from cells.serve.items import INTERNAL
from reconcilers.kernel.reasons import Reason
from reconcilers.kernel.writer.protocol_messages import Reason as WriterReason
from speaker.api import CollectorStatus, PeerStatus
from waggle.commands.router.api import RouterApi

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
            r"^\| `(?:GET|POST) (/v1/[\w/-]+)` \| [^|]+\| ([^|]*) ?\|$",
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


def kinds(name: str) -> set[tuple[str, str]]:
    """Return path and kind of the list of each row of a page."""
    rows = re.findall(r"^\| `(?:GET|POST) (/v1/[\w/-]+)` \| `(\w+)` \|", page(name), re.MULTILINE)
    return set(rows)


def test_the_kind_of_each_list_is_that_of_the_page() -> None:
    declared = set[tuple[str, str]]()
    for module in (ROOT / "cells").rglob("*.py"):
        text = module.read_text()
        constants = dict(re.findall(r'^(\w+)(?:: Final)? = ("\w+")', text, re.MULTILINE))
        for path, kind in re.findall(r'path="(/v1/[^"]+)",\s*kind=("?\w+"?)', text):
            declared.add((path, constants.get(kind, kind).strip('"')))
    assert kinds("local-api") == declared
    absent: Any = Mock()
    api = RouterApi(absent, absent)
    of_router = {(resource.path, resource.kind) for resource in api.resources()}
    of_router |= {(action.path, action.kind) for action in api.actions()}
    assert kinds("router") == of_router


def test_every_path_of_the_router_is_listed_with_its_parameters() -> None:
    listed = {
        (method, path): set(re.findall(r"`([a-z]\w+)`", parameters.partition("(")[0] + parameters))
        for method, path, parameters in re.findall(
            r"^\| `(GET|POST) (/v1/[\w/-]+)` \| [^|]+\| ([^|]*) ?\|$", page("router"), re.MULTILINE
        )
    }
    absent: Any = Mock()
    api = RouterApi(absent, absent)
    resources = {("GET", resource.path): resource.parameters for resource in api.resources()}
    actions = {
        ("POST", action.path): tuple(f.encode_name for f in msgspec.structs.fields(action.body))
        for action in api.actions()
    }
    assert listed.keys() == {**resources, **actions}.keys()
    for key, names in {**resources, **actions}.items():
        assert set(names) <= listed[key], key


@pytest.mark.parametrize(
    ("kind", "status", "hidden"),
    [("PeerList", PeerStatus, INTERNAL), ("CollectorList", CollectorStatus, frozenset())],
)
def test_every_field_of_a_status_is_described_as_a_member_of_its_items(
    kind: str, status: type[msgspec.Struct], hidden: frozenset[str]
) -> None:
    (row,) = re.findall(rf"^\| `{kind}` \| (.+) \|$", page("cli"), re.MULTILINE)
    fields = {f.encode_name for f in msgspec.structs.fields(status) if f.name not in hidden}
    assert fields <= set(re.findall(r"`(\w+)`", row))


OF_VERIFICATION = {WriterReason.MISSING, WriterReason.DIFFERENT, WriterReason.UNEXPECTED}
"""Reasons of differences that a reading of the kernel has, and no route."""


def test_every_reason_of_a_route_that_is_not_in_the_kernel_is_listed() -> None:
    _, _, section = page("kernel").partition("\n## Why a route is not installed\n")
    listed = set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))
    assert listed == {*Reason, *WriterReason} - OF_VERIFICATION


NOT_OURS = {
    "violates PodSecurity": "the API server",
    "ImagePullBackOff": "the kubelet",
    "Pending": "a phase of Pods",
    "waggle peers": "a command",
    "permission denied": "the system, in lower case",
    "connection refused": "the system, in lower case",
    "kill -9": "a command",
    "python -m bench.bench_received": "a command",
    "show bgp summary": "a command of routers",
    "nstat -az | grep MD5": "a command",
    "chronyc tracking": "a command",
    "ping -M do -s 1472": "a command",
    "logs --previous": "a flag of kubectl",
    "Authorization: Bearer": "a header of HTTP",
    "receive limit": "a setting of BIRD",
    "externalTrafficPolicy: Local": "a field of a Service",
    'enable-bgp-control-plane: "true"': "a key of Cilium's ConfigMap",
}
"""What the pages quote of other programs, and what is no message."""
OF_OBJECTS = re.compile(
    r"\.\.\.|https://[\w.:]+\d|spec\.[\w.\[\]]+|\b\d[\w.:]*[-\w:]*|\bN\b|[A-Z]\w+(?:/[\w-]+)+"
    r"|in ConfigMap|kube-system/[\w-]+|worker-\d(?:, worker-\d)*|'[\w-]+'|\bcilium\b|enable-\S+=true"
    r"|\bexpose=\w+|OPEN Message Error / Bad Peer AS|Bad Peer AS|CrashLoopBackOff"
    r"|sent: Hold Timer Expired|(?<=has )(?:Active|Established)\b"
)
"""Values in quoted messages: numbers, times, addresses, names."""
OF_THE_SYSTEM = re.compile(r"address already in use|connection refused", re.IGNORECASE)


def quotations(name: str, section: str = "") -> list[str]:
    """Return what a page, or a section of it, quotes in its sentences."""
    _, _, text = page(name).partition(f"\n## {section}\n" if section else "\n")
    if section:
        text = text.partition("\n## ")[0]
    text = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return [" ".join(quoted.split()) for quoted in re.findall(r"`([^`]+)`", text)]


def constants(message: str) -> list[str]:
    """Return the parts of a message that are the same for all objects."""
    parts = re.split(rf"{OF_OBJECTS.pattern}|(?i:{OF_THE_SYSTEM.pattern})", message)
    return [
        re.sub("(?<=may not )(list|patch|create).*", "{verb}", part.strip(" ,:")) for part in parts
    ]


def test_messages_of_the_troubleshooting_are_in_the_code() -> None:
    _, _, section = page("install").partition("\n## Troubleshooting\n")
    rows = re.findall(r"^\| ([^|]+) \|", section.partition("\n## ")[0], re.MULTILINE)
    quoted = [text for row in rows for text in re.findall(r"`([^`]+)`", row)]
    assert len(quoted) > 12
    text = code()
    for message in quoted:
        for part in constants(message) if message not in NOT_OURS else ():
            assert part in text, message


def shown(name: str) -> list[str]:
    """Return the messages that a page shows as blocks, without commands and what they print."""
    blocks = re.findall(r"^ *```\n(.*?)^ *```$", page(name), re.MULTILINE | re.DOTALL)
    texts = [" ".join(block.split()) for block in blocks]
    messages = [text for text in texts if not text.startswith(("$", "ts=", "waggle"))]
    logged = [value for text in texts for value in re.findall(r' (?:msg|reason)="([^"]+)"', text)]
    return messages + logged


def is_message(quoted: str) -> bool:
    """True for what has a space: single words are names of fields, flags, checks and metrics."""
    command = re.match(r"(waggle\S*|kubectl|helm|ip|curl|kubeadm|systemctl|ss|-\S*) ", quoted)
    return " " in quoted and quoted not in NOT_OURS and not command


@pytest.mark.parametrize(
    ("name", "section", "least"),
    [("kubernetes", "What goes wrong", 1), ("operations", "", 5), ("runbook", "", 13)],
)
def test_messages_of_a_page_are_in_the_code(name: str, section: str, least: int) -> None:
    messages = list(filter(is_message, quotations(name, section)))
    messages += [] if section else shown(name)
    assert len(messages) >= least
    text = code()
    unknown = [
        f"{message}: {rest}"
        for message in messages
        for part in constants(message)
        if (rest := without_known(part, text))
    ]
    assert unknown == []


def without_known(part: str, text: str, times: int = 3) -> str:
    """Return what is left of a part of a message without the texts of which the code makes it.

    A message may have another message in it, which is a value there: `nothing has been read yet`.
    """
    for _ in range(times):
        part = part.strip(" ;:,()")
        known = next((n for n in range(len(part), 7, -1) if part[:n] in text), None)
        if part in text or known is None:
            break
        part = part[known:]
    return "" if part in text else part
