"""Cilium's agent as an API server knows it: its DaemonSet, and the ConfigMap that turns BGP on."""

from __future__ import annotations

from tests.support.kubernetes.accounts import put
from tests.support.kubernetes.server import KubeApiServer

DAEMON_SETS = "/apis/apps/v1/namespaces/kube-system/daemonsets"
CONFIG_MAPS = "/api/v1/namespaces/kube-system/configmaps"


def put_cilium(server: KubeApiServer, *, ready: int = 3, bgp: str = "true") -> None:
    """Make Cilium run, or change how many of its pods are ready and whether it speaks BGP."""
    labels = {"k8s-app": "cilium"}
    pod = {"containers": [{"name": "cilium-agent", "image": "cilium"}]}
    daemon_set = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "cilium", "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }
    put(server, DAEMON_SETS, daemon_set)
    counts = {"currentNumberScheduled": 3, "desiredNumberScheduled": 3, "numberMisscheduled": 0}
    status = {"status": {**counts, "numberReady": ready}}
    path = f"{DAEMON_SETS}/cilium/status"
    answer = server.request("PATCH", path, status, "merge-patch+json")
    assert answer.ok, answer.body
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cilium-config"}}
    put(server, CONFIG_MAPS, {**config, "data": {"enable-bgp-control-plane": bgp}})


def delete_cilium(server: KubeApiServer) -> None:
    """Delete it, where it is."""
    server.request("DELETE", f"{DAEMON_SETS}/cilium")
    server.request("DELETE", f"{CONFIG_MAPS}/cilium-config")
