"""The addresses of a Service's row: as kube-proxy reads them."""

from __future__ import annotations

import pytest

from resources.core.kinds import SERVICE
from resources.errors import InvalidObject


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("198.051.100.011", "198.51.100.11"),
        ("010.0.00.1", "10.0.0.1"),
        ("0.0.0.0", "0.0.0.0"),
        ("2001:0db8::0010", "2001:db8::10"),
        ("2001:db8::00010", "2001:db8::10"),
        ("64:ff9b::192.0.02.1", "64:ff9b::192.0.2.1"),
    ],
)
def test_leading_zeros_do_not_make_a_number_octal(written: str, read: str) -> None:
    status = {"loadBalancer": {"ingress": [{"ip": written}]}}
    spec = {"externalIPs": [written], "clusterIPs": [written]}
    row = SERVICE.decode(
        {"metadata": {"name": "web", "namespace": "shop"}, "spec": spec, "status": status}
    )
    assert row.external_addresses == (read,)
    assert row.load_balancer_addresses == (read,)
    assert row.cluster_addresses == (read,)


@pytest.mark.parametrize("address", ["198.51.100", "0x10.0.0.1", "10.0.0.256", "10.0.0.0256"])
def test_what_is_no_address_is_an_error(address: str) -> None:
    with pytest.raises(InvalidObject, match="is not an IP address"):
        SERVICE.decode({"metadata": {"name": "web"}, "spec": {"externalIPs": [address]}})
