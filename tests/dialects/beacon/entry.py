"""The entry of the dialect in the programs; its functions import it where it is on."""

from typing import TYPE_CHECKING, Any

from reconcilers.dialect_entry import DialectEntry
from tests.dialects.beacon.options import BeaconOptions

if TYPE_CHECKING:
    from reconcilers.dialect import Dialect
    from resources.kind import Kind


def load() -> "type[Dialect]":
    from tests.dialects.beacon.dialect import BeaconDialect

    return BeaconDialect


def kinds() -> "tuple[Kind[Any], ...]":
    from tests.dialects.beacon.kinds import BEACON

    return (BEACON,)


DIALECT = DialectEntry(
    name="beacon", title="Beacons", load=load, kinds=kinds, options=BeaconOptions
)
