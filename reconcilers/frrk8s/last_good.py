"""The last good state of a node: the objects that went together, and the passwords of their sessions.

Kept over restarts without passwords. The rules of feeding dialects are the present ones. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from reconcilers.dialect import Translated
from reconcilers.frrk8s.merge import Merge, MergedRouter, Merger
from reconcilers.frrk8s.passwords import Resolve, Resolved
from reconcilers.frrk8s.unit_parts import NeighborKey, Unit, is_same_unit
from reconcilers.model import ObjectRef, PasswordRef
from reconcilers.sliced_work import Pieces, finish
from resources.errors import INVALID_JSON
from resources.frrk8s.frrconfiguration import FRRConfiguration
from resources.passwords import password_octets
from resources.secret_value import SecretValue, decode_withheld, encode_withheld

Passwords = Mapping[NeighborKey, SecretValue]
"""The passwords of sessions, as they are used."""


class _StoredUnit(msgspec.Struct, frozen=True):
    ref: ObjectRef
    row: FRRConfiguration
    fields: dict[str, str] | None = None


class LastGoodUnits(NamedTuple):
    """The units of the last good state, for the next process."""

    units: tuple[Unit, ...]

    def encode(self) -> bytes:
        """Return the last good units as JSON; of a password only that there is one."""
        stored = [
            _StoredUnit(unit.ref, unit.row, None if unit.fields is None else dict(unit.fields))
            for unit in self.units
        ]
        return msgspec.json.encode(stored, enc_hook=encode_withheld)


class LastGood(NamedTuple):
    """The configuration in effect."""

    routers: tuple[MergedRouter, ...] = ()
    passwords: Passwords = MappingProxyType({})
    memory: LastGoodUnits | None = None

    def with_rules(self, units: Iterable[Translated]) -> LastGood:
        """Return the last good state of a node with the present rules of feeding dialects."""
        rules: dict[ObjectRef, list[Any]] = {}
        for translated in units:
            if translated.rules is not None:
                rules.setdefault(translated.origin, []).append(translated.rules)
        return self._replace(routers=tuple(_with_rules(router, rules) for router in self.routers))


def _with_rules(router: MergedRouter, rules: Mapping[ObjectRef, Sequence[Any]]) -> MergedRouter:
    return router._replace(
        neighbors=tuple(
            neighbor._replace(
                rules=tuple(rule for ref in neighbor.origins for rule in rules.get(ref, ()))
            )
            for neighbor in router.neighbors
        )
    )


def good_state(merged: Merge, resolve: Resolve, before: LastGood) -> LastGood:
    """Return the last good state after a merge without conflicts; equal objects keep the memory."""
    units = merged.accepted
    memory = before.memory
    if memory is None or not _same(units, memory.units):
        memory = LastGoodUnits(units)
    return LastGood(merged.routers or (), _passwords(merged, resolve), memory)


def _same(units: Sequence[Unit], others: Sequence[Unit]) -> bool:
    return len(units) == len(others) and all(
        unit.ref == other.ref and is_same_unit(unit, other)
        for unit, other in zip(units, others, strict=True)
    )


def _passwords(merged: Merge, resolve: Resolve) -> dict[NeighborKey, SecretValue]:
    passwords: dict[NeighborKey, SecretValue] = {}
    for router in merged.routers or ():
        for neighbor in router.neighbors:
            ref = neighbor.session.password
            if ref is not None:
                value = resolve(ref, neighbor.password)
                if isinstance(value, SecretValue) and value.known:
                    passwords[neighbor.key] = SecretValue(password_octets(value.reveal()))
    return passwords


def restored(octets: bytes) -> LastGood:
    """Return the last good state of FRR-k8s's merge in an earlier process. Raises ValueError."""
    try:
        stored = msgspec.json.decode(octets, type=list[_StoredUnit], dec_hook=decode_withheld)
    except INVALID_JSON as error:
        raise ValueError(f"it is not understood: {error}") from None
    units = tuple(Unit(unit.ref, unit.row, unit.fields) for unit in stored)
    merged = finish(Merger().merge(units, _withheld, Pieces()))
    if merged.routers is None:
        raise ValueError(f"its objects conflict: {merged.problems[0].message}")
    return LastGood(merged.routers, memory=LastGoodUnits(units))


def _withheld(ref: PasswordRef, value: SecretValue | None) -> Resolved:  # noqa: ARG001
    return SecretValue.withheld()
