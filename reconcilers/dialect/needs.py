"""Facts of a dialect's objects that the programs need before they compile them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reconcilers.dialect.compilation import ClusterAddresses
from reconcilers.dialect.extension import Extension
from statedb import Snapshot


class HostNeeds(Extension, frozen=True):
    """Objects that refer to the host: the kernel is read, and is in `NodeContext.host`, for them."""

    needed: Callable[[Any, Snapshot, str], bool]
    """True if an object refers to interfaces or default routes of a node, given the dialect."""


class ReservedAddresses(Extension, frozen=True):
    """Addresses of nodes, Pods and peers that objects have: no Service may use them."""

    addresses: Callable[[Any, Snapshot, str | None], ClusterAddresses]
    """Returns the addresses of all nodes whose objects are in the tables (in an operator of all), or of
    the node with a name, where objects belong to one node; given the dialect."""
