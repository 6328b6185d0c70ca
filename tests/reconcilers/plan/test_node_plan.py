"""What a plan has of one session, for each pair of its states."""

from __future__ import annotations

from typing import Any

import pytest

from reconcilers.plan import NodeState, SessionChange, node_plan
from reconcilers.plan.node_state import PeerState
from speaker.api import BfdProfile, InstanceConfig, PeerConfig, PrefixRule
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST

INSTANCE = InstanceConfig(name="main", local_asn=65001, router_id="192.0.2.11")
DOWN = "no Secret kube-system/bgp"


def state(**settings: Any) -> NodeState:  # noqa: ANN401
    given: dict[str, Any] = {"name": "tor", "address": "192.0.2.1", "peer_asn": 65000, **settings}
    peer = PeerState(PeerConfig(**given), "BGPPeer/tor")
    return NodeState({"main": INSTANCE}, {("main", "tor"): peer})


def change(before: NodeState, after: NodeState) -> SessionChange | None:
    sessions = node_plan(before, after).sessions
    assert len(sessions) <= 1
    return next(iter(sessions), None)


@pytest.mark.parametrize(
    ("before", "after", "expected", "fields"),
    [
        ({}, {}, None, []),
        ({}, {"hold_time": 30}, "reset", ["holdTime"]),
        ({}, {"connect_retry_time": 9}, "update", ["connectRetryTime"]),
        ({}, {"peer_asn": 65010}, "replace", ["peerASN"]),
        ({}, {"disabled_reason": DOWN}, "stop", ["disabledReason"]),
        ({"disabled_reason": DOWN}, {}, "start", ["disabledReason"]),
        ({"disabled_reason": DOWN}, {"hold_time": 30}, "start", ["holdTime", "disabledReason"]),
        ({"disabled_reason": DOWN}, {"disabled_reason": "other"}, "update", ["disabledReason"]),
        ({"disabled_reason": DOWN}, {"disabled_reason": DOWN}, None, []),
        ({}, {"import_": "all"}, "update", ["import"]),
        ({"bfd": BfdProfile()}, {"bfd": BfdProfile(passive=True)}, "update", ["bfd.passive"]),
        ({"bfd": BfdProfile()}, {}, "update", ["bfd"]),
    ],
)
def test_the_effect_on_a_session_and_its_fields(
    before: dict[str, Any], after: dict[str, Any], expected: str | None, fields: list[str]
) -> None:
    found = change(state(**before), state(**after))
    assert (None if found is None else found.change) == expected
    if found is not None:
        assert sorted(field.name for field in found.fields) == sorted(fields)
        assert found.message == (after.get("disabled_reason") or "")
        assert (found.address, found.object) == ("192.0.2.1", "BGPPeer/tor")


def test_values_are_json_with_the_names_of_the_api() -> None:
    rules = (PrefixRule("10.0.0.0/8", 8, 24),)
    found = change(
        state(families=(IPV4_UNICAST,)),
        state(families=(IPV4_UNICAST, IPV6_UNICAST), import_=rules, bfd=BfdProfile()),
    )
    assert found is not None
    values = {field.name: field.after for field in found.fields}
    assert values["families"] == ["ipv4-unicast", "ipv6-unicast"]
    assert values["import"] == [{"prefix": "10.0.0.0/8", "ge": 8, "le": 24}]
    assert (values["bfd"]["minimumTTL"], values["bfd"]["detectMultiplier"]) == (254, 3)
    assert not any("_" in name for name in values["bfd"])
