"""The policies of the chart for addresses of Services, on an API server: what is admitted."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml

from tests.support.helm import Helm
from tests.support.kubernetes.accounts import RBAC
from tests.support.kubernetes.server import Answer, KubeApiServer
from tests.support.wait import eventually

pytestmark = [pytest.mark.apiserver, pytest.mark.helm, pytest.mark.timeout(300)]

KEY = "waggle.dev/service-addresses"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
NAMESPACES = "/api/v1/namespaces"
TENANT = "tenant"


def policies(helm: Helm, **values: object) -> list[dict[str, Any]]:
    found = helm.template({"addressPolicy": {"enabled": True}, **values})
    return [one for one in found if one["metadata"]["name"].endswith("-addresses")]


class Tenant:
    """A user who may write all Services, and their status, of one namespace, and the Namespace."""

    def __init__(self, server: KubeApiServer, name: str, annotation: str | None) -> None:
        self.server = server
        self.name = name
        annotations = {} if annotation is None else {KEY: annotation}
        metadata = {"name": name, "annotations": annotations}
        # Another test may have left one of this name, without the annotation.
        _delete(server, name)
        self._make(NAMESPACES, {"metadata": metadata})
        self._make(f"{NAMESPACES}/{name}/serviceaccounts", {"metadata": {"name": TENANT}})
        everything = [
            {"apiGroups": [""], "resources": ["services", "services/status"], "verbs": ["*"]},
            {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "patch", "update"]},
        ]
        role = {"metadata": {"name": TENANT}, "rules": everything}
        subject = {"kind": "ServiceAccount", "name": TENANT, "namespace": name}
        binding = {
            "metadata": {"name": TENANT},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": TENANT},
            "subjects": [subject],
        }
        self._make(f"{RBAC}/namespaces/{name}/roles", role)
        self._make(f"{RBAC}/namespaces/{name}/rolebindings", binding)
        self.token = server.token(TENANT, name)
        self.services = f"{NAMESPACES}/{name}/services"

    def _make(self, path: str, value: Mapping[str, object]) -> None:
        answer = self.server.request("POST", path, value)
        # Of a deleted Namespace objects may be left: no controller runs that deletes them.
        assert answer.ok or answer.status == 409, answer.body

    def create(self, service: str, *external: str, **query: str) -> Answer:
        ports = [{"port": 80}]
        spec = {"type": "LoadBalancer", "externalIPs": list(external), "ports": ports}
        suffix = "?dryRun=All" if query.get("dry") else ""
        value = {"metadata": {"name": service}, "spec": spec}
        return self.server.request("POST", f"{self.services}{suffix}", value, token=self.token)

    def patch(self, service: str, value: Mapping[str, object], of: str = "") -> Answer:
        path = f"{self.services}/{service}{of}"
        return self.server.request("PATCH", path, value, "merge-patch+json", token=self.token)

    def ingress(self, service: str, *addresses: str) -> Answer:
        status = {"loadBalancer": {"ingress": [{"ip": address} for address in addresses]}}
        return self.patch(service, {"status": status}, "/status")

    def annotate(self, value: str | None, token: str | None = None) -> Answer:
        body = {"metadata": {"annotations": {KEY: value}}}
        path = f"{NAMESPACES}/{self.name}"
        return self.server.request(
            "PATCH", path, body, "merge-patch+json", token=token or self.token
        )


def denied(answer: Answer, text: str) -> None:
    assert answer.status in (403, 422), answer.body
    assert text in answer.body["message"], answer.body


@pytest.fixture
def applied(
    apiserver: KubeApiServer, helm: Helm, request: pytest.FixtureRequest
) -> Iterator[KubeApiServer]:
    """Apply the policies, and wait until they are in force."""
    objects = policies(helm, **getattr(request, "param", {}))
    apiserver.kubectl("apply", "-f", "-", text=yaml.safe_dump_all(objects))
    probe = Tenant(apiserver, "probe", "198.51.100.0/26")
    values = (f"192.0.2.{number}/32" for number in itertools.count())
    try:
        eventually(lambda: denied(probe.create("x", "203.0.113.1", dry="yes"), "may not use"))
        # Another value each time: what is no change is admitted.
        eventually(lambda: denied(probe.annotate(next(values)), "grant-addresses"))
        yield apiserver
    finally:
        for one in objects:
            binding = one["kind"].endswith("Binding")
            plural = f"validatingadmissionpolic{'ybindings' if binding else 'ies'}"
            apiserver.request("DELETE", f"{ADMISSION}/{plural}/{one['metadata']['name']}")
        for name in ("probe", "shop", "free"):
            _delete(apiserver, name)


def _delete(server: KubeApiServer, name: str) -> None:
    """Delete a Namespace; no controller runs that removes its finalizer."""
    path = f"{NAMESPACES}/{name}"
    for service in server.request("GET", f"{path}/services").body.get("items", ()):
        server.request("DELETE", f"{path}/services/{service['metadata']['name']}")
    found = server.request("GET", path)
    if found.ok:
        server.request("DELETE", path)
        body = {**found.body, "spec": {"finalizers": []}}
        body["metadata"].pop("resourceVersion")
        server.request("PUT", f"{path}/finalize", body)


def test_a_tenant_uses_the_addresses_of_the_namespace_and_cannot_grant_itself_others(
    applied: KubeApiServer,
) -> None:
    shop = Tenant(applied, "shop", "198.51.100.0/26, 2001:db8:10::/64")
    assert shop.create("good", "198.51.100.9", "2001:db8:10::1").ok
    denied(
        shop.create("bad", "198.51.100.9", "203.0.113.9"),
        "namespace shop may not use 203.0.113.9: it may use 198.51.100.0/26, 2001:db8:10::/64 "
        f"(annotation {KEY})",
    )
    denied(shop.create("bad", "203.0.113.009"), "may not use 203.0.113.009")
    denied(shop.patch("good", {"spec": {"externalIPs": ["8.8.8.8"]}}), "may not use 8.8.8.8")
    assert shop.ingress("good", "198.51.100.10").ok
    denied(shop.ingress("good", "198.51.100.10", "203.0.113.10"), "may not use 203.0.113.10")

    denied(shop.annotate("0.0.0.0/0"), "only users with the verb grant-addresses")
    denied(shop.annotate(None), "only users with the verb grant-addresses")
    narrowed = applied.request(
        "PATCH",
        f"{NAMESPACES}/shop",
        {"metadata": {"annotations": {KEY: "192.0.2.0/24"}}},
        "merge-patch+json",
    )
    assert narrowed.ok, narrowed.body
    # What is there already stops no controller.
    assert shop.patch("good", {"metadata": {"labels": {"a": "b"}}}).ok
    assert shop.ingress("good", "198.51.100.10").ok
    denied(shop.create("more", "198.51.100.11"), "it may use 192.0.2.0/24")

    for wrong in ("192.0.2.9", "192.0.2.1/24", "ten"):
        answer = applied.request(
            "PATCH",
            f"{NAMESPACES}/shop",
            {"metadata": {"annotations": {KEY: wrong}}},
            "merge-patch+json",
        )
        denied(answer, "has to be prefixes without host bits")
    free = Tenant(applied, "free", None)
    assert free.create("any", "203.0.113.77").ok
    denied(free.create("wrong", "203.0.113.007"), "203.0.113.007: it is no valid address")
    denied(free.annotate("0.0.0.0/0"), "grant-addresses")


@pytest.mark.parametrize(
    "applied", [{"serviceAddresses": {"namespaces": "annotated"}}], indirect=True
)
def test_a_namespace_without_the_annotation_uses_nothing_where_it_is_required(
    applied: KubeApiServer,
) -> None:
    free = Tenant(applied, "free", None)
    text = f"namespace free may not use 203.0.113.77: it has no annotation {KEY}"
    # The policies of another test may be in force yet: they are objects of the same names.
    eventually(lambda: denied(free.create("any", "203.0.113.77", dry="yes"), text))
    denied(free.create("any", "203.0.113.77"), text)
    assert free.create("inside").ok
