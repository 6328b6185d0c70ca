"""The configuration in force while objects conflict: `--on-conflict`, and a restart meanwhile."""

from typing import Any

import pytest

from reconcilers.dialect import explained_kinds
from reconcilers.frrk8s.dialect import Frrk8sDialect
from reconcilers.frrk8s.options import Frrk8sOptions, OnConflict
from reconcilers.frrk8s.stored_state import STORED_STATE
from reconcilers.intent.explain import parse_target
from resources.core.kinds import NODE, SECRET
from resources.frrk8s.kinds import FRR_CONFIGURATION
from tests.reconcilers.build import Cluster, node
from tests.reconcilers.frrk8s.build import NAMESPACE, PEER, configuration, neighbor, router


def cluster(mode: OnConflict = "keep", memory: bytes | None = None) -> Cluster:
    class Dialect(Frrk8sDialect):
        def __init__(self, tables: Any, options: Frrk8sOptions) -> None:  # noqa: ANN401, ARG002
            super().__init__(tables, Frrk8sOptions(on_conflict=mode))

    made = Cluster(also=[Dialect], memories={} if memory is None else {"frrk8s": memory})
    made.put(NODE, node())
    return made


def dialect(it: Cluster) -> Frrk8sDialect:
    found = it.dialects[-1]
    assert isinstance(found, Frrk8sDialect)
    return found


def memory_of(it: Cluster) -> Any:  # noqa: ANN401
    return STORED_STATE.of_state(it.compiler.states["frrk8s"])


def encoded(it: Cluster) -> bytes:
    return STORED_STATE.encode(memory_of(it))


def put(it: Cluster, name: str, *prefixes: str, **settings: object) -> None:
    advertise = {"allowed": {"mode": "all"}}
    one = router(neighbor(toAdvertise=advertise, **settings), prefixes=list(prefixes))
    it.put(FRR_CONFIGURATION, configuration(name, {"bgp": {"routers": [one]}}))


def state(it: Cluster) -> list[tuple[str, int, list[str]]]:
    it.run()
    return [
        (peer["address"], peer["peerPort"], [route["prefix"] for route in peer["advertise"]])
        for instance in it.render()["instances"]
        for peer in instance["peers"]
    ]


def test_keep_holds_the_last_good_state_until_the_objects_go_together_again() -> None:
    it = cluster()
    put(it, "x", "10.1.0.0/16")
    good = [(PEER, 179, ["10.1.0.0/16"])]
    assert state(it) == good
    put(it, "y", "10.2.0.0/16", port=1179)
    assert state(it) == good
    put(it, "x", "10.3.0.0/16")
    assert state(it) == good
    it.delete(FRR_CONFIGURATION, "y", NAMESPACE)
    assert state(it) == [(PEER, 179, ["10.3.0.0/16"])]


def test_clear_ends_the_sessions() -> None:
    it = cluster("clear")
    put(it, "x", "10.1.0.0/16")
    assert state(it) == [(PEER, 179, ["10.1.0.0/16"])]
    put(it, "y", port=1179)
    assert state(it) == []
    it.delete(FRR_CONFIGURATION, "y", NAMESPACE)
    assert state(it) == [(PEER, 179, ["10.1.0.0/16"])]


def test_isolate_leaves_out_what_does_not_go_with_older_objects() -> None:
    it = cluster("isolate")
    put(it, "x", "10.1.0.0/16")
    put(it, "y", "10.2.0.0/16", port=1179)
    put(it, "z", "10.3.0.0/16")
    assert state(it) == [(PEER, 179, ["10.1.0.0/16", "10.3.0.0/16"])]
    it.delete(FRR_CONFIGURATION, "x", NAMESPACE)
    assert state(it) == [(PEER, 1179, ["10.2.0.0/16"])]


@pytest.mark.parametrize(
    ("mode", "reason", "head"),
    [
        ("keep", "NotInEffect", "the objects of the node do not go together; "),
        ("isolate", "LeftOut", "the object is not in effect; "),
    ],
)
def test_a_prefix_that_is_not_in_effect_is_explained(
    mode: OnConflict, reason: str, head: str
) -> None:
    it = cluster(mode)
    put(it, "x", "10.1.0.0/16")
    it.run()
    put(it, "y", "10.2.0.0/16", port=1179)
    it.run()

    def explain(target: str) -> list[tuple[str | None, str, str]]:
        found = it.compiler.explainer().explain(
            parse_target(target, explained_kinds([dialect(it)]))
        )
        return [(one.peer, one.reason, one.message) for group in found for one in group]

    text = head + (
        f"neighbor {PEER}: port differs: 179 in FRRConfiguration/frr-k8s-system/x; "
        "1179 in FRRConfiguration/frr-k8s-system/y"
    )
    assert explain("10.1.0.0/16") == [(PEER, "Advertised", "")]
    assert explain("10.2.0.0/16") == [(PEER, reason, text)]
    assert explain("frrconfiguration/frr-k8s-system/y") == [(PEER, reason, text)]
    it.delete(FRR_CONFIGURATION, "x", NAMESPACE)
    it.run()
    assert explain("10.2.0.0/16") == [(PEER, "Advertised", "")]


def test_the_last_good_state_survives_a_restart_without_its_passwords() -> None:
    it = cluster()
    put(it, "x", "10.1.0.0/16", password="pass-word")
    assert state(it) == [(PEER, 179, ["10.1.0.0/16"])]
    octets = encoded(it)
    assert b"pass-word" not in octets
    again = cluster(memory=octets)
    put(again, "x", "10.4.0.0/16", password="pass-word")
    put(again, "y", port=9)
    assert state(again) == [(PEER, 179, ["10.1.0.0/16"])]
    (peer,) = again.intent.peers.all(again.db.snapshot())
    assert (peer.password is not None, peer.held_password) == (True, None)
    again.delete(FRR_CONFIGURATION, "y", NAMESPACE)
    assert state(again) == [(PEER, 179, ["10.4.0.0/16"])]


@pytest.mark.parametrize(
    ("mode", "held"),
    [("clear", ["10.2.0.0/16"]), ("isolate", ["10.2.0.0/16", "10.3.0.0/16"])],
)
def test_after_another_mode_the_last_state_without_conflicts_is_kept(
    mode: OnConflict, held: list[str]
) -> None:
    before = cluster(mode)
    put(before, "x", "10.1.0.0/16")
    before.run()
    put(before, "x", "10.2.0.0/16")
    before.run()
    put(before, "y", port=9)
    put(before, "z", "10.3.0.0/16")
    before.run()
    again = cluster("keep", encoded(before))
    put(again, "x", "10.2.0.0/16")
    put(again, "y", port=9)
    put(again, "z", "10.3.0.0/16")
    assert state(again) == [(PEER, 179, held)]


def test_a_state_that_is_not_one_is_refused() -> None:
    it = cluster()
    put(it, "x", "10.1.0.0/16")
    it.run()
    octets = encoded(it)
    for end in range(len(octets)):
        with pytest.raises(ValueError, match="not understood"):
            STORED_STATE.restore(dialect(it), octets[:end])


def test_the_memory_changes_with_the_objects_only() -> None:
    it = cluster()
    put(it, "x", "10.1.0.0/16")
    it.run()
    before = memory_of(it)
    it.put(NODE, node(other="label"))
    it.run()
    assert memory_of(it) is before
    put(it, "x", "10.2.0.0/16")
    it.run()
    assert memory_of(it) is not before


def test_the_last_good_password_counts_while_the_state_is_bad() -> None:
    def secret(password: str) -> dict[str, Any]:
        return {
            "metadata": {"name": "s", "namespace": NAMESPACE},
            "type": "kubernetes.io/basic-auth",
            "stringData": {"password": password},
        }

    it = cluster()
    it.put(SECRET, secret("first"))
    put(it, "x", passwordSecret={"name": "s"})

    def held() -> bytes | None:
        it.run()
        (peer,) = it.intent.peers.all(it.db.snapshot())
        return None if peer.held_password is None else peer.held_password.reveal()

    assert held() is None  # The Secret is followed.
    it.delete(SECRET, "s", NAMESPACE)
    assert held() == b"first"
    it.put(SECRET, secret("second"))
    assert held() is None
