"""BGPPolicy and Egress: what is accepted, what defaults are, and the field that is named when not."""

from __future__ import annotations

from typing import Any

import pytest

from resources.antrea.kinds import BGP_POLICY, EGRESS
from resources.errors import InvalidObject

PEER = {"address": "10.30.4.1", "asn": 64600}


def policy(**changes: Any) -> dict[str, Any]:  # noqa: ANN401
    spec = {"nodeSelector": {}, "localASN": 64620, "bgpPeers": [PEER], **changes}
    spec = {key: value for key, value in spec.items() if value is not None}
    return {"metadata": {"name": "p"}, "spec": spec}


def peer(**fields: Any) -> dict[str, Any]:  # noqa: ANN401
    found = {key: value for key, value in {**PEER, **fields}.items() if value is not None}
    return policy(bgpPeers=[found])


def expression(**fields: Any) -> dict[str, Any]:  # noqa: ANN401
    return policy(nodeSelector={"matchExpressions": [fields]})


def test_defaults_are_antreas() -> None:
    spec = BGP_POLICY.decode(policy()).spec
    (found,) = spec.bgp_peers
    assert (spec.listen_port, spec.confederation, spec.advertisements.service) == (179, None, None)
    assert (found.port, found.multihop_ttl, found.graceful_restart_time_seconds) == (179, 1, 120)


ACCEPTED = [
    policy(),
    policy(bgpPeers=None),
    policy(advertisements={}),
    policy(bgpPeers=[PEER, PEER]),
    policy(bgpPeers=[{"address": "10.30.4.1", "asn": 64620}]),
    policy(confederation={"identifier": 65010}),
    policy(confederation={"identifier": 65010, "memberASNs": [64622, 64621]}),
    peer(address="2001:DB8::1"),
    peer(multihopTTL=255, gracefulRestartTimeSeconds=3600, port=65535),
    expression(key="pool", operator="Exists"),
]


@pytest.mark.parametrize("value", ACCEPTED)
def test_accepted(value: dict[str, Any]) -> None:
    BGP_POLICY.decode(value)
    assert BGP_POLICY.unknown_fields(value) == []


SPEC, PEERS = "spec", "spec.bgpPeers[0]"
EXPRESSION = "spec.nodeSelector.matchExpressions[0]"
REJECTED = [
    (policy(nodeSelector=None), f"{SPEC}.nodeSelector"),
    (policy(localASN=None), f"{SPEC}.localASN"),
    (policy(localASN=0), f"{SPEC}.localASN"),
    (policy(localASN=4294967295), f"{SPEC}.localASN"),
    (policy(listenPort=0), f"{SPEC}.listenPort"),
    (policy(listenPort=65536), f"{SPEC}.listenPort"),
    (
        policy(advertisements={"service": {"ipTypes": ["NodePort"]}}),
        f"{SPEC}.advertisements.service.ipTypes[0]",
    ),
    (policy(confederation={}), f"{SPEC}.confederation.identifier"),
    (policy(confederation={"identifier": 0}), f"{SPEC}.confederation.identifier"),
    (policy(confederation={"identifier": 65536}), f"{SPEC}.confederation.identifier"),
    (
        policy(confederation={"identifier": 1, "memberASNs": [0]}),
        f"{SPEC}.confederation.memberASNs[0]",
    ),
    (peer(asn=None), f"{PEERS}.asn"),
    (peer(asn=0), f"{PEERS}.asn"),
    (peer(address=None), f"{PEERS}.address"),
    (peer(address="rtr1.example.test"), f"{PEERS}.address"),
    (peer(address="10.0.0.01"), f"{PEERS}.address"),
    (peer(address="fe80::1%eth0"), f"{PEERS}.address"),
    (peer(port=0), f"{PEERS}.port"),
    (peer(multihopTTL=0), f"{PEERS}.multihopTTL"),
    (peer(multihopTTL=256), f"{PEERS}.multihopTTL"),
    (peer(gracefulRestartTimeSeconds=0), f"{PEERS}.gracefulRestartTimeSeconds"),
    (peer(gracefulRestartTimeSeconds=3601), f"{PEERS}.gracefulRestartTimeSeconds"),
    (peer(holdTimeSeconds=2), f"{PEERS}.holdTimeSeconds"),
    (peer(keepaliveIntervalSeconds=90), f"{PEERS}.keepaliveIntervalSeconds"),
    (peer(holdTimeSeconds=9, keepaliveIntervalSeconds=9), f"{PEERS}.keepaliveIntervalSeconds"),
    (peer(connectRetrySeconds=1), f"{PEERS}.connectRetrySeconds"),
    (peer(idleHoldTimeAfterResetSeconds=0), f"{PEERS}.idleHoldTimeAfterResetSeconds"),
    (peer(bfd={}), f"{PEERS}.bfd.enabled"),
    (peer(bfd={"enabled": True, "detectionMultiplier": 0}), f"{PEERS}.bfd.detectionMultiplier"),
    (
        peer(bfd={"enabled": True, "transmitIntervalMilliseconds": 49}),
        f"{PEERS}.bfd.transmitIntervalMilliseconds",
    ),
    (
        peer(bfd={"enabled": True, "minReceiveIntervalMilliseconds": 9}),
        f"{PEERS}.bfd.minReceiveIntervalMilliseconds",
    ),
    (
        peer(
            bfd={
                "enabled": True,
                "receiveIntervalMilliseconds": 50,
                "minReceiveIntervalMilliseconds": 50,
            }
        ),
        f"{PEERS}.bfd.minReceiveIntervalMilliseconds",
    ),
    (expression(key="pool", operator="In"), f"{EXPRESSION}.values"),
    (expression(key="pool", operator="NotIn", values=[]), f"{EXPRESSION}.values"),
    (expression(key="pool", operator="Exists", values=["a"]), f"{EXPRESSION}.values"),
    (expression(key="", operator="Exists"), f"{EXPRESSION}.key"),
    (expression(operator="Exists"), f"{EXPRESSION}.key"),
    (expression(key="pool", operator="Near"), f"{EXPRESSION}.operator"),
    (expression(key="pool", operator="In", values=["-a"]), f"{EXPRESSION}.values[0]"),
]


@pytest.mark.parametrize(("value", "field"), REJECTED, ids=[f for _, f in REJECTED])
def test_rejected(value: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidObject) as caught:
        BGP_POLICY.decode(value)
    assert [error.path for error in caught.value.errors] == [field]


def test_an_unknown_field_is_named() -> None:
    (error,) = BGP_POLICY.unknown_fields(peer(multihopTtl=3))
    assert (error.path, "did you mean multihopTTL?" in error.message) == (
        f"{PEERS}.multihopTtl",
        True,
    )


@pytest.mark.parametrize("address", ["", "10.30.4.200", "2001:db8::1"])
def test_an_egress_may_have_no_address(address: str) -> None:
    value = {"metadata": {"name": "e"}, "status": {"egressIP": address}}
    assert EGRESS.decode(value).status.egress_ip == address


def test_an_egress_with_another_text_is_rejected() -> None:
    with pytest.raises(InvalidObject) as caught:
        EGRESS.decode({"metadata": {"name": "e"}, "status": {"egressIP": "pending"}})
    assert [error.path for error in caught.value.errors] == ["status.egressIP"]
