"""A kind of objects of a node, an API server that stores them, and a writer over virtual time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from reactivex.subject import Subject

from cells.hive.rounds import in_slices
from reconcilers.dialect import NodeObject, NodeObjectKey, NodeObjectKind
from reconcilers.report.node_objects.objects import ReportedNodeObjects
from reconcilers.report.node_objects.place import Place
from reconcilers.target import ReconcileOutcome, Runner
from resources.crds.schema_markers import Definition
from resources.kind import Kind
from resources.kubernetes import KubernetesError, StatusError
from resources.meta import Resource, Struct
from statedb import Database

NODE_LABEL, PEER_LABEL = "test/node", "test/peer"
PATH = "/apis/test.waggle.dev/v1/namespaces/here/sessions"
OWNER = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "node-1"}


class SessionStatus(Struct, frozen=True):
    state: str = ""
    note: str = ""


class Session(Resource, frozen=True):
    status: SessionStatus = SessionStatus()


KIND = Kind(
    "Session",
    Session,
    group="test.waggle.dev",
    versions=("v1",),
    plural="sessions",
    namespaced=True,
    table="sessions-of-the-test",
    definition=Definition("A session.", status=SessionStatus),
)
SESSIONS = NodeObjectKind(
    KIND,
    option="namespace",
    generate_name="{node}-",
    node_label=NODE_LABEL,
    identity=(PEER_LABEL,),
)
ONE_OF_A_NODE = NodeObjectKind(KIND, option="namespace", name="state-{node}")


def session(peer: str, state: str = "Idle", note: str = "", prompt: object = None) -> NodeObject:
    """Make an object of a node."""
    return NodeObject(KIND.name, SessionStatus(state=state, note=note), {PEER_LABEL: peer}, prompt)


def key(peer: str) -> NodeObjectKey:
    """Return the key of a session."""
    return NodeObjectKey(KIND.name, (peer,))


class Api:
    """An API server with one collection."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.fails: dict[str, KubernetesError] = {}
        """Errors by verb; ``*`` is every verb."""
        self.calls: list[tuple[float, str, str]] = []
        """Time, verb, name."""
        self.dropped: frozenset[str] = frozenset()
        """Fields of the status that the definition does not have."""
        self._made = 0

    def put(self, name: str, labels: Mapping[str, str], status: Any = None, **more: Any) -> None:  # noqa: ANN401  JSON
        """Store an object."""
        self._made += 1
        metadata = {
            "name": name,
            "uid": f"uid-{self._made}",
            "creationTimestamp": f"2026-01-01T00:00:{self._made:02d}Z",
            "labels": dict(labels),
            **more,
        }
        self.objects[name] = {"metadata": metadata} | ({"status": status} if status else {})

    def verbs(self) -> list[str]:
        """Return the verbs of all writes."""
        return [verb for _, verb, _ in self.calls if verb != "list"]

    def times(self, verb: str) -> list[float]:
        """Return when requests came."""
        return [when for when, called, _ in self.calls if called == verb]

    def states(self) -> dict[str, str]:
        """Return the states by the label of the peer."""
        return {
            one["metadata"]["labels"][PEER_LABEL]: one.get("status", {}).get("state", "")
            for one in self.objects.values()
        }

    async def pages(
        self, path: str, parameters: Sequence[tuple[str, str]]
    ) -> AsyncIterator[list[dict[str, Any]]]:
        assert path == PATH
        self._called("list", "")
        ((selector, value),) = parameters
        name, _, wanted = value.partition("=")
        found = [
            one
            for one in self.objects.values()
            if (
                one["metadata"]["name"]
                if selector == "fieldSelector"
                else one["metadata"]["labels"].get(name)
            )
            == wanted
        ]
        yield found[:2]
        yield found[2:]

    async def create(self, path: str, content: Mapping[str, Any]) -> dict[str, Any]:
        assert path == PATH
        metadata = content["metadata"]
        name = metadata.get("name") or f"{metadata['generateName']}{self._made + 1:05d}"
        self._called("create", name)
        if name in self.objects:
            raise StatusError(409, f"{name} already exists")
        labels = metadata.get("labels", {})
        self.put(name, labels, ownerReferences=metadata.get("ownerReferences", []))
        return self.objects[name]

    async def merge(self, path: str, content: Mapping[str, Any]) -> dict[str, Any]:
        name, _, part = path.removeprefix(f"{PATH}/").partition("/")
        self._called(f"patch {part}".strip(), name)
        if name not in self.objects:
            raise StatusError(404, f"{name} not found")
        self.objects[name] = merged(self.objects[name], content)
        if "status" in self.objects[name]:
            for field in self.dropped:
                self.objects[name]["status"].pop(field, None)
        return self.objects[name]

    async def delete(self, path: str, uid: str) -> None:
        name = path.removeprefix(f"{PATH}/")
        self._called("delete", name)
        if name in self.objects and self.objects[name]["metadata"]["uid"] == uid:
            del self.objects[name]

    def _called(self, verb: str, name: str) -> None:
        self.calls.append((asyncio.get_running_loop().time(), verb, name))
        for failing in (verb, "*"):
            if failing in self.fails:
                raise self.fails[failing]


def merged(value: dict[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Apply a JSON merge patch (RFC 7386)."""
    found = dict(value)
    for name, one in patch.items():
        if one is None:
            found.pop(name, None)
        elif isinstance(one, Mapping):
            before = found.get(name)
            found[name] = merged(before if isinstance(before, dict) else {}, one)
        else:
            found[name] = one
    return found


class Run:
    """The reconciler of a kind over some virtual time."""

    def __init__(
        self,
        api: Api,
        kind: NodeObjectKind = SESSIONS,
        *,
        enabled: bool = True,
        nodes: int = 1,
    ) -> None:
        self.api = api
        self.outcomes: list[ReconcileOutcome] = []
        rng = random.Random(1)  # noqa: S311
        self.objects = ReportedNodeObjects(
            api,
            Place(kind, "n1", "here", lambda: (OWNER,)),
            rng,
            Subject(),
            enabled=enabled,
            on_write=lambda: None,
            now=lambda: asyncio.get_running_loop().time(),
            wall=lambda: 1_800_000_000.0,
            nodes=lambda: nodes,
        )
        self.runner = Runner(Database(), None, [self.objects], rng, report=self.outcomes.append)

    @property
    def failure(self) -> str:
        """The first failure, as health shows it."""
        (report,) = self.runner.reports()
        return "" if report.failure is None else f"{report.failure[1]}; it is retried"

    def want(self, *rows: NodeObject) -> None:
        """Want sessions."""
        for row in rows:
            self.objects.give(key(row.labels[PEER_LABEL]).labels, row)

    async def until(self, end: float) -> None:
        """Do a round whenever an object is due."""
        loop = asyncio.get_running_loop()
        while loop.time() < end:
            due = (await in_slices(self.runner.slices(loop.time))).retry_at
            await asyncio.sleep(max(0.0, min(end if due is None else due, end) - loop.time()))
