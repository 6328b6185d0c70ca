"""The kernel's routes in the local API: wanted and installed routes, and why they differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from msgspec.structs import replace

from cells.api.model import KernelHopItem, KernelRouteItem, OriginItem
from cells.api.resource import ApiAction, ApiResource, BadRequestError, NoBody, Query
from cells.kernel.reachability import ReachabilityCheck
from cells.state.node import ThisNode
from reconcilers.kernel.instance_routes import WantedRoute
from reconcilers.kernel.reasons import Reason
from reconcilers.kernel.reconciler import KernelReconciler
from reconcilers.kernel.routing import Hop
from reconcilers.kernel.wanted_tables import FAMILIES
from reconcilers.kernel.writer.protocol_messages import RouteTable
from reconcilers.model import ObjectRef
from speaker.api import PathSet, parse_prefix
from speaker.attribute import address_text
from speaker.nlri import prefix_to_text

SLICE_ROUTES: Final = 100
INSTALLED, PENDING, NOT_INSTALLED = "Installed", "Pending", "NotInstalled"
STALE: Final = "Stale"
"""In the kernel from an earlier run, and announced by no peer yet."""


def kernel_route_resource(node: ThisNode, kernel: KernelReconciler) -> ApiResource:
    """Return the list of routes, by table and family."""

    def read(query: Query) -> Iterator[Sequence[KernelRouteItem]]:
        family, prefix = query.get("family"), query.get("prefix")
        if family is not None and family not in map(str, FAMILIES.values()):
            raise BadRequestError(f"family: {family!r} is none of ipv4-unicast, ipv6-unicast")
        selected = _Selected(kernel, node.name, family, _prefixes(prefix))
        return selected.slices()

    return ApiResource(
        path="/v1/kernel-routes",
        kind="KernelRouteList",
        parameters=("family", "prefix"),
        limited=True,
        read=read,
    )


def approve_action(node: ThisNode, kernel: KernelReconciler, check: ReachabilityCheck) -> ApiAction:
    """Return the action that installs routes which a check removed; its items are these."""

    async def approve(_: NoBody) -> list[KernelRouteItem]:
        selected = _Selected(kernel, node.name, None, None)
        released = ((table, nlri) for table, some in check.approve().items() for nlri in some)
        items = (selected.item(table, nlri) for table, nlri in islice(released, SLICE_ROUTES))
        return [item for item in items if item is not None]

    return ApiAction(path="/v1/kernel-routes/approve", kind="KernelRouteList", run=approve)


def _prefixes(text: str | None) -> list[tuple[str, bytes]] | None:
    """Return the prefix, or the prefixes that contain an address, longest first, with the family."""
    if text is None:
        return None
    try:
        selected = parse_prefix(text)
    except ValueError as error:
        raise BadRequestError(f"prefix: {error}") from None
    return [(str(selected.family), wire) for wire in selected.prefixes]


class _Selected:
    """The routes that a request selects."""

    def __init__(
        self,
        kernel: KernelReconciler,
        node: str,
        family: str | None,
        prefixes: list[tuple[str, bytes]] | None,
    ) -> None:
        self._kernel = kernel
        self._node = node
        self._family = family
        self._prefixes = prefixes
        self._origins: dict[PathSet, list[OriginItem]] = {}

    def slices(self) -> Iterator[Sequence[KernelRouteItem]]:
        """Iterate over the routes in slices."""
        wanted, installed = self._kernel.wanted_tables, self._kernel.installed
        tables = dict.fromkeys((*wanted.tables, *installed.tables))
        for table in sorted(tables):
            family = str(FAMILIES[table.family])
            if self._family not in (None, family):
                continue
            if self._prefixes is not None:
                nlris = [nlri for of_family, nlri in self._prefixes if of_family == family]
                items = (item for nlri in nlris if (item := self.item(table, nlri)) is not None)
                # The longest prefix that contains the address.
                yield list(islice(items, 1))
                continue
            own = dict.fromkeys(wanted.prefixes(table))
            stale = (nlri for nlri in installed.prefixes(table) if nlri not in own)
            for nlris_of in (iter(own), stale):
                while some := list(islice(nlris_of, SLICE_ROUTES)):
                    routes = (self.item(table, nlri) for nlri in some)
                    yield [item for item in routes if item is not None]

    def item(self, table: RouteTable, nlri: bytes) -> KernelRouteItem | None:
        """Return one route; None if it is neither wanted nor installed."""
        wanted = self._kernel.wanted_tables.route(table, nlri)
        held = self._kernel.installed.held(table, (nlri,)).get(nlri)
        family = FAMILIES[table.family]
        item = KernelRouteItem(
            node=self._node,
            table=table.table,
            metric=table.metric,
            family=str(family),
            prefix=prefix_to_text(family, nlri),
            type="unicast",
            state=STALE,
            message="no peer has announced it yet",
        )
        if wanted is None:
            return None if held is None else item
        instance, route = wanted
        state, reason, message = self._state(table, nlri, route)
        return replace(
            item,
            instance=instance,
            type="blackhole" if route.forwarding.blackhole else "unicast",
            next_hops=list(map(_hop_item, route.forwarding.hops)),
            peers=[path.peer for path in route.paths.paths if path.peer is not None],
            origins=self._origins_of(route.paths),
            state=state,
            reason=reason,
            message=message,
        )

    def _origins_of(self, paths: PathSet) -> list[OriginItem]:
        """Return the objects that configure the peers of best paths, found once for a set of paths."""
        origins = self._origins.get(paths)
        if origins is None:
            origins = self._origins[paths] = list(map(_origin_item, self._kernel.origins(paths)))
        return origins

    def _state(
        self, table: RouteTable, nlri: bytes, route: WantedRoute
    ) -> tuple[str, str | None, str | None]:
        """Return the state of a route, with a word and a sentence where it is not installed."""
        installed, forwarding = self._kernel.installed, route.forwarding
        if forwarding.pending:
            return PENDING, None, forwarding.unresolved[0][1].message
        if forwarding.why_not is not None:
            return NOT_INSTALLED, str(forwarding.why_not.reason), forwarding.why_not.message
        if nlri in self._kernel.withheld.routes(table):
            return NOT_INSTALLED, str(Reason.WITHHELD), "removed by a check, and not approved yet"
        failure = installed.failures.get(table, nlri)
        if failure is not None:
            return NOT_INSTALLED, str(failure.reason), failure.text
        held = installed.held(table, (nlri,)).get(nlri)
        if held != forwarding.next_hops or not installed.is_confirmed(table, nlri):
            return PENDING, None, "the writer has not confirmed it yet"
        return INSTALLED, None, None


def _origin_item(ref: ObjectRef) -> OriginItem:
    return OriginItem(kind=ref.kind, namespace=ref.namespace or None, name=ref.name)


def _hop_item(hop: Hop) -> KernelHopItem:
    return KernelHopItem(via=address_text(hop.gateway), interface=hop.device or None)
