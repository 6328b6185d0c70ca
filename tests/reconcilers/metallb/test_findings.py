"""What is wrong with MetalLB's objects of a node, alone and together."""

from __future__ import annotations

from typing import Any

import pytest

from reconcilers.metallb.findings import findings
from reconcilers.model import Problem
from resources.core import Secret
from resources.core.kinds import SECRET
from resources.metallb.kinds import BGP_PEER
from tests.reconcilers.metallb.objects import (
    NAMESPACE,
    advertisement,
    community,
    peer,
    pool,
    profile,
    rows,
)

Reported = list[tuple[str, list[str], str]]


def no_secrets(_key: object) -> Secret | None:
    return None


def found(*objects: dict[str, Any]) -> list[Problem]:
    return findings(rows(*objects), no_secrets, NAMESPACE)


def reported(*objects: dict[str, Any]) -> Reported:
    """Return category, names and field of each finding."""
    return sorted(
        (one.category, [f"{ref.kind}/{ref.name}" for ref in one.objects], one.field)
        for one in found(*objects)
    )


FRONT = pool("front", "198.18.30.0/24")


class TestPeers:
    def test_peers_of_a_node_have_one_router_id_also_across_vrfs(self) -> None:
        a, b = peer("a", routerID="192.0.2.1"), peer("b", "203.0.113.10", vrf="red")
        names = ["BGPPeer/a", "BGPPeer/b"]
        assert reported(a, b) == [("conflict", names, "spec.routerID")]
        assert reported(a, peer("b", "203.0.113.10", routerID="192.0.2.1")) == []

    def test_all_peers_have_a_say_in_the_router_id(self) -> None:
        objects = [peer(n, f"203.0.113.{i}", routerID=r) for i, (n, r) in enumerate(
            [("a", "192.0.2.1"), ("b", "192.0.2.2"), ("c", "192.0.2.1")], start=1)]  # fmt: skip
        [(_, names, _)] = reported(*objects)
        assert names == ["BGPPeer/a", "BGPPeer/b", "BGPPeer/c"]

    def test_peers_of_a_vrf_have_one_as_of_ours(self) -> None:
        one, other = peer("a"), peer("b", "203.0.113.10", myASN=64901)
        assert reported(one, other) == [("conflict", ["BGPPeer/a", "BGPPeer/b"], "spec.myASN")]
        assert reported(one, peer("b", "203.0.113.10", myASN=64901, vrf="red")) == []

    @pytest.mark.parametrize(
        ("first", "second"),
        [
            ({"address": "2001:db8::1"}, {"address": "2001:DB8:0::1"}),
            ({"vrf": "default"}, {}),
            ({"vrf": "red"}, {"vrf": "red"}),
        ],
    )
    def test_an_address_is_the_peer_of_one_object(
        self, first: dict[str, Any], second: dict[str, Any]
    ) -> None:
        names = ["BGPPeer/a", "BGPPeer/b"]
        objects = peer("a", **first), peer("b", **second)
        assert reported(*objects) == [("conflict", names, "spec.peerAddress")]

    def test_one_address_in_two_vrfs_is_two_peers(self) -> None:
        assert reported(peer("a"), peer("b", vrf="red")) == []

    def test_a_profile_that_is_missing_or_wrong_is_unresolved(self) -> None:
        expected = [("unresolved", ["BGPPeer/a"], "spec.bfdProfile")]
        assert reported(peer("a", bfdProfile="f")) == expected
        wrong = profile("f", receiveInterval=1)
        assert reported(peer("a", bfdProfile="f"), wrong) == [
            ("invalid", ["BFDProfile/f"], "spec.receiveInterval"),
            *expected,
        ]
        assert reported(peer("a", bfdProfile="f"), profile("f")) == []

    @pytest.mark.parametrize(
        ("type_", "data", "text"),
        [
            ("Opaque", {"password": "x"}, "type Opaque"),
            ("kubernetes.io/basic-auth", {"pass": "x"}, "no key password"),
            ("kubernetes.io/basic-auth", {"password": "\n"}, "empty"),
            ("kubernetes.io/basic-auth", {"password": "hunter22" * 11}, "longer than 80"),
            ("kubernetes.io/basic-auth", {"password": "x" * 80 + "\n"}, ""),
        ],
    )
    def test_the_secret_of_a_password(self, type_: str, data: dict[str, str], text: str) -> None:
        secret = SECRET.decode(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "s", "namespace": NAMESPACE},
                "type": type_,
                "stringData": data,
            }
        )
        objects = rows(peer("a", passwordSecret={"name": "s", "namespace": "other"}))
        secrets = {(NAMESPACE, "s"): secret}
        one = findings(objects, secrets.get, NAMESPACE)
        assert [(f.category, f.field) for f in one] == (
            [("unresolved", "spec.passwordSecret")] if text else []
        )
        assert all(text in f.message and "hunter" not in f.message for f in one)

    def test_a_secret_that_is_not_known_may_exist(self) -> None:
        objects = rows(peer("a", passwordSecret={"name": "s"}))
        (found,) = findings(objects, lambda _: None, NAMESPACE)
        # The role of the agent may not have it.
        assert found.message == (
            f"neighbor 203.0.113.9: Secret {NAMESPACE}/s does not exist, or may not be read"
            " (Secret of type kubernetes.io/basic-auth)"
        )

    def test_peers_concern_the_nodes_that_they_select(self) -> None:
        selector = {"matchLabels": {"rack": "1"}}
        row = BGP_PEER.decode(peer("a", nodeSelectors=[selector]))
        of_node = BGP_PEER.of_node
        assert of_node is not None
        assert of_node.accepts(row, "n1", {"rack": "1"})
        assert not of_node.accepts(row, "n1", {"rack": "2"})
        assert set(of_node.label_keys(row)) == {"rack"}
        wrong = BGP_PEER.decode(peer("a", nodeSelectors=[{"matchLabels": {"": "1"}}]))
        assert of_node.accepts(wrong, "n1", {})


class TestCommunities:
    def test_a_name_comes_before_a_number(self) -> None:
        use = advertisement("x", communities=["1:1:1", "65536:1"])
        given = community("c", **{"1:1:1": "1:1", "65536:1": "1:2"})
        assert reported(use, given) == []

    @pytest.mark.parametrize(
        ("text", "category"),
        [
            ("vip", "unresolved"),
            ("1:2:3", "unresolved"),
            ("large:1:2", "unresolved"),
            ("65536:1", "invalid"),
            ("a:b", "invalid"),
            ("large:1:2:x", "invalid"),
        ],
    )
    def test_a_text_that_is_no_community_may_be_a_name_that_comes(
        self, text: str, category: str
    ) -> None:
        expected = [(category, ["BGPAdvertisement/x"], "spec.communities[0]")]
        assert reported(advertisement("x", communities=[text])) == expected

    def test_a_name_is_there_once_over_all_objects(self) -> None:
        one, other = community("c", vip="1:2"), community("d", vip="1:2")
        assert reported(one, other) == [
            ("conflict", ["Community/c", "Community/d"], "spec.communities")
        ]


class TestPools:
    @pytest.mark.parametrize(
        ("other", "overlap"),
        [
            ("198.18.30.128/25", True),
            ("198.18.0.0/16", True),
            ("198.18.29.250-198.18.30.0", True),
            ("198.18.31.0/24", False),
            ("2001:db8::/64", False),
        ],
    )
    def test_pools_do_not_overlap(self, other: str, overlap: bool) -> None:
        names = ["IPAddressPool/e", "IPAddressPool/front"]
        expected = [("conflict", names, "spec.addresses")] if overlap else []
        assert reported(FRONT, pool("e", other)) == expected

    @pytest.mark.parametrize(
        ("addresses", "length", "accepted"),
        [
            (["198.18.30.0/24"], 24, True),
            (["198.18.30.0/28"], 26, False),
            (["198.18.30.2-198.18.30.254"], 26, True),
            (["198.18.30.2-198.18.30.254"], 24, False),
            (["198.18.30.0/24", "198.18.31.0/28"], 26, False),
            (["2001:db8::/120"], 8, True),
        ],
    )
    def test_an_aggregate_is_not_wider_than_the_pool(
        self, addresses: list[str], length: int, accepted: bool
    ) -> None:
        names = ["BGPAdvertisement/x", "IPAddressPool/p"]
        expected = [] if accepted else [("conflict", names, "spec.aggregationLength")]
        assert (
            reported(pool("p", *addresses), advertisement("x", aggregationLength=length))
            == expected
        )

    def test_selectors_alone_select_no_pool_that_they_do_not_match(self) -> None:
        wide = advertisement(
            "x",
            aggregationLength=16,
            ipAddressPoolSelectors=[{"matchLabels": {"zone": "a"}}],
        )
        assert reported(pool("p", "198.18.30.0/24"), wide) == []
        assert reported(pool("p", "198.18.30.0/24"), advertisement("x", aggregationLength=16))


DUAL = pool("front", "198.18.30.0/24", "2001:db8:30::/120")


class TestLocalPreferences:
    @pytest.mark.parametrize(
        ("first", "second", "accepted"),
        [
            ({"localPref": 100}, {"localPref": 200}, False),
            ({"localPref": 100}, {}, False),
            ({"localPref": 100}, {"localPref": 100}, True),
            ({"localPref": 100, "aggregationLength": 24}, {}, True),
            ({"localPref": 100, "aggregationLengthV6": 120}, {}, False),
            ({"localPref": 100, "peers": ["a"]}, {"peers": ["b"]}, True),
            ({"localPref": 100, "peers": ["a"]}, {"peers": ["a", "b"]}, False),
            ({"localPref": 100, "peers": ["a"]}, {}, False),
            ({"localPref": 100, "serviceSelectors": [{}]}, {}, True),
            ({"localPref": 100, "ipAddressPools": ["other"]}, {}, True),
        ],
    )
    def test_an_address_has_one_local_preference(
        self, first: dict[str, Any], second: dict[str, Any], accepted: bool
    ) -> None:
        names = ["BGPAdvertisement/x", "BGPAdvertisement/y"]
        expected = [] if accepted else [("conflict", names, "spec.localPref")]
        objects = (FRONT, advertisement("x", **first), advertisement("y", **second))
        assert reported(*objects) == expected

    @pytest.mark.parametrize("name", ["a", "z"], ids=["before the others", "after the others"])
    def test_an_advertisement_of_some_services_contradicts_no_other(self, name: str) -> None:
        chosen = {"serviceSelectors": [{"matchLabels": {"a": "b"}}], "localPref": 300}
        objects = (
            FRONT,
            pool("other", "198.18.40.0/24"),
            advertisement("x", localPref=100, ipAddressPools=["front"]),
            advertisement("y", localPref=200, ipAddressPools=["other"]),
            advertisement(name, ipAddressPools=["front"], **chosen),
        )
        assert reported(*objects) == []

    def test_in_a_pool_of_both_families_both_lengths_have_to_differ(self) -> None:
        one, four = advertisement("x", localPref=100), advertisement("y", aggregationLength=24)
        assert reported(DUAL, one, four)
        both = advertisement("y", aggregationLength=24, aggregationLengthV6=120)
        assert reported(DUAL, one, both) == []


def test_bfd_echo_is_for_ipv4_pools_only() -> None:
    echo = profile("f", echoMode=True)
    objects = (DUAL, advertisement("x"), peer("a", bfdProfile="f"))
    expected = ["BFDProfile/f", "BGPAdvertisement/x", "BGPPeer/a", "IPAddressPool/front"]
    assert reported(*objects, echo) == [("conflict", expected, "spec.echoMode")]
    assert reported(*objects, profile("f")) == []
    assert reported(FRONT, *objects[1:], echo) == []
