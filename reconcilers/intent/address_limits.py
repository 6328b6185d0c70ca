"""How many addresses the Services of a cluster may announce: of one Service, and of one namespace.

Every user who may write a Service may write thousands of addresses into it, and a router ends the
session with a node that announces more prefixes than it takes. Beyond the limit of a namespace the
Services with the newest creationTimestamp lose, then by name; within a Service the addresses at the
end of its list. No more Services of a namespace share an address than it may have addresses: a route
is compiled of all that name it. The result depends on Services alone, and so is the same on all nodes.

A changed Service costs what its own addresses cost; where a namespace is at its limit, the logarithm of
the number of its addresses in addition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple, final

from reconcilers.age import in_utc
from reconcilers.intent.first_by_rank import FirstByRank, Rank
from reconcilers.intent.options import IntentOptions
from reconcilers.intent.service_addresses import Rejection
from reconcilers.model import AddressRank, ObjectRef
from reconcilers.prefixes import host_route
from reconcilers.sliced_work import Pieces, Slices, changes_of
from resources.core import Service
from resources.core.kinds import SERVICE
from resources.core.service import EXTERNAL_IPS, INGRESS
from resources.enumeration import counted
from resources.meta import ObjectKey
from statedb import Database, Snapshot, Table

SERVICE_LIMIT: Final = "ServiceLimit"
NAMESPACE_LIMIT: Final = "NamespaceLimit"
"""Reasons of rejections."""


class NamedAddress(NamedTuple):
    """An address that a Service names: the first field with it, and its place among all of them."""

    field: str
    position: int


_ONLY_INGRESS: Final = NamedAddress(INGRESS, 0)
_ONLY_EXTERNAL: Final = NamedAddress(EXTERNAL_IPS, 0)


@final
class AddressesOfService:
    """The addresses that one Service names, as host routes, each once.

    The ingress status comes first, as controllers assign it, then ``spec.externalIPs``. Of most
    Services, which name one address, none is computed.
    """

    __slots__ = ("_addresses", "_only", "_row")

    def __init__(self, row: Service) -> None:
        self._row = row
        self._addresses: dict[bytes, NamedAddress] | None = None
        assigned, external = len(row.status.load_balancer.ingress), len(row.spec.external_ips)
        self._only: NamedAddress | None = None
        if assigned + external == 1:
            self._only = _ONLY_INGRESS if assigned else _ONLY_EXTERNAL

    @property
    def namespace(self) -> str:
        """The namespace of the Service whose number of addresses is limited."""
        return self._row.metadata.namespace

    @property
    def name(self) -> str:
        """The name of the Service within its namespace."""
        return self._row.metadata.name

    @property
    def addresses(self) -> Mapping[bytes, NamedAddress]:
        """All addresses of the Service, each once, for the limits."""
        if self._addresses is None:
            self._addresses = _named_addresses(self._row)
        return self._addresses

    def named(self, nlri: bytes) -> NamedAddress | None:
        """Return the field and place of a Service's address; None if it does not name it.

        The address of a Service with one is not compared.
        """
        return self._only or self.addresses.get(nlri)

    def rank(self, nlri: bytes) -> AddressRank | None:
        """Return the rank of a Service's address for the limits, as `named`."""
        named = self.named(nlri)
        if named is None:
            return None
        return AddressRank(in_utc(self._row.metadata.creation_timestamp), named.position)


class _Namespace:
    """The counted addresses of a namespace that has more of them than it may have."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.first: FirstByRank[bytes] = FirstByRank(limit)
        self._holders: dict[bytes, dict[str, Rank]] = {}
        """The Services that name an address, each with the rank that it gives the address."""
        self._of_service: dict[str, tuple[bytes, ...]] = {}
        self._sharing: dict[bytes, FirstByRank[str]] = {}
        """The Services of the addresses that more of them name than may share one, or have."""
        self._changed: dict[bytes, bool] = {}
        """The addresses among them with other Services since the last call of `settle`; True: they are
        new among them."""

    def put(self, name: str, ranks: Mapping[bytes, Rank]) -> None:
        """Take the counted addresses of a Service; it has none if it is gone."""
        before = self._of_service.pop(name, ())
        for nlri in before:
            if nlri not in ranks:
                del self._holders[nlri][name]
                self._share(nlri, name, None)
                self._rank(nlri)
        if ranks:
            self._of_service[name] = tuple(ranks)
        for nlri, rank in ranks.items():
            self._holders.setdefault(nlri, {})[name] = rank
            self._share(nlri, name, rank)
            self._rank(nlri)

    def _share(self, nlri: bytes, name: str, rank: Rank | None) -> None:
        """Take the rank that a Service gives an address; None if it does not name it any more."""
        holders, sharing = self._holders[nlri], self._sharing.get(nlri)
        if new := sharing is None:
            if len(holders) <= self._limit:
                return
            sharing = self._sharing[nlri] = FirstByRank(self._limit)
            for holder, of_holder in holders.items():
                sharing.put(holder, of_holder)
        elif rank is None:
            sharing.discard(name)
        else:
            sharing.put(name, rank)
        self._changed[nlri] = new or self._changed.get(nlri, False)

    def _rank(self, nlri: bytes) -> None:
        holders = self._holders[nlri]
        if holders:
            self.first.put(nlri, min(holders.values()))
        else:
            del self._holders[nlri]
            self._sharing.pop(nlri, None)
            self.first.discard(nlri)

    def settle(self) -> list[str]:
        """Return the names of the Services with an address that is judged differently now."""
        judged = [name for nlri in self.first.settle() for name in self._holders.get(nlri, ())]
        changed, self._changed = self._changed, {}
        for nlri, new in changed.items():
            if (sharing := self._sharing.get(nlri)) is not None:
                moved = sharing.settle()
                # Before, all of them shared it.
                judged += (n for n in self._holders[nlri] if n not in sharing) if new else moved
        return list(dict.fromkeys(judged))

    def shares(self, name: str, nlri: bytes) -> bool:
        """True unless as many older Services as may share an address name it, too."""
        sharing = self._sharing.get(nlri)
        return sharing is None or name in sharing

    def beyond(self) -> list[str]:
        """Return the names of the Services with an address beyond the limit."""
        return [
            name
            for name, addresses in self._of_service.items()
            if any(nlri not in self.first or not self.shares(name, nlri) for nlri in addresses)
        ]


class AddressLimits:
    """Follows all Services, and judges their addresses by number."""

    def __init__(self, db: Database, services: Table[Service], options: IntentOptions) -> None:
        self._services = services
        self._changes = services.changes(db)
        self._of_service = options.advertise_service_limit
        self._of_namespace = options.advertise_namespace_limit
        self._counted_fields = frozenset(
            {EXTERNAL_IPS, INGRESS} if options.advertise_namespace_limit_ingress else {EXTERNAL_IPS}
        )
        self._counts: dict[str, dict[str, int]] = {}
        """The number of counted addresses by namespace and Service; of Services that have some."""
        self._totals: dict[str, int] = {}
        self._crowded: dict[str, _Namespace] = {}
        """The namespaces that may be over their limit."""

    @property
    def table(self) -> Table[Service]:
        """The table of Services, whose addresses are limited."""
        return self._services

    def collect(self, snapshot: Snapshot, pieces: Pieces) -> Slices[list[ObjectKey]]:
        """Count the addresses of Services that changed since the last call, in slices.

        Returns the Services that are judged differently because of other Services.
        """
        changed: dict[str, dict[str, None]] = {}
        for changes in changes_of(self._changes, snapshot, pieces):
            if changes is None:
                yield
                continue
            for change in changes if self._of_namespace else ():
                namespace, name = change.row.key
                if self._count(change.row, deleted=change.deleted):
                    changed.setdefault(namespace, {})[name] = None
        keys: list[ObjectKey] = []
        for namespace, names in changed.items():
            keys += ((namespace, name) for name in self._judge(snapshot, namespace, names))
        return keys

    def _count(self, row: Service, *, deleted: bool) -> bool:
        """Count the addresses of a Service; True if it has some, or had."""
        namespace, name = row.key
        of_namespace = self._counts.get(namespace, {})
        before = of_namespace.get(name, 0)
        count = 0 if deleted else self._number(row)
        if not before and not count:
            return False
        if count:
            self._counts.setdefault(namespace, of_namespace)[name] = count
        else:
            del of_namespace[name]
        self._totals[namespace] = self._totals.get(namespace, 0) + count - before
        if not of_namespace:
            del self._counts[namespace], self._totals[namespace]
        return True

    def _number(self, row: Service) -> int:
        """Return the number of counted addresses, or more: an address may be there several times."""
        count = len(row.spec.external_ips)
        if INGRESS in self._counted_fields:
            count += len(row.load_balancer_addresses)
        return min(count, self._of_service) if self._of_service else count

    def _judge(self, snapshot: Snapshot, namespace: str, names: Iterable[str]) -> Iterator[str]:
        """Yield the Services of a namespace that are judged differently."""
        crowded = self._crowded.get(namespace)
        if self._totals.get(namespace, 0) <= self._of_namespace:
            if crowded is not None:
                del self._crowded[namespace]
                yield from crowded.beyond()
            return
        new = crowded is None
        if crowded is None:
            crowded = self._crowded[namespace] = _Namespace(self._of_namespace)
            names = self._counts[namespace]
        for name in names:
            row = self._services.get(snapshot, (namespace, name))
            crowded.put(name, {} if row is None else self._ranks(row))
        judged = crowded.settle()
        yield from crowded.beyond() if new else judged

    def _ranks(self, row: Service) -> dict[bytes, Rank]:
        """Return the ranks of the counted addresses of a Service."""
        name, created = row.metadata.name, in_utc(row.metadata.creation_timestamp)
        return {
            nlri: (created, name, named.position)
            for nlri, named in _named_addresses(row).items()
            if named.field in self._counted_fields
            and (not self._of_service or named.position < self._of_service)
        }

    # Judgement

    def of_object(self, snapshot: Snapshot, ref: ObjectRef) -> AddressesOfService | None:
        """Return the limited addresses of an object; None if it is no Service, or gone."""
        if ref.kind != SERVICE.name:
            return None
        row = self._services.get(snapshot, (ref.namespace, ref.name))
        return None if row is None else AddressesOfService(row)

    def reject(self, rejected: AddressesOfService, nlri: bytes) -> Rejection | None:
        """Return why an address of a Service is beyond a limit, or None."""
        named = rejected.named(nlri)
        if named is None:
            return None
        if self._of_service and named.position >= self._of_service:
            count = counted(self._of_service, "address", "addresses")
            text = f"its Service has {count} before it, which is the limit"
            return Rejection(SERVICE_LIMIT, f"{text} (--advertise-service-limit)")
        crowded = self._crowded.get(rejected.namespace)
        if crowded is None or named.field not in self._counted_fields:
            return None
        if nlri in crowded.first:
            if crowded.shares(rejected.name, nlri):
                return None
            text = f"{counted(self._of_namespace, 'older Service', 'older Services')} of namespace"
            text += f" {rejected.namespace} share it, which is the limit"
            return Rejection(NAMESPACE_LIMIT, f"{text} (--advertise-namespace-limit)")
        count = counted(self._of_namespace, "address", "addresses")
        text = f"the Services of namespace {rejected.namespace} have {count}"
        return Rejection(
            NAMESPACE_LIMIT, f"{text} before it, which is the limit (--advertise-namespace-limit)"
        )


def _named_addresses(row: Service) -> dict[bytes, NamedAddress]:
    addresses: dict[bytes, NamedAddress] = {}
    for text in row.load_balancer_addresses:
        addresses.setdefault(host_route(text)[1], NamedAddress(INGRESS, len(addresses)))
    for text in row.external_addresses:
        addresses.setdefault(host_route(text)[1], NamedAddress(EXTERNAL_IPS, len(addresses)))
    return addresses
