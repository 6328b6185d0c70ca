"""Candidates for passwords: which are equal, how many in one request, and the loop meanwhile."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cells.api.model import PasswordItem
from cells.api.resource import BadRequestError
from cells.serve import passwords
from cells.serve.passwords import AgentPasswords, CandidatePassword, CandidatePasswords
from reconcilers.model import SecretRef
from resources.core.kinds import SECRET
from tests.reconcilers.apply.intent_rows import INSTANCE, PEER, Rows, changed

PASSWORD = b"correct horse"
RIGHT = CandidatePassword(PEER.instance, PEER.name, PASSWORD)


def compare(
    *candidates: CandidatePassword, beside: Callable[[], object] = lambda: None
) -> list[bool]:
    """Return the answers of an agent whose peer has the password; ``beside`` runs in each turn."""
    rows = Rows((SECRET,))
    data = {"password": base64.b64encode(PASSWORD).decode()}
    rows.put(SECRET, {"metadata": {"namespace": "kube-system", "name": "bgp"}, "data": data})
    ref = SecretRef("kube-system", "bgp")
    rows.apply([INSTANCE], [changed(password=ref)])
    node = cast("Any", SimpleNamespace(name="n"))
    action = AgentPasswords(node, rows.db, rows.resources, rows.intent)

    async def scenario() -> Sequence[PasswordItem]:
        work = asyncio.ensure_future(action.compare(CandidatePasswords(candidates)))
        while not work.done():
            beside()
            await asyncio.sleep(0)
        return work.result()

    return [item.equal for item in asyncio.run(scenario())]


def others(count: int) -> list[CandidatePassword]:
    return [CandidatePassword(PEER.instance, f"p-{number}", PASSWORD) for number in range(count)]


def test_a_candidate_is_equal_or_not_and_unknown_peers_have_none() -> None:
    assert compare(RIGHT, *others(1)) == [True, False]
    assert compare(CandidatePassword(PEER.instance, PEER.name, b"correct")) == [False]


def test_of_one_peer_there_is_one_candidate_in_a_request() -> None:
    guess = CandidatePassword(PEER.instance, PEER.name, b"correct hors")
    with pytest.raises(BadRequestError, match="one for each peer"):
        compare(guess, RIGHT)


def test_a_request_has_a_bounded_number_of_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passwords, "MAX_CANDIDATES", 3)
    assert compare(*others(3)) == [False] * 3
    with pytest.raises(BadRequestError, match="3 at most"):
        compare(*others(4))


def test_sessions_have_their_turns_while_many_are_compared() -> None:
    turns: list[None] = []
    compare(*others(10 * passwords.SLICE), beside=lambda: turns.append(None))
    assert len(turns) >= 10
