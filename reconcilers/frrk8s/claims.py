"""The values that may not differ between objects: each object's claims, and the conflicts. Pure.

A claim is the value that one object gives one field of one subject (a router, a neighbour, a prefix
towards a neighbour, a BFD profile). Objects conflict exactly where their claims to one field differ.
Where an absent field is a value of its own, every object with the subject has a claim; otherwise only
the objects that set it. Source: FRR-k8s internal/controller/merge.go.
"""

from __future__ import annotations

import functools
import heapq
import itertools
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from reconcilers.frrk8s.passwords import Resolve, unresolved_passwords
from reconcilers.frrk8s.unit_parts import (
    Compiled,
    NeighborPart,
    ProfilePart,
    RouterPart,
    Session,
    Unit,
)
from reconcilers.model import ObjectRef, Problem
from resources.enumeration import counted, enumerate_some
from resources.passwords import password_octets
from resources.secret_value import SecretValue
from speaker.nlri import prefix_to_text

MAX_LISTED: Final = 8
"""Values that a message has, and objects of each that it names; of the others it has the number."""
MAX_CONFLICTS: Final = 100
"""Conflicts of the same objects that are reported: two may differ in each of thousands of prefixes."""
CLAIMS: Final = 250
"""Claims that `claims_of` yields at a time, at most."""
SESSIONS: Final = 4096
"""Different sessions whose values are remembered."""
Subject: TypeAlias = tuple[Hashable, ...]
"""The subject and the field."""


class Claim(NamedTuple):
    """The value that one object gives one field."""

    unit: Unit
    path: str
    """Of the field, in the row of the unit."""
    value: Any
    """Compared; a password in its wrapper."""
    shown: str
    """For people; of a password only that there is one."""
    title: str
    """The subject and the field, for people."""


class _Field(NamedTuple):
    """A compared setting of a session, or of a BFD profile."""

    json: str
    title: str
    optional: bool = False
    """True where only objects that set it are compared."""
    suffix: str = ""


_FIELDS: Final[Mapping[str, _Field]] = {
    "asn": _Field("asn", "AS number"),
    "port": _Field("port", "port"),
    "sourceaddress": _Field("sourceaddress", "source address"),
    "bfd_profile": _Field("bfdProfile", "BFD profile", optional=True),
    "ebgp_multi_hop": _Field("ebgpMultiHop", "multihop"),
    "dual_stack": _Field("dualStackAddressFamily", "dual-stack address family"),
    "hold_time": _Field("holdTime", "hold time", suffix=" s"),
    "keepalive_time": _Field("keepaliveTime", "keepalive time", suffix=" s"),
    "connect_time": _Field("connectTime", "connect time", suffix=" s"),
    "local_asn": _Field("localASN", "local AS number"),
    "next_hop_ipv4": _Field("toAdvertise.nextHop.ipv4", "IPv4 next hop", optional=True),
    "next_hop_ipv6": _Field("toAdvertise.nextHop.ipv6", "IPv6 next hop", optional=True),
}
_PROFILE_FIELDS: Final[Mapping[str, _Field]] = {
    "receive_interval": _Field("receiveInterval", "receive interval", suffix=" ms"),
    "transmit_interval": _Field("transmitInterval", "transmit interval", suffix=" ms"),
    "detect_multiplier": _Field("detectMultiplier", "detection multiplier"),
    "echo_interval": _Field("echoInterval", "echo interval", suffix=" ms"),
    "echo_mode": _Field("echoMode", "echo mode"),
    "passive": _Field("passiveMode", "passive mode"),
    "minimum_ttl": _Field("minimumTtl", "minimum TTL"),
}
_INDEXED: Final = tuple(
    (name, Session._fields.index(name), field) for name, field in _FIELDS.items()
)


def claims_of(unit: Unit, compiled: Compiled) -> Iterator[Sequence[tuple[Subject, Claim]]]:
    """Yield the claims of an FRRConfiguration's unit, each with its field, some at a time.

    There is none for a password that is set.
    """
    for router in compiled.routers:
        yield tuple(_of_router(unit, router))
        for neighbor in router.neighbors:
            yield _of_neighbor(unit, neighbor)
            if neighbor.preferences:
                preferences = _of_preferences(unit, neighbor)
                while some := tuple(itertools.islice(preferences, CLAIMS)):
                    yield some
    for profile in compiled.profiles:
        yield tuple(_of_profile(unit, profile))


def password_claims(
    unit: Unit, compiled: Compiled, resolve: Resolve
) -> Iterator[tuple[Subject, Claim]]:
    """Yield the claims of a unit to the passwords that it sets, which follow Secrets."""
    for part in compiled.passwords:
        ref = part.session.password
        resolved = None if ref is None else resolve(ref, part.settings.password)
        if not isinstance(resolved, SecretValue) or not resolved.known:
            continue  # Nothing is known that could differ.
        value = SecretValue(password_octets(resolved.reveal()))
        field = "passwordSecret" if part.settings.password is None else "password"
        path = f"{part.path}.{field}"
        yield (part.key, "password"), Claim(unit, path, value, "one", "password")


def _of_router(unit: Unit, router: RouterPart) -> Iterator[tuple[Subject, Claim]]:
    yield (
        ("router", router.vrf, "asn"),
        Claim(unit, f"{router.path}.asn", router.asn, str(router.asn), f"{router}: AS number"),
    )
    if router.router_id is not None:
        yield (
            ("router", router.vrf, "id"),
            Claim(
                unit,
                f"{router.path}.id",
                router.router_id,
                router.router_id,
                f"{router}: router ID",
            ),
        )


def _of_neighbor(unit: Unit, part: NeighborPart) -> list[tuple[Subject, Claim]]:
    key, path = part.key, part.path
    claims: list[tuple[Subject, Claim]] = [
        ((key, name), Claim(unit, f"{path}.{json}", value, shown, title))
        for name, json, value, shown, title in _of_session(part.session)
    ]
    allowed = part.settings.allow_as_in
    if allowed:
        # Of others than none the most permissive one has effect.
        claim = Claim(unit, f"{path}.allowAsIn", allowed == "none", allowed, "own AS in AS paths")
        claims.append(((key, "allow_as_in"), claim))
    return claims


@functools.lru_cache(maxsize=SESSIONS)
def _of_session(session: Session) -> list[tuple[str, str, Any, str, str]]:
    """Return name, JSON name, value, text and title of what a session sets."""
    values: list[tuple[str, str, Any, str, str]] = []
    for name, index, field in _INDEXED:
        value = session[index]
        if value is None and field.optional:
            continue
        json = "dynamicASN" if name == "asn" and isinstance(value, str) else field.json
        values.append((name, json, value, _shown(value, field), field.title))
    if session.password is None:
        values.append(("password", "password", None, "none", "password"))
    return values


def _shown(value: object, field: _Field) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return "unset" if value is None else f"{value}{field.suffix}"


def _of_preferences(unit: Unit, part: NeighborPart) -> Iterator[tuple[Subject, Claim]]:
    for destination, path in part.preferences.items():
        value = part.routes[destination].local_preference if destination in part.routes else None
        title = f"{part.key}: local preference of {prefix_to_text(*destination)}"
        yield (part.key, "preference", destination), Claim(unit, path, value, str(value), title)


def _of_profile(unit: Unit, part: ProfilePart) -> Iterator[tuple[Subject, Claim]]:
    profile = part.profile
    for name, field in _PROFILE_FIELDS.items():
        value = getattr(profile, name)
        title = f"BFD profile {profile.name!r}: {field.title}"
        claim = Claim(unit, f"{part.path}.{field.json}", value, _shown(value, field), title)
        yield ("profile", profile.name, name), claim


# Alone


def own_problems(unit: Unit, compiled: Compiled, resolve: Resolve, node: str) -> list[Problem]:
    """Return the problems of a unit that are no conflict of claims: its own, and of its references.

    ``node`` lacks what is missing; empty where the same is reported of several nodes.
    """
    of_node = f" of node {node}" if node else ""
    problems = [
        Problem((unit.ref,), unit.path(error.path), error.message, category="invalid")
        for error in compiled.errors
    ]
    problems += [
        Problem(
            (unit.ref,),
            unit.path(missing.path),
            f"no object{of_node} has a router of VRF {missing.vrf}",
            category="unresolved",
        )
        for missing in compiled.missing
    ]
    for part, reason in unresolved_passwords(compiled, resolve):
        path = unit.path(f"{part.path}.passwordSecret")
        problems.append(Problem((unit.ref,), path, f"{part.key}: {reason}", category="unresolved"))
    return problems


# Conflicts


class _Conflict(NamedTuple):
    """The claims of several objects, or of a contradictory one, to one field."""

    field: str
    subject: Subject
    claims: list[Claim]
    """Sorted by object."""

    @property
    def order(self) -> tuple[str, str]:
        """The order in which conflicts of the same objects are reported."""
        return self.field, self.claims[0].title

    @property
    def problem(self) -> Problem:
        """The conflict for people."""
        title = self.claims[0].title
        key = self.subject[0]
        if not isinstance(key, str):
            title = title if title.startswith(str(key)) else f"{key}: {title}"
        text = f"{title} differs: {_listed(self.claims)}"
        return Problem(_objects(self.claims), self.field, text, category="conflict")


def conflicts(disputed: Iterable[tuple[Subject, list[Claim]]]) -> list[Problem]:
    """Return the conflicts between the claims of FRRConfigurations to each of some fields.

    Of the same objects the first `MAX_CONFLICTS` are reported, and the number of the others. An object
    that contradicts itself is alone in its conflict, and takes no part in others.
    """
    conflicts_of: dict[tuple[ObjectRef, ...], list[_Conflict]] = {}
    for subject, claims in disputed:
        for of_objects in _differing(claims):
            ordered = sorted(of_objects, key=lambda claim: claim.unit.ref)
            first = ordered[0]
            conflict = _Conflict(first.unit.path(first.path), subject, ordered)
            conflicts_of.setdefault(_objects(ordered), []).append(conflict)
    problems: list[Problem] = []
    for objects, all_of_them in conflicts_of.items():
        first_ones = heapq.nsmallest(
            MAX_CONFLICTS, all_of_them, key=lambda conflict: conflict.order
        )
        problems += [conflict.problem for conflict in first_ones]
        more = len(all_of_them) - MAX_CONFLICTS
        if more > 0:
            # With the last field: problems are sorted, and this one comes after the others.
            field = max(conflict.field for conflict in all_of_them)
            verb = "is" if more == 1 else "are"
            text = f"there {verb} {counted(more, 'more conflict')} of the same objects"
            problems.append(Problem(objects, field, text, category="conflict", count=more))
    return problems


def differ(claims: Iterable[Claim]) -> bool:
    """True if the claims of FRRConfigurations to one field are in conflict."""
    return len({claim.value for claim in claims}) > 1


def _differing(claims: Sequence[Claim]) -> Iterator[list[Claim]]:
    """Yield the claims to one field that differ: of each object by itself, and of the others."""
    if not differ(claims):
        return
    by_object: dict[ObjectRef, list[Claim]] = {}
    for claim in claims:
        by_object.setdefault(claim.unit.ref, []).append(claim)
    rest: list[Claim] = []
    for of_object in by_object.values():
        if differ(of_object):
            yield of_object
        else:
            rest.append(of_object[0])
    if differ(rest):
        yield rest


def _objects(claims: Iterable[Claim]) -> tuple[ObjectRef, ...]:
    return tuple(dict.fromkeys(claim.unit.ref for claim in claims))


def _listed(claims: Iterable[Claim]) -> str:
    """List the values, each with the objects that have it: the first few of both."""
    listed: dict[Any, tuple[str, dict[ObjectRef, None]]] = {}
    for claim in claims:
        listed.setdefault(claim.value, (claim.shown, {}))[1][claim.unit.ref] = None
    parts = [
        f"{shown} in {enumerate_some(objects, MAX_LISTED)}"
        for shown, objects in itertools.islice(listed.values(), MAX_LISTED)
    ]
    more = len(listed) - MAX_LISTED
    return "; ".join(parts) + (f"; and {counted(more, 'more value')}" if more > 0 else "")
