"""Any text at any place of any object: an error of that object, and no exception of its dialect.

What Python's own functions do with texts: ``int()`` raises for 4,300 digits, `ipaddress` takes zones,
``isdigit()`` digits of which ``int()`` knows nothing. Each run has the same changes of objects.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from reconcilers.compile_manifests import CompiledManifests, OfflineSettings, kinds_of
from reconcilers.ovnk.options import OvnkOptions
from resources.manifests.load import load_objects
from resources.manifests.yamlfile import parse_yaml
from tests.reconcilers.ovnk.cases import CASES
from waggle.dialects import DIALECTS

Json = dict[str, Any]
Place = tuple[str | int, ...]
MANY: Final = "9" * 5000
TEXTS: Final = (
    *(
        MANY,
        f"10.0.0.0/{MANY}",
        f"10.0.0.0-{MANY}",
        f"{MANY}:1",
        f"65000:{MANY}",
        f"large:1:2:{MANY}",
    ),
    *(f"router bgp {MANY}", f"ip prefix-list a seq {MANY} permit 10.0.0.0/8", f"{MANY}s"),
    *("fe80::1%eth0", "fe80::%eth0/64", '{"default": "fe80::%eth0/64"}', "::ffff:10.0.0.1", "%"),
    *("1e999", "NaN", "\u0667", "\u00b2", "\x00", "", "x" * 2**20, '{"a": ' * 100_000),
)
ANNOTATIONS: Final = (
    "waggle.dev/redistribute",
    "waggle.dev/service-addresses",
    "node.antrea.io/bgp-router-id",
    "cilium.io/bgp-virtual-router.65001",
    "k8s.ovn.org/network-id",
    "k8s.ovn.org/route-advertisements",
)
"""What is read beside the annotations that the objects have."""
CHANGES: Final = 80
EXAMPLES: Final = Path(__file__).parents[2] / "examples"


def examples(*names: str) -> list[Json]:
    files = (path for name in names for path in sorted(EXAMPLES.glob(f"{name}.yaml")))
    return [document.value for path in files for document in parse_yaml(path.read_bytes())]


OBJECTS: Final = {
    "cilium": [examples("quickstart/*")],
    "antrea": [examples("antrea/*")],
    "frrk8s": [examples("quickstart/node", "frrk8s/*")],
    "metallb": [examples("quickstart/node", "quickstart/services", "metallb/*")],
    "ovnk": [case["objects"] for case in CASES],
}
OVNK: Final = OvnkOptions(
    mode="generate", cluster_subnets="10.180.0.0/16/23", evpn=True, gateway_mode="local"
)


def places(value: Any, at: Place = ()) -> Iterator[Place]:  # noqa: ANN401  JSON
    """Yield the places of texts and numbers, and of annotations."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            yield from places(item, (*at, key))
    elif at[-1] not in ("kind", "apiVersion"):
        yield at
    if at and at[-1] == "metadata":
        yield from ((*at, "annotations", name) for name in ANNOTATIONS)


def changed(objects: list[Json], place: Place, text: str) -> list[Json]:
    found = copy.deepcopy(objects)
    parent: Any = found
    for key in place[:-1]:
        parent = parent.setdefault(key, {}) if isinstance(parent, dict) else parent[key]
    parent[place[-1]] = text
    return found


@pytest.mark.parametrize("name", list(OBJECTS))
def test_no_text_of_an_object_is_an_exception(name: str) -> None:
    chance = random.Random(name)  # noqa: S311  the same changes in each run
    used = {name, "frrk8s"} if name in ("ovnk", "metallb") else {name}
    dialects = [dialect for dialect in DIALECTS.load() if dialect.name in used]
    options = {"ovnk": OVNK} if name == "ovnk" else {}
    for _ in range(CHANGES):
        objects = chance.choice(OBJECTS[name])
        node = next(one["metadata"]["name"] for one in objects if one["kind"] == "Node")
        place, text = chance.choice(list(places(objects))), chance.choice(TEXTS)
        loaded = load_objects(changed(objects, place, text), "objects", kinds_of(dialects))
        compiled = CompiledManifests(loaded, dialects, OfflineSettings(node, dialects=options))
        found = compiled.intent.problems.all(compiled.db.snapshot())
        messages = [problem.message for problem in found]
        where = (place, text[:32])
        assert not [one for one in messages if "Error:" in one or "Exceeds the limit" in one], where
        assert max(map(len, messages), default=0) < 4000, where
