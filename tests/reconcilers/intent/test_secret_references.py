"""Which Secrets the objects of each dialect refer to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from reconcilers.compile_manifests import kinds_of
from reconcilers.dialect import Dialect, DialectSecrets
from reconcilers.intent.secret_references import SecretReferences
from resources.meta import ObjectKey
from resources.tables import Tables
from statedb import Database
from waggle.dialects import DIALECTS

NEIGHBOR = {"asn": 65001, "address": "192.0.2.1", "passwordSecret": {"name": "k"}}
FRR = {"bgp": {"routers": [{"asn": 64512, "neighbors": [NEIGHBOR]}]}}
PEER = {
    "myASN": 64512,
    "peerASN": 65001,
    "peerAddress": "192.0.2.1",
    "passwordSecret": {"name": "k"},
}
POLICY = {
    "nodeSelector": {},
    "localASN": 64512,
    "bgpPeers": [{"address": "192.0.2.1", "asn": 65001}],
}


def obj(version: str, kind: str, spec: dict[str, Any], namespace: str = "") -> dict[str, Any]:
    metadata = {"name": "x", **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def references(
    *objects: dict[str, Any], namespace: str = "kube-system", unread: str = ""
) -> frozenset[ObjectKey] | None:
    """Store objects, and return what all dialects refer to."""
    types = DIALECTS.load()
    db = Database()
    tables = Tables(db, kinds_of(types))
    if unread:
        kind = tables.kinds.named(unread)
        assert kind is not None
        tables.of(kind).register_initializer("test")
    for value in objects:
        kind = tables.kinds.find(value["apiVersion"], value["kind"])
        assert kind is not None
        with db.write(tables.of(kind)) as txn:
            tables.of(kind).upsert(txn, kind.decode(value))
    dialects = [dialect(tables, dialect.options_type()) for dialect in types]

    def fail(name: str, error: Exception) -> None:
        raise AssertionError(f"{name}: {error}")

    return SecretReferences(tables, dialects, tables.kinds, namespace, fail).find(db.snapshot())


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (
            obj("cilium.io/v2", "CiliumBGPPeerConfig", {"authSecretRef": "k"}),
            [("kube-system", "k")],
        ),
        (obj("cilium.io/v2", "CiliumBGPPeerConfig", {}), [("kube-system", "")]),
        (
            obj("frrk8s.metallb.io/v1beta1", "FRRConfiguration", FRR, "frr-k8s-system"),
            [("frr-k8s-system", "k")],
        ),
        (obj("frrk8s.metallb.io/v1beta1", "FRRConfiguration", FRR, "shop"), []),
        (obj("metallb.io/v1beta2", "BGPPeer", PEER, "metallb-system"), [("metallb-system", "k")]),
        (obj("metallb.io/v1beta2", "BGPPeer", PEER, "shop"), []),
        (
            obj("crd.antrea.io/v1alpha1", "BGPPolicy", POLICY),
            [("kube-system", "antrea-bgp-passwords")],
        ),
    ],
)
def test_the_secrets_of_each_kind(value: dict[str, Any], found: Iterable[ObjectKey]) -> None:
    assert references(value) == frozenset(found)


def test_nothing_is_known_before_all_kinds_are_read() -> None:
    value = obj("cilium.io/v2", "CiliumBGPPeerConfig", {"authSecretRef": "k"})
    assert references(value, unread="CiliumBGPPeeringPolicy") is None
    assert references() == frozenset()


def test_a_dialect_that_fails_is_reported_and_does_not_hide_the_others() -> None:
    def broken(*_: object) -> Iterable[ObjectKey]:
        raise ValueError("a defect")

    class Broken(Dialect):
        name, title, kinds = "broken", "Broken", ()
        extensions = (DialectSecrets(broken),)

    class Good(Dialect):
        name, title, kinds = "good", "Good", ()
        extensions = (DialectSecrets(lambda *_: [("bgp", "k")]),)

    db = Database()
    tables = Tables(db, kinds_of([]))
    dialects = [one(tables, one.options_type()) for one in (Broken, Good)]
    failed: list[str] = []
    found = SecretReferences(tables, dialects, (), "", lambda name, _: failed.append(name)).find(
        db.snapshot()
    )
    assert found == frozenset({("bgp", "k")})
    assert failed == ["broken"]


def test_of_a_dialect_that_fails_the_last_references_are_kept() -> None:
    def named(dialect: Sometimes, *_: object) -> Iterable[ObjectKey]:
        yield "bgp", "k"
        if dialect.fails:
            raise ValueError("a defect")

    class Sometimes(Dialect):
        name, title, kinds = "sometimes", "Sometimes", ()
        extensions = (DialectSecrets(named),)
        fails = False

    db = Database()
    tables = Tables(db, kinds_of([]))
    dialect = Sometimes(tables, Sometimes.options_type())
    failed: list[str] = []
    references = SecretReferences(tables, [dialect], (), "", lambda name, _: failed.append(name))
    assert references.find(db.snapshot()) == frozenset({("bgp", "k")})
    dialect.fails = True
    assert references.find(db.snapshot()) == frozenset({("bgp", "k")})
    assert failed == ["sometimes"]
