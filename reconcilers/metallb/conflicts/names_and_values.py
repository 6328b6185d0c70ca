"""Names that one object has, and values that all objects have alike. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import NamedTuple

from reconcilers.metallb.conflicts.problem_texts import MAX_LISTED_OBJECTS, listed_values
from reconcilers.metallb.objects import problem_of_objects
from reconcilers.model import ObjectRef, Problem
from resources.enumeration import enumerate_some
from resources.metallb.bgppeer import DEFAULT_VRF, BGPPeer, end_of, vrf_of
from resources.metallb.community import Community
from resources.metallb.objects import MetalLBObject


class NamedValue(NamedTuple):
    """The value that an object gives a name; two values of one name are a conflict."""

    key: tuple[Hashable, ...]
    value: Hashable
    field: str
    title: str
    shown: object | None = None
    """The value for people; None for a name that one object alone may have."""


class NamesAndValues:
    """The claims of the accepted objects."""

    def __init__(self) -> None:
        self._accepted: dict[Hashable, dict[Hashable, list[tuple[ObjectRef, NamedValue]]]] = {}
        """By name, and by value."""
        self._known: set[Hashable] = set()
        """The names with a problem."""

    def accept(self, ref: ObjectRef, row: MetalLBObject) -> None:
        """Add the names and values that a MetalLB object has."""
        for claim in _claims(ref, row):
            self._accepted.setdefault(claim.key, {}).setdefault(claim.value, []).append(
                (ref, claim)
            )

    def against(self, ref: ObjectRef, row: MetalLBObject) -> Iterator[ObjectRef]:
        """Iterate over the objects that are in conflict with another one for the value of a name."""
        for claim in _claims(ref, row):
            for value, others in self._accepted.get(claim.key, {}).items():
                if value != claim.value:
                    for other, _ in others:
                        yield other

    def problems(self, ref: ObjectRef, row: MetalLBObject) -> Iterator[Problem]:
        """Yield a problem of all objects that give one name different values."""
        for claim in _claims(ref, row):
            of_key = self._accepted[claim.key]
            if len(of_key) < 2 or claim.key in self._known:
                continue
            self._known.add(claim.key)
            values = {pair: problem.shown for pairs in of_key.values() for pair, problem in pairs}
            if claim.shown is None:
                text = enumerate_some(sorted(values), MAX_LISTED_OBJECTS)
            else:
                text = listed_values(values)
            yield problem_of_objects(values, claim.field, f"{claim.title}: {text}", "conflict")


def _claims(ref: ObjectRef, row: MetalLBObject) -> Iterator[NamedValue]:
    if isinstance(row, Community):
        for i, alias in enumerate(row.spec.communities):
            title = f"community name {alias.name[:64]!r} is defined more than once"
            yield NamedValue(
                ("alias", alias.name), (ref, i), "spec.communities", title, alias.value
            )
    elif isinstance(row, BGPPeer):
        spec, vrf, end = row.spec, vrf_of(row), end_of(row)
        title = "routerID differs between BGPPeers of a node"
        yield NamedValue(
            ("routerID",), spec.router_id, "spec.routerID", title, spec.router_id or "unset"
        )
        where = f"VRF {vrf or DEFAULT_VRF}"
        title = f"myASN differs between BGPPeers of {where}"
        yield NamedValue(("myASN", vrf), spec.my_asn, "spec.myASN", title, spec.my_asn)
        field = "spec.interface" if spec.interface else "spec.peerAddress"
        title = f"{end} in {where} is configured by several BGPPeers"
        yield NamedValue(("end", vrf, bool(spec.interface), end), ref, field, title)
