"""The action that resets a session, or has its routes sent again, of agents and routers.

``waggle peers clear`` and ``waggle router clear``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec

from cells.api.model import ClearedItem
from cells.api.resource import ApiAction, BadRequestError, NotFoundError
from cells.serve.routing import Chosen
from speaker.api import PeerStatus, SpeakerPort
from speaker.nlri import Family

RESET = "the session is reset: its routes are withdrawn until it is Established again"
TRIED = "the session was not Established: it is tried again at once"
IN = "a ROUTE-REFRESH is sent: the peer sends its routes again, and what is kept does not change"
OUT = "all routes are sent to the peer again: it keeps what it has"
NO_REFRESH = "the peer does not support ROUTE-REFRESH (RFC 2918)"


class Clear(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body: a peer by name, address or object, and how."""

    peer: str
    instance: str | None = None
    soft: Literal["in", "out"] | None = None
    """None resets the session."""
    message: str = ""
    """A shutdown communication (RFC 9003) of a reset."""
    family: str | None = None
    """With ``in`` the only family that is sent again."""


class Node(Protocol):
    """The node of an agent, or a router."""

    @property
    def name(self) -> str:
        """Its name, in answers."""


class Names(Protocol):
    """The names of peers in requests; an agent's are `PeerNames`."""

    def check(self, peer: str | None, instance: str | None) -> None:
        """Raise `NotFoundError` for a peer or instance that is not configured."""

    def chosen(self, peer: str | None, instance: str | None) -> Chosen:
        """Return whether a peer is the wanted one."""


class ClearPeers:
    """Resets sessions, or has routes sent again."""

    def __init__(self, node: Node, speaker: SpeakerPort, names: Names) -> None:
        self._node = node
        self._speaker = speaker
        self._names = names

    async def clear(self, body: Clear) -> Sequence[ClearedItem]:
        """Clear the sessions of a peer; raises `NotFoundError` and `BadRequestError`."""
        self._names.check(body.peer, body.instance)
        chosen = self._names.chosen(body.peer, body.instance)
        statuses = [s for s in self._speaker.peers() if chosen(s.instance, s.name, s.address)]
        if not statuses:
            raise NotFoundError(f"no session of the peer {body.peer}")
        instances = sorted({status.instance for status in statuses})
        if len(instances) > 1:
            names = ", ".join(instances)
            raise BadRequestError(f"{body.peer} is a peer of the instances {names}: add --instance")
        return [self._clear(status, body) for status in statuses]

    def _clear(self, status: PeerStatus, body: Clear) -> ClearedItem:
        key, soft = (status.instance, status.name), body.soft
        if soft is None:
            self._speaker.reset_peer(*key, body.message)
            return self._item(status, RESET if status.established else TRIED, done=True)
        if not status.established:
            return self._item(status, f"the session is {status.state}", done=False)
        if soft == "out":
            self._speaker.advertise_again(*key)
            return self._item(status, OUT, done=True)
        supported = "route-refresh" in status.capabilities
        if supported:
            self._speaker.request_refresh(*key, _families(body))
        return self._item(status, IN if supported else NO_REFRESH, done=supported)

    def _item(self, status: PeerStatus, message: str, *, done: bool) -> ClearedItem:
        return ClearedItem(
            node=self._node.name,
            instance=status.instance,
            name=status.name,
            done=done,
            message=message,
        )


def _families(body: Clear) -> tuple[Family, ...]:
    try:
        return () if body.family is None else (Family.parse(body.family),)
    except ValueError as error:
        raise BadRequestError(str(error)) from None


def clear_action(clearing: ClearPeers) -> ApiAction:
    """Return the action."""
    return ApiAction(path="/v1/clear", kind="ClearedList", run=clearing.clear, body=Clear)
