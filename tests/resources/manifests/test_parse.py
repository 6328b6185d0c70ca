"""Files to rows: what hostile and broken files come to (H52), and where problems are."""

from __future__ import annotations

import json

import pytest

from resources.manifests.parse import Parsed, parse_file
from resources.manifests.yamlfile import YamlError, parse_yaml
from tests.support.kinds import KINDS

NODE = "apiVersion: v1\nkind: Node\nmetadata:\n  name: {name}\n"


def _yaml(text: str | bytes) -> Parsed:
    return parse_file("f.yaml", text if isinstance(text, bytes) else text.encode(), KINDS)


def _names(parsed: Parsed) -> list[str]:
    return [item.name.name for item in parsed.items]


def test_several_documents_and_lists() -> None:
    text = NODE.format(name="a") + "---\n" + NODE.format(name="b")
    text += "---\napiVersion: v1\nkind: List\nitems:\n"
    text += "- {apiVersion: v1, kind: Node, metadata: {name: c}}\n"
    text += "---\napiVersion: v1\nkind: NodeList\nitems:\n- metadata: {name: d}\n"
    parsed = _yaml(text)
    assert _names(parsed) == ["a", "b", "c", "d"]
    assert parsed.problems == ()


def test_json_objects_and_lists() -> None:
    items = [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": n}} for n in "ab"]
    data = json.dumps({"apiVersion": "v1", "kind": "List", "items": items}).encode()
    assert _names(parse_file("f.json", data, KINDS)) == ["a", "b"]


@pytest.mark.parametrize("text", ["", "\n", "---\n", "---\n---\n", "# nothing\n"])
def test_h52_an_empty_document_is_ignored(text: str) -> None:
    assert _yaml(text) == Parsed((), (), True)


def test_h52_a_byte_order_mark_is_no_problem() -> None:
    assert _names(_yaml(b"\xef\xbb\xbf" + NODE.format(name="a").encode())) == ["a"]


def test_h52_an_unknown_kind_is_ignored() -> None:
    assert _yaml("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\n").problems == ()


def test_h52_an_alias_bomb_is_rejected_quickly() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    (problem,) = _yaml("\n".join(lines)).problems
    assert "aliases make more than" in problem.message


def test_h52_a_recursive_alias_is_rejected() -> None:
    (problem,) = _yaml("a: &a [*a]").problems
    assert "alias" in problem.message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f'{{"a": {"1" * 10_000}}}', "not JSON: a number is too long"),
        (f'{{"a": -{"1" * 5_000}}}', "not JSON: a number is too long"),
        ('{"a": "\\ud800"}', "not JSON: a text has half of a surrogate pair"),
        ("[" * 100_000, "not JSON: maximum recursion depth exceeded"),
    ],
    ids=["number", "negative", "surrogate", "deep"],
)
def test_json_that_only_one_parser_takes_is_rejected(text: str, message: str) -> None:
    (problem,) = parse_file("f.json", text.encode(), KINDS).problems
    assert problem.message.startswith(message)


def test_h52_a_python_tag_is_rejected_with_its_line() -> None:
    (problem,) = _yaml("a: 1\nb: !!python/object:os.system {}\n").problems
    assert problem.line == 2
    assert "python" in problem.message


def test_h52_a_duplicate_key_is_named_with_its_line() -> None:
    (problem,) = _yaml("apiVersion: v1\nkind: Node\nkind: Service\n").problems
    assert (problem.line, problem.message) == (3, "duplicate key 'kind'")


def test_h52_a_tab_is_named_with_line_and_column() -> None:
    (problem,) = _yaml("a:\n\tb: 1\n").problems
    assert problem.line == 2
    assert "column 1" in problem.message


def test_h52_text_that_is_not_utf_8_is_rejected() -> None:
    (problem,) = _yaml(b"a: 1\nb: \xff\xfe\n").problems
    assert (problem.line, problem.message) == (2, "octet 8 is not UTF-8")


def test_h52_deep_nesting_is_rejected() -> None:
    parsed = _yaml("[" * 5000)
    assert len(parsed.problems) == 1
    assert not parsed.whole


def test_h52_half_a_json_file_is_a_problem_with_its_line() -> None:
    parsed = parse_file("f.json", b'{\n "kind": "Node",\n', KINDS)
    (problem,) = parsed.problems
    assert not parsed.whole
    assert problem.line == 3


def test_h53_numbers_of_yaml_1_1_are_text() -> None:
    """65000:10 is not sexagesimal, 65_000 and 0x10 are no AS numbers, a date is text."""
    text = (
        "apiVersion: cilium.io/v2\nkind: CiliumBGPClusterConfig\nmetadata: {name: x}\n"
        "spec:\n  bgpInstances:\n  - name: i\n    localASN: 65_000\n"
    )
    (problem,) = _yaml(text).problems
    assert problem.field == "spec.bgpInstances[0].localASN"
    assert problem.line == 7
    assert "got a string '65_000'" in problem.message


def test_a_value_that_is_no_object_is_rejected() -> None:
    messages = [p.message for p in _yaml("- a\n---\nkind: Node\n---\napiVersion: v1\n").problems]
    assert messages == [
        "an object is expected, this is list",
        "is required, and a string",
        "is required, and a string",
    ]


def test_an_unread_version_is_a_problem_that_names_the_read_versions() -> None:
    text = "apiVersion: cilium.io/v3\nkind: CiliumBGPAdvertisement\nmetadata: {name: later}\n"
    parsed = parse_file("f.yaml", text.encode(), KINDS)
    (problem,) = parsed.problems
    assert problem.field == "apiVersion"
    read = "cilium.io/v2 and cilium.io/v2alpha1 are"
    assert problem.message == f"cilium.io/v3 CiliumBGPAdvertisement is not read; {read}"
    assert [item.row for item in parsed.items] == [None]
    assert not parsed.unread


def test_a_kind_of_another_group_is_not_read() -> None:
    text = "apiVersion: example.com/v1\nkind: Service\nmetadata: {name: other}\n"
    parsed = parse_file("f.yaml", text.encode(), KINDS)
    assert not parsed.problems
    assert parsed.unread == {("example.com/v1", "Service"): 1}


def test_unknown_fields_of_metadata_and_of_an_invalid_object_are_reported() -> None:
    text = """
apiVersion: cilium.io/v2
kind: CiliumBGPPeerConfig
metadata: {name: p, label: {}, managedFields: []}
spec: {ebgpMultihop: 0, timers: {keepaliveTimeSeconds: 10}}
"""
    parsed = parse_file("f.yaml", text.encode(), KINDS)
    assert {p.field: p.message for p in parsed.problems} == {
        "spec.ebgpMultihop": "0 is not within 1 to 255",
        "metadata.label": "unknown field, ignored; did you mean labels?",
        "spec.timers.keepaliveTimeSeconds": (
            "unknown field, ignored; did you mean keepAliveTimeSeconds?"
        ),
    }


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "{a: " * 100_000,
        "- " * 100_000,
        "? " * 100_000,
        "[" * 100_000 + "]" * 100_000,
    ],
    ids=["sequences", "mappings", "items", "keys", "closed"],
)
def test_h52_a_text_of_100000_levels_is_a_problem(text: str) -> None:
    """The composer of libyaml overflows the stack: the process died of SIGSEGV."""
    with pytest.raises(YamlError, match="nested too deeply"):
        list(parse_yaml(text.encode()))


def test_many_brackets_beside_each_other_are_not_deep() -> None:
    (document,) = parse_yaml(b"[" + b"{a: [1]}," * 5_000 + b"]")
    assert len(document.value) == 5_000
