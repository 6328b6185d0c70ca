"""The kind Beacon: the BGP configuration of one node, whose name it has."""

from typing import Annotated

from resources.addresses import address_errors
from resources.crds.patterns import ADDRESS
from resources.crds.schema_markers import TYPED_LIST, Definition, doc
from resources.kind import NAMED_AFTER_NODE, Kind
from resources.meta import Resource, Struct
from resources.metav1 import Condition


class BeaconSpec(Struct, frozen=True):
    asn: int
    router_id: str
    peer_asn: int
    peer_address: Annotated[str, doc("The address of the router.", ADDRESS)]
    peer_port: int = 179
    namespace: Annotated[str, doc("The namespace whose Services are advertised.")] = "default"
    instance: str = "beacon"
    listen_port: int | None = None
    local_address: str | None = None


class BeaconReport(Struct, frozen=True):  # the part of the status that the agent writes
    established: bool = False


class BeaconStatus(BeaconReport, frozen=True):
    conditions: Annotated[tuple[Condition, ...], doc("Of the operator.", TYPED_LIST)] = ()


class Beacon(Resource, frozen=True):
    spec: BeaconSpec


BEACON = Kind(
    "Beacon", Beacon, group="test.waggle.dev", versions=("v1",), plural="beacons", namespaced=False,
    table="beacons", of_node=NAMED_AFTER_NODE, strict=True,
    errors=lambda row: address_errors(row.spec.peer_address, "spec.peerAddress"),
    definition=Definition("The BGP configuration of one node.", status=BeaconStatus),
)  # fmt: skip
