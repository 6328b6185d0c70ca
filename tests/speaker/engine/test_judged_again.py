"""Another context of the routes of an absent peer is applied in steps, whatever comes in between."""

from __future__ import annotations

import random

import pytest

from speaker.api import Match, Policy, PrefixRule, Set, Term
from speaker.engine import sliced_work
from speaker.engine.inputs import (
    RemovePeer,
    Shutdown,
    TimersDue,
)
from speaker.iana import IPV4_UNICAST, Role
from speaker.message import KEEPALIVE
from speaker.rib import inbound
from speaker.rib.adj_in import reapply
from tests.speaker.engine.test_kept_routes import OPEN, Kept, attributes
from tests.speaker.network import INSTANCE
from tests.speaker.raw import REMOTE_ASN, update

ROUTES = 60
POLICIES = (
    "all",
    Policy(terms=(Term(set=Set(add_communities=("9:9",))),)),
    Policy(
        terms=(
            Term(match=Match(prefixes=(PrefixRule("10.1.0.0/19", ge=24),)), action="reject"),
            Term(),
        )
    ),
)


def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a table of sixty routes judged in many steps."""
    monkeypatch.setattr(inbound, "STEP_KEYS", 5)
    monkeypatch.setattr(sliced_work, "SLICE_UNITS", 10)
    monkeypatch.setattr(reapply, "SLICE_KEYS", 7)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    small_steps(monkeypatch)


class Away(Kept):
    """A peer whose inputs are not followed by a sending of UPDATEs, but by `flush` and `settle`."""

    def announce(self) -> None:
        self.announce_some(range(ROUTES))
        self.send(update(b""))

    def announce_some(self, numbers: range) -> None:
        """Announce routes: of each number a prefix with an AS path of its own."""
        for number in numbers:
            self.send(update(attributes(REMOTE_ASN, 64000 + number), bytes((24, 10, 1, number))))

    def settle(self) -> None:
        """Perform all steps that are left."""
        while self.engine.updates_pending:
            self.flush()

    def later(self, **changes: object) -> None:
        """Change settings while the peer is away; only the first steps are performed."""
        self.configure(**changes)
        self.flush()

    def back(self) -> None:
        """Open the session again."""
        self.connect()
        self.send(OPEN)
        self.send(KEEPALIVE)

    @property
    def otc(self) -> dict[str, int | None]:
        """The Only to Customer attribute of each route."""
        table = self.engine.instance(INSTANCE).outbound.loc.tables[IPV4_UNICAST]
        return {f"10.1.{nlri[3]}.0/24": paths[0].attributes.otc for nlri, paths in table.items()}

    @property
    def marks(self) -> int:
        """The number of marks that are left."""
        instance = self.engine.instance(INSTANCE)
        known = [*instance.established.values(), *instance.kept_routes.peers.values()]
        return sum(len(marks) for one in known for marks in one.adj_in._marks.values())

    @property
    def is_kept(self) -> int:
        """The number of sessions, one or none, whose routes are kept."""
        return len(self.engine.instance(INSTANCE).kept_routes.peers)

    def no_fault(self) -> bool:
        """Return whether nothing failed."""
        return not [event for event in self.events if type(event).__name__ == "Fault"]


def away() -> Away:
    """Return a peer that is away, with a changed role that is applied to some of its routes."""
    peer = Away()
    peer.settle()
    peer.drop()
    peer.later(role=Role.CUSTOMER)
    count = list(peer.otc.values()).count(REMOTE_ASN)
    assert 0 < count < ROUTES
    return peer


def test_no_turn_judges_more_than_a_few_routes() -> None:
    peer = away()
    before, turns = list(peer.otc.values()).count(None), 0
    while peer.engine.updates_pending:
        peer.flush()
        left = list(peer.otc.values()).count(None)
        assert before - left <= 10
        before, turns = left, turns + 1
    assert before == 0
    assert turns > 5
    assert peer.no_fault()
    assert peer.marks == 1, "the mark of the stale routes alone"


def test_a_route_that_comes_again_meanwhile_is_judged_once() -> None:
    peer = away()
    peer.back()
    peer.announce()
    peer.settle()
    assert set(peer.otc.values()) == {REMOTE_ASN}
    assert len(peer.otc) == ROUTES
    assert peer.marks == 0
    assert peer.no_fault()


def test_another_loss_of_the_session_meanwhile_leaves_no_route_out() -> None:
    peer = away()
    peer.back()
    peer.announce_some(range(ROUTES - 10, ROUTES))
    peer.drop()
    peer.settle()
    assert set(peer.otc.values()) <= {REMOTE_ASN}
    assert peer.no_fault()


def test_routes_that_are_not_announced_again_leave_although_they_are_judged() -> None:
    peer = away()
    peer.back()
    peer.announce_some(range(10))
    peer.send(update(b""))
    peer.settle()
    assert sorted(peer.otc) == sorted(f"10.1.{number}.0/24" for number in range(10))
    assert peer.marks == 0
    assert peer.no_fault()


def test_a_second_change_follows_the_first_one() -> None:
    peer = away()
    peer.later(role=Role.PROVIDER)
    peer.settle()
    # With OTC attached as of a customer: whether they had it is not known.
    assert peer.otc == {}
    assert peer.no_fault()


def test_a_change_back_follows_the_first_one_too() -> None:
    peer = away()
    peer.later(role=Role.CUSTOMER, local_asn=64000 + 7)
    peer.settle()
    assert set(peer.otc) == {f"10.1.{number}.0/24" for number in range(ROUTES) if number != 7}
    assert set(peer.otc.values()) == {REMOTE_ASN}


@pytest.mark.parametrize("end", ["removed", "expired", "shutdown"])
def test_the_steps_end_with_the_routes(end: str) -> None:
    peer = away()
    if end == "removed":
        peer.give(RemovePeer(INSTANCE, "p"))
    elif end == "expired":
        peer.now += 61
        peer.give(TimersDue())
    else:
        peer.give(Shutdown())
    peer.settle()
    assert peer.no_fault()
    assert end == "shutdown" or peer.otc == {}


@pytest.mark.parametrize("seed", range(60))
def test_interleaved_events_end_with_the_routes_of_one_turn(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same inputs in steps, and with slices that are never full."""

    def run(*, in_steps: bool) -> dict[str, int | None]:
        if not in_steps:
            monkeypatch.setattr(sliced_work, "SLICE_UNITS", 1 << 30)
        rng = random.Random(seed)  # noqa: S311  a test
        peer = Away()
        peer.settle()
        peer.drop()
        is_up = False
        for _ in range(12):
            match rng.randrange(7):
                case 0 if not is_up:
                    peer.later(role=rng.choice([Role.CUSTOMER, Role.PEER]))
                case 5 | 6:
                    peer.later(import_=rng.choice(POLICIES))
                case 1 if not is_up:
                    peer.later(local_asn=64000 + rng.randrange(ROUTES))
                case 2 if is_up:
                    peer.drop()
                    is_up = False
                case 3 if not is_up:
                    peer.back()
                    is_up = True
                case 4 if is_up:
                    first = rng.randrange(ROUTES)
                    peer.announce_some(range(first, min(first + 20, ROUTES)))
            for _ in range(rng.randrange(3)):
                peer.flush()
            if not in_steps:
                peer.settle()
        if not is_up:
            peer.back()
        peer.send(update(b""))
        peer.settle()
        assert peer.no_fault()
        # After many losses the peer may have to wait before it is accepted again.
        assert peer.marks == (0 if peer.status.established else peer.is_kept)
        peer.configure(import_="all")
        peer.settle()
        return peer.otc

    in_steps = run(in_steps=True)
    assert in_steps == run(in_steps=False)
