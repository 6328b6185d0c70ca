"""Leader election: one leads, a dead one is followed, and no clock of another machine matters."""

from __future__ import annotations

from typing import Any

from resources.kubernetes import Election, lease_path

NOON = 1_800_000_000.0


class Server:
    """A Lease with optimistic concurrency."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.version = 0

    def write(self, wish: dict[str, Any]) -> dict[str, Any] | None:
        """Take a write; None is a conflict."""
        there = None if self.lease is None else self.lease["metadata"]["resourceVersion"]
        if wish["metadata"].get("resourceVersion") != there:
            return None
        self.version += 1
        metadata = {**wish["metadata"], "resourceVersion": str(self.version)}
        self.lease = {**wish, "metadata": metadata}
        return self.lease


def candidate(name: str) -> Election:
    return Election(name, "waggle-operator", "kube-system")


def turn(election: Election, server: Server, now: float, unix: float = NOON) -> bool:
    """One attempt; whether it leads then."""
    election.observe(server.lease, now)
    wish = election.attempt(now, unix)
    if wish is not None:
        answer = server.write(wish)
        if answer is not None:
            election.written(answer, now)
    return election.leads and not election.lost(now)


def test_the_first_candidate_leads_and_the_second_waits() -> None:
    server, a, b = Server(), candidate("a"), candidate("b")
    assert turn(a, server, 0.0)
    assert not turn(b, server, 0.1)
    assert b.leader == "a"
    assert server.lease is not None
    assert server.lease["kind"] == "Lease"
    assert server.lease["spec"] == {
        "holderIdentity": "a",
        "leaseDurationSeconds": 15,
        "acquireTime": "2027-01-15T08:00:00.000000Z",
        "renewTime": "2027-01-15T08:00:00.000000Z",
        "leaseTransitions": 0,
    }


def test_a_leader_that_renews_keeps_the_lease() -> None:
    server, a, b = Server(), candidate("a"), candidate("b")
    for now in range(0, 200, 2):
        assert turn(a, server, float(now), NOON + now)
        assert not turn(b, server, now + 1.0)
    assert server.lease is not None
    assert server.lease["spec"]["acquireTime"].endswith("08:00:00.000000Z")
    assert server.lease["spec"]["leaseTransitions"] == 0


def test_a_lease_without_renewal_for_its_duration_is_acquired() -> None:
    server, a, b = Server(), candidate("a"), candidate("b")
    turn(a, server, 0.0)
    for now in range(1, 16, 2):
        assert not turn(b, server, float(now))
    assert turn(b, server, 16.0)
    assert server.lease is not None
    assert server.lease["spec"]["leaseTransitions"] == 1


def test_the_timestamps_of_a_lease_are_not_used() -> None:
    server, a, b = Server(), candidate("a"), candidate("b")
    # Its clock is a year slow: to others it looks long over.
    turn(a, server, 0.0, NOON - 365 * 86400)
    assert not turn(b, server, 1.0)
    assert not turn(b, server, 15.9)
    assert turn(b, server, 16.0)


def test_a_leader_that_cannot_renew_stops_before_another_can_lead() -> None:
    server, a, b = Server(), candidate("a"), candidate("b")
    turn(a, server, 0.0)
    turn(b, server, 0.0)
    assert not a.lost(9.9)
    assert 0.0 < a.left(9.9) < 0.2
    assert a.lost(10.0)
    assert not turn(b, server, 14.9)


def test_a_hanging_attempt_leaves_time_for_another() -> None:
    server, a = Server(), candidate("a")
    assert a.left(0.0) == 5.0
    turn(a, server, 0.0)
    assert a.left(2.0) == 5.0
    assert a.left(8.0) == 2.0


def test_a_leader_that_observes_another_holder_has_lost() -> None:
    server, a, b = Server(), candidate("a"), candidate("b")
    turn(a, server, 0.0)
    turn(b, server, 0.0)
    turn(b, server, 20.0)
    a.observe(server.lease, 20.0)
    assert a.leads
    assert a.lost(20.0)


def test_of_two_concurrent_candidates_one_acquires_the_lease() -> None:
    server, a, b = Server(), candidate("a"), candidate("b")
    a.observe(None, 0.0)
    b.observe(None, 0.0)
    first, second = a.attempt(0.0, NOON), b.attempt(0.0, NOON)
    assert first is not None
    assert second is not None
    assert server.write(first) is not None
    assert server.write(second) is None


def test_a_released_lease_is_free_at_once() -> None:
    server, a, b = Server(), candidate("a"), candidate("b")
    turn(a, server, 0.0)
    assert b.release(NOON) is None
    wish = a.release(NOON)
    assert wish is not None
    assert server.write(wish) is not None
    assert turn(b, server, 0.1)


def test_a_malformed_lease_is_acquired() -> None:
    a = candidate("a")
    a.observe({"metadata": [], "spec": {"leaseDurationSeconds": "x", "leaseTransitions": None}}, 0)
    assert a.attempt(0.0, NOON) is not None


def test_paths_of_leases() -> None:
    assert lease_path("ns") == "/apis/coordination.k8s.io/v1/namespaces/ns/leases"
    assert lease_path("ns", "x").endswith("/leases/x")
