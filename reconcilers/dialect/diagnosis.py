"""Checks of ``waggle doctor``: pure functions of gathered evidence, to which dialects contribute.

The evidence is what the local API of agents and the API server answer, as JSON; what was not gathered
is absent, and a check without evidence is skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from reconcilers.dialect.extension import Extension
from resources.kind import Kind

Json = Mapping[str, Any]
Bad = tuple[str, str]
"""The type of a condition, and the status that it has where something is wrong."""
SHARED: Final = ""
"""The node of findings that are of no single node."""


class Certificate(msgspec.Struct, frozen=True):
    """A certificate that something depends on."""

    name: str
    """Its use, for people."""
    expires: float
    """Unix time."""
    remedy: str
    lifetime: float | None = None
    """Seconds; None if it is not known."""


class Access(msgspec.Struct, frozen=True):
    """Whether the person may do something in the cluster (SelfSubjectAccessReview)."""

    verb: str
    resource: str
    namespace: str
    allowed: bool


class ClusterEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """Answers of the API server."""

    error: str = ""
    """Why it does not answer; the other fields are empty then."""
    version: str = ""
    answer_seconds: float = 0.0
    clock_ahead: float | None = None
    """Seconds by which its clock is ahead of this host's."""
    served: frozenset[str] = frozenset()
    """``plural.group`` of the kinds of dialects that are served in a version that Waggle reads."""
    missing: frozenset[str] = frozenset()
    """Kinds that are not served in a version that Waggle reads, while others beside them are."""
    access: tuple[Access, ...] = ()
    certificates: tuple[Certificate, ...] = ()
    nodes: frozenset[str] | None = None
    """Names of all Nodes; None where they may not be listed."""
    objects: Mapping[str, Sequence[Json]] = msgspec.field(default_factory=dict)
    """Objects by kind, of the kinds that checks declare."""
    sessions: Mapping[str, Sequence[Json]] = msgspec.field(default_factory=dict)
    """Sessions of status objects by node (`ReportedSession`)."""
    unread: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Why a part could not be read, by its name: kinds, rights, certificates, objects, statuses."""


class NodeEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """Answers of one node's agent."""

    node: str
    error: str = ""
    """Why it does not answer; the other fields are empty then."""
    version: str = ""
    clock_ahead: float = 0.0
    """Seconds by which its clock is ahead of this host's."""
    status: Json = msgspec.field(default_factory=dict)
    """An item of ``/v1/status``."""
    host: Json = msgspec.field(default_factory=dict)
    """An item of ``/v1/host``; empty where the agent has no such path."""
    received: Sequence[Json] = ()
    """Some received routes of peers of which none is accepted."""

    @property
    def peers(self) -> Sequence[Json]:
        """The sessions of a node, as evidence for any dialect's diagnosis."""
        peers: Sequence[Json] = self.status.get("peers", ())
        return peers


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """All that checks read."""

    now: float
    """Unix time of this host."""
    cluster: ClusterEvidence | None = None
    """None where the answers are of one agent, over its socket."""
    nodes: tuple[NodeEvidence, ...] = ()

    @property
    def answered(self) -> tuple[NodeEvidence, ...]:
        """The nodes whose agents have answered, as evidence for any dialect's diagnosis."""
        return tuple(node for node in self.nodes if not node.error)


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is wrong, or will be."""

    level: Literal["error", "warning"] = "error"
    node: str = SHARED
    object: str = ""
    """The peer or the object; empty where the node is meant."""
    evidence: str
    """The observation."""
    remedy: str
    """The action to take."""


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One check. ``run`` yields nothing where all is well."""

    name: str
    question: str
    """The checked property, as a statement that holds where all is well."""
    needs: Literal["cluster", "agents", "any"]
    """The evidence without which it is skipped."""
    run: Callable[[Evidence], Iterator[Finding]]
    reads: str = ""
    """The part of the cluster's evidence without which finding nothing means nothing."""


class Diagnosis(Extension, frozen=True):
    """A check of a dialect, and the kinds whose objects it reads."""

    check: Check
    kinds: tuple[Kind[Any], ...] = ()


def condition_check(
    name: str, question: str, kinds: Mapping[Kind[Any], Mapping[Bad, str]]
) -> Diagnosis:
    """Return any dialect's diagnosis that checks conditions; ``kinds``: remedies by bad condition."""
    remedies = {kind.name: types for kind, types in kinds.items()}

    def run(evidence: Evidence) -> Iterator[Finding]:
        objects = evidence.cluster.objects if evidence.cluster is not None else {}
        for kind, types in remedies.items():
            for value in objects.get(kind, ()):
                yield from _of_object(kind, value, types)

    check = Check(name=name, question=question, needs="cluster", run=run, reads="objects")
    return Diagnosis(check, tuple(kinds))


def object_name(kind: str, value: Json) -> str:
    """Return the name of an object in JSON, for a finding of any dialect's diagnosis."""
    metadata = value.get("metadata", {})
    return "/".join(filter(None, (kind, metadata.get("namespace"), metadata.get("name"))))


def _of_object(kind: str, value: Json, types: Mapping[Bad, str]) -> Iterator[Finding]:
    for condition in (value.get("status") or {}).get("conditions") or ():
        bad = condition.get("type", ""), condition.get("status", "")
        if (remedy := types.get(bad)) is not None:
            text = " ".join(str(condition.get("message", "")).split())
            yield Finding(
                object=object_name(kind, value),
                evidence=f"{bad[0]}={bad[1]}: {text or condition.get('reason', '')}",
                remedy=remedy,
            )
