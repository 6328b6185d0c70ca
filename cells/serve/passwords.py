"""The action that compares passwords with used ones, for ``waggle plan``: none leaves the agent."""

from __future__ import annotations

from collections.abc import Sequence
from hmac import compare_digest
from typing import Protocol

import msgspec

from cells.api.model import PasswordItem
from cells.api.resource import ApiAction, UnavailableError
from cells.node import ThisNode
from reconcilers.apply.passwords import Passwords
from reconcilers.tables import IntentTables
from resources.tables import Tables
from statedb import Database


class Candidate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A password that a peer may have."""

    instance: str
    peer: str
    password: bytes
    """In base64."""


class Candidates(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body."""

    candidates: tuple[Candidate, ...]


class PasswordComparison(Protocol):
    """What compares passwords with passwords in use."""

    async def compare(self, body: Candidates) -> Sequence[PasswordItem]:
        """Return for each candidate whether it is the password of its peer.

        Raises `UnavailableError` where a password is not known.
        """


class AgentPasswords:
    """`PasswordComparison` of the real agent."""

    def __init__(
        self, node: ThisNode, database: Database, resources: Tables, intent: IntentTables
    ) -> None:
        self._node = node.name
        self._database = database
        self._peers = intent.peers
        self._passwords = Passwords(database, intent, resources)

    async def compare(self, body: Candidates) -> Sequence[PasswordItem]:
        """See `PasswordComparison`."""
        snapshot = self._database.snapshot()
        password_of = self._passwords.reader(snapshot)

        def is_equal(candidate: Candidate) -> bool:
            peer = self._peers.get(snapshot, (candidate.instance, candidate.peer))
            if peer is None or peer.password is None:
                return False
            try:
                present = password_of(peer.password)
            except LookupError:
                raise UnavailableError("no password has been read since the start") from None
            return present is not None and compare_digest(present, candidate.password)

        return [
            PasswordItem(
                node=self._node,
                instance=candidate.instance,
                peer=candidate.peer,
                equal=is_equal(candidate),
            )
            for candidate in body.candidates
        ]


def passwords_action(passwords: PasswordComparison) -> ApiAction:
    """Return the action."""
    return ApiAction(
        path="/v1/passwords", kind="PasswordList", run=passwords.compare, body=Candidates
    )
