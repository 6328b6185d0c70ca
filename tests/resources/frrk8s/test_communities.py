"""Communities in the notation of FRR-k8s and MetalLB."""

from __future__ import annotations

import pytest

from resources.frrk8s.communities import Community, UnknownNotationError, parse_community


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0:1", 1),
        ("65535:65281", 0xFFFFFF01),
        ("large:1:2:4294967295", (1, 2, 0xFFFFFFFF)),
    ],
)
def test_standard_and_large_communities(text: str, value: Community) -> None:
    assert parse_community(text) == value


@pytest.mark.parametrize("text", ["no-export", "1", "1:2:3", "extended:1:2:3", "large:1:2", ""])
def test_another_notation_may_be_a_name(text: str) -> None:
    with pytest.raises(UnknownNotationError, match="is neither A:B nor large:A:B:C"):
        parse_community(text)


@pytest.mark.parametrize("text", ["65536:1", "1:-1", "a:1", ":", "1:٣", "large:1:2:4294967296"])
def test_a_part_that_is_no_number_of_its_range_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="is not a number from 0 to"):
        parse_community(text)
