"""Steps over received routes find them all, although another import policy moves them meanwhile."""

from __future__ import annotations

import pytest

from speaker.api import Policy, Set, Term
from speaker.engine import stale_routes
from speaker.engine.inputs import TimersDue
from speaker.iana import Role
from speaker.rib.adj_in import reapply
from tests.speaker.engine.test_judged_again import ROUTES, Away, small_steps
from tests.speaker.engine.test_kept_routes import attributes
from tests.speaker.raw import LOCAL_ASN, REMOTE_ASN, update

TAG = Policy(terms=(Term(set=Set(add_communities=("9:9",))),))


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    small_steps(monkeypatch)
    monkeypatch.setattr(stale_routes, "STEP_ROUTES", 5)
    # The policy is applied faster than the steps are performed.
    monkeypatch.setattr(reapply, "SLICE_KEYS", 30)


def announced(looped: int) -> Away:
    """Return a peer with ``looped`` ineligible routes more, which are held apart from the others."""
    peer = Away()
    for number in range(100, 100 + looped):
        octets = bytes((24, 10, 1, number))
        peer.send(update(attributes(REMOTE_ASN, LOCAL_ASN, 64000 + number), octets))
    peer.settle()
    assert len(peer.otc) == ROUTES
    return peer


def restart(peer: Away) -> None:
    """Restart the peer without its routes: the first steps of their removal are performed."""
    peer.drop()
    peer.now += 30
    peer.give(TimersDue())
    peer.back()
    assert peer.status.established
    peer.send(update(b""))


@pytest.mark.parametrize("looped", [0, 30])
def test_another_role_is_applied_to_routes_that_another_policy_moves(looped: int) -> None:
    peer = announced(looped)
    peer.drop()
    peer.configure(role=Role.CUSTOMER, import_=TAG)
    peer.settle()
    assert set(peer.otc.values()) == {REMOTE_ASN}
    assert len(peer.otc) == ROUTES


@pytest.mark.parametrize("looped", [0, 30])
def test_stale_routes_are_removed_although_another_policy_moves_them(looped: int) -> None:
    peer = announced(looped)
    restart(peer)
    peer.configure(import_=TAG)
    peer.settle()
    assert peer.otc == {}
    assert peer.marks == 0
    assert peer.no_fault()


def test_stale_routes_are_removed_although_the_end_of_a_policy_moves_them() -> None:
    peer = announced(30)
    peer.configure(import_=TAG)
    peer.settle()
    restart(peer)
    peer.configure(import_="all")
    peer.settle()
    assert peer.otc == {}
    assert peer.marks == 0
