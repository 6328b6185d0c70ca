"""Subcommands of ``waggle``, and paths of the agent's local API with answers of another program."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import msgspec

from reconcilers.dialect.compilation import NodeContext
from reconcilers.dialect.extension import Extension
from reconcilers.intent_tables import IntentTables
from reconcilers.model import Peer
from resources.kind import Kind
from resources.tables import Tables
from speaker.api import PeerStatus
from statedb import Snapshot


class Answer(NamedTuple):
    """The answer to a request of an `ApiPath`, whatever its status."""

    status: int
    body: str


Ask: TypeAlias = Callable[[str, Mapping[str, str]], Answer]
"""Requests to the agent's local API: a path, and query parameters."""


def _no_flags(parser: argparse.ArgumentParser) -> None:
    """Add no flag."""


class Listing(NamedTuple):
    """A command's answer; the program prints it in the format of ``--output``, and escapes it."""

    kind: str
    """One of the kinds of `Command.items`."""
    items: Sequence[Any]
    """As JSON."""
    lines: Sequence[str]
    """The same as a table."""
    native: object = None
    """The same as JSON of another program's form, if the command has such a format."""


class CommandError(Exception):
    """Nothing to show: a code of the local API (``NotFound``, ``BadRequest`` ...), and a sentence."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Command(msgspec.Struct, frozen=True):
    """The action of a `reconcilers.dialect_entry.Subcommand`.

    ``--output`` and ``--socket`` are added to its flags.
    """

    read: Callable[[argparse.Namespace, Ask], Listing]
    """Raises `CommandError`; an error of the agent is left to the program."""
    items: Mapping[str, Any]
    """The type of the items of each kind, for ``waggle schema``."""
    add_flags: Callable[[argparse.ArgumentParser], object] = _no_flags
    native_format: str = ""
    """The name of a format that prints `Listing.native`."""


class Rendering(Extension, frozen=True):
    """Objects that are equivalent to the intent of a node, for ``waggle render`` alone."""

    objects: Callable[[Any, Snapshot, NodeContext, IntentTables], Iterable[dict[str, Any]]]
    """Returns the objects as JSON, given the dialect and the state after `Dialect.compile`. Nothing of
    them is stored or read back."""


class ViewContext(msgspec.Struct, frozen=True):
    """The inputs of an `ApiPath`."""

    tables: Tables
    snapshot: Snapshot
    intent: IntentTables
    dialect: str
    """The name that the dialect's rows have in the intent."""
    sessions: Sequence[PeerStatus]
    """The state of all sessions."""


class RefusedError(Exception):
    """A request that an `ApiPath` refuses: an HTTP status, and a sentence as its body."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class ApiPath(Extension, frozen=True):
    """A path of the agent's local API with an answer of another program's form, for its scripts."""

    path: str
    read: Callable[[ViewContext, Mapping[str, str]], Any]
    """Query parameters to what is encoded as JSON; an iterator yields the groups of a list, which
    are read and sent in turn with the sessions. Raises `RefusedError` before the first group."""


class ReportedRoutes(msgspec.Struct, frozen=True, rename="camel"):
    """The routes of one family, as a status has them."""

    family: str
    routes: int


class ReportedSession(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True
):
    """One session, as far as a status object has it; members as in the local API's ``PeerList``."""

    node: str
    instance: str
    name: str
    address: str | None = None
    local_asn: int | None = msgspec.field(name="localASN", default=None)
    peer_asn: int | None = msgspec.field(name="peerASN", default=None)
    state: str
    since_time: str | None = None
    """When it was established."""
    families: list[str] = msgspec.field(default_factory=list)
    received: list[ReportedRoutes] | None = None
    advertised: list[ReportedRoutes] | None = None
    reason: str | None = None


class ReportedSessions(Extension, frozen=True):
    """The sessions in the status objects that agents write: what is known of a silent node."""

    kind: Kind[Any]
    sessions: Callable[[Mapping[str, Any]], Iterable[ReportedSession]]
    """The sessions of one object of the API server. Raises msgspec.ValidationError."""


class ReportedPeers(NamedTuple):
    """The peers that one status object has on a node, as it names them."""

    node: str
    peers: Collection[str]
    object: str | None = None
    """The object whose routes these peers are sent: ``Service/shop/web``; None: any routes."""
    problem: str = ""
    """The status's part about its node's configuration, if that is not in effect."""


class ReportedAdvertisements(Extension, frozen=True):
    """Evidence of advertisements in status objects that agents write: of a node, or of an object."""

    kind: Kind[Any]
    peers: Callable[[Mapping[str, Any]], Iterable[ReportedPeers]]
    """The peers of one object of the API server. Raises msgspec.ValidationError."""
    named: Callable[[Peer], Sequence[str]]
    """The names that such a status may have for a peer; none where it has no status of this kind."""
    of_kind: str = ""
    """The object's kind, where each status is of one. Without a status no peer is sent its routes."""
