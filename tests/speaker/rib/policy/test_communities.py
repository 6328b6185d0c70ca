"""Community patterns: all kinds, wildcards, removal."""

from __future__ import annotations

import pytest

from speaker.attribute import PathAttributes
from speaker.rib.policy.communities import (
    Communities,
    communities_of,
    exact,
    joined,
    pattern,
    without,
)

ROUTE = PathAttributes(
    communities=(65001 << 16 | 80, 0xFFFFFF01),
    large_communities=((65001, 1, 2),),
    extended_communities=(bytes.fromhex("0002fde900000007"),),
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("65001:80", True),
        ("65001:*", True),
        ("*:80", True),
        ("65001:81", False),
        ("no-export", True),
        ("no-advertise", False),
        ("65001:1:2", True),
        ("65001:*:2", True),
        ("65001:*:3", False),
        ("*:*:*", True),
        ("0x0002fde900000007", True),
        ("0x0002fde900000008", False),
    ],
)
def test_a_pattern_matches(text: str, *, found: bool) -> None:
    assert pattern(text).found_in(ROUTE) is found


def test_kinds_do_not_mix() -> None:
    assert not pattern("*:*:*").found_in(PathAttributes(communities=(1,)))
    assert not pattern("*:*").found_in(PathAttributes(large_communities=((1, 2, 3),)))


def test_removal_removes_only_what_matches() -> None:
    left = without(communities_of(ROUTE), [pattern("65001:*"), pattern("0x0002fde900000007")])
    assert left == Communities((0xFFFFFF01,), ((65001, 1, 2),), ())
    assert without(left, [pattern("65001:*:*")]).large == ()


def test_joining_removes_duplicates() -> None:
    both = joined(exact(["1:1", "1:2"]), exact(["1:2", "1:3", "1:1:1"]))
    assert both == Communities((65537, 65538, 65539), ((1, 1, 1),), ())


@pytest.mark.parametrize(
    "text", ["", "1", "65536:1", "1:65536", "1:2:3:4", "1:x", "4294967296:1:1", "0x12", "-1:1"]
)
def test_text_that_is_no_community_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="communit"):
        pattern(text)


def test_a_wildcard_cannot_be_set() -> None:
    with pytest.raises(ValueError, match="wildcard"):
        exact(["65001:*"])
