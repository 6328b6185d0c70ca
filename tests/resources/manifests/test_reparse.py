"""A file that is parsed again: the result is that of a whole parse, and little is decoded for it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.manifests.parse import parse_file
from resources.manifests.reparse import Reparser
from tests.support.kinds import KINDS


def node(name: str, label: str = "x") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"l": label}},
    }


def yaml(*objects: dict[str, Any]) -> bytes:
    return "".join(f"---\n# one\n{json.dumps(each, indent=1)}\n" for each in objects).encode()


def listed(*objects: dict[str, Any]) -> bytes:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}).encode()


@pytest.mark.parametrize(("name", "write"), [("f.yaml", yaml), ("f.json", listed)])
def test_of_a_thousand_objects_the_changed_one_is_decoded(name: str, write: Any) -> None:  # noqa: ANN401
    reparser = Reparser(KINDS)
    objects = [node(f"n{number}") for number in range(1000)]
    first = reparser.parse(name, write(*objects))
    assert reparser.decoded == 1000
    objects[500] = node("n500", "changed")
    del objects[10]
    second = reparser.parse(name, write(*objects))
    assert reparser.decoded == 1001
    assert second == parse_file(name, write(*objects), KINDS)
    # What has not changed is the same row, which costs no comparison either.
    assert second.items[0].row is first.items[0].row
    assert len(second.items) == 999


@pytest.mark.parametrize(("name", "write"), [("f.yaml", yaml), ("f.json", listed)])
def test_of_pieces_the_hashes_are_kept_and_no_octets(name: str, write: Any) -> None:  # noqa: ANN401
    reparser = Reparser(KINDS)
    reparser.parse(name, write(*(node(f"n{number}", "x" * 500) for number in range(10))))
    assert {type(known) for known in reparser._pieces[name]} == {int}


PIECES = [
    "---\n",
    "--- # two\n",
    "a: 1\n",
    "# text\n",
    "\n",
    "kind: Node\napiVersion: v1\nmetadata: {name: a}\n",
    "kind: Node\napiVersion: v1\nmetadata: {name: b}\nspec: {podCIDRs: [10.0.0.1/8]}\n",
    "kind: Other\napiVersion: v1\n",
    "text: |\n  ---\n  more\n",
    "...\n",
    "%YAML 1.1\n",
    "- broken: [\n",
    "? \n",
    "---",
]


@given(st.lists(st.lists(st.sampled_from(PIECES), max_size=8).map("".join), max_size=4))
def test_any_yaml_has_the_result_of_a_whole_parse(texts: list[str]) -> None:
    reparser = Reparser(KINDS)
    for text in texts:
        assert reparser.parse("f.yaml", text.encode()) == parse_file("f.yaml", text.encode(), KINDS)


ITEMS = [
    node("a"),
    node("b", "y"),
    {"metadata": {"name": "c"}},
    node("Bad Name"),
    7,
    {"apiVersion": "v1", "kind": "NodeList", "items": [{"metadata": {"name": "d"}}, node("e")]},
]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["List", "NodeList", "ServiceList", "Node"]),
            st.lists(st.sampled_from(ITEMS), max_size=6),
        ),
        max_size=4,
    )
)
def test_any_json_has_the_result_of_a_whole_parse(versions: list[tuple[str, list[Any]]]) -> None:
    reparser = Reparser(KINDS)
    for kind, items in versions:
        data = json.dumps({"apiVersion": "v1", "kind": kind, "items": items}).encode()
        assert reparser.parse("f.json", data) == parse_file("f.json", data, KINDS)
