"""The kind Buoy: the Beacon of a node, which a controller of its own generates as well."""

from typing import Annotated

from resources.crds.schema_markers import TYPED_LIST, Definition, doc
from resources.kind import Kind
from resources.meta import Resource, Struct
from resources.metav1 import Condition
from tests.dialects.beacon.kinds import BeaconSpec


class BuoySpec(Struct, frozen=True):
    node: str
    beacon: BeaconSpec


class BuoyStatus(Struct, frozen=True):
    conditions: Annotated[tuple[Condition, ...], doc("Of the operator.", TYPED_LIST)] = ()


class Buoy(Resource, frozen=True):
    spec: BuoySpec


BUOY = Kind(
    "Buoy", Buoy, group="test.waggle.dev", versions=("v1",), plural="buoys", namespaced=False,
    table="buoys", definition=Definition("The Beacon of a node.", status=BuoyStatus),
)  # fmt: skip
