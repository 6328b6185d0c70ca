"""A decoded snapshot equals its source, or is rejected."""

from __future__ import annotations

import functools
import random
import zlib
from collections import defaultdict
from pathlib import Path

import msgspec
import pytest

from resources.core import Secret
from resources.manifests.parse import parse_file
from resources.meta import ObjectMeta, Resource
from resources.snapshot_codec import Snapshot, decode, encode
from resources.state_file import StateFileError
from tests.support.kinds import KINDS

ROOT = Path(__file__).parents[2]

ONE_NODE = b'{"format":"waggle-snapshot/1","node":"n1","confirmed":1.0,"kinds":{"Node":1}}'


@functools.cache
def rows() -> dict[str, list[Resource]]:
    """Read every object of the scenarios, of kinds that are in snapshots."""
    found: dict[str, list[Resource]] = defaultdict(list)
    for path in sorted((ROOT / "tests" / "scenarios").rglob("*.yaml")):
        for item in parse_file(str(path), path.read_bytes(), KINDS).items:
            if item.row is not None and not isinstance(item.row, Secret):
                found[item.identity[0]].append(item.row)
    return found


def octets(node: str = "n1") -> bytes:
    return b"".join(encode(node, 1000.5, rows()))


def test_an_encoded_snapshot_is_decoded_to_the_same_rows() -> None:
    assert sum(map(len, rows().values())) > 100
    assert len(rows()) > 10
    found = decode(octets(), KINDS)
    assert found == Snapshot(
        "n1", 1000.5, {kind: tuple(of_kind) for kind, of_kind in rows().items()}
    )


def test_a_snapshot_without_rows_is_valid() -> None:
    assert decode(b"".join(encode("n1", 0.0, {"Node": ()})), KINDS).rows == {"Node": ()}


def test_a_large_snapshot_is_encoded_in_pieces() -> None:
    (row, *_) = rows()["Service"]
    pieces = list(encode("n1", 0.0, {"Service": [row] * 1000}))
    assert len(pieces) == 7
    assert len(decode(b"".join(pieces), KINDS).rows["Service"]) == 1000


def test_secrets_are_never_written() -> None:
    secret = Secret(metadata=ObjectMeta(name="k", namespace="kube-system"))
    with pytest.raises(ValueError, match="Secrets are not written"):
        list(encode("n1", 0.0, {"Secret": [secret]}))


def test_a_truncated_snapshot_is_rejected() -> None:
    whole = octets()
    rng = random.Random(1)  # noqa: S311  which places, nothing secret
    ends = {*range(200), *(rng.randrange(len(whole)) for _ in range(200)), len(whole) - 2}
    for end in ends:
        with pytest.raises(StateFileError):
            decode(whole[:end], KINDS)


def test_a_snapshot_with_a_changed_octet_is_rejected() -> None:
    whole = octets()
    rng = random.Random(2)  # noqa: S311  which places, nothing secret
    for _ in range(300):
        place = rng.randrange(len(whole) - 1)
        changed = bytearray(whole)
        changed[place] ^= 1 << rng.randrange(8)
        with pytest.raises(StateFileError):
            decode(bytes(changed), KINDS)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"format":"waggle-snapshot/0","node":"n1","confirmed":1.0,"kinds":{}}', "another form"),
        (ONE_NODE, "number of rows"),
        (b"[]", "not understood"),
    ],
    ids=["format", "count", "head"],
)
def test_a_snapshot_of_another_format_is_rejected(line: bytes, message: str) -> None:
    body = line + b"\n"
    tail = msgspec.json.encode({"crc32": zlib.crc32(body)}) + b"\n"
    with pytest.raises(StateFileError, match=message):
        decode(body + tail, KINDS)


def test_rows_of_another_release_that_are_not_understood_are_left_with_the_reason() -> None:
    """An upgrade while the API server is away: the others are used."""
    known = b'{"metadata":{"name":"n1"},"field-of-a-later-release":{"x":[1]}}'
    lines = (
        b'{"format":"waggle-snapshot/1","node":"n1","confirmed":1.0,"kinds":{"Node":2,"Pod":1}}',
        known,
        b'{"metadata":{"name":5}}',
        b'{"metadata":{"name":"p"}}',
    )
    body = b"\n".join(lines) + b"\n"
    tail = msgspec.json.encode({"crc32": zlib.crc32(body)}) + b"\n"
    found = decode(body + tail, KINDS)
    assert [row.metadata.name for row in found.rows["Node"]] == ["n1"]
    assert "Pod" not in found.rows
    of_node, of_pod = found.unread
    assert of_node.startswith("1 of 2 objects of kind Node: Expected `str`, got `int`")
    assert of_pod == "Pod: a kind that is not read"
