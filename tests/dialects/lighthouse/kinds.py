"""The kind Lighthouse: the Beacons of several nodes."""

from resources.crds.schema_markers import Definition
from resources.kind import Kind
from resources.meta import Resource, Struct
from tests.dialects.beacon.kinds import BeaconSpec


class LighthouseSpec(Struct, frozen=True):
    nodes: tuple[str, ...]
    beacon: BeaconSpec


class Lighthouse(Resource, frozen=True):
    spec: LighthouseSpec


LIGHTHOUSE = Kind(
    "Lighthouse", Lighthouse, group="test.waggle.dev", versions=("v2", "v1"), plural="lighthouses",
    namespaced=False, table="lighthouses", definition=Definition("The Beacons of several nodes."),
)  # fmt: skip
