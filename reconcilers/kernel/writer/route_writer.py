"""Makes the kernel's routes as batches ask, and knows which routes are ours.

A route is ours if it has our protocol number and a nexthop object of ours, or `route_messages.MARK`
where kernels have no such objects. Protocol, table and metric are no proof: other programs use the
same. A route is created only where none is (NLM_F_EXCL), and replaced only where the present one is
ours.

What a batch has and the kernel has, too, is not written again, so that adopting the routes of a former
writer costs one listing.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Collection, Iterable
from typing import Final

from reconcilers.kernel.writer import listings, netlink, route_messages
from reconcilers.kernel.writer.changes import Changes, note, packed
from reconcilers.kernel.writer.failures import Failures
from reconcilers.kernel.writer.known_routes import KnownRoutes
from reconcilers.kernel.writer.netlink import Kernel, Rejected
from reconcilers.kernel.writer.next_hop_groups import (
    Group,
    NextHopGroups,
    is_hidden,
    normal,
    on_link,
)
from reconcilers.kernel.writer.protocol import prefixes as cut
from reconcilers.kernel.writer.protocol_messages import (
    IPV4,
    IPV6,
    Batch,
    Confirmed,
    Move,
    NextHopSet,
    Reason,
    Routes,
    RouteTable,
    Settings,
)
from reconcilers.kernel.writer.route_messages import RouteMessage, RouteRequests

_GONE: Final = frozenset({errno.ESRCH, errno.ENOENT})


class RouteWriter:
    """Our routes. Methods block for as long as the kernel works; listings raise `OSError`."""

    def __init__(self, kernel: Kernel, settings: Settings, *, objects: bool) -> None:
        """``objects``: whether nexthop objects are used."""
        self._kernel = kernel
        self._protocol = settings.protocol
        self.groups = NextHopGroups(kernel, settings.protocol, objects=objects)
        self.known = KnownRoutes()
        self.noticed: Changes = {}
        """Differences that were found while a batch was written, and are to be reported."""

    # Reading

    def adopt(self) -> None:
        """Read the kernel's objects and routes once, as ours to write. Nothing with routes changes."""
        self.groups.reread()
        for family in (IPV4, IPV6):
            for route in listings.routes(self._kernel, family, protocol=self._protocol):
                group = self.owner(route.route, route.next_hops)
                if group is not None:
                    self.known.confirm(route.route.table, route.prefixes, group)
        self.groups.remove_unused()

    def owner(self, route: RouteMessage, next_hops: NextHopSet) -> Group | None:
        """Return the group of a kernel's route that this writer owns; None for a foreign one."""
        if route.protocol != self._protocol:
            return None
        if route.object:
            return self.groups.of_object(route.object)
        return self.groups.plain(normal(next_hops), route.table.family) if route.marked else None

    def reread(self, table: int, family: int) -> Changes:
        """Read a table of the kernel whole, and return how our written routes in it differ."""
        changes: Changes = {}
        actual: dict[RouteTable, dict[bytes, Group]] = {}
        foreign: dict[RouteTable, set[bytes]] = {}
        for route in listings.routes(self._kernel, family, table):
            group = self.owner(route.route, route.next_hops)
            key = route.route.table
            if group is not None:
                actual.setdefault(key, {}).update(dict.fromkeys(route.prefixes, group))
            elif key in self.known.tables or key in self.known.occupied:
                foreign.setdefault(key, set()).update(route.prefixes)
        self.known.foreign.update(foreign)
        keys = {
            k for k in self.known.tables if (k.table, k.family) == (table, family)
        } | actual.keys()
        for key in keys:
            known, now = self.known.tables.get(key, {}), actual.get(key, {})
            if known == now:
                continue
            others = foreign.get(key, set())
            for prefix, group in known.items():
                is_now = now.get(prefix)
                if is_now is None:
                    reason = Reason.OCCUPIED if prefix in others else Reason.MISSING
                elif is_now.next_hops != group.next_hops:
                    reason = Reason.DIFFERENT
                else:
                    continue
                note(changes, reason, key, (prefix,))
            note(changes, Reason.UNEXPECTED, key, [p for p in now if p not in known])
            for prefix in changes.get(Reason.OCCUPIED, {}).get(key, ()):
                self.known.occupied.setdefault(key, set()).add(prefix)
            self.known.forget(key, list(known))
            for prefix, group in now.items():
                self.known.confirm(key, (prefix,), group)
        return changes

    def freed(self, table: int, family: int) -> tuple[Routes, ...]:
        """Read a table for places of our routes that a foreign route no longer occupies."""
        keys = [k for k in self.known.occupied if (k.table, k.family) == (table, family)]
        if not keys:
            return ()
        held: dict[RouteTable, set[bytes]] = {}
        for route in listings.routes(self._kernel, family, table):
            if route.route.table in keys:
                held.setdefault(route.route.table, set()).update(route.prefixes)
        free = {key: sorted(self.known.occupied[key] - held.get(key, set())) for key in keys}
        for key, prefixes in free.items():
            self.known.occupied[key].difference_update(prefixes)
        return packed(free)

    def reread_objects(self) -> Changes:
        """Compare what was written with the kernel's objects: a link that goes down takes them."""
        gone, changed = self.groups.reread()
        changes: Changes = {}
        for groups, reason in ((set(changed), Reason.DIFFERENT), (set(gone), Reason.MISSING)):
            if groups:
                for key, prefixes in self.known.of_groups(groups).items():
                    note(changes, reason, key, prefixes)
                    if reason == Reason.MISSING:
                        self.known.forget(key, prefixes)
        return changes

    # Writing

    def apply(self, batch: Batch) -> Confirmed:
        """Write the changes of a batch of routes into the kernel."""
        began, before = time.monotonic(), self._kernel.requests
        failures = Failures()
        for move in batch.moves:
            self._move(move, failures)
        for routes in batch.removed:
            self._remove(routes.table, cut(routes.prefixes), failures)
        for wanted in batch.routes:
            next_hops = normal(wanted.next_hops)
            for routes in wanted.routes:
                self._install(next_hops, routes.table, cut(routes.prefixes), failures)
        if not batch.urgent:
            # A single route that goes may be back soon, with the objects of before.
            self.remove_unused_groups()
        return Confirmed(
            batch.number,
            self._kernel.requests - before,
            failures.values(),
            time.monotonic() - began,
        )

    def remove_all(self) -> None:
        """Remove all our written routes and objects: groups take their routes with them."""
        failures = Failures()
        for group in self.groups:
            self._drop(group, failures)
        self.remove_unused_groups()

    def remove_unused_groups(self) -> None:
        """Remove the written nexthop objects that no route uses."""
        try:
            self.groups.remove_unused()
        except OSError:
            # Without permission, or memory: the routes of the batch have failed as well, or are gone.
            return

    def _install(
        self, next_hops: NextHopSet, table: RouteTable, prefixes: list[bytes], failures: Failures
    ) -> None:
        known = self.known.tables.get(table, {})
        due = prefixes
        if not known.keys().isdisjoint(prefixes):
            right = {group for group in set(map(known.get, prefixes)) if group is not None}
            right = {group for group in right if group.next_hops == next_hops}
            due = [prefix for prefix in prefixes if known.get(prefix) not in right]
        # A second attempt after an object was found to be gone.
        for _ in range(2):
            if not due:
                return
            try:
                group = self.groups.ensure(next_hops, table.family)
            except OSError as error:
                self._fail(table, due, error.errno or errno.EINVAL, error.strerror or "", failures)
                return
            rejected = self._write(table, due, group)
            if not any(self._is_object_gone(each, group) for each in rejected):
                break
            self._notice(self.reread_objects(), due)
            due = [route_messages.destination(each.request) for each in rejected]
        self._reject(table, next_hops, rejected, failures)

    def _write(self, table: RouteTable, due: Collection[bytes], group: Group) -> list[Rejected]:
        """Create or replace routes; returns the requests that failed."""
        known = self.known.tables.get(table, {})
        replaced = []
        if not known.keys().isdisjoint(due):
            replaced = [prefix for prefix in due if prefix in known]
        rejected = []
        for each in self._request(netlink.REPLACE, table, group, replaced):
            if each.error in _GONE and not self._is_object_gone(each, group):
                self.known.forget(table, (route_messages.destination(each.request),))
            else:
                rejected.append(each)
        created = [prefix for prefix in due if prefix not in known] if replaced else due
        rejected += self._request(netlink.CREATE | netlink.EXCL, table, group, created)
        return rejected

    def _request(
        self, flags: int, table: RouteTable, group: Group, prefixes: Collection[bytes]
    ) -> list[Rejected]:
        """Send requests for new routes and confirm the routes that the kernel took."""
        if not prefixes:
            return []
        rejected = self._send(route_messages.NEW_ROUTE, flags, table, group, prefixes)
        if rejected and not group.id:
            rejected = self._send_on_link(flags, table, group, rejected)
        failed = {route_messages.destination(each.request) for each in rejected}
        self.known.confirm(
            table, [p for p in prefixes if p not in failed] if failed else prefixes, group
        )
        return rejected

    def _send_on_link(
        self, flags: int, table: RouteTable, group: Group, rejected: list[Rejected]
    ) -> list[Rejected]:
        """Send routes again whose IPv6 gateways may be hidden; returns the requests that failed."""
        hidden = [each for each in rejected if is_hidden(each.error, group.next_hops)]
        if not hidden:
            return rejected
        again = [route_messages.destination(each.request) for each in hidden]
        others = [each for each in rejected if not is_hidden(each.error, group.next_hops)]
        direct = Group(0, on_link(group.next_hops), group.family)
        return others + self._send(route_messages.NEW_ROUTE, flags, table, direct, again)

    def _send(
        self, kind: int, flags: int, table: RouteTable, group: Group, prefixes: Collection[bytes]
    ) -> list[Rejected]:
        if group.id:
            forwarding, type_ = route_messages.by_object(group.id), route_messages.UNICAST
        else:
            forwarding = route_messages.by_next_hops(group.next_hops, table.family)
            type_ = route_messages.type_of(group.next_hops)
        requests = RouteRequests(kind, flags, table, self._protocol, forwarding, type_)
        return [
            each
            for datagram, count in requests.datagrams(self._kernel, prefixes)
            for each in self._kernel.change(datagram, count)
        ]

    @staticmethod
    def _is_object_gone(rejected: Rejected, group: Group) -> bool:
        return bool(group.id) and "nexthop id" in rejected.text.lower()

    def _reject(
        self,
        table: RouteTable,
        next_hops: NextHopSet,
        rejected: list[Rejected],
        failures: Failures,
    ) -> None:
        """Note failures; a route that exists may be ours, if we lost track of it."""
        exists = [
            route_messages.destination(r.request) for r in rejected if r.error == errno.EEXIST
        ]
        occupied = self.known.occupied.setdefault(table, set())
        others = self.known.foreign.get(table, ())
        if any(prefix not in occupied and prefix not in others for prefix in exists):
            self._notice(self.reread(table.table, table.family), exists)
        known = self.known.tables.get(table, {})
        for prefix in exists:
            if prefix in known:
                self._replace_found(table, next_hops, prefix, failures)
            else:
                occupied.add(prefix)
                failures.add(table, (prefix,), errno.EEXIST, "")
        for each in rejected:
            if each.error != errno.EEXIST:
                prefix = route_messages.destination(each.request)
                self._fail(table, (prefix,), each.error, each.text, failures)

    def _replace_found(
        self, table: RouteTable, next_hops: NextHopSet, prefix: bytes, failures: Failures
    ) -> None:
        """Give a route that was found to be ours its next hops."""
        if self.known.tables[table][prefix].next_hops == next_hops:
            return
        try:
            group = self.groups.ensure(next_hops, table.family)
        except OSError as error:
            self._fail(
                table, (prefix,), error.errno or errno.EINVAL, error.strerror or "", failures
            )
            return
        for each in self._request(netlink.REPLACE, table, group, (prefix,)):
            self._fail(table, (prefix,), each.error, each.text, failures)

    def _fail(
        self,
        table: RouteTable,
        prefixes: Collection[bytes],
        error: int,
        text: str,
        failures: Failures,
    ) -> None:
        """Note a failure, and remove what stood there with other next hops."""
        failures.add(table, prefixes, error, text)
        self._remove(table, prefixes, Failures())

    def _remove(self, table: RouteTable, prefixes: Iterable[bytes], failures: Failures) -> None:
        known = self.known.tables.get(table, {})
        occupied = self.known.occupied.get(table)
        by_group: dict[Group, list[bytes]] = {}
        for prefix in prefixes:
            group = known.get(prefix)
            if group is not None:
                by_group.setdefault(group, []).append(prefix)
            elif occupied:
                occupied.discard(prefix)
        for group, ours in by_group.items():
            # Ascending, the kernel searches ever more empty places of its trie.
            ours.sort(reverse=True)
            failed = set()
            for each in self._send(route_messages.DELETE_ROUTE, 0, table, group, ours):
                if each.error not in _GONE:
                    prefix = route_messages.destination(each.request)
                    failed.add(prefix)
                    failures.add(table, (prefix,), each.error, each.text)
            self.known.forget(table, [p for p in ours if p not in failed] if failed else ours)

    def _move(self, move: Move, failures: Failures) -> None:
        new = None if move.new is None else normal(move.new)
        for group in self.groups.of_set(normal(move.old)):
            if new is None:
                self._drop(group, failures)
            elif group.id:
                try:
                    self.groups.move(group, new)
                except OSError as error:
                    for table, prefixes in self.known.of_groups({group}).items():
                        self._fail(
                            table, prefixes, error.errno or errno.EINVAL, str(error), failures
                        )
            else:
                for table, prefixes in self.known.of_groups({group}).items():
                    self._install(new, table, prefixes, failures)

    def _drop(self, group: Group, failures: Failures) -> None:
        """Remove a group with all its routes."""
        routes = self.known.of_groups({group})
        if not group.id:
            for table, prefixes in routes.items():
                self._remove(table, prefixes, failures)
            return
        try:
            self.groups.remove(group)
        except OSError as error:
            for table, prefixes in routes.items():
                failures.add(table, prefixes, error.errno or errno.EINVAL, str(error))
            return
        for table, prefixes in routes.items():
            self.known.forget(table, prefixes)

    def _notice(self, changes: Changes, due: Collection[bytes]) -> None:
        """Keep differences for the report, except for routes that are being written."""
        written = set(due)
        for reason, tables in changes.items():
            for table, prefixes in tables.items():
                note(self.noticed, reason, table, [p for p in prefixes if p not in written])

    # Notifications

    def removed_by_others(self, route: RouteMessage) -> Reason | None:
        """Take a notification of a removed route; returns what it means for written ones."""
        known = self.known.tables.get(route.table, {})
        group = known.get(route.prefix)
        if group is None:
            self.known.foreign.get(route.table, set()).discard(route.prefix)
            occupied = self.known.occupied.get(route.table, set())
            if route.prefix in occupied:
                occupied.discard(route.prefix)
                return Reason.OCCUPIED
            return None
        is_ours = route.protocol == self._protocol and (
            route.object == group.id if group.id else route.marked
        )
        if not is_ours:
            return None
        self.known.forget(route.table, (route.prefix,))
        return Reason.MISSING

    def added_by_others(self, route: RouteMessage, flags: int) -> Reason | None:
        """Take a notification of a new route; returns what it means for written ones."""
        known = self.known.tables.get(route.table, {})
        if route.protocol == self._protocol and (
            route.marked or self.groups.of_object(route.object) is not None
        ):
            return None  # the next reading of the table compares it
        if route.prefix not in known:
            if route.table in self.known.foreign:
                self.known.foreign[route.table].add(route.prefix)
            return None
        if not flags & netlink.REPLACE:
            return None
        self.known.forget(route.table, (route.prefix,))
        self.known.occupied.setdefault(route.table, set()).add(route.prefix)
        return Reason.OCCUPIED
