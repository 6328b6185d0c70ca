"""What ``waggle doctor`` reads: the answers of agents and of the API server, for `reconcilers.doctor`.

Each part is read for itself: one that cannot be read is absent, and stops none of the others.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
import time
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import urlsplit

import msgspec

from cells.api.client import Client
from cells.api.transport import AgentError
from reconcilers.dialect import Check, ClusterEvidence, Dialect, Evidence, NodeEvidence
from reconcilers.dialect.diagnosis import Access, Certificate
from resources.kind import Kind
from resources.kubernetes import Connection, KubernetesError, StatusError, Writer
from resources.kubernetes.discovery import Discovery
from waggle.fleet.agents import READER, read_objects
from waggle.fleet.statuses import read_statuses
from waggle.output import read_time

SECONDS: Final = 5.0
"""Of each request to the API server."""
RECEIVED_ROUTES: Final = "50"
WEBHOOKS: Final = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

T = TypeVar("T")


def read_node(client: Client, checks: Sequence[Check], node: str = "") -> NodeEvidence:
    """Return the evidence of one agent. Raises `AgentError`, also for an answer that no check reads."""
    before = time.time()
    answer = client.get("/v1/status", {})
    now = (before + time.time()) / 2
    status = answer["items"][0]
    evidence = NodeEvidence(
        node=node or str(status["node"]),
        version=str(answer.get("version", "")),
        clock_ahead=read_time(answer["generatedAt"]).timestamp() + 0.5 - now,
        status=status,
        host=_host(client),
        received=_rejected(client, status),
    )
    alone = Evidence(now=now, nodes=(evidence,))
    for check in checks:
        if check.needs != "cluster":
            try:
                list(check.run(alone))
            except Exception as error:
                text = f"its answer is not understood: {type(error).__name__}: {error}"
                raise AgentError("BadAnswer", text) from error
    return evidence


def _host(client: Client) -> Mapping[str, Any]:
    """Return the host; empty for an agent of a version without that path."""
    try:
        items: list[dict[str, Any]] = client.get("/v1/host", {})["items"]
    except AgentError:
        return {}
    return items[0] if items else {}


def _rejected(client: Client, status: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return some received routes of each peer of which none is accepted."""
    routes: list[dict[str, Any]] = []
    for peer in status.get("peers", ()):
        families = peer.get("received", ())
        if any(family["routes"] and not family.get("accepted") for family in families):
            query = {"table": "received", "peer": peer["name"], "instance": peer["instance"]}
            routes += client.get("/v1/routes", {**query, "limit": RECEIVED_ROUTES})["items"]
    return routes


class Cluster(NamedTuple):
    """What the evidence of an API server is read with."""

    connection: Connection
    namespace: str
    """Of the agents."""
    kubeconfig: str
    dialects: Sequence[type[Dialect]]
    kinds: Sequence[Kind[Any]]
    """The kinds whose objects checks read."""


async def read_cluster(cluster: Cluster) -> ClusterEvidence:
    """Return the evidence of the API server."""
    connection = cluster.connection
    try:
        await _version(connection)  # loads the configuration, and credentials
        started = time.monotonic()
        version, ahead = await _version(connection)
    except (KubernetesError, TimeoutError) as error:
        text = str(error) or f"the API server has not answered within {SECONDS:g} s"
        return ClusterEvidence(error=text)
    seconds = time.monotonic() - started
    none: frozenset[str] = frozenset()
    served, access, certificates, nodes, objects, statuses = await asyncio.gather(
        _or((none, none), _served(cluster)),
        _or((), _access(cluster)),
        _or((), _certificates(cluster)),
        _or(None, _nodes(connection)),
        _or({}, _objects(cluster)),
        _or(None, read_statuses(connection, cluster.dialects)),
    )
    return ClusterEvidence(
        version=version,
        answer_seconds=seconds,
        clock_ahead=ahead,
        served=served[0],
        missing=served[1],
        access=access,
        certificates=certificates,
        nodes=nodes,
        objects=objects,
        sessions={} if statuses is None else statuses.by_node,
    )


async def _or(default: T, work: Awaitable[T]) -> T:
    """Return the result of a part, or the default where it cannot be read."""
    try:
        async with asyncio.timeout(2 * SECONDS):
            return await work
    except (KubernetesError, AgentError, TimeoutError, OSError, ValueError):
        return default


async def _version(connection: Connection) -> tuple[str, float | None]:
    """Return the version of the API server, and by how much its clock is ahead."""
    async with (
        asyncio.timeout(SECONDS),
        connection.get("/version", (), silence=SECONDS) as response,
    ):
        body = msgspec.json.decode(await response.read(), type=dict[str, Any])
        if response.status != 200:
            raise StatusError(response.status, str(body.get("message", "")))
        date = response.headers.get("Date")
    ahead = None if date is None else parsedate_to_datetime(date).timestamp() + 0.5 - time.time()
    return str(body.get("gitVersion", "")), ahead


async def _served(cluster: Cluster) -> tuple[frozenset[str], frozenset[str]]:
    """Return the kinds that are served, and those that are not while others of their groups are."""
    discovery = Discovery(cluster.connection, SECONDS)
    kinds = {kind: None for dialect in cluster.dialects for kind in dialect.kinds if kind.custom}
    served = [kind for kind in kinds if await discovery.version_of(kind, max_age=60) is not None]
    groups = {kind.group for kind in served}
    missing = (kind for kind in kinds if kind.group in groups and kind not in served)
    return frozenset(map(_plural, served)), frozenset(map(_plural, missing))


def _plural(kind: Kind[Any]) -> str:
    return f"{kind.plural}.{kind.group}"


async def _access(cluster: Cluster) -> tuple[Access, ...]:
    writer = Writer(cluster.connection, READER, silence=SECONDS)
    wanted = (("list", "pods"), ("create", "pods/exec"), ("get", "pods/exec"))
    reviews = []
    for verb, resource in wanted:
        name, _, subresource = resource.partition("/")
        attributes = {"namespace": cluster.namespace, "verb": verb, "resource": name}
        attributes |= {"subresource": subresource} if subresource else {}
        content = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        answer = await writer.create(REVIEWS, content)
        allowed = bool(answer.get("status", {}).get("allowed"))
        reviews.append(Access(verb, resource, cluster.namespace, allowed))
    return tuple(reviews)


async def _nodes(connection: Connection) -> frozenset[str]:
    writer = Writer(connection, READER, silence=SECONDS)
    return frozenset(await writer.names("/api/v1/nodes"))


async def _objects(cluster: Cluster) -> dict[str, list[dict[str, Any]]]:
    async def of_kind(kind: Kind[Any]) -> list[dict[str, Any]]:
        return await read_objects(cluster.connection, kind.path(kind.versions[0]))

    lists = await asyncio.gather(*(_or([], of_kind(kind)) for kind in cluster.kinds))
    return {kind.name: objects for kind, objects in zip(cluster.kinds, lists, strict=True)}


async def _certificates(cluster: Cluster) -> tuple[Certificate, ...]:
    """Return the API server's certificate, the person's own, and the authority of the webhook."""
    own = _or([], asyncio.to_thread(_of_kubeconfig, cluster.kubeconfig))
    server = _or([], asyncio.to_thread(_of_server, cluster.connection.server))
    webhook = _or([], _of_webhooks(cluster.connection))
    return tuple(
        certificate for part in await asyncio.gather(own, server, webhook) for certificate in part
    )


def _of_server(url: str) -> list[Certificate]:
    parts = urlsplit(url)
    if parts.scheme != "https" or parts.hostname is None:
        return []
    pem = ssl.get_server_certificate((parts.hostname, parts.port or 443), timeout=SECONDS)
    remedy = "renew it: kubeadm certs renew apiserver, or as your distribution does"
    return _parsed("the API server's certificate", pem.encode(), remedy)


def _of_kubeconfig(path: str) -> list[Certificate]:
    import yaml

    file = Path(path.split(":", maxsplit=1)[0]).expanduser()
    config = yaml.safe_load(file.read_text())
    certificates = []
    for user in config.get("users") or ():
        credentials = user.get("user") or {}
        data = credentials.get("client-certificate-data")
        name = credentials.get("client-certificate")
        if data or name:
            pem = base64.b64decode(data) if data else (file.parent / str(name)).read_bytes()
            what = f"the client certificate of user {user.get('name')} in {path}"
            certificates += _parsed(what, pem, "log in again, or renew it (kubeadm certs renew)")
    return certificates


async def _of_webhooks(connection: Connection) -> list[Certificate]:
    label = [("labelSelector", "app.kubernetes.io/part-of=waggle")]
    certificates = []
    for value in await read_objects(connection, WEBHOOKS, label):
        for webhook in value.get("webhooks", ()):
            if bundle := webhook.get("clientConfig", {}).get("caBundle"):
                what = f"the authority of the webhook {webhook.get('name')}"
                remedy = "the leading operator renews it: see its log and health"
                certificates += _parsed(what, base64.b64decode(bundle), remedy)
    return certificates


def _parsed(name: str, pem: bytes, remedy: str) -> list[Certificate]:
    from cryptography import x509

    certificates = x509.load_pem_x509_certificates(pem)
    expires = min(certificate.not_valid_after_utc.timestamp() for certificate in certificates)
    return [Certificate(name, expires, remedy)]


def of_fleet(
    by_node: Mapping[str, NodeEvidence], failed: Iterable[Any]
) -> tuple[NodeEvidence, ...]:
    """Return the evidence of all nodes, those without an answer included."""
    answered = [msgspec.structs.replace(node, node=name) for name, node in by_node.items()]
    silent = [NodeEvidence(node=failure.node, error=failure.message) for failure in failed]
    return tuple(sorted([*answered, *silent], key=lambda node: node.node))
