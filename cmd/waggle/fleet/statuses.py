"""Sessions from the status objects in the API server, where agents do not answer or are not used."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from cells.api.transport import AgentError
from resources.kubernetes.discovery import Discovery
from waggle.fleet.agents import LIST_SECONDS, read_kind

if TYPE_CHECKING:
    from reconcilers.dialect import Dialect, ReportedSessions
    from resources.kubernetes import Connection

NOT_IN_STATUS = "the reason is not in the status"


class StatusSessions(NamedTuple):
    """What the status objects have."""

    by_node: dict[str, list[dict[str, Any]]]
    """Items of a PeerList, with ``source``: the object."""
    errors: list[str]
    """Objects that cannot be read, a sentence each."""


async def read_statuses(
    connection: Connection, dialects: Iterable[type[Dialect]]
) -> StatusSessions:
    """Return the sessions of all nodes, of all dialects. Raises `AgentError` without an API server."""
    from reconcilers.dialect import ReportedSessions

    reported = StatusSessions({}, [])
    discovery = Discovery(connection, LIST_SECONDS)
    for extension in [own for dialect in dialects for own in dialect.each(ReportedSessions)]:
        kind = extension.kind
        try:
            objects = await read_kind(connection, discovery, kind)
        except AgentError as error:
            if error.code == "NotServed":
                continue  # the dialect is not installed
            if error.code != "Forbidden":
                raise
            reported.errors.append(str(error))
            continue
        for value in objects:
            _add(reported, extension, value)
    return reported


def _add(reported: StatusSessions, extension: ReportedSessions, value: dict[str, Any]) -> None:
    """Add the sessions of one object, or why it cannot be read."""
    import msgspec

    metadata = value.get("metadata", {})
    parts = (extension.kind.name, metadata.get("namespace"), metadata.get("name"))
    source = "/".join(filter(None, parts))
    try:
        sessions = [msgspec.to_builtins(session) for session in extension.sessions(value)]
    except msgspec.ValidationError as error:
        reported.errors.append(f"{source}: {error}")
        return
    for session in sessions:
        if session["state"] != "Established":
            session.setdefault("reason", NOT_IN_STATUS)
        session.setdefault("families", [])
        reported.by_node.setdefault(session["node"], []).append(session | {"source": source})
