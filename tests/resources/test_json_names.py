"""Python's names of fields as Kubernetes writes them."""

from __future__ import annotations

import pytest

from resources.json_names import json_name


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("spec", "spec"),
        ("hold_time_seconds", "holdTimeSeconds"),
        ("local_asn", "localASN"),
        ("known_asns", "knownASNs"),
        ("pod_cidr", "podCIDR"),
        ("pod_cidrs", "podCIDRs"),
        ("router_id", "routerID"),
        ("cluster_ip", "clusterIP"),
        ("external_ips", "externalIPs"),
        ("next_hop_ipv4", "nextHopIPv4"),
        ("next_hop_ipv6", "nextHopIPv6"),
        ("id", "id"),
        ("asn_path", "asnPath"),
    ],
)
def test_a_name_is_in_camel_case_with_acronyms_in_capitals(name: str, expected: str) -> None:
    assert json_name(name) == expected
