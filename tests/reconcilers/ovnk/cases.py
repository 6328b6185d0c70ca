"""The acceptance cases, and more cases of their form: objects, a node, flags, and what is expected."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tests.support import plain_yaml

_HERE: Final = Path(__file__).parent
_KEY: Final = "k8s.ovn.org/route-advertisements"
_NAMESPACE: Final = "frr-k8s-system"
_OPTIONS: Final = ["--ovnk=generate", "--ovnk-evpn=true"]


def _more() -> Iterator[dict[str, Any]]:
    document = plain_yaml.load((_HERE / "more_cases.yaml").read_text())
    common = document["common"]
    for case in document["cases"]:
        reason = case.get("reason", "Accepted")
        row = {"kind": "RouteAdvertisements", "name": "north", "type": "Accepted"}
        status = str(reason == "Accepted")
        annotated = [name.split("/") for name in case.get("advertisers", ())]
        yield {
            "name": f"ovnk-{case['name']}",
            "node": "w1",
            "options": [*_OPTIONS, *case.get("options", ())],
            "objects": [common[name] for name in case["objects"]],
            "expect": {
                "conditions": [{**row, "status": status, "reason": reason}],
                "generated": [_generated(*item) for item in case["generated"].items()],
                "deleted": [],
                "annotations": [
                    {
                        "kind": "NetworkAttachmentDefinition",
                        "namespace": namespace,
                        "name": name,
                        "set": {_KEY: '["north"]'},
                    }
                    for namespace, name in annotated
                ],
            },
        }


def _generated(key: str, content: dict[str, Any]) -> dict[str, Any]:
    """Return an expected FRRConfiguration of ``RouteAdvertisements/source/node``."""
    advertisements, _, node = key.split("/")
    return {
        "namespace": _NAMESPACE,
        "labels": {_KEY: advertisements},
        "annotations": {_KEY: key},
        "spec": {
            "nodeSelector": {"matchLabels": {"kubernetes.io/hostname": node}},
            "bgp": {"routers": content["routers"]},
            "raw": {"priority": 10, "rawConfig": content["text"]},
        },
    }


CASES: Final[list[dict[str, Any]]] = [
    *json.loads((_HERE / "cases.json").read_text())["cases"],
    *_more(),
]


def case(name: str) -> dict[str, Any]:
    """Return the case with a name."""
    return next(one for one in CASES if one["name"] == name)
