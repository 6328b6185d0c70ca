"""The addresses that Services of a namespace may use: the annotation of the Namespace."""

from __future__ import annotations

import pytest

from reconcilers.intent.service_addresses import unrestricted
from resources.errors import ObjectName
from resources.row_updates import replace_all
from tests.reconcilers.build import Cluster
from tests.reconcilers.intent.service_addresses.build import (
    cluster,
    messages,
    namespace,
    reason,
    service,
)
from tests.support import kinds


def test_a_namespace_with_the_annotation_uses_its_prefixes_alone() -> None:
    found = cluster()
    namespace(found, "shop", "198.51.100.0/26, 2001:db8:10::/64")
    service(found, "203.0.113.9", "198.51.100.9", ingress=("2001:db8:10::1",))
    found.run()
    assert found.prefixes() == ["198.51.100.9/32", "2001:db8:10::1/128"]
    assert reason(found, "203.0.113.9") == "NotInNamespace"
    assert messages(found)[0] == (
        "Service/shop/web, Namespace/shop: spec.externalIPs: 203.0.113.9 is not advertised: "
        "namespace shop may use 198.51.100.0/26, 2001:db8:10::/64 "
        "(annotation waggle.dev/service-addresses)"
    )


def test_other_namespaces_use_any_address_by_default() -> None:
    found = cluster()
    namespace(found, "bank", "198.51.100.0/26")
    namespace(found, "shop")
    service(found, "203.0.113.9")
    service(found, "203.0.113.10", namespace="unknown")
    found.run()
    assert found.prefixes() == ["203.0.113.9/32", "203.0.113.10/32"]


def test_a_prefix_granted_to_a_namespace_is_closed_without_the_annotation() -> None:
    found = cluster()
    namespace(found, "bank", "198.51.100.0/26")
    namespace(found, "shop")
    service(found, "198.51.100.9", "198.51.100.70")
    service(found, "198.51.100.9", name="stranger", namespace="unknown")
    service(found, "198.51.100.9", name="owner", namespace="bank")
    found.run()
    assert found.prefixes() == ["198.51.100.9/32", "198.51.100.70/32"]
    assert reason(found, "198.51.100.9", "stranger") == "NotInNamespace"
    assert reason(found, "198.51.100.9") == "NotInNamespace"
    assert messages(found)[0] == (
        "Service/shop/web, Namespace/shop: spec.externalIPs: 198.51.100.9 is not advertised: "
        "it is granted to namespace bank (annotation waggle.dev/service-addresses)"
    )
    # Another namespace may be granted it, too.
    namespace(found, "shop", "198.51.100.8/29,198.51.100.70/32")
    found.run()
    (instance,) = found.render()["instances"]
    route, _ = instance["peers"][0]["advertise"]
    assert [origin["namespace"] for origin in route["origins"]] == ["bank", "shop"]


def test_a_grant_and_its_end_concern_the_services_with_its_addresses() -> None:
    found = cluster()
    namespace(found, "bank")
    for number in range(20):
        service(found, f"198.51.100.{number}", name=f"s{number}", namespace="shop")
    found.run()
    namespace(found, "bank", "198.51.100.0/30")
    assert found.run().objects == 4
    assert len(found.prefixes()) == 16
    found.delete(kinds.NAMESPACE, "bank")
    assert found.run().objects == 4
    assert len(found.prefixes()) == 20


def test_a_grant_of_all_addresses_closes_none() -> None:
    found = cluster()
    namespace(found, "platform", "0.0.0.0/0,::/0")
    service(found, "203.0.113.9", "2001:db8::9")
    found.run()
    assert found.prefixes() == ["203.0.113.9/32", "2001:db8::9/128"]


def test_an_empty_annotation_grants_nothing() -> None:
    found = cluster()
    namespace(found, "shop", "")
    service(found, "203.0.113.9")
    found.run()
    assert found.prefixes() == []
    assert messages(found)[0].endswith(
        "namespace shop may use no address (annotation waggle.dev/service-addresses)"
    )


def test_namespaces_without_the_annotation_use_nothing_if_it_is_required() -> None:
    found = cluster(advertise_namespaces="annotated")
    namespace(found, "shop")
    namespace(found, "bank", "198.51.100.0/26")
    service(found, "203.0.113.9")
    service(found, "198.51.100.9", namespace="bank")
    service(found, "203.0.113.10", namespace="unknown")
    found.run()
    assert found.prefixes() == ["198.51.100.9/32"]
    assert reason(found, "203.0.113.9") == "NotInNamespace"


@pytest.mark.parametrize(
    "wrong", ["198.51.100.9", "198.51.100.9/24", "ten/8", "10.0.0.0/8 10.1.0.0/16", "a" * 5000]
)
def test_of_a_value_that_is_no_list_of_prefixes_the_last_valid_one_stays(wrong: str) -> None:
    found = cluster()
    namespace(found, "shop", "198.51.100.0/26")
    service(found, "198.51.100.9", "203.0.113.9")
    found.run()
    namespace(found, "shop", wrong)
    found.run()
    assert found.prefixes() == ["198.51.100.9/32"]
    (problem,) = [text for text in messages(found) if text.startswith("Namespace/shop: ")]
    assert "metadata.annotations[waggle.dev/service-addresses]: " in problem
    assert problem.endswith("its last valid value stays in effect")
    assert len(problem) < 300
    namespace(found, "shop", "203.0.113.0/24")
    found.run()
    assert found.prefixes() == ["203.0.113.9/32"]
    assert not [text for text in messages(found) if text.startswith("Namespace/shop: ")]


def test_a_value_that_was_never_valid_grants_nothing() -> None:
    found = cluster()
    namespace(found, "shop", "everything")
    service(found, "203.0.113.9")
    found.run()
    assert found.prefixes() == []
    namespace(found, "shop", "everything else")
    found.run()
    assert found.prefixes() == []


def test_a_changed_annotation_is_in_effect_at_once_for_its_namespace_alone() -> None:
    found = cluster()
    for number in range(20):
        service(found, f"198.51.100.{number}", name=f"s{number}", namespace=f"n{number}")
        namespace(found, f"n{number}", "198.51.100.0/24")
    found.run()
    assert len(found.prefixes()) == 20
    namespace(found, "n7", "203.0.113.0/24")
    assert found.run().objects == 1
    assert len(found.prefixes()) == 19
    namespace(found, "n7", "198.51.100.0/25")
    assert found.run().objects == 1
    assert len(found.prefixes()) == 20


def test_a_deleted_namespace_has_no_annotation() -> None:
    found = cluster()
    namespace(found, "shop", "")
    service(found, "203.0.113.9")
    found.run()
    found.delete(kinds.NAMESPACE, "shop")
    found.run()
    assert found.prefixes() == ["203.0.113.9/32"]


def test_an_annotation_never_permits_what_another_rule_rejects() -> None:
    found = cluster(advertise_allow=["198.51.100.0/24"])
    namespace(found, "shop", "0.0.0.0/0")
    service(found, "192.0.2.1", "203.0.113.9", "127.0.0.1", "198.51.100.9")
    found.run()
    assert found.prefixes() == ["198.51.100.9/32"]


def test_a_shared_address_is_that_of_the_namespaces_that_are_granted_it() -> None:
    found = cluster()
    namespace(found, "shop", "198.51.100.0/24")
    namespace(found, "bank", "203.0.113.0/24")
    service(found, "198.51.100.9")
    service(found, "198.51.100.9", namespace="bank")
    found.run()
    (instance,) = found.render()["instances"]
    (route,) = instance["peers"][0]["advertise"]
    assert [origin["namespace"] for origin in route["origins"]] == ["shop"]


def test_annotations_of_others_and_their_changes_do_not_concern_a_namespace() -> None:
    kept = {"waggle.dev/service-addresses": "198.51.100.0/24"}
    rows = [
        kinds.NAMESPACE.decode({"metadata": {"name": "shop", "annotations": {**kept, **more}}})
        for more in ({"example.org/a": "1"}, {"example.org/a": "2"}, {})
    ]
    assert rows[0] == rows[1] == rows[2]
    assert rows[0].metadata.annotations == kept


def test_services_may_use_any_address_without_a_rule() -> None:
    def sentences(found: Cluster) -> list[str]:
        found.run()
        return unrestricted(found.compiler.address_rules)

    (text,) = sentences(cluster())
    assert "--advertise-allow CIDR or --advertise-namespaces=annotated" in text
    assert not sentences(cluster(advertise_allow=["198.51.100.0/24"]))
    assert not sentences(cluster(advertise_namespaces="annotated"))
    found = cluster()
    namespace(found, "shop", "198.51.100.0/24")
    assert not sentences(found)


def unread(found: Cluster, *, is_unread: bool) -> None:
    table = found.resources.unread_objects
    with found.db.write(table) as txn:
        replace_all(txn, table, [ObjectName("Namespace", "", "")] if is_unread else [])


@pytest.mark.parametrize("mode", ["any", "annotated"])
def test_while_namespaces_cannot_be_read_the_strict_mode_permits_nothing_and_a_problem_says_it(
    mode: str,
) -> None:
    found = cluster(advertise_namespaces=mode)
    service(found, "198.51.100.9", "203.0.113.9")
    unread(found, is_unread=True)
    found.run()
    permitted = mode == "any"
    assert found.prefixes() == (["198.51.100.9/32", "203.0.113.9/32"] if permitted else [])
    effect = "any address" if permitted else "no address"
    text = "the annotations of Namespaces cannot be read"
    assert (
        f"Namespace: metadata.annotations[waggle.dev/service-addresses]: {text}: "
        f"Services may use {effect} until they can"
    ) in messages(found)
    if not permitted:
        assert any(f"{text}: that of namespace shop is not known" in m for m in messages(found))
    namespace(found, "shop", "198.51.100.0/26")
    unread(found, is_unread=False)
    found.run()
    assert found.prefixes() == ["198.51.100.9/32"]
    # What was known before it was forbidden stays in effect.
    known = messages(found)
    unread(found, is_unread=True)
    found.run()
    assert found.prefixes() == ["198.51.100.9/32"]
    assert messages(found) == known
