"""The action that compares passwords with used ones, for ``waggle plan``: none leaves the agent."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from hmac import compare_digest
from typing import Final

import msgspec

from cells.api.model import PasswordItem
from cells.api.resource import ApiAction, BadRequestError, UnavailableError
from cells.state.node import ThisNode
from reconcilers.apply.passwords import Passwords
from reconcilers.intent_tables import IntentTables
from resources.tables import Tables
from statedb import Database

MAX_CANDIDATES: Final = 10_000
SLICE: Final = 100
"""Candidates that are compared between two turns of the loop: about a millisecond's work."""


class CandidatePassword(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A password that a peer may have."""

    instance: str
    peer: str
    password: bytes
    """In base64."""


class CandidatePasswords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body."""

    candidates: tuple[CandidatePassword, ...]


class AgentPasswords:
    """Compares passwords with passwords in use."""

    def __init__(
        self, node: ThisNode, database: Database, resources: Tables, intent: IntentTables
    ) -> None:
        self._node = node.name
        self._database = database
        self._peers = intent.peers
        self._passwords = Passwords(database, intent, resources)

    async def compare(self, body: CandidatePasswords) -> Sequence[PasswordItem]:
        """Return for each candidate whether it is the password of its peer.

        Raises `UnavailableError` where a password is not known, and `BadRequestError` for several
        candidates of one peer, which would be guesses.
        """
        if len(body.candidates) > MAX_CANDIDATES:
            raise BadRequestError(f"candidates: {MAX_CANDIDATES:,} at most")
        if len({(of.instance, of.peer) for of in body.candidates}) < len(body.candidates):
            raise BadRequestError("candidates: one for each peer, not several")
        snapshot = self._database.snapshot()
        password_of = self._passwords.reader(snapshot)

        def is_equal(candidate: CandidatePassword) -> bool:
            peer = self._peers.get(snapshot, (candidate.instance, candidate.peer))
            if peer is None or peer.password is None:
                return False
            try:
                present = password_of(peer.password)
            except LookupError:
                raise UnavailableError("no password has been read since the start") from None
            return present is not None and compare_digest(present, candidate.password)

        items: list[PasswordItem] = []
        for candidate in body.candidates:
            if len(items) % SLICE == SLICE - 1:
                await asyncio.sleep(0)
            items.append(
                PasswordItem(
                    node=self._node,
                    instance=candidate.instance,
                    peer=candidate.peer,
                    equal=is_equal(candidate),
                )
            )
        return items


def passwords_action(passwords: AgentPasswords) -> ApiAction:
    """Return the action."""
    return ApiAction(
        path="/v1/passwords", kind="PasswordList", run=passwords.compare, body=CandidatePasswords
    )
