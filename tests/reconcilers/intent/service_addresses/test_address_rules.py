"""Which addresses of Services are advertised: not martians, this node's, peers' and denied ones."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from reconcilers.dialect import ServiceAddress
from reconcilers.intent.options import IntentOptions
from reconcilers.intent.service_addresses import AddressRules, Rejection, address_rules
from reconcilers.intent.service_addresses.address_set import AddressSet
from reconcilers.intent.service_addresses.cluster_networks import ClusterNetworks
from reconcilers.model import ObjectRef
from reconcilers.prefixes import host_route
from resources.core.service import EXTERNAL_IPS
from resources.option_declarations import InvalidOption
from speaker.nlri import prefix_to_wire
from tests.reconcilers.build import NODE, Cluster
from tests.support import kinds

WEB = ObjectRef("Service", "shop", "web")
MARTIANS = [
    "0.0.0.0",
    "0.1.2.3",
    "127.0.0.1",
    "127.255.255.255",
    "169.254.169.254",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "fe80::1",
    "febf::1",
    "ff02::1",
    "::ffff:192.0.2.1",
    "::2",
    "::127.0.0.1",
    "64:ff9b::127.0.0.1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::7f00:1",
    "2002:7f00:1::1",
    "2002:e000:5::",
]
GOOD = ["10.0.0.1", "192.168.0.1", "192.0.2.1", "169.253.0.1", "1.0.0.0", "223.255.255.255"]
GOOD += ["fd00::1", "2001:db8::1", "fec0::1", "::c000:201", "64:ff9b::198.51.100.1"]
GOOD += ["64:ff9b:1:1::7f00:1", "64:ff9b:1::c633:6401", "2002:c633:6401::1", "2003:7f00:1::1"]


def judged(rules: AddressRules, address: str) -> Rejection | None:
    family, nlri = host_route(address)
    return rules.reject_address(WEB, family, ServiceAddress(EXTERNAL_IPS, nlri))


def reason(address: str, **options: Any) -> str | None:  # noqa: ANN401
    rejection = judged(address_rules(None, (), IntentOptions(**options)), address)
    return None if rejection is None else rejection.reason


@pytest.mark.parametrize("address", MARTIANS)
def test_a_martian_is_rejected(address: str) -> None:
    assert reason(address) == "Martian"


@pytest.mark.parametrize("address", MARTIANS)
def test_a_martian_is_rejected_although_it_is_allowed(address: str) -> None:
    assert reason(address, advertise_allow=("0.0.0.0/0", "::/0")) == "Martian"


@pytest.mark.parametrize("address", GOOD)
def test_private_documentation_and_global_addresses_are_accepted(address: str) -> None:
    assert reason(address) is None


def test_a_martian_within_an_ipv6_address_is_named() -> None:
    rules = address_rules(None, (), IntentOptions())
    found = judged(rules, "64:ff9b::169.254.169.254")
    assert found is not None
    assert found.message == (
        "it is a NAT64 address (64:ff9b::/96) with a link-local address (169.254.0.0/16)"
    )


def test_only_allowed_prefixes_are_accepted_in_every_family() -> None:
    allow = {"advertise_allow": ("192.0.2.0/24",)}
    assert reason("192.0.2.1", **allow) is None
    assert reason("198.51.100.1", **allow) == "NotAllowed"
    assert reason("2001:db8::1", **allow) == "NotAllowed"


def test_no_address_is_allowed_where_no_address_is_in_what_is_allowed() -> None:
    rejection = judged(AddressRules(allow=AddressSet()), "198.51.100.1")
    assert rejection is not None
    assert rejection.reason == "NotAllowed"


def test_denied_prefixes_precede_allowed_ones() -> None:
    given = {"advertise_allow": ("192.0.2.0/24",), "advertise_deny": ("192.0.2.128/25",)}
    assert reason("192.0.2.1", **given) is None
    assert reason("192.0.2.129", **given) == "Denied"


def test_denied_prefixes_are_of_the_addresses_family() -> None:
    given = {"advertise_deny": ("2001:db8::/32", "0.0.0.0/0")}
    assert reason("2001:db8::1", **given) == "Denied"
    assert reason("fd00::1", **given) is None
    assert reason("192.0.2.1", **given) == "Denied"


@pytest.mark.parametrize(
    ("prefix", "accepted"),
    [
        ("0.0.0.0/0", False),
        ("10.0.0.0/7", False),
        ("10.0.0.0/8", True),
        ("::/0", False),
        ("2000::/15", False),
        ("2001::/16", True),
    ],
)
def test_an_aggregate_has_a_shortest_length(prefix: str, accepted: bool) -> None:
    family, nlri = prefix_to_wire(prefix)
    rules = address_rules(None, (), IntentOptions())
    assert (rules.reject_prefix(family, nlri) is None) is accepted
    options = IntentOptions(advertise_min_length_ipv4=0, advertise_min_length_ipv6=0)
    assert address_rules(None, (), options).reject_prefix(family, nlri) is None


@pytest.mark.parametrize(
    "flag", ["advertise_allow", "advertise_deny", "advertise_permit", "service_cidr"]
)
def test_a_prefix_that_cannot_be_read_is_an_error_of_its_option(flag: str) -> None:
    given: Any = {flag: ("10.0.0.1/8",)}
    with pytest.raises(InvalidOption, match="host bits") as caught:
        IntentOptions(**given)
    assert caught.value.flag == "--" + flag.replace("_", "-")
    with pytest.raises(msgspec.ValidationError, match="host bits"):
        msgspec.convert({"advertiseDeny": ["10.0.0.1/8"]}, IntentOptions)


# Within the intent


def cluster(*external: str, entries: list[dict[str, Any]] | None = None) -> Cluster:
    found = Cluster()
    peer = {"name": "p", "peerASN": 1, "peerAddress": "192.0.2.1", "peerConfigRef": {"name": "p"}}
    spec: dict[str, Any] = {
        "bgpInstances": [{"name": "i", "localASN": 65001, "peers": [peer]}],
    }
    found.put(kinds.CLUSTER_CONFIG, {"metadata": {"name": "c"}, "spec": spec})
    families = [{"afi": "ipv4", "safi": "unicast", "advertisements": {}}]
    found.put(kinds.PEER_CONFIG, {"metadata": {"name": "p"}, "spec": {"families": families}})
    usual = {
        "advertisementType": "Service",
        "service": {"addresses": ["ExternalIP", "ClusterIP"]},
        "selector": {},
    }
    advertisements = {"advertisements": entries or [usual]}
    found.put(kinds.ADVERTISEMENT, {"metadata": {"name": "a"}, "spec": advertisements})
    node(found, "192.0.2.9")
    spec = {"clusterIP": "10.96.0.1", "externalIPs": list(external)}
    found.put(kinds.SERVICE, {"metadata": {"name": "web", "namespace": "d"}, "spec": spec})
    found.run()
    return found


def node(found: Cluster, *addresses: str) -> None:
    listed = [{"type": "InternalIP", "address": address} for address in addresses]
    found.put(kinds.NODE, {"metadata": {"name": NODE}, "status": {"addresses": listed}})


def advertised(found: Cluster) -> list[str]:
    (instance,) = found.render()["instances"]
    (peer,) = instance["peers"]
    return [route["prefix"] for route in peer["advertise"]]


def problems(found: Cluster) -> list[str]:
    return [problem["message"] for problem in found.render()["problems"]]


def test_addresses_of_the_node_and_of_peers_are_withdrawn_when_they_become_such() -> None:
    found = cluster("192.0.2.1", "192.0.2.9", "192.0.2.50")
    assert advertised(found) == ["10.96.0.1/32", "192.0.2.50/32"]
    node(found, "192.0.2.9", "192.0.2.50")
    found.run()
    assert advertised(found) == ["10.96.0.1/32"]
    (problem,) = problems(found)
    assert problem == (
        "192.0.2.1 is not advertised by node test-node: it is the address of a peer; 192.0.2.9 is not "
        "advertised by node test-node: it is an address of this node (the same for 192.0.2.50)"
    )
    node(found, "192.0.2.8")
    found.run()
    assert advertised(found) == ["10.96.0.1/32", "192.0.2.9/32", "192.0.2.50/32"]
    assert problems(found) == [
        "192.0.2.1 is not advertised by node test-node: it is the address of a peer"
    ]


def test_the_problem_goes_with_the_service() -> None:
    found = cluster("127.0.0.1")
    assert len(problems(found)) == 1
    found.delete(kinds.SERVICE, "web", "d")
    found.run()
    assert not problems(found)


def test_a_cluster_ip_is_the_administrators() -> None:
    found = cluster()
    node(found, "192.0.2.9", "10.96.0.1")
    found.run()
    assert advertised(found) == ["10.96.0.1/32"]


def test_a_rejected_address_contributes_no_attributes_to_an_aggregate() -> None:
    def entry(kind: str, community: str) -> dict[str, Any]:
        return {
            "advertisementType": "Service",
            "service": {"addresses": [kind], "aggregationLengthIPv4": 24},
            "selector": {},
            "attributes": {"communities": {"standard": [community]}},
        }

    found = cluster(
        "192.0.2.1", "10.96.0.7", entries=[entry("ClusterIP", "1:1"), entry("ExternalIP", "1:2")]
    )
    (instance,) = found.render()["instances"]
    routes = {r["prefix"]: r["communities"] for r in instance["peers"][0]["advertise"]}
    assert routes == {"10.96.0.0/24": ["1:1", "1:2"]}
    spec = {"clusterIP": "10.96.0.1", "externalIPs": ["192.0.2.1"]}
    found.put(kinds.SERVICE, {"metadata": {"name": "web", "namespace": "d"}, "spec": spec})
    found.run()
    (instance,) = found.render()["instances"]
    routes = {r["prefix"]: r["communities"] for r in instance["peers"][0]["advertise"]}
    assert routes == {"10.96.0.0/24": ["1:1"]}


SETS = ("own", "peers", "next_hops", "gateways")
OF_NETWORKS = ("nodes", "pods", "peers", "services", "api")


@pytest.mark.parametrize("name", [*SETS, *(f"networks.{name}" for name in OF_NETWORKS)])
@pytest.mark.parametrize(
    ("address", "next_to_it"), [("192.0.2.1", "192.0.2.2"), ("2001:db8::1", "2001:db8::2")]
)
def test_an_address_of_any_set_is_rejected_and_the_next_one_is_not(
    name: str, address: str, next_to_it: str
) -> None:
    of_others = AddressSet.of([address])
    field, _, of_networks = name.partition(".")
    value: Any = of_others
    if of_networks:
        value = msgspec.structs.replace(ClusterNetworks(), **{of_networks: of_others})
    rules = msgspec.structs.replace(AddressRules(), **{field: value})
    assert judged(rules, address) is not None
    assert judged(rules, next_to_it) is None
    permitted = msgspec.structs.replace(rules, permit=of_others)
    assert judged(permitted, address) is None


@pytest.mark.parametrize("name", [*SETS, *(f"networks.{name}" for name in OF_NETWORKS)])
@pytest.mark.parametrize("permit", ["192.0.2.1", "64:ff9b::c000:201"])
def test_an_ipv6_address_with_an_ipv4_address_of_any_set_is_rejected_as_that_one(
    name: str, permit: str
) -> None:
    of_others = AddressSet.of(["192.0.2.1"])
    field, _, of_networks = name.partition(".")
    value: Any = of_others
    if of_networks:
        value = msgspec.structs.replace(ClusterNetworks(), **{of_networks: of_others})
    rules = msgspec.structs.replace(AddressRules(), **{field: value})
    plain, within = judged(rules, "192.0.2.1"), judged(rules, "64:ff9b::c000:201")
    assert plain is not None
    assert within == plain._replace(
        message="it is a NAT64 address (64:ff9b::/96) with 192.0.2.1, which"
        + plain.message.removeprefix("it")
    )
    assert judged(rules, "64:ff9b::c000:202") is None
    permitted = msgspec.structs.replace(rules, permit=AddressSet.of([permit]))
    assert judged(permitted, "64:ff9b::c000:201") is None


def test_an_address_of_a_pool_is_checked_for_this_nodes_and_its_peers_in_every_form() -> None:
    networks = ClusterNetworks(nodes=AddressSet.of(["192.0.2.2"]))
    rules = AddressRules(own=AddressSet.of(["192.0.2.1"]), networks=networks)

    def in_pool(address: str) -> str | None:
        family, nlri = host_route(address)
        given = ServiceAddress("status.loadBalancer.ingress", nlri, in_pool=True)
        rejection = rules.reject_address(WEB, family, given)
        return None if rejection is None else rejection.reason

    assert in_pool("2002:c000:201::1") == in_pool("192.0.2.1") == "NodeAddress"
    assert in_pool("2002:c000:202::1") is in_pool("192.0.2.2") is None
