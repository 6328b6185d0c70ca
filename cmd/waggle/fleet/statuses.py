"""Status objects in the API server, where no agent answers: sessions, and peers of advertisements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cells.api.transport import AgentError
from resources.kubernetes.discovery import Discovery
from waggle.fleet.agents import LIST_SECONDS, read_kind

if TYPE_CHECKING:
    from reconcilers.dialect import (
        Dialect,
        ReportedAdvertisements,
        ReportedPeers,
        ReportedSessions,
    )
    from resources.kubernetes import Connection

BASIS: Final = "objects"
"""Member ``basis`` of an item that no agent has confirmed."""
NOT_IN_STATUS = "the reason is not in the status"


class Claim(NamedTuple):
    """The peers that one status object has."""

    source: str
    """The object."""
    peers: ReportedPeers


class StatusSessions(NamedTuple):
    """The sessions of the status objects."""

    by_node: dict[str, list[dict[str, Any]]]
    """Items of a PeerList, with ``source``: the object, and ``statusTime``: its last change."""
    errors: list[str]
    """Objects that cannot be read, a sentence each."""
    claims: Sequence[tuple[ReportedAdvertisements, Sequence[Claim]]] = ()
    """Of the kinds that can be read."""


async def read_statuses(
    connection: Connection, dialects: Sequence[type[Dialect]], *, claims: bool = False
) -> StatusSessions:
    """Return the sessions of all nodes, of all dialects, and with ``claims`` their advertisements.

    Raises `AgentError` without an API server.
    """
    from reconcilers.dialect import ReportedAdvertisements, ReportedSessions

    of_kinds: list[tuple[ReportedAdvertisements, Sequence[Claim]]] = []
    reported = StatusSessions({}, [], of_kinds)
    reader = _Reader(connection, reported.errors)
    for sessions in [own for dialect in dialects for own in dialect.each(ReportedSessions)]:
        for source, value in await reader.objects(sessions) or ():
            reader.decode(source, lambda: _add(reported, sessions, value, source))  # noqa: B023
    listed = [own for dialect in dialects for own in dialect.each(ReportedAdvertisements)]
    for extension in listed if claims else ():
        values = await reader.objects(extension)
        if values is None:
            continue
        of_kind: list[Claim] = []
        for source, value in values:
            reader.decode(
                source,
                lambda: of_kind.extend(Claim(source, p) for p in extension.peers(value)),  # noqa: B023
            )
        of_kinds.append((extension, of_kind))
    return reported


class _Reader:
    """Reads the status objects of kinds."""

    def __init__(self, connection: Connection, errors: list[str]) -> None:
        self._connection = connection
        self._discovery = Discovery(connection, LIST_SECONDS)
        self._errors = errors

    async def objects(
        self, of: ReportedSessions | ReportedAdvertisements
    ) -> list[tuple[str, dict[str, Any]]] | None:
        """Return the objects of a kind with their names; None where it is absent or forbidden."""
        try:
            listed = await read_kind(self._connection, self._discovery, of.kind)
        except AgentError as error:
            if error.code == "NotServed":
                return None  # the dialect is not installed
            if error.code != "Forbidden":
                raise
            self._errors.append(str(error))
            return None
        from reconcilers.dialect.diagnosis import object_name

        return [(object_name(of.kind.name, value), value) for value in listed]

    def decode(self, source: str, read: Callable[[], object]) -> None:
        """Read one object, or add why it cannot be read."""
        import msgspec

        try:
            read()
        except msgspec.ValidationError as error:
            self._errors.append(f"{source}: {error}")


def _add(
    reported: StatusSessions, extension: ReportedSessions, value: dict[str, Any], source: str
) -> None:
    """Add the sessions of one object. Raises msgspec.ValidationError."""
    import msgspec

    added = {"source": source}
    if (changed := status_time(value)) is not None:
        added["statusTime"] = changed
    for session in [msgspec.to_builtins(session) for session in extension.sessions(value)]:
        if session["state"] != "Established":
            session.setdefault("reason", NOT_IN_STATUS)
        session.setdefault("families", [])
        reported.by_node.setdefault(session["node"], []).append(session | added)


def status_time(value: Mapping[str, Any]) -> str | None:
    """Return the time at which the status of an object was last changed; None if it is not known."""
    fields = value.get("metadata", {}).get("managedFields", ())
    times = [entry.get("time", "") for entry in fields if _is_status(entry)]
    return max(filter(None, times), default=None)


def _is_status(entry: Mapping[str, Any]) -> bool:
    return entry.get("subresource") == "status" or "f:status" in (entry.get("fieldsV1") or {})


def sessions_of_peer(
    sessions: Iterable[Mapping[str, Any]], end: str, instances: Sequence[str]
) -> list[Mapping[str, Any]]:
    """Return the sessions with a peer; of several with its address only sessions of these instances."""
    of_peer = [session for session in sessions if session.get("address") == end]
    if len(of_peer) <= 1:
        return of_peer
    return [session for session in of_peer if session["instance"] in instances]
