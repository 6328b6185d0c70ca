"""Routes of the node's kernel that merged routers redistribute. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from reconcilers.frrk8s.field_values import Prefix
from reconcilers.frrk8s.merge import MergedNeighbor, MergedRouter
from reconcilers.frrk8s.router_rows import families_of
from reconcilers.frrk8s.unit_parts import RedistributedPart
from reconcilers.model import Attributes
from resources.host import KernelRoute, KernelTable
from speaker.nlri import Family


def kernel_tables(routers: Iterable[MergedRouter]) -> frozenset[KernelTable]:
    """Return the tables of the kernel whose routes merged routers redistribute."""
    return frozenset(
        redistribution.table for router in routers for _, redistribution in router.redistributions
    )


def with_kernel_routes(
    routers: Sequence[MergedRouter], routes: Sequence[KernelRoute]
) -> Sequence[MergedRouter]:
    """Return merged routers with the routes of the kernel that they redistribute, and the prefixes."""
    if not routes:
        return routers
    tables = kernel_tables(routers)
    if not any(table.has(route) for table in tables for route in routes):
        return routers
    known: list[tuple[RedistributedPart, Collection[Family], Mapping[Prefix, Attributes]]] = []

    def advertised(
        redistributed: RedistributedPart, families: Collection[Family]
    ) -> Mapping[Prefix, Attributes]:
        """Return equal routes of neighbours as one value, by which they share a route set."""
        for other, of, known_routes in known:
            if of == families and other == redistributed:
                return known_routes
        permitted = {
            destination: attributes
            for destination, attributes in redistributed.routes(routes).items()
            if destination[0] in families
        }
        known.append((redistributed, families, permitted))
        return permitted

    def neighbor(merged: MergedNeighbor) -> MergedNeighbor:
        families = families_of(merged.key, merged.session.dual_stack, merged.families)
        of_objects = ((ref, advertised(given, families)) for ref, given in merged.redistributed)
        return merged._replace(kernel_routes=tuple(pair for pair in of_objects if pair[1]))

    return [
        router._replace(
            neighbors=tuple(map(neighbor, router.neighbors)),
            kernel_routes=tuple(
                (ref, frozenset(redistribution.prefixes(routes)))
                for ref, redistribution in router.redistributions
            ),
        )
        for router in routers
    ]
