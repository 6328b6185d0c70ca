"""Finds the objects of a rendered chart, and reads the settings of its programs."""

from __future__ import annotations

from typing import Any

from cells.hive import Settings, load
from cells.hive.hive import Hive
from tests.support import plain_yaml
from waggle_agent.__main__ import CELLS as AGENT_CELLS
from waggle_operator.__main__ import CELLS as OPERATOR_CELLS

Object = dict[str, Any]


def find(objects: list[Object], kind: str, name: str) -> Object:
    """Find the one object of a kind and name."""
    (found,) = [o for o in objects if (o["kind"], o["metadata"]["name"]) == (kind, name)]
    return found


def pod(objects: list[Object], part: str) -> Object:
    """Give the Pod template of a part."""
    kind = "Deployment" if part == "operator" else "DaemonSet"
    found: Object = find(objects, kind, f"waggle-{part}")["spec"]["template"]
    return found


def container(objects: list[Object], part: str, name: str = "") -> Object:
    """Give a container of a part: that of its program, unless named otherwise."""
    containers = pod(objects, part)["spec"]["containers"]
    (found,) = [each for each in containers if each["name"] == (name or part)]
    return dict(found)


def settings(objects: list[Object], part: str) -> Settings:
    """Read the configuration as the program does, with the environment of its container."""
    text = find(objects, "ConfigMap", f"waggle-{part}")["data"]["config.yaml"]
    fields = {
        "spec.nodeName": "node-1",
        "metadata.name": "pod-1",
        "metadata.namespace": "waggle",
        "metadata.uid": "uid-1",
    }
    environment = {
        variable["name"]: variable.get("value")
        or fields[variable["valueFrom"]["fieldRef"]["fieldPath"]]
        for variable in container(objects, part)["env"]
    }
    cells = AGENT_CELLS if part == "agent" else OPERATOR_CELLS
    found = load(cells, env=environment, file=plain_yaml.load(text), file_name="config.yaml")
    Hive(cells, found)
    return found


def option(settings: Settings, cell: str, kind: type[Any]) -> Any:  # noqa: ANN401
    """Give the options of a cell."""
    found = settings.options[cell]
    assert isinstance(found, kind)
    return found
