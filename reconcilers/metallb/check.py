"""Validates MetalLB's objects of one node: each object, references and conflicts. Pure.

Source: MetalLB internal/config/config.go and validation.go. Every finding is independent of the order
of the objects.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from reconcilers.metallb.objects import Finding, Objects, finding
from reconcilers.model import ObjectRef, ref_to
from resources.addresses import canonical_address
from resources.core import Secret
from resources.core.kinds import SECRET
from resources.enumeration import enumerate_some
from resources.errors import FieldError, as_written
from resources.frrk8s.communities import UnknownNotationError, parse_community
from resources.meta import ObjectKey
from resources.metallb.bgpadvertisement import BGPAdvertisement
from resources.metallb.bgppeer import BGPPeer
from resources.metallb.ipaddresspool import Block, IPAddressPool, blocks
from resources.metallb.kinds import (
    BFD_PROFILE,
    BGP_ADVERTISEMENT,
    BGP_PEER,
    COMMUNITY,
    IP_ADDRESS_POOL,
)
from resources.metallb.objects import MetalLBObject
from resources.passwords import password_error
from resources.remaining_errors import unrelated

PASSWORD_TYPE: Final = "kubernetes.io/basic-auth"  # noqa: S105  a type, no password
PASSWORD_KEY: Final = "password"  # noqa: S105
DEFAULT_VRF: Final = "default"
PREFERENCE: Final = "spec.localPref"
"""The field of two local preferences for one pool."""
MAX_LISTED_OBJECTS: Final = 8
"""Objects that a message names; of the others it has the number."""

Secrets = Callable[[ObjectKey], Secret | None] | None
"""Namespace and name to a Secret, or None; None in a program that reads no Secret: the operator."""


def vrf_of(peer: BGPPeer) -> str:
    """Return the VRF of a peer; empty for the default one, however it is written."""
    return "" if peer.spec.vrf == DEFAULT_VRF else peer.spec.vrf


def end_of(peer: BGPPeer) -> str:
    """Return the address of a peer in canonical form, or its interface."""
    return (
        canonical_address(peer.spec.peer_address) if peer.spec.peer_address else peer.spec.interface
    )


def pools_of(advertisement: BGPAdvertisement, pools: Iterable[IPAddressPool]) -> tuple[str, ...]:
    """Return the names of the pools that an advertisement selects, by name or by label.

    Without names and selectors it selects all; with selectors that match none it selects none.
    """
    spec = advertisement.spec
    every = not spec.ip_address_pools and not spec.ip_address_pool_selectors
    return tuple(
        pool.metadata.name
        for pool in pools
        if every
        or pool.metadata.name in spec.ip_address_pools
        or any(s.matches(pool.metadata.labels) for s in spec.ip_address_pool_selectors)
    )


def findings(objects: Objects, secrets: Secrets, namespace: str) -> list[Finding]:
    """Return all problems; an object that is invalid by itself is not compared with others.

    What it refers to is checked all the same, so that its problems are found at once.
    """
    found = [
        finding((ref,), error.path, _naming_neighbor(row, error.message), "invalid")
        for ref, row in objects.refs()
        for error in row.errors
    ]
    sound = objects.only(frozenset(ref for ref, row in objects.refs() if not row.errors))
    found += alias_findings(sound)
    found += _of_sound_fields(objects, _communities(objects, aliases(sound)))
    profiles = {row.metadata.name for row in sound.profiles}
    found += _of_sound_fields(objects, _references(objects, profiles, secrets, namespace))
    found += _peers(sound.peers)
    found += _overlaps(sound.pools)
    found += _advertised_pools(sound)
    found += _echo(sound)
    return found


def _of_sound_fields(objects: Objects, found: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the findings that do not come of fields that are wrong by themselves."""
    errors = {ref: row.errors for ref, row in objects.refs() if row.errors}
    for one in found:
        known = errors.get(one.objects[0], ())
        if not known or any(unrelated([FieldError(one.field, one.message)], known)):
            yield one


def _naming_neighbor(row: MetalLBObject, message: str) -> str:
    """Return a message about a BGPPeer with its address as it is written, and its VRF."""
    if not isinstance(row, BGPPeer):
        return message
    spec = row.spec
    end = spec.peer_address or spec.interface
    if not end:
        return message
    vrf = vrf_of(row)
    where = f" in VRF {as_written(vrf)}" if vrf else ""
    return f"neighbor {as_written(end)}{where}: {message}"


def _grouped(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, list[Any]]:
    groups: dict[Any, list[Any]] = defaultdict(list)
    for key, value in pairs:
        groups[key].append(value)
    return groups


def _listed(values: Mapping[ObjectRef, object]) -> str:
    """List the values, each with the objects that have it; at most eight objects are named."""
    objects: dict[object, list[str]] = {}
    for ref, value in itertools.islice(sorted(values.items()), MAX_LISTED_OBJECTS):
        objects.setdefault(value, []).append(str(ref))
    more = len(values) - MAX_LISTED_OBJECTS
    parts = [f"{value} in {', '.join(refs)}" for value, refs in objects.items()]
    return "; ".join(parts) + (f"; and {more} more objects" if more > 0 else "")


# Communities


def aliases(objects: Objects) -> dict[str, str]:
    """Return the values of communities by their names."""
    return {a.name: a.value for row in objects.communities for a in row.spec.communities}


def alias_findings(objects: Objects) -> Iterator[Finding]:
    """Yield the findings about names that are defined more than once."""
    named = _grouped(
        (alias.name, (ref_to(COMMUNITY, row), alias.value))
        for row in objects.communities
        for alias in row.spec.communities
    )
    for name, uses in named.items():
        if len(uses) > 1:
            text = f"community name {name[:64]!r} is defined more than once: {_listed(dict(uses))}"
            yield finding((ref for ref, _ in uses), "spec.communities", text, "conflict")


def is_literal(text: str) -> bool:
    """True if a text is a community, and needs no name."""
    try:
        parse_community(text)
    except ValueError:
        return False
    return True


def _communities(objects: Objects, names: Collection[str]) -> Iterator[Finding]:
    for row in objects.advertisements:
        for i, text in enumerate(row.spec.communities):
            if text in names:
                continue
            ref, path = ref_to(BGP_ADVERTISEMENT, row), f"spec.communities[{i}]"
            try:
                parse_community(text)
            except UnknownNotationError as error:
                message = f"no Community has the name, and {error}"
                yield finding((ref,), path, message, "unresolved")
            except ValueError as error:
                yield finding((ref,), path, str(error), "invalid")


# Peers


def _references(
    objects: Objects, profiles: Collection[str], secrets: Secrets, namespace: str
) -> Iterator[Finding]:
    for row in objects.peers:
        ref, name = ref_to(BGP_PEER, row), row.spec.bfd_profile
        if name and name not in profiles:
            text = f"there is no BFDProfile {name[:64]!r} that can be used"
            text = _naming_neighbor(row, text)
            yield finding((ref,), "spec.bfdProfile", text, "unresolved")
        secret = row.spec.password_secret.name
        if secret and secrets is not None:
            problem = _secret_problem(secrets((namespace, secret)))
            if problem:
                text = _naming_neighbor(row, f"Secret {namespace}/{secret[:64]} {problem}")
                yield finding((ref,), "spec.passwordSecret", text, "unresolved")


def _secret_problem(secret: Secret | None) -> str:
    """Return the defect of a password's Secret, without the password; empty without one."""
    if secret is None:
        return f"does not exist ({SECRET.name} of type {PASSWORD_TYPE})"
    if secret.type != PASSWORD_TYPE:
        return f"is of type {secret.type[:64]}, and not {PASSWORD_TYPE}"
    value = secret.data.get(PASSWORD_KEY)
    if value is None:
        return f"has no key {PASSWORD_KEY}"
    reason = password_error(value.reveal()) if value.known else None
    return "" if reason is None else f"cannot be used: {reason}"


def _peers(peers: Sequence[BGPPeer]) -> Iterator[Finding]:
    refs = {row.metadata.name: ref_to(BGP_PEER, row) for row in peers}
    ids = {refs[row.metadata.name]: row.spec.router_id or "unset" for row in peers}
    if len(set(ids.values())) > 1:
        text = f"routerID differs between BGPPeers of a node: {_listed(ids)}"
        yield finding(ids, "spec.routerID", text, "conflict")
    of_vrf = _grouped((vrf_of(row), row) for row in peers)
    for vrf, rows in of_vrf.items():
        where = f"VRF {vrf or DEFAULT_VRF}"
        numbers = {refs[row.metadata.name]: row.spec.my_asn for row in rows}
        if len(set(numbers.values())) > 1:
            text = f"myASN differs between BGPPeers of {where}: {_listed(numbers)}"
            yield finding(numbers, "spec.myASN", text, "conflict")
        ends = _grouped(((bool(row.spec.interface), end_of(row)), row) for row in rows)
        for (is_interface, end), same in ends.items():
            if len(same) > 1:
                field = "interface" if is_interface else "peerAddress"
                of_end = [refs[row.metadata.name] for row in same]
                names = enumerate_some(sorted(of_end), MAX_LISTED_OBJECTS)
                text = f"{end} in {where} is configured by several BGPPeers: {names}"
                yield finding(of_end, f"spec.{field}", text, "conflict")


# Pools and advertisements


def _overlaps(pools: Sequence[IPAddressPool]) -> Iterator[Finding]:
    """Yield a finding for two pools with an address in common; a sweep over sorted blocks."""
    spans = sorted(
        (network.version, int(network.network_address), int(network.broadcast_address), i, entry)
        for i, pool in enumerate(pools)
        for entry in blocks(pool)
        for network in entry.networks
    )
    reported: set[tuple[int, int]] = set()
    live: list[tuple[int, int, int, int, Block]] = []
    for span in spans:
        version, start, _, i, entry = span
        live = [one for one in live if one[0] == version and one[2] >= start]
        for other in live:
            pair = (min(i, other[3]), max(i, other[3]))
            if other[3] == i or pair in reported:
                continue
            reported.add(pair)
            refs = [ref_to(IP_ADDRESS_POOL, pools[k]) for k in pair]
            texts = _listed(
                {
                    ref_to(IP_ADDRESS_POOL, pools[i]): entry.text[:64],
                    ref_to(IP_ADDRESS_POOL, pools[other[3]]): other[4].text[:64],
                }
            )
            yield finding(refs, "spec.addresses", f"pools overlap: {texts}", "conflict")
        live.append(span)


def shortest_length(pool: IPAddressPool, version: int) -> int | None:
    """Return the shortest length that the pool's addresses may be aggregated to, or None.

    Of each entry the largest prefix counts, and of the entries the one with the smallest.
    """
    found = [
        min(network.prefixlen for network in entry.networks)
        for entry in blocks(pool)
        if entry.networks[0].version == version
    ]
    return max(found, default=None)


def _advertised_pools(objects: Objects) -> Iterator[Finding]:
    pools = {row.metadata.name: row for row in objects.pools}
    shortest = {
        name: {version: shortest_length(row, version) for version in (4, 6)}
        for name, row in pools.items()
    }
    of_pool: dict[str, list[BGPAdvertisement]] = defaultdict(list)
    for row in objects.advertisements:
        for name in pools_of(row, objects.pools):
            of_pool[name].append(row)
            yield from _too_short(row, pools[name], shortest[name])
    reported: set[tuple[str, str]] = set()
    for name, rows in of_pool.items():
        versions = [version for version, length in shortest[name].items() if length is not None]
        for first, second in _of_different_preference(rows):
            pair = (first.metadata.name, second.metadata.name)
            if pair not in reported and preferences_collide(first, second, versions):
                reported.add(pair)
                yield _two_preferences(first, second, name)


def _of_different_preference(
    rows: Iterable[BGPAdvertisement],
) -> Iterator[tuple[BGPAdvertisement, BGPAdvertisement]]:
    """Yield the pairs of advertisements for all Services that have not the same local preference."""
    of_preference = _grouped((row.spec.local_pref, row) for row in rows if for_all_services(row))
    for one, other in itertools.combinations(of_preference.values(), 2):
        for pair in itertools.product(one, other):
            first, second = sorted(pair, key=lambda row: row.metadata.name)
            yield first, second


def for_all_services(row: BGPAdvertisement) -> bool:
    """True if an advertisement selects no Services by label."""
    return not row.spec.service_selectors


def _too_short(
    row: BGPAdvertisement, pool: IPAddressPool, shortest: Mapping[int, int | None]
) -> Iterator[Finding]:
    spec = row.spec
    lengths = (
        ("aggregationLength", 4, spec.aggregation_length),
        ("aggregationLengthV6", 6, spec.aggregation_length_v6),
    )
    for name, version, length in lengths:
        limit = shortest[version]
        if limit is not None and length < limit:
            refs = (ref_to(BGP_ADVERTISEMENT, row), ref_to(IP_ADDRESS_POOL, pool))
            text = (
                f"an aggregate of length {length} is wider than the addresses of pool "
                f"{pool.metadata.name}, which allow {limit} and longer"
            )
            yield finding(refs, f"spec.{name}", text, "conflict")


def preferences_collide(
    first: BGPAdvertisement, second: BGPAdvertisement, versions: Sequence[int]
) -> bool:
    """True if two advertisements would give one prefix of a pool two local preferences.

    Not if their aggregates differ in length in each family of the pool, nor if they name peers and
    have none in common. Source: MetalLB internal/config/config.go, validateBGPAdvPerPool.
    """
    one, other = first.spec, second.spec
    if one.local_pref == other.local_pref:
        return False
    if one.peers and other.peers and not set(one.peers) & set(other.peers):
        return False
    same = {
        4: one.aggregation_length == other.aggregation_length,
        6: one.aggregation_length_v6 == other.aggregation_length_v6,
    }
    return any(same[version] for version in versions)


def _two_preferences(first: BGPAdvertisement, second: BGPAdvertisement, pool: str) -> Finding:
    values = {ref_to(BGP_ADVERTISEMENT, row): row.spec.local_pref for row in (first, second)}
    text = f"localPref differs for pool {pool}: {_listed(values)}"
    return finding(values, PREFERENCE, text, "conflict")


def _echo(objects: Objects) -> Iterator[Finding]:
    """Yield a finding for each peer with BFD echo to which a pool with IPv6 addresses is advertised."""
    echoing = {row.metadata.name: row for row in objects.profiles if row.spec.echo_mode}
    peers = [row for row in objects.peers if row.spec.bfd_profile in echoing]
    if not peers:
        return
    six = {
        row.metadata.name: row
        for row in objects.pools
        if any(entry.networks[0].version == 6 for entry in blocks(row))
    }
    reported: set[tuple[str, str]] = set()
    for row in objects.advertisements:
        pools = [name for name in pools_of(row, objects.pools) if name in six]
        for peer in peers:
            if row.spec.peers and peer.metadata.name not in row.spec.peers:
                continue
            for name in pools:
                if (peer.metadata.name, name) in reported:
                    continue
                reported.add((peer.metadata.name, name))
                refs = (
                    ref_to(BFD_PROFILE, echoing[peer.spec.bfd_profile]),
                    ref_to(BGP_ADVERTISEMENT, row),
                    ref_to(BGP_PEER, peer),
                    ref_to(IP_ADDRESS_POOL, six[name]),
                )
                text = (
                    f"pool {name} has IPv6 addresses and is advertised to {peer.metadata.name}, "
                    "whose BFD profile has the echo mode, which is for IPv4 only"
                )
                yield finding(refs, "spec.echoMode", text, "conflict")
