"""The checks of ``waggle doctor``: evidence in, findings out."""

from __future__ import annotations

from typing import Any

import pytest

from cells.dialects import cilium, frrk8s
from reconcilers.dialect import Check, ClusterEvidence, Evidence, NodeEvidence
from reconcilers.dialect.diagnosis import Access, Certificate
from reconcilers.doctor import checks_of, examine, kinds_of_checks
from resources.cilium.kinds import CLUSTER_CONFIG
from waggle.__main__ import main
from waggle.dialects import DIALECTS

NOW = 1_700_000_000.0
DAY = 86400.0
DIALECT_CHECKS = checks_of([cilium.DIALECT.load(), frrk8s.DIALECT.load()])
UP = {"instance": "main", "name": "tor-1", "address": "192.0.2.1", "state": "Established"}
SERVED = frozenset({"ciliumbgpclusterconfigs.cilium.io"})


def node(name: str, *peers: dict[str, Any], **fields: Any) -> NodeEvidence:  # noqa: ANN401
    status = {"ready": True, "health": "ok", "peers": list(peers), **fields.pop("status", {})}
    return NodeEvidence(node=name, version=fields.pop("version", "1.0"), status=status, **fields)


def host(**members: object) -> dict[str, Any]:
    return {"supports": {}, "interfaces": [], "instances": [], **members}


def down(**members: object) -> dict[str, Any]:
    return {**UP, "state": "Active", "reason": "x", **members}


def evidence(*nodes: NodeEvidence, **cluster: Any) -> Evidence:  # noqa: ANN401
    fields = {"version": "v1.34.0", "served": SERVED, **cluster}
    return Evidence(now=NOW, cluster=ClusterEvidence(**fields), nodes=nodes)


def findings(given: Evidence) -> list[tuple[str, str, str, str, str]]:
    """Return check, level, node, object and evidence of everything that is found."""
    return [
        (result.check.name, f.level, f.node, f.object, f.evidence)
        for result in examine(given, DIALECT_CHECKS)
        for f in result.findings
    ]


def test_a_sound_cluster_has_no_findings() -> None:
    given = evidence(node("a", UP, host=host()), node("b", UP, host=host()))
    assert findings(given) == []
    assert [r.check.name for r in examine(given, DIALECT_CHECKS) if r.skipped] == []


def many(asn: int, *names: str, **fields: Any) -> list[NodeEvidence]:  # noqa: ANN401
    """Return nodes with sessions of one AS number."""
    return [node(name, {**UP, "localASN": asn}, **fields) for name in names]


LOOP = {"peer": "tor-1", "status": "own AS in the AS path"}
FROM_A = {"instances": [{"name": "m", "routerID": "1.1.1.1"}]}
FROM_B = {"instances": [{"name": "m", "routerID": "2.2.2.2"}]}


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(
            evidence(*many(65001, "a", "b", "c", received=[LOOP]), *many(65002, "d")),
            id="nodes of one AS number drop each other's routes",
        ),
        pytest.param(
            evidence(
                *many(65001, "a", received=[LOOP]), sessions={"b": [{**UP, "localASN": 65001}]}
            ),
            id="the other nodes are known by their statuses alone",
        ),
        pytest.param(
            Evidence(now=NOW, nodes=(*many(65001, "a", received=[LOOP]),)),
            id="of one node alone a shared AS number is not known",
        ),
        pytest.param(
            evidence(
                node("a", {**UP, "peerRouterID": "2.2.2.2"}, host=host(**FROM_A)),
                node("b", {**UP, "peerRouterID": "1.1.1.1"}, host=host(**FROM_B)),
            ),
            id="nodes are peers of each other",
        ),
        pytest.param(
            evidence(
                node("a", UP, {**down(), "instance": "blue"}),
                sessions={"a": [{**down(), "instance": "vrf-blue"}, UP]},
            ),
            id="peers of one address in two instances",
        ),
        pytest.param(
            evidence(node("a", {**UP, "reason": "an update was refused"})),
            id="a word of another reason",
        ),
        pytest.param(
            evidence(
                certificates=(Certificate("mine", NOW + 6 * 3600, "renew", lifetime=12 * 3600),)
            ),
            id="a certificate of hours that is renewed every day",
        ),
        pytest.param(
            evidence(served=frozenset(), unread={"kinds": "no answer in time"}),
            id="definitions that could not be read",
        ),
    ],
)
def test_what_is_usual_is_no_finding(given: Evidence) -> None:
    # That a session is down is one of its own.
    assert [found for found in findings(given) if found[0] != "sessions"] == []


def test_two_nodes_with_one_as_number_among_others_with_their_own_are_a_finding() -> None:
    nodes = [many(65000 + number, name) for number, name in enumerate("cdef")]
    clash = many(64999, "a", "b", received=[LOOP])
    found = findings(evidence(*clash, *(one for (one,) in nodes)))
    assert [(check, where) for check, _, where, *_ in found] == [("asns", "a"), ("asns", "b")]


def test_a_part_that_cannot_be_read_is_no_success() -> None:
    unread = dict.fromkeys(("kinds", "rights", "certificates", "objects", "statuses"), "forbidden")
    results = examine(evidence(unread=unread), DIALECT_CHECKS)
    skipped = [r.check.name for r in results if r.skipped == "forbidden"]
    assert skipped == ["crds", "rbac", "tls", "statuses", "cilium", "frrk8s"]


def test_without_an_answer_of_an_agent_nothing_is_reported_of_agents() -> None:
    results = examine(evidence(NodeEvidence(node="a", error="silent")), DIALECT_CHECKS)
    named = {result.check.name: result for result in results if result.check.needs == "agents"}
    assert named.pop("agents").findings[0].evidence == "silent"
    assert {result.skipped for result in named.values()} == {"no agent has answered"}


@pytest.mark.parametrize(
    ("hours", "text"),
    [
        (1.0, "expires in 1 hour"),
        (0.2, "expires in 1 hour"),
        (-0.2, "has expired 1 hour ago"),
        (-5.5, "has expired 6 hours ago"),
        (-49, "has expired 2 days ago"),
    ],
)
def test_a_certificate_of_hours_has_its_last_ones_counted(hours: float, text: str) -> None:
    mine = Certificate("mine", NOW + hours * 3600, "renew", lifetime=12 * 3600)
    ((*_, evidence_of_it),) = findings(evidence(certificates=(mine,)))
    assert evidence_of_it == f"mine {text}"


def test_the_order_is_that_of_an_engineer() -> None:
    names = [check.name for check in DIALECT_CHECKS]
    assert names[:5] == ["api-server", "crds", "rbac", "agents", "versions"]
    assert names.index("clock") < names.index("port") < names.index("md5") < names.index("ttl")
    assert names[-2:] == ["cilium", "frrk8s"]
    assert len(set(names)) == len(names)


def test_without_an_api_server_its_checks_are_skipped() -> None:
    away = Evidence(now=NOW, cluster=ClusterEvidence(error="cannot reach x"), nodes=())
    results = {result.check.name: result for result in examine(away, DIALECT_CHECKS)}
    assert results["api-server"].findings[0].evidence == "cannot reach x"
    assert results["crds"].skipped == "the API server does not answer"
    assert results["agents"].skipped == "there is no answer of an agent"
    alone = Evidence(now=NOW, nodes=(node("a", UP),))
    assert all(r.skipped for r in examine(alone, DIALECT_CHECKS) if r.check.needs == "cluster")


def test_an_error_of_one_check_is_its_result_alone() -> None:
    nonsense = evidence(node("a", {"state": "Active"}))
    results = {result.check.name: result for result in examine(nonsense, DIALECT_CHECKS)}
    assert "not understood: KeyError" in results["sessions"].skipped
    assert not results["versions"].skipped


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(
            evidence(served=frozenset()),
            ("crds", "error", "", "", "the API server has no kind of any BGP API"),
            id="no definitions",
        ),
        pytest.param(
            evidence(missing=frozenset({"bgppeers.metallb.io"})),
            (
                "crds",
                "warning",
                "",
                "bgppeers.metallb.io",
                "it is not served in a version that Waggle reads; other kinds beside it are",
            ),
            id="an old definition",
        ),
        pytest.param(
            evidence(access=(Access("create", "pods/exec", "w", allowed=False),)),
            ("rbac", "warning", "", "", "you may not create pods/exec in namespace w"),
            id="the person lacks a right",
        ),
        pytest.param(
            evidence(
                node("a", status={"degraded": [{"path": "k", "message": "may not list services"}]})
            ),
            ("rbac", "error", "a", "k", "may not list services"),
            id="an agent lacks a right",
        ),
        pytest.param(
            evidence(NodeEvidence(node="a", error="no complete answer within 10 s")),
            ("agents", "error", "a", "", "no complete answer within 10 s"),
            id="a silent agent",
        ),
        pytest.param(
            evidence(node("a"), node("b"), node("c", version="0.9")),
            ("versions", "warning", "", "", "1.0 on a and 1 more; 0.9 on c"),
            id="two versions",
        ),
        pytest.param(
            evidence(node("a", clock_ahead=-90.0)),
            ("clock", "warning", "a", "", "its clock is 90 s behind this host's"),
            id="a clock that is wrong",
        ),
        pytest.param(
            evidence(clock_ahead=30.0),
            ("clock", "warning", "", "", "the API server's clock is 30 s ahead of this host's"),
            id="an API server with another time",
        ),
        pytest.param(
            evidence(node("a", host=host(clockSynchronized=False))),
            ("clock", "warning", "a", "", "the kernel's clock is not synchronized"),
            id="a clock without synchronization",
        ),
        pytest.param(
            evidence(node("a", host=host(instances=[{"name": "main", "listenError": "in use"}]))),
            ("port", "error", "a", "main", "in use"),
            id="port 179 is taken",
        ),
        pytest.param(
            evidence(node("a", down(likelyCause="it expects another number of hops", reason="r"))),
            ("ttl", "error", "a", "tor-1", "r"),
            id="hops",
        ),
        pytest.param(
            evidence(node("a", {**UP, "flaps": 3, "lastError": "sent: Hold Timer Expired"})),
            (
                "ttl",
                "warning",
                "a",
                "tor-1",
                "it was lost 3 times, at last: sent: Hold Timer Expired",
            ),
            id="a path that loses long packets",
        ),
        pytest.param(
            evidence(
                *(node(n, host=host(interfaces=[{"name": "eth0", "mtu": 9000}])) for n in "ab"),
                node("c", host=host(interfaces=[{"name": "eth0", "mtu": 1500}])),
            ),
            ("mtu", "warning", "c", "eth0", "its MTU is 1500, and 9000 on 2 other nodes"),
            id="an MTU that is lower than the others",
        ),
        pytest.param(
            evidence(
                *(
                    node(n, host=host(instances=[{"name": "m", "routerID": "1.1.1.1"}]))
                    for n in "ab"
                )
            ),
            ("router-ids", "error", "", "", "router ID 1.1.1.1 is that of a, b"),
            id="two nodes with one router ID",
        ),
        pytest.param(
            evidence(
                node("a", UP, received=[{"peer": "tor-1", "status": "own AS in the AS path"}])
            ),
            (
                "asns",
                "warning",
                "a",
                "tor-1",
                "1 received route has this node's AS number in its path",
            ),
            id="two places with one AS number",
        ),
        pytest.param(
            evidence(
                node("a", {**UP, "advertised": [{"family": "v4", "leftOut": 2, "reason": "r"}]})
            ),
            ("routes", "error", "a", "tor-1", "2 v4 routes are not advertised: r"),
            id="routes that the session does not carry",
        ),
        pytest.param(
            evidence(certificates=(Certificate("the certificate", NOW + 3 * DAY, "renew"),)),
            ("tls", "warning", "", "", "the certificate expires in 3 days"),
            id="a certificate that expires",
        ),
        pytest.param(
            evidence(certificates=(Certificate("the certificate", NOW - 2 * DAY, "renew"),)),
            ("tls", "error", "", "", "the certificate has expired 2 days ago"),
            id="a certificate that has expired",
        ),
        pytest.param(
            evidence(node("a", UP), sessions={"a": [{**down(), "source": "BGPSessionState/x"}]}),
            (
                "statuses",
                "warning",
                "a",
                "tor-1",
                "BGPSessionState/x has Active, the agent has Established",
            ),
            id="a stale status",
        ),
        pytest.param(
            evidence(nodes=frozenset({"a"}), sessions={"gone": [{**UP, "source": "X/gone"}]}),
            ("statuses", "warning", "gone", "", "X/gone: there is no Node gone"),
            id="the status of a node that is gone",
        ),
        pytest.param(
            evidence(
                node(
                    "a",
                    {**UP, "authentication": "TCP MD5"},
                    host=host(supports={"tcpMD5": False}),
                )
            ),
            (
                "kernel",
                "error",
                "a",
                "",
                "peers have TCP MD5 passwords, which this kernel does not support",
            ),
            id="a kernel without TCP MD5",
        ),
        pytest.param(
            evidence(
                *(
                    node(
                        n, status={"problems": [{"objects": ["X/y"], "field": "f", "message": "m"}]}
                    )
                    for n in "ab"
                )
            ),
            ("objects", "error", "", "X/y", "f: m (on 2 nodes)"),
            id="an invalid object",
        ),
        pytest.param(
            evidence(
                objects={
                    CLUSTER_CONFIG.name: [
                        {
                            "metadata": {"name": "rack"},
                            "status": {
                                "conditions": [
                                    {"type": "cilium.io/NoMatchingNode", "status": "True"},
                                    {"type": "cilium.io/MissingPeerConfigs", "status": "False"},
                                ]
                            },
                        }
                    ]
                }
            ),
            (
                "cilium",
                "error",
                "",
                "CiliumBGPClusterConfig/rack",
                "cilium.io/NoMatchingNode=True: ",
            ),
            id="a condition of a dialect's object",
        ),
    ],
)
def test_a_fault_is_one_finding(given: Evidence, expected: tuple[str, ...]) -> None:
    assert findings(given) == [expected]


def test_each_finding_has_a_remedy_and_each_dialect_kind_is_read() -> None:
    given = evidence(node("a", down(reason="refused")), served=frozenset())
    found = [f for result in examine(given, DIALECT_CHECKS) for f in result.findings]
    assert {f.remedy != "" for f in found} == {True}
    assert CLUSTER_CONFIG in kinds_of_checks([cilium.DIALECT.load()])


def test_a_check_of_a_dialect_is_made_by_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    checks: list[Check] = list(checks_of(DIALECTS.load()))
    assert {"cilium", "frrk8s"} <= {check.name for check in checks}
    monkeypatch.setenv("WAGGLE_API_SOCKET", "/nonexistent/agent.sock")
    assert main(["doctor"]) == 2
    assert "no agent runs here" in capsys.readouterr().err
