"""The Pods of the agents, one for each node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cells.api.transport import AgentError
from resources.kubernetes import Connection, KubernetesError, StatusError, Writer
from resources.kubernetes.discovery import Discovery
from resources.kubernetes.exec import Container

if TYPE_CHECKING:
    from resources.kind import Kind

SELECTOR: Final = "app.kubernetes.io/part-of=waggle,app.kubernetes.io/component=agent"
"""Labels of the chart (`waggle.podLabels`)."""
CONTAINER: Final = "agent"
"""Of the chart; a mesh or a tool may add others, before it, too."""
DEFAULT_CONTAINER: Final = "kubectl.kubernetes.io/default-container"
READER: Final = "waggle"
"""Field manager of a client that writes nothing."""
LIST_SECONDS: Final = 15.0
DISCOVERY_AGE: Final = 60.0
"""Seconds for which the discovery of an API server is kept."""


class AgentPod(NamedTuple):
    """The agent of one node."""

    node: str
    container: Container
    problem: str = ""
    """Why its container does not run; empty where it does."""


async def find_agents(connection: Connection, namespace: str) -> list[AgentPod]:
    """Return the agents by node. Raises `AgentError`."""
    path, parameters = f"/api/v1/namespaces/{namespace}/pods", [("labelSelector", SELECTOR)]
    pods = await read_objects(connection, path, parameters)
    if not pods:
        text = f"no Pods of agents in namespace {namespace} (labels {SELECTOR}; see --namespace)"
        raise AgentError("NoAgents", text)
    return one_of_each_node(map(agent_pod, pods))


async def read_objects(
    connection: Connection, path: str, parameters: Iterable[tuple[str, str]] = ()
) -> list[dict[str, Any]]:
    """Return all objects of a list. Raises `AgentError`, NotServed where the kind does not exist."""
    reader = Writer(connection, READER, silence=LIST_SECONDS)
    objects: list[dict[str, Any]] = []
    try:
        async for page in reader.pages(path, tuple(parameters)):
            objects += page
    except StatusError as error:
        code = {403: "Forbidden", 404: "NotServed"}.get(error.status, "ClusterUnreachable")
        raise AgentError(code, f"{path}: {error.message or error}") from error
    except KubernetesError as error:
        raise AgentError("ClusterUnreachable", str(error)) from error
    return objects


async def read_kind(
    connection: Connection, discovery: Discovery, kind: Kind[Any]
) -> list[dict[str, Any]]:
    """Return all objects of a kind, in the version that is served. Raises as `read_objects`."""
    return (await read_version(connection, discovery, kind))[1]


async def read_version(
    connection: Connection, discovery: Discovery, kind: Kind[Any]
) -> tuple[str, list[dict[str, Any]]]:
    """Return the version in which a kind is served, and all objects. Raises as `read_objects`."""
    version: str | None = kind.versions[0]
    if kind.group:  # discovery has groups alone
        try:
            version = await discovery.version_of(kind, max_age=DISCOVERY_AGE)
        except StatusError as error:
            if error.status != 403:
                raise AgentError("ClusterUnreachable", str(error)) from error
        except KubernetesError as error:
            raise AgentError("ClusterUnreachable", str(error)) from error
    if version is None:
        raise AgentError("NotServed", f"the API server has no {kind.name}")
    return version, await read_objects(connection, kind.path(version))


def agent_pod(pod: Mapping[str, Any]) -> AgentPod:
    """Return the agent of a Pod."""
    metadata, spec, status = pod.get("metadata", {}), pod.get("spec", {}), pod.get("status", {})
    names = [container["name"] for container in spec.get("containers", ())] or [CONTAINER]
    wanted = (CONTAINER, metadata.get("annotations", {}).get(DEFAULT_CONTAINER))
    name = next((name for name in wanted if name in names), names[0])
    container = Container(metadata.get("namespace", ""), metadata["name"], name)
    node = spec.get("nodeName") or _wanted_node(spec) or metadata["name"]
    return AgentPod(node, container, _problem(name, metadata, status))


def _wanted_node(spec: Mapping[str, Any]) -> str | None:
    """Return the node of a DaemonSet's Pod that is not scheduled yet, from its affinity."""
    affinity = spec.get("affinity", {}).get("nodeAffinity", {})
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {})
    for term in required.get("nodeSelectorTerms", ()):
        for field in term.get("matchFields", ()):
            if field.get("key") == "metadata.name" and field.get("values"):
                return str(field["values"][0])
    return None


def _problem(name: str, metadata: Mapping[str, Any], status: Mapping[str, Any]) -> str:
    if "deletionTimestamp" in metadata:
        return f"its Pod {metadata['name']} is being deleted"
    for container in status.get("containerStatuses", ()):
        state = container.get("state", {})
        for word in ("waiting", "terminated"):
            if container.get("name") == name and word in state:
                reason = state[word].get("reason", word)
                return f"its container is not running: {reason}"
    phase = status.get("phase", "Unknown")
    if phase == "Running":
        return ""
    waiting = [c for c in status.get("conditions", ()) if c.get("status") == "False"]
    why = next((f": {c['message']}" for c in waiting if c.get("message")), "")
    return f"its Pod is {phase}{why}"


def one_of_each_node(agents: Iterable[AgentPod]) -> list[AgentPod]:
    """Return an agent of each node, by name: during an update a running agent."""
    chosen: dict[str, AgentPod] = {}
    for agent in agents:
        before = chosen.get(agent.node)
        if before is None or (before.problem and not agent.problem):
            chosen[agent.node] = agent
    return [chosen[node] for node in sorted(chosen)]
