"""``kernel`` and ``notInstalled`` of ``waggle render``."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec
import pytest

from reconcilers.kernel.offline import kernel_document
from reconcilers.kernel.options import FibOptions
from reconcilers.kernel.received_file import InvalidReceivedFile, decode_received
from reconcilers.model import (
    Attributes,
    Instance,
    InstanceImport,
    ObjectRef,
    Peer,
    PrefixRule,
    Route,
)
from resources.host import DefaultRoute, Device, Host, Vrf
from speaker.nlri import IPV4_UNICAST, prefix_to_wire
from tests.reconcilers.kernel.build import HOST

MAIN = Instance("main", None, 64710, "10.88.0.11", dialect="frr", originates=("198.51.100.0/24",))
RED = Instance("red", "red", 64710, "10.88.0.11", dialect="frr")
PREFIX = "203.0.113.0/24"


def peer(address: str, asn: int = 64701, **values: Any) -> Peer:  # noqa: ANN401
    given: dict[str, Any] = {
        "accept": None,
        "families": (IPV4_UNICAST,),
        "dialect": "frr",
        **values,
    }
    return Peer("main", address, address, None, asn, **given)


UNNUMBERED = Peer("main", "eth0", None, "eth0", "external", accept=None, dialect="frr")
ONE, TWO, INTERNAL = peer("10.88.0.1"), peer("10.88.0.2"), peer("10.88.0.3", 64710)


class Outcome:
    """What is in the kernel, and what is not."""

    def __init__(
        self,
        received: dict[str, list[dict[str, Any]]],
        peers: tuple[Peer, ...] = (ONE, TWO, INTERNAL, UNNUMBERED),
        instances: tuple[Instance, ...] = (MAIN,),
        host: Host | None = HOST,
        routes: tuple[Route, ...] = (),
        **options: Any,  # noqa: ANN401
    ) -> None:
        self.document = kernel_document(
            decode_received(msgspec.json.encode(received)),
            instances,
            peers,
            host,
            FibOptions(**options),
            {"frr"} if FibOptions(**options).installs(for_that=True) else (),
            routes,
        )

    @property
    def routes(self) -> dict[str, list[str]]:
        """The gateways of each prefix of the kernel, with their interface."""
        return {
            f"{row['table']} {row['prefix']}": [
                f"{hop['via']}%{hop['dev']}" for hop in row["nexthops"]
            ]
            for row in self.document["kernel"]
        }

    @property
    def reasons(self) -> dict[str, str]:
        """Why each other route is not there."""
        return {
            f"{row['peer']} {row['prefix']}": row["reason"] for row in self.document["notInstalled"]
        }

    @property
    def message(self) -> str:
        """The sentence for the only one."""
        (row,) = self.document["notInstalled"]
        return str(row["message"])


def one(prefix: str = PREFIX, **values: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"prefix": prefix, **values}


def test_an_accepted_route_is_a_row_of_the_kernel() -> None:
    document = Outcome({"10.88.0.1": [one()]}).document
    assert document == {
        "kernel": [
            {
                "table": 254,
                "prefix": PREFIX,
                "type": "unicast",
                "protocol": 186,
                "metric": 20,
                "nexthops": [{"via": "10.88.0.1", "dev": "eth0", "weight": 1}],
            }
        ],
        "notInstalled": [],
    }


def test_rows_are_in_the_order_of_addresses_ipv4_first() -> None:
    routes = [one("203.0.113.0/24"), one("9.0.0.0/8"), one("9.0.0.0/16")]
    six = [one("2001:db8:7::/48", nextHop="fe80::1")]
    found = Outcome({"10.88.0.1": routes, "eth0": six}).routes
    assert [key.split()[1] for key in found] == [
        "9.0.0.0/8",
        "9.0.0.0/16",
        "203.0.113.0/24",
        "2001:db8:7::/48",
    ]


def test_table_metric_and_protocol_are_options() -> None:
    (row,) = Outcome({"10.88.0.1": [one()]}, table=100, metric=55, protocol=200).document["kernel"]
    assert (row["table"], row["metric"], row["protocol"]) == (100, 55, 200)


class TestImportPolicy:
    def test_a_prefix_that_no_rule_permits(self) -> None:
        strict = peer("10.88.0.1", accept=(PrefixRule("192.0.2.0/24", le=28),))
        found = Outcome(
            {"10.88.0.1": [one(), one("192.0.2.16/28"), one("192.0.2.0/30")]}, (strict,)
        )
        assert list(found.routes) == ["254 192.0.2.16/28"]
        assert found.reasons == {
            f"10.88.0.1 {PREFIX}": "ImportPolicy",
            "10.88.0.1 192.0.2.0/30": "ImportPolicy",
        }

    def test_a_rule_of_the_agent_precedes(self) -> None:
        block = PrefixRule("203.0.113.0/24", le=32, label="AlwaysBlock")
        found = Outcome({"10.88.0.1": [one()]}, (peer("10.88.0.1", reject=(block,)),))
        assert found.reasons == {f"10.88.0.1 {PREFIX}": "AlwaysBlock"}
        assert found.message == "not accepted by the import policy: AlwaysBlock 203.0.113.0/24"

    def test_a_rule_of_an_object_by_which_it_is_rejected(self) -> None:
        rule = PrefixRule("203.0.113.0/24", origin=ObjectRef("Policy", "", "p"))
        found = Outcome({"10.88.0.1": [one()]}, (peer("10.88.0.1", reject=(rule,)),))
        assert found.reasons == {f"10.88.0.1 {PREFIX}": "ImportPolicy"}


class TestPathSelection:
    def test_equal_paths_share_a_route(self) -> None:
        same = [one(asPath=[64701, 65099])]
        found = Outcome({"10.88.0.1": same, "10.88.0.2": same})
        assert found.routes == {f"254 {PREFIX}": ["10.88.0.1%eth0", "10.88.0.2%eth0"]}

    def test_a_longer_as_path_loses(self) -> None:
        longer = [one(asPath=[64701, 65099])]
        found = Outcome({"10.88.0.1": longer, "10.88.0.2": [one()]})
        assert found.routes == {f"254 {PREFIX}": ["10.88.0.2%eth0"]}
        assert found.reasons == {f"10.88.0.1 {PREFIX}": "NotBest"}
        assert found.message == "longer AS path"

    OTHERS: ClassVar = {
        "10.88.0.1": [one(asPath=[64701, 1])],
        "10.88.0.2": [one(asPath=[64701, 2])],
    }

    def test_other_as_numbers_are_another_path(self) -> None:
        found = Outcome(self.OTHERS)
        assert found.routes == {f"254 {PREFIX}": ["10.88.0.1%eth0"]}
        assert found.reasons == {f"10.88.0.2 {PREFIX}": "NotBest"}

    def test_unless_the_length_is_enough(self) -> None:
        found = Outcome(self.OTHERS, multipath_relax=True)
        assert found.routes == {f"254 {PREFIX}": ["10.88.0.1%eth0", "10.88.0.2%eth0"]}

    def test_the_number_of_next_hops_has_a_limit(self) -> None:
        found = Outcome({"10.88.0.1": [one()], "10.88.0.2": [one()]}, multipath=1)
        assert found.routes == {f"254 {PREFIX}": ["10.88.0.1%eth0"]}
        assert found.reasons == {f"10.88.0.2 {PREFIX}": "NotBest"}

    def test_local_preference_of_an_internal_peer_decides_first(self) -> None:
        found = Outcome({"10.88.0.1": [one()], "10.88.0.3": [one(localPreference=200)]})
        assert found.routes == {f"254 {PREFIX}": ["10.88.0.3%eth0"]}
        assert found.message == "lower local preference"

    def test_a_prefix_of_this_router_is_its_own(self) -> None:
        found = Outcome({"10.88.0.1": [one("198.51.100.0/24")]})
        assert not found.routes
        assert found.reasons == {"10.88.0.1 198.51.100.0/24": "Local"}

    def test_of_a_prefix_that_a_peer_announces_twice_the_last_route_is_there(self) -> None:
        found = Outcome({"10.88.0.3": [one(nextHop="10.88.0.8"), one(nextHop="10.88.0.9")]})
        assert found.routes == {f"254 {PREFIX}": ["10.88.0.9%eth0"]}
        assert not found.reasons


@pytest.mark.parametrize(
    ("route", "reason"),
    [
        (one(asPath=[64701, 64710]), "ASLoop"),
        (one(nextHop="10.88.0.11"), "NextHop"),
        (one(nextHop="0.0.0.0"), "NextHop"),
        (one(nextHop="192.0.2.1"), "NextHop"),
        (one(asPath=[65099]), "Malformed"),
        (one("2001:db8::/32"), "Family"),
        (one("127.0.0.0/8"), "Martian"),
        (one("0.0.0.0/0"), "DefaultRoute"),
        (one("10.88.0.0/24"), "Local"),
    ],
)
def test_a_route_that_is_not_installed_has_a_reason(route: dict[str, Any], reason: str) -> None:
    found = Outcome({"10.88.0.1": [route]})
    assert not found.routes
    assert found.reasons == {f"10.88.0.1 {route['prefix']}": reason}
    assert found.message


def test_a_malformed_route_costs_no_other_route() -> None:
    wrong = [one(f"203.0.{n}.0/24", nextHop="0.0.0.0") for n in range(5)]
    found = Outcome({"10.88.0.1": [*wrong, one("203.0.100.0/24")]})
    assert list(found.routes) == ["254 203.0.100.0/24"]
    assert len(found.reasons) == 5


def test_a_default_route_is_installed_where_a_rule_names_it_or_an_option_permits_it() -> None:
    route = {"10.88.0.1": [one("0.0.0.0/0")]}
    named = peer("10.88.0.1", accept=(PrefixRule("0.0.0.0/0"),))
    assert Outcome(route, (named,)).routes == {"254 0.0.0.0/0": ["10.88.0.1%eth0"]}
    assert Outcome(route, default_route=True).routes == {"254 0.0.0.0/0": ["10.88.0.1%eth0"]}


def test_one_of_two_next_hops_that_is_not_resolved_is_left_out() -> None:
    found = Outcome({"10.88.0.1": [one()], "10.88.0.2": [one(nextHop="10.88.0.11")]})
    assert found.routes == {f"254 {PREFIX}": ["10.88.0.1%eth0"]}
    assert found.reasons == {f"10.88.0.2 {PREFIX}": "NextHop"}


def test_an_unnumbered_peer_is_reached_by_its_interface_for_both_families() -> None:
    found = Outcome({"eth0": [one(nextHop="fe80::1"), one("2001:db8:7::/48")]})
    assert found.routes == {
        f"254 {PREFIX}": ["fe80::1%eth0"],
        "254 2001:db8:7::/48": ["fe80::1%eth0"],
    }


def test_rfc7999_a_blackhole_has_no_next_hops() -> None:
    marked = {"10.88.0.1": [one(communities=["65535:666"])]}
    (row,) = Outcome(marked, blackhole=True).document["kernel"]
    assert (row["type"], row["nexthops"]) == ("blackhole", [])


class TestVrfs:
    PEER = msgspec.structs.replace(peer("10.99.0.1"), instance="red")

    def test_a_vrf_has_its_own_table(self) -> None:
        found = Outcome({"red/10.99.0.1": [one()]}, (self.PEER,), (RED,))
        assert found.routes == {f"1044 {PREFIX}": ["10.99.0.1%eth1"]}

    def test_the_vrf_may_be_left_out_where_only_one_has_the_peer(self) -> None:
        assert Outcome({"10.99.0.1": [one()]}, (self.PEER,), (RED,)).routes

    def test_a_vrf_that_the_node_lacks_has_no_table(self) -> None:
        found = Outcome({"red/10.99.0.1": [one()]}, (self.PEER,), (RED,), host=Host())
        assert found.reasons == {f"red/10.99.0.1 {PREFIX}": "NoVRF"}

    def test_routes_of_two_vrfs_never_stand_in_one_table(self) -> None:
        blue = msgspec.structs.replace(RED, name="blue", vrf="blue")
        of_blue = msgspec.structs.replace(self.PEER, instance="blue")
        received = {"red/10.99.0.1": [one()], "blue/10.99.0.1": [one()]}
        devices = (
            Device("eth1", addresses=("10.99.0.11",), vrf="red"),
            Device("red"),
            Device("blue"),
        )
        for numbers, reasons in (((7, 7), ["red"]), ((254, 7), ["red"]), ((7, 8), [])):
            vrfs = tuple(Vrf(name, n) for name, n in zip(("red", "blue"), numbers, strict=True))
            host = Host(devices, (), vrfs)
            found = Outcome(received, (self.PEER, of_blue), (RED, blue), host=host)
            assert found.reasons == {f"{vrf}/10.99.0.1 {PREFIX}": "TableShared" for vrf in reasons}

    def test_an_imported_route_stands_in_both_tables_with_the_interface_of_its_own(self) -> None:
        importing = msgspec.structs.replace(RED, imports=(InstanceImport("main", None),))
        found = Outcome({"10.88.0.1": [one()]}, (ONE,), (MAIN, importing))
        assert found.routes == {
            f"254 {PREFIX}": ["10.88.0.1%eth0"],
            f"1044 {PREFIX}": ["10.88.0.1%eth0"],
        }
        assert not found.reasons

    def test_one_prefix_in_two_vrfs(self) -> None:
        found = Outcome(
            {"10.88.0.1": [one()], "red/10.99.0.1": [one()]}, (ONE, self.PEER), (MAIN, RED)
        )
        assert found.routes == {
            f"254 {PREFIX}": ["10.88.0.1%eth0"],
            f"1044 {PREFIX}": ["10.99.0.1%eth1"],
        }

    def test_a_vrf_of_which_only_the_name_is_known(self) -> None:
        host = Host(
            (Device("eth0", addresses=("10.88.0.11",)), Device("red")), (), (Vrf("red", 7),)
        )
        found = Outcome({"red/10.99.0.1": [one()]}, (self.PEER,), (RED,), host=host)
        assert found.routes == {f"7 {PREFIX}": ["10.99.0.1%None"]}


class TestSwitch:
    def test_routes_of_other_dialects_are_not_installed(self) -> None:
        other = msgspec.structs.replace(MAIN, dialect="other")
        found = Outcome(
            {"10.88.0.1": [one(), one(PREFIX, asPath=[64701, 64710])]}, instances=(other,)
        )
        assert not found.routes
        assert found.reasons == {f"10.88.0.1 {PREFIX}": "ASLoop"}
        found = Outcome({"10.88.0.1": [one()]}, instances=(other,))
        assert found.reasons == {f"10.88.0.1 {PREFIX}": "Off"}

    def test_switched_off_none_are(self) -> None:
        found = Outcome({"10.88.0.1": [one()], "10.88.0.2": [one(asPath=[64701, 1])]}, fib=False)
        assert found.reasons == {f"10.88.0.1 {PREFIX}": "Off", f"10.88.0.2 {PREFIX}": "NotBest"}


@pytest.mark.parametrize(
    ("received", "text"),
    [
        ({"10.88.0.9": [one()]}, "the node has no peer 10.88.0.9"),
        ({"red/10.88.0.1": [one()]}, "the node has no peer red/10.88.0.1"),
        ({"10.88.0.1": [], "default/10.88.0.1": []}, "several names of one peer"),
    ],
)
def test_a_peer_that_the_node_does_not_have(received: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidReceivedFile, match=text):
        Outcome(received)


def test_two_peers_of_one_address_are_distinguished_by_the_vrf() -> None:
    twice = (
        ONE,
        *(msgspec.structs.replace(peer("10.88.0.1"), instance=name) for name in ("b", "c")),
    )
    instances = (MAIN, *(Instance(name, name, 64710, "10.88.0.11") for name in ("b", "c")))
    assert Outcome({"10.88.0.1": [one()]}, twice, instances).routes
    with pytest.raises(InvalidReceivedFile, match=r"several peers .*: add the VRF"):
        Outcome({"10.88.0.1": [one()]}, twice[1:], instances)


def test_peers_with_a_password_and_peers_that_are_down_announce_routes() -> None:
    down = peer("10.88.0.1", down_reason="no Secret")
    assert Outcome({"10.88.0.1": [one()]}, (down,)).routes


def test_a_node_without_default_route_and_facts_takes_next_hops_as_they_are() -> None:
    found = Outcome({"10.88.0.3": [one(nextHop="192.0.2.9")]}, host=None)
    assert found.routes == {f"254 {PREFIX}": ["192.0.2.9%None"]}
    host = Host((HOST.devices[0],), (DefaultRoute(0, "10.88.0.254", "eth0"),))
    found = Outcome({"10.88.0.3": [one(nextHop="192.0.2.9")]}, host=host)
    assert found.routes == {f"254 {PREFIX}": ["10.88.0.254%eth0"]}


def test_a_prefix_of_a_service_that_the_node_advertises_is_not_installed() -> None:
    advertising = peer("10.88.0.1", route_set="services")
    route = Route("services", *prefix_to_wire(PREFIX), Attributes(), ())
    outcome = Outcome({"10.88.0.1": [one()]}, (advertising,), routes=(route,))
    assert not outcome.routes
    assert outcome.reasons == {f"10.88.0.1 {PREFIX}": "Local"}
    assert outcome.message == "this node advertises the prefix"
