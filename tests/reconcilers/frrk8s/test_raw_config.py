"""Raw configuration: what is understood of it, and where it has effect."""

from __future__ import annotations

import pytest

from reconcilers.frrk8s.raw_config import raw_meaning

GENERATED = """router bgp 64710
 address-family ipv4 unicast
  neighbor 10.88.0.1 allowas-in origin
  neighbor eth9 allowas-in origin
 exit-address-family
 address-family ipv6 unicast
  neighbor eth9 allowas-in origin
 exit-address-family
exit
!
router bgp 64710 vrf red
 address-family ipv4 unicast
  neighbor 172.31.61.1 allowas-in origin
 exit-address-family
exit
!
"""
EVPN = """router bgp 64710
 address-family ipv4 unicast
  neighbor 10.88.0.1 allowas-in origin
 exit-address-family
 address-family l2vpn evpn
  neighbor 10.88.0.1 activate
  advertise-all-vni
  vni 5300
   route-target import 64710:5300
  exit-vni
 exit-address-family
exit
!
vrf blue
 vni 5200
exit-vrf
!
router bgp 64710 vrf blue
 address-family l2vpn evpn
  advertise ipv4 unicast
 exit-address-family
exit
!
"""


def test_neighbours_are_known_by_vrf() -> None:
    found = raw_meaning(GENERATED)
    assert found.allowas_in_origin == {("", "10.88.0.1"), ("", "eth9"), ("red", "172.31.61.1")}
    assert (found.has_evpn, found.other) == (False, 0)


def test_evpn_is_distinguished_from_unknown_statements() -> None:
    found = raw_meaning(EVPN)
    assert found.allowas_in_origin == {("", "10.88.0.1")}
    assert (found.has_evpn, found.other) == (True, 0)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", 0),
        (" ", 1),
        ("!", 1),
        ("router bgp 1\nexit", 1),
        ("router bgp 1\n neighbor 192.0.2.1 remote-as 2", 2),
        ("router bgp 1\n address-family ipv4 unicast\n  neighbor 192.0.2.1 allowas-in 3", 3),
        ("router bgp 1\n address-family ipv4 labeled-unicast\n  neighbor A allowas-in origin", 2),
        ("neighbor 192.0.2.1 allowas-in origin", 1),
        ("router bgp 1\nexit\nneighbor 192.0.2.1 allowas-in origin", 3),
    ],
)
def test_the_first_line_that_is_not_understood(text: str, line: int) -> None:
    found = raw_meaning(text)
    assert (found.other, found.allowas_in_origin) == (line, frozenset())


def test_a_line_beside_understood_ones() -> None:
    found = raw_meaning(f"{GENERATED}ip prefix-list p permit any\n")
    assert (found.other, len(found.allowas_in_origin)) == (17, 3)
