"""Messages from other implementations' test suites, with the outcome that the RFCs give them.

The vectors are in a folder beside the project, if there is one; its README documents their lines. Lines
with another outcome here are in `DISAGREED`, with the reason.
"""

from __future__ import annotations

import ipaddress
import json
from pathlib import Path
from typing import Any

import pytest

from waggle.commands.decode.messages import decode_message
from waggle.commands.decode.program import context_of

FOLDER = Path(__file__).parents[3] / "shared" / "vectors"
ELSEWHERE = frozenset({"survive", "reply"})
"""Fields that are no field of the answer."""

DISAGREED: dict[str, str] = {}


def _lines() -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for file in sorted(FOLDER.glob("*.jsonl"))
        for line in file.read_text().splitlines()
    ]


def _address(value: Any) -> Any:  # noqa: ANN401
    return ipaddress.ip_address(value)


def _same(field: str, expected: Any, answer: dict[str, Any]) -> bool:  # noqa: ANN401
    actual = answer.get(field)
    if field in ("announce", "withdraw", "unknownAttributes", "discarded"):
        if field == "unknownAttributes":
            return all(any(item.items() <= a.items() for a in actual or ()) for item in expected)
        if field == "discarded":
            return set(expected) <= set(actual or ())
        return {ipaddress.ip_network(e) for e in expected} == {
            ipaddress.ip_network(a) for a in actual or ()
        }
    if field in ("nextHop", "linkLocalNextHop"):
        return actual is not None and _address(actual) == _address(expected)
    if field == "nextHops":
        return actual is not None and all(
            _address(actual[family]) == _address(hop) for family, hop in expected.items()
        )
    if field == "error":
        return actual is not None and all(actual[key] == value for key, value in expected.items())
    if field == "gracefulRestart":
        # A source may omit families that it has no name for.
        return actual is not None and all(
            all(one in actual[key] for one in value) if key == "families" else actual[key] == value
            for key, value in expected.items()
        )
    return bool(actual == expected)


def _holds(expect: dict[str, Any], answer: dict[str, Any]) -> list[str]:
    if "oneOf" in expect:
        return [] if any(not _holds(one, answer) for one in expect["oneOf"]) else ["none of oneOf"]
    alternatives = expect.get("alternatives", ())
    wrong = []
    for field, value in expect.items():
        if field in ELSEWHERE or field == "alternatives":
            continue
        if field == "outcome" and answer.get("outcome") in alternatives:
            continue
        if not _same(field, value, answer):
            wrong.append(f"{field}: {answer.get(field)!r}, expected {value!r}")
    if expect.get("reply") == "none" and "error" in answer:
        wrong.append("it is answered")
    return wrong


@pytest.mark.skipif(not FOLDER.is_dir(), reason="no folder of vectors beside the project")
@pytest.mark.parametrize("line", _lines(), ids=lambda line: line["id"])
def test_vector(line: dict[str, Any]) -> None:
    answer = decode_message(bytes.fromhex(line["hex"]), context_of(line["context"]))
    wrong = _holds(line["expect"], answer)
    if line["id"] in DISAGREED:
        assert wrong, "it holds after all: take it off the list"
    else:
        assert not wrong, (line["note"], answer)
