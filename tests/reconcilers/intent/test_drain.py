"""A cordoned or tainted node withdraws or deprefers its routes, if configured."""

from __future__ import annotations

from typing import Any

import pytest

from reconcilers.apply.to_speaker import peer_config
from reconcilers.intent.drain import describe
from reconcilers.intent.options import IntentOptions
from resources.option_declarations import InvalidOption
from speaker.api import PeerConfig, Policy, Set, Term
from tests.reconcilers.build import Cluster, cluster_config, node, peer, service, usual
from tests.support import kinds

TAINT = "example.com/maintenance"
CORDONED = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


def drained(*, spec: dict[str, Any], **options: Any) -> Cluster:  # noqa: ANN401
    """Run a cluster whose node has this in its specification."""
    found = usual(**options)
    found.put(kinds.SERVICE, service("web", "198.51.100.10"))
    value = node()
    value["spec"].update(spec)
    found.put(kinds.NODE, value)
    found.run()
    return found


def why(cluster: Cluster) -> str | None:
    return describe(cluster.intent.peers.all(cluster.db.snapshot()))


def speaker_peer(cluster: Cluster, local_asn: int = 65001) -> PeerConfig:
    (row,) = cluster.intent.peers.all(cluster.db.snapshot())
    return peer_config(row, local_asn, lambda _: None)


def test_by_default_a_cordoned_node_advertises_its_routes() -> None:
    cluster = drained(spec={"unschedulable": True, "taints": [CORDONED]})
    assert len(cluster.prefixes()) == 2
    assert why(cluster) is None
    assert speaker_peer(cluster).export_policy is None


@pytest.mark.parametrize(
    "spec", [{"unschedulable": True}, {"taints": [CORDONED]}], ids=["cordon", "taint"]
)
def test_a_cordoned_node_withdraws_and_its_session_stays(spec: dict[str, Any]) -> None:
    cluster = drained(spec=spec, drain="withdraw")
    assert cluster.prefixes() == []
    assert why(cluster) == "routes are withdrawn, as the node is drained: it is cordoned"
    config = speaker_peer(cluster)
    assert (config.route_set, config.disabled_reason) == (None, None)
    # Once it is uncordoned all is as before.
    cluster.put(kinds.NODE, node())
    cluster.run()
    assert len(cluster.prefixes()) == 2
    assert why(cluster) is None


def test_the_drain_taints_are_an_option() -> None:
    spec = {"taints": [{"key": TAINT, "effect": "NoExecute"}]}
    assert why(drained(spec=spec, drain="withdraw")) is None
    named = drained(spec=spec, drain="withdraw", drain_taints=(TAINT,))
    assert named.prefixes() == []
    assert why(named) is not None
    # And the one of a cordoned node counts only where it is named.
    cordoned = {"unschedulable": True, "taints": [CORDONED]}
    assert why(drained(spec=cordoned, drain="withdraw", drain_taints=(TAINT,))) is None


def test_a_taint_is_its_key() -> None:
    with pytest.raises(InvalidOption, match="--drain-taint: 'bad key' is not the key of a taint"):
        IntentOptions(drain_taints=(TAINT, "bad key"))


def test_another_node_is_not_drained_with_it() -> None:
    found = usual(drain="withdraw")
    other = node("other")
    other["spec"]["unschedulable"] = True
    found.put(kinds.NODE, other)
    found.run()
    assert len(found.prefixes()) == 1


def test_graceful_shutdown_has_the_community_and_local_preference_zero() -> None:
    cluster = drained(spec={"unschedulable": True}, drain="deprefer", drain_prepend=3)
    assert len(cluster.prefixes()) == 2
    (shown,) = (p for i in cluster.render()["instances"] for p in i["peers"])
    assert shown["lastChoice"] == {"prepend": 3}
    assert speaker_peer(cluster).export_policy == Policy(
        name="drain",
        terms=(
            Term(
                name="last choice",
                set=Set(
                    local_preference=0,
                    add_communities=("65535:0",),
                    prepend=(65001, 65001, 65001),
                ),
            ),
        ),
    )


@pytest.mark.parametrize("peer_asn", [65001, 0], ids=["same", "any"])
def test_within_one_as_no_as_is_prepended(peer_asn: int) -> None:
    found = usual(drain="deprefer", drain_prepend=3)
    found.put(kinds.CLUSTER_CONFIG, cluster_config(peers=[peer(peerASN=peer_asn)]))
    value = node()
    value["spec"]["unschedulable"] = True
    found.put(kinds.NODE, value)
    found.run()
    policy = speaker_peer(found).export_policy
    assert policy is not None
    assert policy.terms[0].set.prepend == ()
    assert policy.terms[0].set.add_communities == ("65535:0",)
