"""The small parts: lines, pauses, selections, errors of answers, and the API's paths."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.kubernetes import Selection, of_cluster, of_node
from resources.kubernetes.backoff import Backoff
from resources.kubernetes.errors import Expired, InvalidResponse, StatusError
from resources.kubernetes.lines import Lines
from resources.kubernetes.responses import error_of, excerpt
from tests.support.kinds import ADVERTISEMENT, ENDPOINT_SLICE, KINDS, NODE, SECRET


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=6))
def test_lines_do_not_depend_on_the_segmentation(octets: bytes, cuts: list[int]) -> None:
    whole = [line for line in octets.split(b"\n")[:-1] if line.strip()]
    edges = [0, *sorted(cuts), len(octets)]
    lines = Lines()
    found: list[bytes] = []
    for start, end in itertools.pairwise(edges):
        found += lines.feed(octets[start:end])
    found += lines.feed(octets[min(edges[-1], len(octets)) :])
    assert found == whole


def test_empty_lines_between_events_are_skipped_and_a_piece_without_an_end_is_kept() -> None:
    lines = Lines()
    assert lines.feed(b"a\n\n \nb") == [b"a"]
    assert lines.feed(b"\nc\n\n") == [b"b", b"c"]
    assert lines.feed(b"\n") == []


def test_a_line_of_several_mebibytes_is_complete() -> None:
    lines = Lines()
    piece = b"x" * 65_536
    for _ in range(96):
        assert lines.feed(piece) == []
    assert [len(line) for line in lines.feed(b"\n")] == [96 * 65_536]


def test_a_line_beyond_the_limit_is_an_error() -> None:
    lines = Lines(limit=1 << 20)
    for _ in range(16):
        lines.feed(b"x" * 65_536)
    with pytest.raises(InvalidResponse, match="more than 1 MiB"):
        lines.feed(b"x")


def test_pauses_grow_with_jitter_up_to_the_longest() -> None:
    backoff = Backoff(
        random.Random(1),  # noqa: S311  jitter
        first=1.0,
        longest=8.0,
    )
    pauses = [backoff.next() for _ in range(40)]
    for pause, full in zip(pauses, [1, 2, 4, *[8] * 37], strict=True):
        assert full / 2 <= pause <= full
    assert len(set(pauses)) == 40
    backoff.reset()
    assert backoff.next() <= 1.0


def test_a_retry_after_is_respected_up_to_a_limit() -> None:
    backoff = Backoff(
        random.Random(1),  # noqa: S311  jitter
        first=1.0,
        longest=30.0,
        longest_retry_after=60.0,
    )
    assert 30.5 <= backoff.next(30.0) <= 31.0
    assert backoff.next(1e9) < 70


def test_an_agent_selects_the_objects_of_its_node() -> None:
    wanted = of_node(KINDS, "n1").selections
    assert wanted[NODE.name].parameters == [("fieldSelector", "metadata.name=n1")]
    assert Selection(labels="a=b").parameters == [("labelSelector", "a=b")]


def test_secrets_are_read_by_name_alone() -> None:
    for reading in (of_node(KINDS, "n1"), of_cluster(KINDS)):
        assert reading.selections[SECRET.name].by_name


def test_paths_match_the_api() -> None:
    assert NODE.path("v1") == "/api/v1/nodes"
    assert SECRET.path("v1", "bgp") == "/api/v1/namespaces/bgp/secrets"
    assert ENDPOINT_SLICE.path("v1") == "/apis/discovery.k8s.io/v1/endpointslices"
    assert ADVERTISEMENT.path("v2") == "/apis/cilium.io/v2/ciliumbgpadvertisements"
    assert [k.custom for k in (NODE, ENDPOINT_SLICE, ADVERTISEMENT)] == [False, False, True]


def test_an_error_response_has_status_message_and_retry_after() -> None:
    body = b'{"kind": "Status", "code": 403, "message": "no \\u001b[31mway"}'
    error = error_of(403, body, None)
    assert isinstance(error, StatusError)
    assert (error.status, error.message) == (403, "no [31mway")
    assert isinstance(error_of(410, b"", None), Expired)
    assert isinstance(error_of(504, b'{"reason": "Expired"}', None), Expired)
    limited = error_of(429, b"too many", "12")
    assert isinstance(limited, StatusError)
    assert (limited.retry_after, limited.message) == (12.0, "too many")
    dated = error_of(503, b"", "Wed, 21 Oct 2026 07:28:00 GMT")
    assert isinstance(dated, StatusError)
    assert dated.retry_after == 0.0


def test_foreign_responses_are_truncated() -> None:
    assert excerpt(b"<!DOCTYPE html><html>" + b"x" * 5000) == "a web page"
    assert len(excerpt(b"\xff" * 5000)) == 200
    assert excerpt(b" upstream\n connect  error ") == "upstream connect error"
