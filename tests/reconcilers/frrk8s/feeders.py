"""Dialects that feed FRR-k8s, beside MetalLB: each has a kind of its own, a session an object."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from reconcilers import dialect as api
from reconcilers.age import age_by_name
from reconcilers.dialect.feed import UnrelatedFeed
from reconcilers.model import ObjectRef, Problem, ref_to
from resources.frrk8s.kinds import FRR_CONFIGURATION
from resources.kind import Kind
from resources.meta import Resource, Struct
from statedb import Snapshot
from tests.reconcilers.frrk8s.build import NAMESPACE, router

Json = dict[str, Any]


class TowerSpec(Struct, frozen=True):
    """A session, the prefixes that are advertised on it, and a claim that no session has."""

    address: str
    port: int = 179
    prefixes: tuple[str, ...] = ()
    local_pref: int = 0
    """The local preference of the prefixes; 0: none."""
    zone: str = ""


class Tower(Resource, frozen=True):
    """An object of a feeding dialect."""

    spec: TowerSpec


class Zones(UnrelatedFeed):
    """Towers of one zone conflict with each other: of one feed, and in no unit."""

    def __init__(self, objects: Mapping[ObjectRef, Tower]) -> None:
        self._zones = {ref: row.spec.zone for ref, row in objects.items()}
        self.ages = {
            ref: age_by_name(row.metadata.creation_timestamp, ref) for ref, row in objects.items()
        }

    def beside(self, environment: AbstractSet[ObjectRef]) -> AcceptedZones:  # type: ignore[override]  # noqa: ARG002
        """Return no objects."""
        return AcceptedZones(self._zones)

    def reasons(self, accepted: AbstractSet[ObjectRef]) -> Iterator[tuple[ObjectRef, api.Reasons]]:
        """Yield the conflicts of zones."""
        for ref in self.ages.keys() - accepted:
            others = sorted(one for one in accepted if self._conflict(ref, one))
            yield ref, api.Reasons([self._problem(ref, one) for one in others[:1]])

    def conflicts(self) -> Iterator[Problem]:
        """Yield the conflicts of all towers."""
        for ref, other in itertools.combinations(sorted(self.ages), 2):
            if self._conflict(ref, other):
                yield self._problem(ref, other)

    def _problem(self, ref: ObjectRef, other: ObjectRef) -> Problem:
        text = f"zone {self._zones[ref]} is taken"
        return Problem((ref, other), "spec.zone", text, category="conflict")

    def _conflict(self, ref: ObjectRef, other: ObjectRef) -> bool:
        zone = self._zones[ref]
        return bool(zone) and zone == self._zones.get(other)


class AcceptedZones:
    """The zones of accepted towers."""

    def __init__(self, zones: Mapping[ObjectRef, str]) -> None:
        self._zones = zones
        self._accepted: dict[str, list[ObjectRef]] = defaultdict(list)

    def accept(self, ref: ObjectRef) -> None:
        """Add a tower."""
        self._accepted[self._zones[ref]].append(ref)

    def against(self, ref: ObjectRef) -> Iterator[ObjectRef]:
        """Iterate over towers of the zone."""
        zone = self._zones[ref]
        return iter(self._accepted[zone] if zone else ())


class TowerFeed(api.Feed):
    """Towers as FRRConfigurations."""

    def units(self, objects: api.Objects) -> Iterable[api.Translated]:
        """Return one for each."""
        return [api.Translated(ref, _configuration(row)) for ref, row in objects.items()]

    def relations(self) -> Zones:
        """Return the conflicts of zones."""
        return Zones(self.objects)


def _configuration(row: Tower) -> Any:  # noqa: ANN401  a row
    spec = row.spec
    advertised: Json = {"allowed": {"mode": "all"}}
    if spec.local_pref:
        preference = {"localPref": spec.local_pref, "prefixes": list(spec.prefixes)}
        advertised["withLocalPref"] = [preference]
    neighbor = {
        "address": spec.address,
        "asn": 64950,
        "port": spec.port,
        "toAdvertise": advertised,
    }
    metadata = {
        "name": row.metadata.name,
        "namespace": NAMESPACE,
        "creationTimestamp": row.metadata.creation_timestamp,
    }
    routers = [router(neighbor, prefixes=list(spec.prefixes))]
    return FRR_CONFIGURATION.decode({"metadata": metadata, "spec": {"bgp": {"routers": routers}}})


def feeder(kind_name: str) -> tuple[type[api.Dialect], Kind[Any]]:
    """Make a dialect with a kind of towers."""
    kind = Kind(
        kind_name,
        Tower,
        group="test.waggle.dev",
        versions=("v1",),
        plural=f"{kind_name.lower()}s",
        namespaced=False,
        table=f"{kind_name.lower()}s",
    )

    class Feeder(api.Dialect):
        name = kind_name.lower()
        title = kind_name
        feeds = "frrk8s"
        kinds = (kind,)

        def compile(self, snapshot: Snapshot, context: api.NodeContext) -> api.NodeIntent:  # noqa: ARG002
            objects = {ref_to(kind, row): row for row in self.tables.of(kind).all(snapshot)}
            problems = list(Zones(objects).conflicts())
            return api.NodeIntent(feed=TowerFeed(objects, problems=problems))

    return Feeder, kind


def tower(kind: str, name: str, address: str, *, created: str = "", **spec: object) -> Json:
    """Make an object."""
    return {
        "apiVersion": "test.waggle.dev/v1",
        "kind": kind,
        "metadata": {"name": name, "creationTimestamp": created},
        "spec": {"address": address, **spec},
    }
