"""A cluster's API server, an agent and BIRD: what kubectl applies is what the router holds.

The API server is a real one, out of the agent's network namespace; the way to it can be cut. One
cluster serves all tests here, and each leaves it as it found it: `web` is advertised, and nothing of
the test's own. What a test takes away from the agent (its API server, its process) is from the list
of failures in docs/reliability.md.
"""

from __future__ import annotations

import json
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from tests.interop.conftest import NeedRouter
from tests.interop.one_node_cluster import (
    ASN,
    NAMESPACE,
    NODE,
    OURS,
    POD_CIDR,
    WEB,
    Cluster,
    running,
    service,
)
from tests.support.kubernetes.server import KubeApiServer
from tests.support.wait import PATIENCE, eventually

pytestmark = [
    pytest.mark.apiserver,
    pytest.mark.interop,
    pytest.mark.netns,
    pytest.mark.program,
    pytest.mark.timeout(300),
]

METRICS = 9877


@pytest.fixture(scope="module")
def cluster(
    apiserver: KubeApiServer, need_router: NeedRouter, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """A cluster with one node, whose agent has a session with BIRD."""
    need_router("bird")
    directory = tmp_path_factory.mktemp("cluster")
    arguments = [
        *("--http-address", str(METRICS)),
        *("--snapshot-file", str(directory / "snapshot")),
        *("--snapshot-after-seconds", "10"),
    ]
    with running(apiserver, directory, arguments=arguments) as made:
        yield made


@pytest.fixture
def web(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster with one Service advertised, all parts running and the way open."""
    node = {"metadata": {"labels": {"bgp": "cluster-test"}}}
    answer = cluster.server.request("PATCH", f"/api/v1/nodes/{NODE}", node, "merge-patch+json")
    assert answer.ok, answer.body
    cluster.put("web", "198.51.100.10")
    cluster.holds(WEB)
    yield cluster
    cluster.relay.open()
    if not cluster.agent.daemon.running:
        cluster.agent.start()


def test_manifests_applied_with_kubectl_become_routes_at_a_router(cluster: Cluster) -> None:
    # Nothing selects the node yet.
    assert cluster.held() == set()
    kubectl = cluster.server.kubectl
    kubectl("label", "node", NODE, "bgp=cluster-test")
    cluster.holds()
    kubectl("apply", "-f", "-", text=json.dumps(service("web", "198.51.100.10")))
    cluster.holds(WEB)
    route = cluster.bird.routes("ipv4-unicast")[WEB]
    assert (route.next_hop, route.as_path) == (OURS, (ASN,))
    before = cluster.counts()
    kubectl("-n", NAMESPACE, "delete", "service", "web")
    cluster.holds()
    after = cluster.counts()
    assert after == (before[0], before[1], before[2] + 1)


def test_f01_an_outage_withdraws_no_route_and_changes_meanwhile_are_reconciled_afterwards(
    web: Cluster,
) -> None:
    before = web.counts()
    web.relay.cut()
    web.put("late", "198.51.100.11")
    web.reports("kubernetes/Service", f"cannot reach {web.server.url}: ")
    web.quiet(WEB)
    web.relay.open()
    web.holds(WEB, "198.51.100.11/32")
    assert web.counts() == (before[0], before[1] + 1, before[2])
    web.reports("kubernetes/Service", "listed, and watched since")
    web.delete("late")
    web.holds(WEB)


def test_a_service_changed_during_an_api_server_restart_is_reconciled_afterwards(
    web: Cluster,
) -> None:
    web.put("moved", "198.51.100.20")
    web.put("gone", "198.51.100.21")
    web.holds(WEB, "198.51.100.20/32", "198.51.100.21/32")
    before = web.counts()
    web.server.crash_server()
    web.server.start_server()
    # As soon as it answers, before the agent has come back to it.
    web.delete("gone")
    web.put("moved", "198.51.100.22")
    web.holds(WEB, "198.51.100.22/32")
    token, updates, withdrawals = web.counts()
    assert (token, updates, withdrawals) == (before[0], before[1] + 1, before[2] + 2)
    web.delete("moved")
    web.holds(WEB)


def test_f04_compaction_forces_a_new_list_without_lost_or_duplicate_changes(web: Cluster) -> None:
    for number in range(3):
        web.put(f"s{number}", f"198.51.100.{30 + number}")
    web.holds(WEB, *(f"198.51.100.{30 + number}/32" for number in range(3)))
    before = web.counts()
    lists = _lists(web)
    web.relay.cut()
    web.delete("s0")
    web.put("s1", "198.51.100.41")
    web.put("s3", "198.51.100.33")
    services = web.server.request("GET", f"/api/v1/namespaces/{NAMESPACE}/services").body
    web.server.compact(services["metadata"]["resourceVersion"])
    # The API server remembers events besides what etcd does.
    web.server.crash_server()
    web.server.start_server()
    assert web.held() == {POD_CIDR, WEB, *(f"198.51.100.{30 + number}/32" for number in range(3))}
    web.relay.open()
    web.holds(WEB, "198.51.100.41/32", "198.51.100.32/32", "198.51.100.33/32")
    # Each change once: two new prefixes, two that went, and not a word about the others.
    assert web.counts() == (before[0], before[1] + 2, before[2] + 2)
    assert _lists(web) == lists + 1
    for number in range(1, 4):
        web.delete(f"s{number}")
    web.holds(WEB)


def _lists(cluster: Cluster) -> int:
    """Return how many complete lists of Services the agent has read since it was started."""
    url = f"http://127.0.0.1:{METRICS}/metrics"
    ask = f"import urllib.request as u; print(u.urlopen('{url}').read().decode())"
    assert cluster.agent.daemon.namespace is not None
    text = cluster.agent.daemon.namespace.run(sys.executable, "-c", ask)
    found = re.search(r'waggle_kubernetes_lists_total{kind="Service",namespace=""} (\d+)', text)
    assert found, text
    return int(found[1])


def test_f02_an_agent_that_starts_without_api_server_advertises_the_snapshot(web: Cluster) -> None:
    web.reports("snapshot", "has the objects of")
    web.agent.stop()
    web.relay.cut()
    web.agent.start()
    web.agent.wait_ready()
    web.reports("snapshot", "no answer from the API server: the objects of")
    web.holds(WEB)
    web.put("late", "198.51.100.11")
    web.delete("web")
    web.quiet(WEB)
    web.relay.open()
    web.holds("198.51.100.11/32")
    web.delete("late")


def test_f21_an_agent_that_is_killed_and_comes_back_loses_no_route(web: Cluster) -> None:
    _comes_back(web, web.agent.daemon.kill)


def test_f20_an_agent_that_is_updated_leaves_its_routes_with_its_peers(web: Cluster) -> None:
    def end() -> None:
        web.agent.daemon.signal(signal.SIGTERM)
        assert web.agent.daemon.wait(60) == 0

    _comes_back(web, end)
    assert not web.bird.received_cease()


def _comes_back(web: Cluster, end: Callable[[], None]) -> None:
    """End the agent, start it again, and look at the router all the time."""
    token, updates, withdrawals = web.counts()
    end()
    web.quiet(WEB)
    web.agent.start()
    deadline = time.monotonic() + PATIENCE
    while True:
        assert web.held() == {POD_CIDR, WEB}
        (now,) = web.bird.peers().values()
        if now.established and now.uptime_token != token:
            break
        assert time.monotonic() < deadline, web.logs()
        time.sleep(0.03)
    expected = (now.uptime_token, updates + 2, withdrawals)

    def advertised_again() -> None:
        assert web.counts() == expected

    # It advertises all routes again, then End-of-RIB.
    eventually(advertised_again, context=web.logs)
    web.quiet(WEB)
    advertised_again()
