"""Which pools have an address in common, whatever is accepted before."""

from __future__ import annotations

import ipaddress

from hypothesis import given
from hypothesis import strategies as st

from reconcilers.metallb.conflicts import ValidObjects
from reconcilers.metallb.conflicts.shared_values import Overlaps
from tests.reconcilers.metallb.objects import pool, rows

PREFIXES = st.builds(
    lambda address, length: str(ipaddress.ip_network((address << 28, length), strict=False)),
    st.integers(0, 15),
    st.sampled_from([1, 2, 3, 4]),
)


@given(st.lists(PREFIXES, min_size=1, max_size=9), st.data())
def test_a_pool_overlaps_with_accepted_pools_that_share_an_address(
    prefixes: list[str], data: st.DataObject
) -> None:
    objects = rows(*(pool(f"p{i}", prefix) for i, prefix in enumerate(prefixes)))
    valid = ValidObjects(objects)
    networks = {
        ref: ipaddress.ip_network(prefix) for ref, prefix in zip(valid.rows, prefixes, strict=True)
    }
    rule = Overlaps(valid)
    accepted = data.draw(st.lists(st.sampled_from(list(valid.rows)), unique=True))
    for ref in accepted:
        rule.accept(ref, valid.rows[ref])
    for ref, row in valid.rows.items():
        expected = {one for one in accepted if one != ref and networks[one].overlaps(networks[ref])}
        assert set(rule.against(ref, row)) == expected
