"""The file of ``waggle render --received``."""

from __future__ import annotations

import json

import pytest

from reconcilers.kernel.received_file import InvalidReceivedFile, decode_received
from speaker.nlri import IPV6_UNICAST


def test_a_prefix_is_all_that_a_route_needs() -> None:
    (route,) = decode_received(b'{"10.88.0.1": [{"prefix": "2001:db8::/32"}]}')["10.88.0.1"]
    assert route.family == IPV6_UNICAST
    assert (route.next_hop, route.as_path, route.origin) == (None, None, "igp")


@pytest.mark.parametrize(
    ("route", "text"),
    [
        ({"prefix": "10.0.0.1/8"}, "host bits"),
        ({"prefix": "10.0.0.0/33"}, "10.0.0.0/33"),
        ({}, "missing required field `prefix`"),
        ({"prefix": "10.0.0.0/8", "nextHop": "router"}, "'router'"),
        ({"prefix": "10.0.0.0/8", "communities": ["no-export"]}, "'no-export' is not a community"),
        ({"prefix": "10.0.0.0/8", "communities": ["65536:1"]}, "'65536:1' is not a community"),
        ({"prefix": "10.0.0.0/8", "communities": ["9" * 5000 + ":1"]}, "is not a community"),
        ({"prefix": "10.0.0.0/8", "asPath": [4294967296]}, "asPath"),
        ({"prefix": "10.0.0.0/8", "metric": 3}, "unknown field `metric`"),
        ({"prefix": "10.0.0.0/8", "origin": "bgp"}, "'bgp'"),
    ],
)
def test_a_wrong_value_is_named(route: dict[str, object], text: str) -> None:
    with pytest.raises(InvalidReceivedFile, match=text):
        decode_received(json.dumps({"p": [route]}).encode())


@pytest.mark.parametrize("octets", [b"", b"[]", b"{", b"\xff", b'{"p": {}}'])
def test_what_is_no_such_file(octets: bytes) -> None:
    with pytest.raises(InvalidReceivedFile):
        decode_received(octets)
