"""Addresses of something else are not advertised for a Service unless --advertise-permit has them."""

from __future__ import annotations

from collections.abc import Callable
from socket import AF_INET6, inet_aton, inet_ntop

import pytest

from reconcilers.intent.service_addresses import published
from reconcilers.prefixes import host_route
from speaker.nlri import prefix_to_text
from tests.reconcilers.build import Cluster
from tests.reconcilers.intent.service_addresses.build import (
    cluster,
    gateway,
    messages,
    next_hops,
    node,
    reason,
    service,
)
from tests.support import kinds

OTHERS = {
    "192.0.2.10": "NodeAddress",
    "2001:db8::10": "NodeAddress",
    "10.244.10.7": "PodAddress",
    "fd00:10::7": "PodAddress",
    "192.0.2.200": "ApiServer",
    "192.0.2.254": "Gateway",
    "2001:db8::fe": "Gateway",
    "192.0.2.253": "NextHop",
    "2001:db8::1": "NextHop",
    "192.0.2.1": "PeerAddress",
    "198.51.100.1": "PeerAddress",
    "192.0.2.9": "NodeAddress",
}


def with_others(**options: object) -> Cluster:
    """Return a cluster in which something has each of the addresses of `OTHERS`."""
    found = cluster(**options)
    node(found, "n2", "192.0.2.10", "2001:db8::10", pods=("10.244.10.0/24", "fd00:10::/64"))
    endpoint = {"addresses": ["192.0.2.200"], "conditions": {"ready": True}}
    labels = {"kubernetes.io/service-name": "kubernetes"}
    found.put(
        kinds.ENDPOINT_SLICE,
        {
            "metadata": {"name": "kubernetes", "namespace": "default", "labels": labels},
            "addressType": "IPv4",
            "endpoints": [endpoint],
        },
    )
    peer = {"name": "q", "peerASN": 1, "peerAddress": "198.51.100.1"}
    spec = {
        "bgpInstances": [{"name": "j", "localASN": 65001, "peers": [peer]}],
        "nodeSelector": {"matchLabels": {"kubernetes.io/hostname": "n2"}},
    }
    found.put(kinds.CLUSTER_CONFIG, {"metadata": {"name": "other"}, "spec": spec})
    gateway(found, "192.0.2.254", "2001:db8::fe")
    next_hops(found, "192.0.2.253", "2001:db8::1")
    found.run()
    return found


@pytest.mark.parametrize(("address", "why"), OTHERS.items())
@pytest.mark.parametrize("field", ["externalIPs", "ingress"])
def test_an_address_of_something_else_is_not_advertised(field: str, address: str, why: str) -> None:
    found = with_others()
    if field == "ingress":
        service(found, "198.51.100.77", ingress=(address,))
    else:
        service(found, address, "198.51.100.77")
    found.run()
    assert found.prefixes() == ["198.51.100.77/32"]
    assert reason(found, address) == why


@pytest.mark.parametrize("address", OTHERS)
def test_one_setting_permits_all_of_them(address: str) -> None:
    found = with_others(advertise_permit=["0.0.0.0/1", "192.0.0.0/8", "198.51.100.1/32", "::/0"])
    service(found, address)
    found.run()
    length = 128 if ":" in address else 32
    assert found.prefixes() == [f"{address}/{length}"]


def test_what_is_permitted_may_still_be_denied_and_outside_of_what_is_allowed() -> None:
    found = with_others(advertise_permit=["192.0.2.0/24"], advertise_deny=["192.0.2.10/32"])
    service(found, "192.0.2.10", "192.0.2.200")
    found.run()
    assert (found.prefixes(), reason(found, "192.0.2.10")) == (["192.0.2.200/32"], "Denied")
    found = with_others(advertise_permit=["192.0.2.0/24"], advertise_allow=["198.51.100.0/24"])
    service(found, "192.0.2.10")
    found.run()
    assert reason(found, "192.0.2.10") == "NotAllowed"


def test_a_martian_is_never_permitted() -> None:
    found = cluster(advertise_permit=["0.0.0.0/0"])
    service(found, "127.0.0.1")
    found.run()
    assert reason(found, "127.0.0.1") == "Martian"


def test_an_address_is_withdrawn_when_something_else_gets_it_and_back_when_it_is_free() -> None:
    found = cluster()
    service(found, "192.0.2.10", "10.244.10.7", "192.0.2.254", "192.0.2.253", "192.0.2.77")
    found.run()
    assert len(found.prefixes()) == 5
    node(found, "n2", "192.0.2.10", pods=("10.244.10.0/24",))
    gateway(found, "192.0.2.254")
    next_hops(found, "192.0.2.253")
    found.run()
    assert found.prefixes() == ["192.0.2.77/32"]
    found.delete(kinds.NODE, "n2")
    gateway(found)
    next_hops(found)
    found.run()
    assert len(found.prefixes()) == 5


def test_an_address_in_the_pod_network_of_this_node_is_the_nodes_own_to_advertise() -> None:
    found = cluster()
    service(found, "10.244.9.1")
    found.run()
    assert found.prefixes() == ["10.244.9.1/32"]


def test_gateways_of_manifests_are_in_the_node_network() -> None:
    found = cluster()
    spec = {
        "devices": [{"name": "eth0"}],
        "defaultRoutes": [{"gateway": "192.0.2.252", "device": "eth0"}],
    }
    found.put(kinds.NODE_NETWORK, {"metadata": {"name": "test-node"}, "spec": spec})
    service(found, "192.0.2.252")
    found.run()
    assert reason(found, "192.0.2.252") == "Gateway"


# Cluster IPs


def service_cidr(found: Cluster, *cidrs: str) -> None:
    found.put(
        kinds.SERVICE_CIDR, {"metadata": {"name": "kubernetes"}, "spec": {"cidrs": list(cidrs)}}
    )


def test_no_external_ip_is_within_the_range_of_cluster_ips() -> None:
    found = cluster()
    service_cidr(found, "10.96.0.0/16", "fd00:96::/112")
    service(found, "10.96.0.1", "fd00:96::1", ingress=("10.96.0.2",))
    found.run()
    assert found.prefixes() == ["10.96.0.2/32"]
    assert reason(found, "10.96.0.1") == reason(found, "fd00:96::1") == "ServiceRange"
    found.delete(kinds.SERVICE_CIDR, "kubernetes")
    found.run()
    assert len(found.prefixes()) == 3


def test_a_flag_has_the_range_where_there_are_no_objects() -> None:
    found = cluster(service_cidr=["10.96.0.0/16"])
    service(found, "10.96.0.1")
    found.run()
    (message,) = messages(found)
    assert message == (
        "Service/shop/web: spec.externalIPs: 10.96.0.1 is not advertised: it is within "
        "10.96.0.0/16, the range of cluster IPs"
    )


def test_the_cluster_ip_of_another_service_is_that_ones() -> None:
    found = cluster()
    service(found, "10.96.0.7", "10.96.0.8", cluster_ip="10.96.0.8")
    found.run()
    assert found.prefixes() == ["10.96.0.7/32", "10.96.0.8/32"]
    service(found, name="db", namespace="bank", cluster_ip="10.96.0.7")
    found.run()
    assert found.prefixes() == ["10.96.0.8/32"]
    (message,) = messages(found)
    assert message == (
        "Service/shop/web, Service/bank/db: spec.externalIPs: 10.96.0.7 is not advertised: it is "
        "the cluster IP of Service/bank/db"
    )
    found.delete(kinds.SERVICE, "db", "bank")
    found.run()
    assert found.prefixes() == ["10.96.0.7/32", "10.96.0.8/32"]


def test_the_address_of_the_api_is_nobodys_ingress() -> None:
    found = cluster()
    service(found, name="kubernetes", namespace="default", cluster_ip="10.96.0.1")
    service(found, ingress=("10.96.0.1",))
    found.run()
    assert reason(found, "10.96.0.1") == "ApiServer"


def test_the_cluster_ip_of_another_service_is_nobodys_ingress() -> None:
    found = cluster()
    service(found, name="db", namespace="bank", cluster_ip="10.96.0.7")
    service(found, ingress=("10.96.0.7", "10.96.0.8"), cluster_ip="10.96.0.8")
    found.run()
    assert found.prefixes() == ["10.96.0.8/32"], "its own one is what some controllers assign"
    (message,) = messages(found)
    assert message == (
        "Service/shop/web, Service/bank/db: status.loadBalancer.ingress: 10.96.0.7 is not advertised: "
        "it is the cluster IP of Service/bank/db"
    )


@pytest.mark.parametrize("address", ["192.0.2.99", "2001:db8::99"])
@pytest.mark.parametrize("field", ["externalIPs", "ingress"])
def test_no_service_has_the_address_by_which_the_agent_reaches_the_api(
    field: str, address: str
) -> None:
    """A load balancer in front of API servers is neither a Service nor an endpoint of theirs."""
    found = cluster(api_hosts=lambda: (address, "api.example.org"))
    if field == "ingress":
        service(found, ingress=(address, "198.51.100.77"))
    else:
        service(found, address, "198.51.100.77")
    found.run()
    assert found.prefixes() == ["198.51.100.77/32"]
    assert reason(found, address) == "ApiServer"


def test_an_address_that_services_share_stays_shared() -> None:
    found = cluster()
    service(found, "198.51.100.10")
    service(found, "198.51.100.10", name="other", namespace="bank")
    found.run()
    assert (found.prefixes(), messages(found)) == (["198.51.100.10/32"], [])


def test_the_addresses_of_nodes_are_united_again_only_where_they_changed() -> None:
    found = with_others()
    service(found, "192.0.2.10", "198.51.100.77")
    found.run()
    networks = found.compiler.address_rules.networks
    assert "foreign" in networks.__dict__
    gateway(found, "192.0.2.250")
    next_hops(found, "192.0.2.251")
    service(found, name="db", cluster_ip="10.96.0.7")
    found.run()
    assert found.compiler.address_rules.networks is networks
    node(found, "n2", "192.0.2.11")
    found.run()
    assert found.compiler.address_rules.networks is not networks
    assert found.prefixes() == ["192.0.2.10/32", "198.51.100.77/32"]


# What the operator publishes


def publish(found: Cluster, **data: str) -> None:
    content = {"metadata": {"name": published.NAME, "namespace": "waggle-system"}, "data": data}
    found.put(kinds.CONFIG_MAP, content)


def test_published_addresses_are_of_nodes_that_the_agent_does_not_read() -> None:
    found = cluster()
    service(found, "192.0.2.130", "10.244.77.1", "10.96.0.1", "198.51.100.1", "203.0.113.1")
    publish(
        found,
        nodes="192.0.2.128/25\n",
        pods="10.244.0.0/16\n",
        services="10.96.0.0/16\n",
        peers="198.51.100.1/32\n",
    )
    found.run()
    assert found.prefixes() == ["203.0.113.1/32"]
    publish(found)
    found.run()
    assert len(found.prefixes()) == 5


# IPv4 addresses within IPv6 addresses


def of_6to4(address: str) -> str:
    return inet_ntop(AF_INET6, b"\x20\x02" + inet_aton(address) + bytes(9) + b"\x01")


FORMS: dict[str, Callable[[str], str]] = {
    "an IPv4-compatible address (::/96)": lambda address: f"::{address}",
    "a NAT64 address (64:ff9b::/96)": lambda address: f"64:ff9b::{address}",
    "a NAT64 address (64:ff9b:1::/96)": lambda address: f"64:ff9b:1::{address}",
    "a 6to4 address (2002::/16)": of_6to4,
}
IPV4_OF_OTHERS = {address: why for address, why in OTHERS.items() if ":" not in address}
FREE = "198.51.100.77"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("field", ["externalIPs", "ingress"])
def test_an_ipv6_address_that_stands_for_an_address_of_something_else_is_not_advertised(
    field: str, form: str
) -> None:
    found = with_others()
    forms = {FORMS[form](address): why for address, why in IPV4_OF_OTHERS.items()}
    free = FORMS[form](FREE)
    if field == "ingress":
        service(found, ingress=(*forms, free))
    else:
        service(found, *forms, free)
    found.run()
    assert found.prefixes() == [prefix_to_text(*host_route(free))]
    assert {address: reason(found, address) for address in forms} == forms


@pytest.mark.parametrize("form", FORMS)
def test_the_problem_names_the_address_and_the_one_within(form: str) -> None:
    found = with_others()
    service(found, address := FORMS[form]("192.0.2.10"))
    found.run()
    (message,) = messages(found)
    written = prefix_to_text(*host_route(address)).removesuffix("/128")
    assert message == (
        f"Service/shop/web: spec.externalIPs: {written} is not advertised: it is {form} with "
        "192.0.2.10, which is an address of a Node"
    )


@pytest.mark.parametrize("permit", ["192.0.2.10/32", "64:ff9b::192.0.2.10/128", "64:ff9b::/96"])
def test_either_address_may_be_permitted(permit: str) -> None:
    found = with_others(advertise_permit=[permit])
    service(found, "64:ff9b::192.0.2.10")
    found.run()
    assert found.prefixes() == ["64:ff9b::c000:20a/128"]


def test_what_is_denied_or_not_allowed_is_the_ipv6_address() -> None:
    found = cluster(advertise_deny=["192.0.2.10/32"])
    service(found, "64:ff9b::192.0.2.10")
    found.run()
    assert found.prefixes() == ["64:ff9b::c000:20a/128"]
    found = cluster(advertise_allow=["192.0.2.10/32"])
    service(found, "64:ff9b::192.0.2.10")
    found.run()
    assert reason(found, "64:ff9b::192.0.2.10") == "NotAllowed"


def test_an_ipv6_address_is_withdrawn_when_something_else_gets_the_one_within() -> None:
    found = cluster()
    of_node, of_pod, of_service = (
        "64:ff9b::192.0.2.10",
        of_6to4("10.244.10.7"),
        "64:ff9b:1::10.96.0.7",
    )
    service(found, of_node, of_pod, of_service, FREE)
    found.run()
    assert len(found.prefixes()) == 4
    node(found, "n2", "192.0.2.10", pods=("10.244.10.0/24",))
    found.run()
    assert found.prefixes() == [f"{FREE}/32", "64:ff9b:1::a60:7/128"]
    service(found, name="db", namespace="bank", cluster_ip="10.96.0.7")
    found.run()
    assert found.prefixes() == [f"{FREE}/32"]
    found.delete(kinds.NODE, "n2")
    found.delete(kinds.SERVICE, "db", "bank")
    found.run()
    assert len(found.prefixes()) == 4


def test_an_ipv6_address_may_stand_for_the_cluster_ip_of_its_own_service() -> None:
    found = cluster()
    service(found, "64:ff9b::10.96.0.8", cluster_ip="10.96.0.8")
    found.run()
    assert found.prefixes() == ["64:ff9b::a60:8/128"]
