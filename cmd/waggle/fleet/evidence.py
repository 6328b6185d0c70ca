"""Evidence of ``waggle doctor``: answers of agents and of the API server, for `reconcilers.doctor`.

Each part is read for itself: an unreadable part is absent, and stops none of the others.
"""

from __future__ import annotations

import asyncio
import base64
import os
import ssl
import time
from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sequence
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
from waggle.fleet.agents import DISCOVERY_AGE, READER, read_kind, read_objects
from waggle.fleet.statuses import StatusSessions, read_statuses
from waggle.output import read_time

SECONDS: Final = 5.0
"""Of each request to the API server."""
CONNECT_SECONDS: Final = 15.0
"""Of the first one, with what kubeconfigs run for credentials."""
CLUSTER_SECONDS: Final = CONNECT_SECONDS + 4 * SECONDS
"""Of all of them."""
RECEIVED_ROUTES: Final = "50"
MOST_PEERS: Final = 8
"""Peers of a node whose received routes are read, a request each."""
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
    """Return some received routes of the first peers of which none is accepted."""
    without = [
        peer
        for peer in status.get("peers", ())
        if any(f["routes"] and not f.get("accepted") for f in peer.get("received", ()))
    ]
    routes: list[dict[str, Any]] = []
    for peer in without[:MOST_PEERS]:
        query = {"table": "received", "peer": peer["name"], "instance": peer["instance"]}
        try:
            routes += client.get("/v1/routes", {**query, "limit": RECEIVED_ROUTES})["items"]
        except AgentError:
            break  # the status is evidence enough
    return routes


class Cluster(NamedTuple):
    """The access to an API server, for its evidence."""

    connection: Connection
    namespace: str
    """Of the agents."""
    kubeconfig: str
    context: str | None
    dialects: Sequence[type[Dialect]]
    kinds: Sequence[Kind[Any]]
    """The kinds whose objects checks read."""


async def read_cluster(cluster: Cluster) -> ClusterEvidence:
    """Return the evidence of the API server."""
    connection = cluster.connection
    try:
        # Loads the configuration, and credentials.
        await _version(connection, CONNECT_SECONDS)
        started = time.monotonic()
        version, ahead = await _version(connection, SECONDS)
    except TimeoutError:
        return ClusterEvidence(error="the API server does not answer in time")
    except (KubernetesError, ValueError) as error:
        return ClusterEvidence(error=str(error))
    seconds = time.monotonic() - started
    none: frozenset[str] = frozenset()
    unread: dict[str, str] = {}
    discovery = Discovery(connection, SECONDS)
    no_sessions = StatusSessions({}, [])
    served, access, certificates, nodes, objects, statuses = await asyncio.gather(
        _or((none, none), _served(cluster, discovery), unread, "kinds"),
        _or((), _access(cluster), unread, "rights"),
        _certificates(cluster, unread),
        _or(None, _nodes(connection), unread, "nodes"),
        _objects(cluster, discovery, unread),
        _or(no_sessions, read_statuses(connection, cluster.dialects), unread, "statuses"),
    )
    if statuses.errors:
        unread["statuses"] = statuses.errors[0]
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
        sessions=statuses.by_node,
        unread=unread,
    )


async def _or(default: T, work: Awaitable[T], unread: dict[str, str], part: str) -> T:
    """Return the result of a part; where it cannot be read the default, and add why to ``unread``."""
    try:
        async with asyncio.timeout(2 * SECONDS):
            return await work
    except TimeoutError:
        unread[part] = "no answer in time"
    except AgentError as error:
        if error.code != "NotServed":
            unread[part] = str(error)
    except Exception as error:  # noqa: BLE001  what other programs answer and write
        unread[part] = f"{type(error).__name__}: {error}"
    return default


async def _version(connection: Connection, seconds: float) -> tuple[str, float | None]:
    """Return the version of the API server, and by how much its clock is ahead."""
    async with (
        asyncio.timeout(seconds),
        connection.get("/version", (), silence=seconds) as response,
    ):
        body = msgspec.json.decode(await response.read(), type=dict[str, Any])
        if response.status != 200:
            raise StatusError(response.status, str(body.get("message", "")))
        date = response.headers.get("Date")
    ahead = None if date is None else parsedate_to_datetime(date).timestamp() + 0.5 - time.time()
    return str(body.get("gitVersion", "")), ahead


async def _served(cluster: Cluster, discovery: Discovery) -> tuple[frozenset[str], frozenset[str]]:
    """Return the served kinds, and kinds without which a dialect with others does nothing."""
    kinds = {kind: None for dialect in cluster.dialects for kind in dialect.kinds if kind.custom}
    kinds |= dict.fromkeys(cluster.kinds)
    versions = {kind: await discovery.version_of(kind, max_age=DISCOVERY_AGE) for kind in kinds}
    served = [kind for kind, version in versions.items() if version is not None]
    # Others are optional, or of later versions than that of the cluster.
    groups = {kind.group for kind in served if kind in cluster.kinds}
    missing = (kind for kind in cluster.kinds if kind.group in groups and kind not in served)
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


async def _objects(
    cluster: Cluster, discovery: Discovery, unread: dict[str, str]
) -> dict[str, list[dict[str, Any]]]:
    lists = await asyncio.gather(
        *(
            _or([], read_kind(cluster.connection, discovery, kind), unread, "objects")
            for kind in cluster.kinds
        )
    )
    return {kind.name: objects for kind, objects in zip(cluster.kinds, lists, strict=True)}


async def _certificates(cluster: Cluster, unread: dict[str, str]) -> tuple[Certificate, ...]:
    """Return the API server's certificate, the person's own, and the authority of the webhook."""
    sources: tuple[Awaitable[list[Certificate]], ...] = (
        asyncio.to_thread(of_kubeconfig, cluster.kubeconfig, cluster.context),
        asyncio.to_thread(_of_server, cluster.connection.server),
        _of_webhooks(cluster.connection),
    )
    parts = await asyncio.gather(*(_or([], work, unread, "certificates") for work in sources))
    return tuple(certificate for part in parts for certificate in part)


def _of_server(url: str) -> list[Certificate]:
    parts = urlsplit(url)
    if parts.scheme != "https" or parts.hostname is None:
        return []
    pem = ssl.get_server_certificate((parts.hostname, parts.port or 443), timeout=SECONDS)
    remedy = "renew it: kubeadm certs renew apiserver, or as your distribution does"
    return [_parsed("the API server's certificate", pem.encode(), remedy)]


def of_kubeconfig(path: str, context: str | None) -> list[Certificate]:
    """Return the certificate of the context's user: others are of other clusters and people."""
    import yaml

    files = [file for name in path.split(os.pathsep) if (file := Path(name).expanduser()).is_file()]
    configs = [(file, yaml.safe_load(file.read_text()) or {}) for file in files]

    def named(kind: str, name: object) -> Iterator[tuple[Path, dict[str, Any]]]:
        for file, config in configs:
            for entry in config.get(kind) or ():
                if entry.get("name") == name:
                    yield file, entry

    chosen = context or next(
        (c["current-context"] for _, c in configs if c.get("current-context")), ""
    )
    for _, of_context in named("contexts", chosen):
        name = of_context["context"].get("user")
        # Of several entries of one name the first one is used.
        for file, user in named("users", name):
            credentials = user.get("user") or {}
            data = credentials.get("client-certificate-data")
            if not data and not credentials.get("client-certificate"):
                return []
            pem = (
                base64.b64decode(data)
                if data
                else (file.parent / str(credentials["client-certificate"])).read_bytes()
            )
            what = f"the client certificate of user {name} in {file}"
            return [_parsed(what, pem, "log in again, or renew it (kubeadm certs renew)")]
    return []


async def _of_webhooks(connection: Connection) -> list[Certificate]:
    label = [("labelSelector", "app.kubernetes.io/part-of=waggle")]
    certificates = []
    for value in await read_objects(connection, WEBHOOKS, label):
        for webhook in value.get("webhooks", ()):
            if bundle := webhook.get("clientConfig", {}).get("caBundle"):
                what = f"the authority of the webhook {webhook.get('name')}"
                remedy = "the leading operator renews it: see its log and health"
                certificates.append(_parsed(what, base64.b64decode(bundle), remedy))
    return certificates


def _parsed(name: str, pem: bytes, remedy: str) -> Certificate:
    """Return the first certificate of a chain, or the newest of several authorities."""
    from cryptography import x509

    parsed = x509.load_pem_x509_certificates(pem)
    if all(authority.subject == authority.issuer for authority in parsed):
        parsed.sort(key=lambda authority: authority.not_valid_after_utc, reverse=True)
    begins, ends = parsed[0].not_valid_before_utc, parsed[0].not_valid_after_utc
    return Certificate(name, ends.timestamp(), remedy, (ends - begins).total_seconds())


def of_fleet(
    by_node: Mapping[str, NodeEvidence], failed: Iterable[Any]
) -> tuple[NodeEvidence, ...]:
    """Return the evidence of all nodes, including nodes without an answer."""
    answered = [msgspec.structs.replace(node, node=name) for name, node in by_node.items()]
    silent = [NodeEvidence(node=failure.node, error=failure.message) for failure in failed]
    return tuple(sorted([*answered, *silent], key=lambda node: node.node))
