"""The webhook of two operators on a real API server, which calls both for each object."""

from __future__ import annotations

import datetime as dt
import itertools
import json
import ssl
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

from resources.frrk8s.kinds import FRR_CONFIGURATION, FRRK8S_CONFIGURATION
from resources.kubernetes.certificates import AUTHORITY_RENEWAL, Certificates, from_secret
from tests.reconcilers.admission.claims import CLAIM, claim
from tests.reconcilers.frrk8s.build import configuration as configuration_of
from tests.reconcilers.frrk8s.build import router
from tests.support.daemon import Daemon
from tests.support.kubernetes.accounts import access, define, grant, put, rules, undefine
from tests.support.kubernetes.server import KubeApiServer
from tests.support.ports import free_port
from tests.support.wait import eventually

pytestmark = [pytest.mark.apiserver, pytest.mark.program, pytest.mark.timeout(300)]

CLAIMS = "/apis/claims.example/v1/claims"
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
SECRET = "/api/v1/namespaces/kube-system/secrets/waggle-webhook"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/waggle-operator"
FRR_CONFIGURATIONS = FRR_CONFIGURATION.path(FRR_CONFIGURATION.versions[0], "frr-k8s-system")
ACCOUNT = "operator-with-webhook"
RULES = [
    {"apiGroups": [CLAIM.group], "resources": [CLAIM.plural], "verbs": ["list", "watch"]},
    {
        "apiGroups": [FRR_CONFIGURATION.group],
        "resources": [FRR_CONFIGURATION.plural, FRRK8S_CONFIGURATION.plural],
        "verbs": ["get", "list", "watch"],
    },
    {
        "apiGroups": [FRR_CONFIGURATION.group],
        "resources": [f"{FRR_CONFIGURATION.plural}/status"],
        "verbs": ["patch"],
    },
    {
        "apiGroups": ["admissionregistration.k8s.io"],
        "resources": ["validatingwebhookconfigurations"],
        "resourceNames": ["waggle"],
        "verbs": ["get", "patch"],
    },
]
RULES_OF_NAMESPACE = [
    {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]},
    {
        "apiGroups": [""],
        "resources": ["secrets"],
        "resourceNames": ["waggle-webhook"],
        "verbs": ["get", "update"],
    },
]


def configuration(ports: list[int], policy: str) -> dict[str, Any]:
    """Spell a configuration that calls the webhook of every port."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "waggle"},
        "webhooks": [
            {
                "name": f"{dialect}-{number}.waggle.dev",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": policy,
                "timeoutSeconds": 5,
                "clientConfig": {"url": f"https://127.0.0.1:{port}/validate/{dialect}"},
                "rules": [
                    {
                        "apiGroups": [kind.group],
                        "apiVersions": list(kind.versions),
                        "resources": [kind.plural],
                        "operations": ["CREATE", "UPDATE"],
                    }
                ],
            }
            for number, port in enumerate(ports)
            for dialect, kind in (("claims", CLAIM), ("frrk8s", FRR_CONFIGURATION))
        ],
    }


@pytest.fixture
def server(apiserver: KubeApiServer) -> Iterator[KubeApiServer]:
    """Define Claims, and put in two Nodes."""
    made = define(apiserver, [CLAIM, FRR_CONFIGURATION, FRRK8S_CONFIGURATION])
    metadata = {"name": "frr-k8s-system"}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
    put(apiserver, "/api/v1/namespaces", namespace)
    for name in ("n1", "n2"):
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
        put(apiserver, "/api/v1/nodes", node)
    for scope, more in (("Cluster", RULES), ("", RULES_OF_NAMESPACE)):
        grant(apiserver, ACCOUNT, scope, [*rules("operator", scope), *more])
    yield apiserver
    apiserver.request("DELETE", f"{CONFIGURATIONS}/waggle")
    undefine(apiserver, made)
    for path in ("/api/v1/nodes/n1", "/api/v1/nodes/n2", SECRET, LEASE):
        apiserver.request("DELETE", path)


@pytest.fixture
def operators(server: KubeApiServer, tmp_path: Path) -> Iterator[tuple[list[int], list[Daemon]]]:
    """Two operators, of which one leads; both serve."""
    kubeconfig = access(server, ACCOUNT, tmp_path / "kubeconfig")
    ports = [free_port("127.0.0.1") for _ in range(2)]
    daemons = [
        Daemon(
            f"operator-{port}",
            [
                *(sys.executable, "-m", "tests.reconcilers.admission.claims"),
                *("--enable-cell", "claims", "--enable-cell", "frrk8s"),
                *("--disable-cell", "cilium"),
                *("--kubeconfig", kubeconfig, "--webhook", str(port)),
                *("--operator-identity", f"operator-{port}"),
                *("--lease-duration-seconds", "300", "--renew-deadline-seconds", "290"),
            ],
            log=tmp_path / f"operator-{port}.log",
        )
        for port in ports
    ]
    for daemon in daemons:
        daemon.start()
    yield ports, daemons
    for daemon in daemons:
        daemon.stop()


def apply(server: KubeApiServer, value: dict[str, Any]) -> tuple[bool, str]:
    """Apply a Claim; returns whether it was stored, and the message of the API server."""
    path = f"{CLAIMS}/{value['metadata']['name']}?fieldManager=person&force=true"
    answer = server.request("PATCH", path, value, kind="apply-patch+yaml")
    return answer.ok, str(answer.body.get("message", ""))


def stored(server: KubeApiServer, value: dict[str, Any]) -> None:
    ok, message = apply(server, value)
    assert ok, message


def frr_configuration(name: str, asn: int) -> str:
    """Spell an FRRConfiguration with a neighbour of an AS."""
    neighbor = {"address": "203.0.113.9", "asn": asn}
    value = configuration_of(name, {"bgp": {"routers": [router(neighbor)]}})
    del value["metadata"]["creationTimestamp"]
    return json.dumps(value)


def check_kubectl(server: KubeApiServer) -> None:
    """What a person sees of a conflict, and of objects that are free of it."""

    def kubectl_apply(text: str) -> str:
        try:
            return server.kubectl("apply", "-f", "-", text=text)
        except RuntimeError as error:
            return str(error)

    def wide() -> dict[str, list[str]]:
        text = server.kubectl("get", "frrconfiguration", "-n", "frr-k8s-system", "-o", "wide")
        head, *rows = (line.split() for line in text.splitlines())
        assert head == ["NAME", "ACCEPTED", "CONFLICTING", "PARTIALLY", "AGE"]
        return {name: columns for name, *columns in rows}

    assert "frrconfiguration.frrk8s.metallb.io/x created" in kubectl_apply(
        frr_configuration("x", 64950)
    )

    def refused() -> None:
        message = kubectl_apply(frr_configuration("y", 64951))
        assert "denied the request" in message
        assert "FRRConfiguration/frr-k8s-system/x, FRRConfiguration/frr-k8s-system/y" in message
        assert "(nodes n1, n2)" in message

    eventually(refused)
    assert "/y created" in kubectl_apply(frr_configuration("y", 64950))

    def accepted() -> None:
        found = wide()
        assert {name: columns[0] for name, columns in found.items()} == {"x": "True", "y": "True"}

    eventually(accepted)


def authority_near_its_end(stored: Certificates) -> Certificates:
    """Return the same with an authority of the same name and key that is due for renewal."""
    present = x509.load_pem_x509_certificates(stored.authorities.encode())[0]
    key = serialization.load_pem_private_key(stored.authority_key.encode(), password=None)
    builder = (
        x509.CertificateBuilder()
        .subject_name(present.subject)
        .issuer_name(present.issuer)
        .public_key(present.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(present.not_valid_before_utc)
        .not_valid_after(dt.datetime.now(dt.UTC) + AUTHORITY_RENEWAL - dt.timedelta(days=1))
    )
    for extension in present.extensions:
        builder = builder.add_extension(extension.value, extension.critical)
    old = builder.sign(key, hashes.SHA256())  # type: ignore[arg-type]
    pem = old.public_bytes(serialization.Encoding.PEM).decode()
    return msgspec.structs.replace(stored, authorities=pem)


def served(port: int) -> x509.Certificate:
    """Return the certificate that a webhook presents."""
    return x509.load_pem_x509_certificate(ssl.get_server_certificate(("127.0.0.1", port)).encode())


def check_renewal(server: KubeApiServer, ports: list[int]) -> None:
    """A new authority and what it issues come into use while requests go on; none is refused."""
    before = [served(port).serial_number for port in ports]
    secret = server.request("GET", SECRET).body
    stored = from_secret(secret["data"])
    assert stored is not None
    numbers, renewed = itertools.count(), threading.Event()

    def ask(number: int) -> str:
        """Create or update; returns what the API server refused it for."""
        value = json.loads(frr_configuration("x", 64950))
        if number % 2:
            value["metadata"]["name"] = f"load-{number}"
            answer = server.request("POST", f"{FRR_CONFIGURATIONS}?dryRun=All", value)
        else:
            value["metadata"]["annotations"] = {"load": str(number)}
            path = f"{FRR_CONFIGURATIONS}/x?dryRun=All"
            answer = server.request("PATCH", path, value, kind="merge-patch+json")
        return "" if answer.ok else str(answer.body.get("message"))

    def load() -> list[str]:
        answers = []
        while not renewed.is_set():
            answers.append(ask(next(numbers)))
        return answers

    def of_the_new_authority() -> None:
        found = from_secret(server.request("GET", SECRET).body["data"])
        assert found is not None
        fresh, former = x509.load_pem_x509_certificates(found.authorities.encode())
        hooks = server.request("GET", f"{CONFIGURATIONS}/waggle").body["webhooks"]
        assert {hook["clientConfig"]["caBundle"] for hook in hooks} == {found.bundle}
        presented = [served(port) for port in ports]
        assert [one.issuer for one in presented] == [fresh.subject] * len(ports)
        assert fresh.subject != former.subject
        assert not {one.serial_number for one in presented} & set(before)

    with ThreadPoolExecutor(8) as pool:
        loads = [pool.submit(load) for _ in range(3)]
        try:
            secret["data"] = authority_near_its_end(stored).data
            assert server.request("PUT", SECRET, secret).ok
            eventually(of_the_new_authority, interval=0.1)
            # More at once than before need new connections to the webhooks.
            after = list(pool.map(ask, itertools.islice(numbers, 20)))
        finally:
            renewed.set()
        answers = [each.result() for each in loads]
    assert all(answers), "a client has sent no request"
    assert [message for each in (*answers, after) for message in each if message] == []


def test_a_conflict_is_refused_by_both_replicas_and_what_is_repaired_is_not(
    server: KubeApiServer, operators: tuple[list[int], list[Daemon]]
) -> None:
    ports, daemons = operators
    put(server, CONFIGURATIONS, configuration(ports, "Fail"))
    # Until the certificate is published and both serve, Fail refuses everything.
    eventually(lambda: stored(server, claim("one", 1)), context=daemons[0].tail)

    def both_see_it() -> None:
        ok, message = apply(server, claim("two", 2))
        assert not ok
        assert "Claim/one, Claim/two: spec.value: port: 1 and 2 (nodes n1, n2)" in message

    eventually(both_see_it)
    stored(server, claim("two", 1))
    check_kubectl(server)
    check_renewal(server, ports)

    leader, follower = daemons
    follower.stop()
    ok, message = apply(server, claim("three", 1))
    assert not ok, "Fail: one of the two webhooks does not answer"
    assert "failed calling webhook" in message
    put(server, CONFIGURATIONS, configuration(ports, "Ignore"))
    eventually(lambda: stored(server, claim("three", 1)))
    ok, message = apply(server, claim("three", 3))
    assert not ok, "the other one still reviews"
    leader.stop()
    eventually(lambda: stored(server, claim("three", 3)))
