"""Sets of next hops in the kernel: an object for each next hop, and a group for each set.

All routes with the same next hops share a group, so that a lost next hop is one message per group, not
one per route. A kernel without nexthop objects (before 5.3) has groups here alone, and its routes carry
their next hops themselves.

Objects are ours by their own protocol number, which no other program uses, and by their identifiers,
which begin with that number and with the protocol number of our routes.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable, Collection, Iterator
from typing import Final

from reconcilers.kernel.writer import listings, netlink, route_messages
from reconcilers.kernel.writer.netlink import Kernel
from reconcilers.kernel.writer.protocol_messages import BLACKHOLE, IPV4, IPV6, NextHop, NextHopSet

OBJECT_PROTOCOL: Final = 87
"""The protocol number of our nexthop objects; unassigned in the kernel and in iproute2."""
_FIRST: Final = 0x57 << 24
_COUNT: Final = 0xFFFF


class Group:
    """The routes that share their next hops."""

    __slots__ = ("family", "id", "next_hops", "routes")

    def __init__(self, identifier: int, next_hops: NextHopSet, family: int) -> None:
        self.id = identifier
        """The number of the group in the kernel; 0 if its routes carry their next hops themselves."""
        self.next_hops = next_hops
        self.family = family
        """Of its routes; 0 if routes of both families can use it."""
        self.routes = 0
        """How many use it."""


def _family(next_hops: NextHopSet, family: int) -> int:
    """Return the family of a group, for routes of a family: objects without a gateway belong to one."""
    sizes = {len(hop.gateway) for hop in next_hops}
    if 4 in sizes:
        return IPV4
    return family if 0 in sizes else 0


def normal(next_hops: NextHopSet) -> NextHopSet:
    """Return a set of next hops as the kernel shows its group: sorted, a single one without weight."""
    if len(next_hops) == 1:
        return (_identity(next_hops[0])._replace(weight=1),)
    return tuple(sorted(set(map(_identity, next_hops))))


def _identity(hop: NextHop) -> NextHop:
    """Return a next hop without the flag of an IPv6 gateway, which it has only if it `is_hidden`."""
    return hop._replace(onlink=False) if hop.onlink and len(hop.gateway) == 16 else hop


def is_hidden(error: int | None, next_hops: NextHopSet) -> bool:
    """True if the kernel may have refused an IPv6 gateway because a route covers it.

    Linux looks an IPv6 gateway up, and takes none to which a route by another gateway leads, as that
    of a fabric which announces the hosts of a network. Its network is known: next hops are resolved
    before.
    """
    return error == errno.EHOSTUNREACH and any(len(hop.gateway) == 16 for hop in next_hops)


def on_link(next_hops: NextHopSet) -> NextHopSet:
    """Return next hops whose IPv6 gateways are used without a look-up."""
    return tuple(hop._replace(onlink=True) if len(hop.gateway) == 16 else hop for hop in next_hops)


class NextHopGroups:
    """The groups, and the objects that they consist of. Methods that write raise `OSError`."""

    def __init__(self, kernel: Kernel, protocol: int, *, objects: bool) -> None:
        """``objects``: whether the kernel's are used."""
        self._kernel = kernel
        self._base = _FIRST | (protocol & 0xFF) << 16
        self._objects = objects
        self._last = 0
        self._by_set: dict[tuple[NextHopSet, int], list[Group]] = {}
        self._by_id: dict[int, Group] = {}
        self._hops: dict[tuple[NextHop, int], int] = {}
        """Next hop without its weight, family -> object."""
        self._hop_ids: dict[int, NextHop] = {}

    def __iter__(self) -> Iterator[Group]:
        return (group for groups in list(self._by_set.values()) for group in list(groups))

    def of_object(self, identifier: int) -> Group | None:
        """Return our group of next hops with this number in the kernel."""
        return self._by_id.get(identifier)

    def of_set(self, next_hops: NextHopSet) -> list[Group]:
        """Return all groups with these next hops."""
        families = (0, IPV4, IPV6)
        return [group for f in families for group in self._by_set.get((next_hops, f), ())]

    def plain(self, next_hops: NextHopSet, family: int) -> Group:
        """Return the group of routes that carry these next hops themselves."""
        family = _family(next_hops, family)
        for group in self._by_set.get((next_hops, family), ()):
            if not group.id:
                return group
        return self._add(Group(0, next_hops, family))

    def ensure(self, next_hops: NextHopSet, family: int) -> Group:
        """Return a group with these next hops for routes of a family, made if there is none."""
        if not self._objects:
            return self.plain(next_hops, family)
        key = (next_hops, _family(next_hops, family))
        for group in self._by_set.get(key, ()):
            if group.id:
                return group
        members = self._members(next_hops, family)
        identifier = self._create(
            lambda i: route_messages.group_object(i, OBJECT_PROTOCOL, members)
        )
        return self._add(Group(identifier, *key))

    def move(self, group: Group, next_hops: NextHopSet) -> None:
        """Give a group of the kernel other next hops: all its routes have them at once."""
        members = self._members(next_hops, group.family or IPV6)
        body = route_messages.group_object(group.id, OBJECT_PROTOCOL, members)
        self._kernel.request(route_messages.NEW_NEXTHOP, netlink.REPLACE, body)
        self._set(group, next_hops)

    def remove(self, group: Group) -> None:
        """Remove a group of next hops; in the kernel its routes go with it."""
        if group.id:
            with _gone():
                self._kernel.request(
                    route_messages.DELETE_NEXTHOP, 0, route_messages.object_removal(group.id)
                )
        self.forget(group)

    def forget(self, group: Group) -> None:
        """Drop a group of next hops that the kernel no longer has."""
        self._by_id.pop(group.id, None)
        self._unlink(group)

    def remove_unused(self) -> None:
        """Remove the groups without routes, and the objects of next hops that no group has."""
        for group in self:
            if not group.routes:
                self.remove(group)
        used = {
            (hop._replace(weight=1), self._hop_family(hop, group.family))
            for group in self
            if group.id
            for hop in group.next_hops
        }
        for hop, identifier in list(self._hops.items()):
            if hop not in used:
                with _gone():
                    self._kernel.request(
                        route_messages.DELETE_NEXTHOP, 0, route_messages.object_removal(identifier)
                    )
                del self._hops[hop], self._hop_ids[identifier]

    def reread(self) -> tuple[list[Group], list[Group]]:
        """Compare the groups of next hops with the kernel's objects: gone, or with other hops.

        Groups that are not known are adopted. Groups that are gone are forgotten.
        """
        try:
            listed = listings.objects(self._kernel)
        except OSError as error:
            if error.errno != errno.EOPNOTSUPP:
                raise
            listed = []
        ours = [
            o for o in listed if o.protocol == OBJECT_PROTOCOL and o.id >> 16 == self._base >> 16
        ]
        families = {o.id: o.family for o in ours}
        self._hop_ids = {o.id: _identity(o.hop) for o in ours if o.hop is not None}
        self._hops = {(hop, families[i]): i for i, hop in self._hop_ids.items()}
        actual = {o.id: self._actual(o.members) for o in ours if o.members}
        gone, changed = [], []
        for group in list(self._by_id.values()):
            next_hops = actual.pop(group.id, None)
            if not next_hops:
                self.forget(group)
                gone.append(group)
            elif next_hops != group.next_hops:
                self._set(group, next_hops)
                changed.append(group)
        members = {o.id: o.members for o in ours}
        for identifier, next_hops in actual.items():
            if next_hops:
                family = families[members[identifier][0][0]]
                self._add(Group(identifier, next_hops, _family(next_hops, family)))
        return gone, changed

    def _actual(self, members: Collection[tuple[int, int]]) -> NextHopSet:
        """Return the next hops of a group; none if a member is not ours."""
        if any(identifier not in self._hop_ids for identifier, _ in members):
            return ()
        return normal(
            tuple(
                self._hop_ids[identifier]._replace(weight=weight) for identifier, weight in members
            )
        )

    def _members(self, next_hops: NextHopSet, family: int) -> list[tuple[int, int]]:
        """Return the objects of next hops with their weights; makes the missing ones."""
        members = []
        for weighted in next_hops:
            hop = weighted._replace(weight=1)
            key = (hop, self._hop_family(hop, family))
            identifier = self._hops.get(key)
            if identifier is None:
                identifier = self._create_hop(*key)
            members.append((identifier, weighted.weight))
        return members

    def _create_hop(self, hop: NextHop, family: int) -> int:
        def create(hop: NextHop) -> int:
            return self._create(
                lambda i: route_messages.hop_object(i, OBJECT_PROTOCOL, family, hop)
            )

        try:
            identifier = create(hop)
        except OSError as error:
            if not is_hidden(error.errno, (hop,)):
                raise
            identifier = create(*on_link((hop,)))
        self._hops[hop, family] = identifier
        self._hop_ids[identifier] = hop
        return identifier

    @staticmethod
    def _hop_family(hop: NextHop, family: int) -> int:
        if (hop,) == BLACKHOLE or not hop.gateway:
            return family
        return IPV4 if len(hop.gateway) == 4 else IPV6

    def _create(self, body: Callable[[int], bytes]) -> int:
        """Create an object with a number that is free; returns the number."""
        for _ in range(_COUNT):
            self._last = self._last % _COUNT + 1
            identifier = self._base | self._last
            if identifier in self._by_id or identifier in self._hop_ids:
                continue
            try:
                self._kernel.request(
                    route_messages.NEW_NEXTHOP, netlink.CREATE | netlink.EXCL, body(identifier)
                )
            except FileExistsError:
                continue
            return identifier
        raise OSError(errno.ENOSPC, "no number for a nexthop object is free")

    def _add(self, group: Group) -> Group:
        self._by_set.setdefault((group.next_hops, group.family), []).append(group)
        if group.id:
            self._by_id[group.id] = group
        return group

    def _set(self, group: Group, next_hops: NextHopSet) -> None:
        self._unlink(group)
        group.next_hops = next_hops
        group.family = _family(next_hops, group.family)
        self._add(group)

    def _unlink(self, group: Group) -> None:
        key = (group.next_hops, group.family)
        groups = self._by_set.get(key, [])
        if group in groups:
            groups.remove(group)
            if not groups:
                del self._by_set[key]


@contextlib.contextmanager
def _gone() -> Iterator[None]:
    """Take an object that does not exist for removed."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.ENOENT:
            raise
