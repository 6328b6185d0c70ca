"""How many addresses Services may announce: each of them, and all of a namespace."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from reconcilers.intent.address_limits import AddressesOfService
from reconcilers.intent.explain import parse_target
from reconcilers.prefixes import host_route
from resources.core import Service
from speaker.nlri import prefix_to_text
from tests.reconcilers.build import NODE, Cluster
from tests.support import kinds

DAYS = [f"2026-01-{day:02}T00:00:00Z" for day in range(1, 29)]


def cluster(**options: Any) -> Cluster:  # noqa: ANN401
    """Make a node with one peer, which is sent the addresses of all Services."""
    found = Cluster(**options)
    peer = {"name": "p", "peerASN": 1, "peerAddress": "192.0.2.1", "peerConfigRef": {"name": "p"}}
    instances = [{"name": "i", "localASN": 65001, "peers": [peer]}]
    found.put(
        kinds.CLUSTER_CONFIG, {"metadata": {"name": "c"}, "spec": {"bgpInstances": instances}}
    )
    families = [{"afi": "ipv4", "safi": "unicast", "advertisements": {}}]
    found.put(kinds.PEER_CONFIG, {"metadata": {"name": "p"}, "spec": {"families": families}})
    entry = {
        "advertisementType": "Service",
        "service": {"addresses": ["ExternalIP", "LoadBalancerIP", "ClusterIP"]},
        "selector": {},
    }
    spec = {"advertisements": [entry, {"advertisementType": "PodCIDR"}]}
    found.put(kinds.ADVERTISEMENT, {"metadata": {"name": "a"}, "spec": spec})
    addresses = [{"type": "InternalIP", "address": "192.0.2.9"}]
    node = {"metadata": {"name": NODE}, "spec": {"podCIDRs": ["10.244.0.0/24"]}}
    found.put(kinds.NODE, {**node, "status": {"addresses": addresses}})
    return found


def put(
    found: Cluster,
    name: str,
    *external: str,
    ingress: tuple[str, ...] = (),
    created: str = DAYS[0],
    namespace: str = "a",
) -> None:
    """Write a Service."""
    spec: dict[str, Any] = {"externalIPs": list(external)}
    if ingress:
        spec["type"] = "LoadBalancer"
    found.put(
        kinds.SERVICE,
        {
            "metadata": {"name": name, "namespace": namespace, "creationTimestamp": created},
            "spec": spec,
            "status": {"loadBalancer": {"ingress": [{"ip": address} for address in ingress]}},
        },
    )


def addresses(first: int, count: int) -> list[str]:
    return [f"198.18.{number >> 8}.{number & 255}" for number in range(first, first + count)]


def of_services(found: Cluster) -> list[str]:
    """Return the addresses of Services that are advertised."""
    found.run()
    return [p.removesuffix("/32") for p in found.prefixes() if p != "10.244.0.0/24"]


def problems(found: Cluster) -> list[dict[str, Any]]:
    return list(found.render()["problems"])


# Of a Service


def test_a_service_announces_64_addresses_by_default_and_those_at_the_end_lose() -> None:
    found = cluster()
    put(found, "many", *addresses(0, 1500))
    assert of_services(found) == addresses(0, 64)
    assert "10.244.0.0/24" in found.prefixes()
    (problem,) = problems(found)
    assert problem["message"] == (
        "198.18.0.64 is not advertised: its Service has 64 addresses before it, which is the limit "
        "(--advertise-service-limit) (the same for 198.18.0.65, 198.18.0.66 and 1433 more)"
    )
    assert (problem["count"], problem["ofTenant"]) == (1436, True)
    assert problem["objects"] == ["Service/a/many"]


def test_controllers_addresses_come_first_and_duplicates_are_dropped() -> None:
    found = cluster(advertise_service_limit=3)
    put(found, "s", *addresses(0, 4), ingress=("198.19.0.1", "198.18.0.0"))
    assert of_services(found) == ["198.18.0.0", "198.18.0.1", "198.19.0.1"]


@pytest.mark.parametrize("field", ["ingress", "externalIPs"])
def test_the_only_address_of_a_service_is_the_first_one_without_being_read(field: str) -> None:
    # Of tens of thousands of Services with one address each, none is parsed.
    only = "no address at all"
    given: dict[str, Any] = (
        {"status": {"loadBalancer": {"ingress": [{"ip": only}]}}}
        if field == "ingress"
        else {"spec": {"externalIPs": [only]}}
    )
    row = msgspec.convert(
        {"metadata": {"name": "s", "creationTimestamp": DAYS[3]}, **given}, Service
    )
    assert AddressesOfService(row).rank(host_route("198.18.0.1")[1]) == (DAYS[3], 0)


def test_a_limit_of_zero_is_none() -> None:
    found = cluster(advertise_service_limit=0, advertise_namespace_limit=0)
    put(found, "many", *addresses(0, 1500))
    assert len(of_services(found)) == 1500
    assert not problems(found)


def test_a_service_that_has_fewer_addresses_again_announces_all_of_them() -> None:
    found = cluster(advertise_service_limit=2)
    put(found, "s", *addresses(0, 4))
    assert of_services(found) == addresses(0, 2)
    put(found, "s", *addresses(2, 2))
    assert of_services(found) == addresses(2, 2)
    assert not problems(found)


# Of a namespace


def test_the_newest_services_of_a_namespace_lose_whatever_the_order_of_events() -> None:
    services = [
        ("b", addresses(0, 2), DAYS[1]),
        ("a", addresses(2, 2), DAYS[1]),
        ("z", addresses(4, 2), DAYS[0]),
        ("c", addresses(6, 2), DAYS[2]),
    ]
    for seed in range(12):
        found = cluster(advertise_namespace_limit=5)
        random.Random(seed).shuffle(services)  # noqa: S311  reproducible
        for name, external, created in services:
            put(found, name, *external, created=created)
            if seed % 2:
                found.run()
        # z is the oldest; a comes before b, of the same second; of b the end of its list loses.
        assert of_services(found) == ["198.18.0.0", *addresses(2, 4)]
        assert [(p["objects"], p["count"]) for p in problems(found)] == [
            (["Service/a/b"], 1),
            (["Service/a/c"], 2),
        ]


def test_an_older_service_that_goes_makes_room() -> None:
    found = cluster(advertise_namespace_limit=3)
    for number in range(4):
        put(found, f"s{number}", *addresses(2 * number, 2), created=DAYS[number])
    assert of_services(found) == addresses(0, 3)
    found.delete(kinds.SERVICE, "s0", "a")
    assert of_services(found) == addresses(2, 3)
    put(found, "s0", "198.18.9.9", created=DAYS[9])
    assert of_services(found) == addresses(2, 3)
    for name in ("s1", "s2"):
        found.delete(kinds.SERVICE, name, "a")
    assert of_services(found) == [*addresses(6, 2), "198.18.9.9"]
    assert not problems(found)


def test_namespaces_do_not_share_a_limit() -> None:
    found = cluster(advertise_namespace_limit=2)
    put(found, "s", *addresses(0, 3), created=DAYS[5])
    put(found, "s", *addresses(10, 2), namespace="b", created=DAYS[9])
    assert of_services(found) == [*addresses(0, 2), *addresses(10, 2)]


def test_addresses_that_services_share_are_one_and_stay_shared() -> None:
    found = cluster(advertise_namespace_limit=3)
    put(found, "tcp", *addresses(0, 3))
    put(found, "udp", *addresses(0, 3), created=DAYS[1])
    put(found, "new", "198.18.0.7", "198.18.0.1", created=DAYS[2])
    assert of_services(found) == addresses(0, 3)
    (problem,) = problems(found)
    assert problem["message"].startswith(
        "198.18.0.7 is not advertised: the Services of namespace a have 3 addresses before it, "
        "which is the limit (--advertise-namespace-limit)"
    )
    found.delete(kinds.SERVICE, "tcp", "a")
    assert of_services(found) == addresses(0, 3)


def sharing(found: Cluster) -> list[str]:
    """Return the Services that one shared address is compiled of."""
    found.run()
    (route,) = (
        row
        for row in found.intent.routes.all(found.db.snapshot())
        if prefix_to_text(row.family, row.nlri) == "198.18.0.0/32"
    )
    return sorted({part.origin.object.name for part in route.contributions})


def test_no_more_services_share_an_address_than_a_namespace_may_have_addresses() -> None:
    """The work for a route grows with the Services that share it: a tenant may make any number."""
    found = cluster(advertise_namespace_limit=3)
    for number in range(3):
        put(found, f"s{number}", *addresses(0, 1), created=DAYS[number + 1])
    assert sharing(found) == ["s0", "s1", "s2"]
    for number in range(3, 6):
        put(found, f"s{number}", *addresses(0, 1), created=DAYS[number + 1])
    assert sharing(found) == ["s0", "s1", "s2"]
    assert [problem["objects"] for problem in problems(found)] == [
        [f"Service/a/s{number}"] for number in range(3, 6)
    ]
    assert problems(found)[0]["message"] == (
        "198.18.0.0 is not advertised: 3 older Services of namespace a share it, which is the limit "
        "(--advertise-namespace-limit)"
    )
    put(found, "older", *addresses(0, 1), created=DAYS[0])
    assert sharing(found) == ["older", "s0", "s1"]
    put(found, "other", *addresses(0, 1), namespace="b", created=DAYS[9])
    assert sharing(found) == ["older", "other", "s0", "s1"]
    for name in ("s0", "older"):
        found.delete(kinds.SERVICE, name, "a")
    assert sharing(found) == ["other", "s1", "s2", "s3"]
    for name in ("s1", "s2"):
        found.delete(kinds.SERVICE, name, "a")
    assert sharing(found) == ["other", "s3", "s4", "s5"]
    assert not problems(found)


def test_one_more_service_at_an_address_that_many_share_is_the_work_of_one() -> None:
    found = cluster(advertise_namespace_limit=3)
    for number in range(50):
        put(found, f"s{number:02}", *addresses(0, 1), created=DAYS[2])
    found.run()
    put(found, "s99", *addresses(0, 1), created=DAYS[2])
    assert found.run().objects == 1
    found.delete(kinds.SERVICE, "s00", "a")
    assert found.run().objects == 2


def test_assigned_addresses_are_not_counted_unless_configured() -> None:
    def of(**options: Any) -> list[str]:  # noqa: ANN401
        found = cluster(advertise_namespace_limit=2, **options)
        for number in range(3):
            put(found, f"s{number}", ingress=(f"198.19.0.{number}",), created=DAYS[number])
        put(found, "e", *addresses(0, 2), created=DAYS[9])
        return of_services(found)

    assert of() == [*addresses(0, 2), "198.19.0.0", "198.19.0.1", "198.19.0.2"]
    assert of(advertise_namespace_limit_ingress=True) == ["198.19.0.0", "198.19.0.1"]


def test_cluster_ips_are_not_counted() -> None:
    found = cluster(advertise_service_limit=1, advertise_namespace_limit=1)
    for number in range(3):
        found.put(
            kinds.SERVICE,
            {
                "metadata": {"name": f"s{number}", "namespace": "a"},
                "spec": {"clusterIP": f"10.96.0.{number + 1}"},
            },
        )
    assert len(of_services(found)) == 3


def test_another_node_comes_to_the_same_result_although_it_withholds_an_address_of_its_own() -> (
    None
):
    found = cluster(advertise_namespace_limit=3)
    put(found, "old", "192.0.2.9", "198.18.0.1")
    put(found, "new", "198.18.0.2", "198.18.0.3", created=DAYS[1])
    assert of_services(found) == ["198.18.0.1", "198.18.0.2"]


def test_a_changed_service_is_recomputed_with_the_services_it_displaces() -> None:
    found = cluster(advertise_namespace_limit=500)
    for number in range(2000):
        put(found, f"s{number:04}", addresses(number, 1)[0], created=DAYS[0])
    found.run()
    put(found, "s1999", "198.19.0.1", created=DAYS[0])
    assert found.run().objects == 1
    put(found, "older", "198.19.0.2", created="2025-01-01T00:00:00Z")
    assert found.run().objects == 2
    found.delete(kinds.SERVICE, "older", "a")
    assert found.run().objects == 2


@pytest.mark.parametrize("limit", [6, 2])
@pytest.mark.parametrize("seed", range(8))
def test_any_history_comes_to_what_a_fresh_compiler_finds(seed: int, limit: int) -> None:
    chance = random.Random(seed)  # noqa: S311  reproducible
    found = cluster(advertise_namespace_limit=limit, advertise_service_limit=3)
    for _ in range(60):
        name = f"s{chance.randrange(8)}"
        if chance.random() < 0.2:
            found.delete(kinds.SERVICE, name, "a")
        else:
            numbers = [chance.randrange(2 * limit) for _ in range(chance.randrange(6))]
            external = [addresses(number, 1)[0] for number in numbers]
            put(found, name, *external, created=chance.choice(DAYS[:3]))
        if chance.random() < 0.6:
            found.run()
    found.run()
    fresh = cluster(advertise_namespace_limit=limit, advertise_service_limit=3)
    for row in found.resources.services.all(found.db.snapshot()):
        created = row.metadata.creation_timestamp
        put(fresh, row.metadata.name, *row.spec.external_ips, created=created)
    assert of_services(found) == of_services(fresh)
    assert problems(found) == problems(fresh)
    parts = [
        {(row.nlri, part.origin.object) for row in rows for part in row.contributions}
        for rows in (list(one.intent.routes.all(one.db.snapshot())) for one in (found, fresh))
    ]
    assert parts[0] == parts[1]


def test_explain_names_the_limit_of_each_address() -> None:
    found = cluster(advertise_service_limit=2, advertise_namespace_limit=3)
    put(found, "old", *addresses(0, 3))
    put(found, "new", *addresses(10, 2), created=DAYS[1])
    found.run()
    reasons: dict[bytes, str] = {}
    for target in ("a/old", "a/new"):
        for some in found.compiler.explainer().explain(parse_target(target, {})):
            reasons |= {
                one.nlri[1:]: one.reason for one in some if one.type == "ExternalIP" and one.nlri
            }
    assert list(reasons.values()) == [
        "Advertised",
        "Advertised",
        "ServiceLimit",
        "Advertised",
        "NamespaceLimit",
    ]


# One problem for an object


def test_a_service_with_20000_refused_addresses_has_one_problem_with_their_number() -> None:
    found = cluster(advertise_service_limit=0, advertise_namespace_limit=0)
    refused = [f"127.{n >> 16}.{n >> 8 & 255}.{n & 255}" for n in range(20_000)]
    put(found, "many", *refused, "198.18.0.1", "224.0.0.1")
    assert of_services(found) == ["198.18.0.1"]
    (problem,) = problems(found)
    assert problem["count"] == 20_001
    assert problem["message"] == (
        "127.0.0.0 is not advertised: it is a loopback address (127.0.0.0/8) (the same for 127.0.0.1, "
        "127.0.0.2 and 19997 more); "
        "224.0.0.1 is not advertised: it is a multicast address (224.0.0.0/4)"
    )
    assert len(problem["message"]) < 1024


def test_the_problems_of_many_services_are_listed_up_to_a_number() -> None:
    found = cluster()
    for number in range(1000):
        put(found, f"s{number:04}", "127.0.0.1")
    found.run()
    listed = problems(found)
    assert len(listed) == 101
    assert {p["ofTenant"] for p in listed} == {True}
    rest = next(p for p in listed if p["objects"] == ["Service"])
    assert rest["count"] == 900
    assert rest["message"] == "900 more objects have problems: `waggle explain` shows them"
    for number in range(900):
        found.delete(kinds.SERVICE, f"s{number:04}", "a")
    found.run()
    assert [p["objects"] for p in problems(found)] == [
        [f"Service/a/s{number:04}"] for number in range(900, 1000)
    ]


def test_a_problem_of_the_administrator_is_not_a_problem_of_tenants() -> None:
    found = cluster()
    put(found, "s", "127.0.0.1")
    peer = {
        "name": "q",
        "peerASN": 1,
        "peerAddress": "192.0.2.2",
        "peerConfigRef": {"name": "gone"},
    }
    instances = [{"name": "i", "localASN": 65001, "peers": [peer]}]
    found.put(
        kinds.CLUSTER_CONFIG, {"metadata": {"name": "c"}, "spec": {"bgpInstances": instances}}
    )
    found.run()
    assert sorted(p["ofTenant"] for p in problems(found)) == [False]


def test_an_address_outside_of_the_prefixes_of_its_namespace_is_a_problem_of_the_tenant() -> None:
    found = cluster()
    annotations = {"waggle.dev/service-addresses": "198.51.100.0/24"}
    found.put(kinds.NAMESPACE, {"metadata": {"name": "a", "annotations": annotations}})
    put(found, "s", *addresses(0, 2))
    assert of_services(found) == []
    (problem,) = problems(found)
    assert problem["objects"] == ["Service/a/s", "Namespace/a"]
    assert (problem["count"], problem["ofTenant"]) == (2, True)


def test_an_address_that_a_service_does_not_name_has_no_rank_and_no_limit() -> None:
    content = {"metadata": {"name": "web"}, "spec": {"externalIPs": ["192.0.2.1", "192.0.2.2"]}}
    addresses = AddressesOfService(msgspec.convert(content, Service))
    assert addresses.rank(host_route("192.0.2.2")[1]) is not None
    assert addresses.rank(host_route("192.0.2.3")[1]) is None
