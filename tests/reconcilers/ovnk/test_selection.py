"""What RouteAdvertisements select: the prefixes of the hosts of a VTEP."""

from __future__ import annotations

import pytest

from reconcilers.ovnk.selection import _hosts
from resources.frrk8s.neighbor import PrefixSelector


@pytest.mark.parametrize(
    ("prefix", "length"), [("198.51.100.0/24", 32), ("2001:db8::/64", 128), ("::/0", 128)]
)
def test_the_routes_of_a_vtep_are_host_routes(prefix: str, length: int) -> None:
    assert _hosts(prefix) == PrefixSelector(prefix=prefix, ge=length, le=length)
