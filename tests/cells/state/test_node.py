"""The node cell: the name of the node, and the process that the agent is."""

from __future__ import annotations

import os
import resource
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cells.hive import SettingError
from cells.options import NodeOptions
from cells.state import node
from cells.state.node import ThisNode, process_attributes, process_resource


def test_the_name_of_the_node_is_the_setting_or_the_host_name_in_lower_case(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "Rack-7 ")
    assert ThisNode(NodeOptions()).name == "rack-7"
    assert ThisNode(NodeOptions(name="Worker-1")).name == "Worker-1"
    with pytest.raises(SettingError, match="--node-name"):
        ThisNode(NodeOptions(name=""))


def test_the_process_is_as_the_kernel_accounts_for_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    statm = tmp_path / "statm"
    statm.write_text("900 250 30 4 0 5 0\n")
    monkeypatch.setattr(node, "STATM", statm)
    usage = SimpleNamespace(ru_utime=1.25, ru_stime=0.00062)
    monkeypatch.setattr(resource, "getrusage", lambda _: usage)
    it = process_resource(ThisNode(NodeOptions(name="n1")))
    assert (it.path, it.kind) == ("/v1/process", "ProcessList")
    answer: Any = it.read({})
    (item,) = answer
    assert (item.node, item.pid, item.cpu_seconds) == ("n1", os.getpid(), 1.251)
    assert item.resident_octets == 250 * os.sysconf("SC_PAGE_SIZE")
    assert item.start_time.microsecond == 0


def test_spans_name_the_node_and_the_pod() -> None:
    of_node = {"service.name": "waggle-agent", "k8s.node.name": "n1"}
    options = NodeOptions(name="n1", pod_namespace="agents", pod_name="agent-x", pod_uid="1-2")
    assert process_attributes(ThisNode(options)) == {
        **of_node,
        "k8s.namespace.name": "agents",
        "k8s.pod.name": "agent-x",
        "k8s.pod.uid": "1-2",
    }
    without = process_attributes(ThisNode(NodeOptions(name="n1")))
    assert {name: value for name, value in without.items() if value} == of_node
