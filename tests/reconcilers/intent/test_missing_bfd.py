"""Peers with a BFD profile and no BFD session are problems of their objects, with the reason."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from reconcilers.bfd_session import BfdSession
from tests.reconcilers.build import Cluster, cluster_config, peer, peer_config, usual
from tests.support import kinds


def with_bfd(**options: Any) -> Cluster:  # noqa: ANN401
    found = usual(next_fields=True, **options)
    found.put(kinds.CLUSTER_CONFIG, cluster_config(peers=[peer("p"), PLAIN]))
    found.put(kinds.PEER_CONFIG, peer_config(bfd={"enabled": True}))
    found.put(kinds.PEER_CONFIG, peer_config("plain"))
    found.run()
    return found


def report(cluster: Cluster, session: BfdSession) -> None:
    table = cluster.intent.bfd_sessions
    with cluster.db.write(table) as txn:
        table.upsert(txn, session)
    cluster.run()


def messages(cluster: Cluster) -> list[str]:
    return [problem["message"] for problem in cluster.render()["problems"]]


PLAIN = peer("q", peerAddress="192.0.2.10", peerConfigRef={"name": "plain"})
SESSION = BfdSession(instance="i", peer="p")


def test_a_peer_with_a_profile_has_no_problem_while_its_session_may_come_up() -> None:
    cluster = with_bfd()
    assert messages(cluster) == []
    report(cluster, replace(SESSION, state="Down"))
    assert messages(cluster) == []


def test_what_keeps_a_session_from_sending_is_a_problem_until_it_is_over() -> None:
    cluster = with_bfd()
    report(cluster, replace(SESSION, problem="waggle-bfd cannot be started: Permission denied"))
    (problem,) = cluster.render()["problems"]
    assert problem["category"] == "unsupported"
    assert problem["message"] == (
        "peer 'p' has no BFD session: waggle-bfd cannot be started: Permission denied"
    )
    report(cluster, replace(SESSION, state="Up"))
    assert messages(cluster) == []


def test_without_a_bfd_process_each_profile_is_reported_to_have_no_effect() -> None:
    cluster = with_bfd(bfd_off="this agent runs without BFD (--bfd)")
    assert messages(cluster) == ["peer 'p' has no BFD session: this agent runs without BFD (--bfd)"]
    cluster.put(kinds.PEER_CONFIG, peer_config())
    cluster.run()
    assert messages(cluster) == []


def test_an_echo_function_that_does_not_work_is_a_problem_of_the_peer() -> None:
    cluster = with_bfd()
    why = "the neighbor returns no echo packets: control packets alone"
    report(cluster, replace(SESSION, state="Up", problem="", echo_problem=why))
    assert messages(cluster) == [f"peer 'p': {why}"]
