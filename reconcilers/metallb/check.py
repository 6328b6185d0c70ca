"""Validates MetalLB's objects of one node: each object, references and conflicts. Pure.

Source: MetalLB internal/config/config.go and validation.go. Every finding is independent of the order
of the objects.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from reconcilers.metallb.objects import Objects, finding
from reconcilers.model import ObjectRef, Problem, ref_to
from reconcilers.slices import Pieces, Slices, finish
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
MAX_COMPARED: Final = 100
"""Objects in conflict with one object that are looked for; more are not counted."""
PIECES_OF_STEP: Final = 10
"""Pieces of a slice that one step of a comparison with up to `MAX_COMPARED` objects counts for."""
MAX_LISTED_OBJECTS: Final = 8
"""Objects that a message names; of the others it has the number."""

T = TypeVar("T")

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


def pools_of(
    advertisement: BGPAdvertisement, pools: Mapping[str, IPAddressPool]
) -> tuple[str, ...]:
    """Return the names of the pools that an advertisement selects, by name or by label.

    Without names and selectors it selects all; with selectors that match none it selects none.
    """
    spec = advertisement.spec
    if not spec.ip_address_pool_selectors:
        if not spec.ip_address_pools:
            return tuple(pools)
        # By name, and not by pool: there may be a thousand of both.
        return tuple(sorted({name for name in spec.ip_address_pools if name in pools}))
    return tuple(
        name
        for name, pool in pools.items()
        if name in spec.ip_address_pools
        or any(s.matches(pool.metadata.labels) for s in spec.ip_address_pool_selectors)
    )


def by_name(pools: Iterable[IPAddressPool]) -> dict[str, IPAddressPool]:
    """Return pools by their names."""
    return {row.metadata.name: row for row in pools}


def findings(objects: Objects, secrets: Secrets, namespace: str) -> list[Problem]:
    """Return all problems at one go; see `finding_slices`."""
    return finish(finding_slices(objects, secrets, namespace, Pieces()))


def finding_slices(
    objects: Objects, secrets: Secrets, namespace: str, pieces: Pieces
) -> Slices[list[Problem]]:
    """Return all problems; an object that is invalid by itself is not compared with others.

    What it refers to is checked all the same, so that its problems are found at once.
    """
    found = [
        finding((ref,), error.path, _naming_neighbor(row, error.message), "invalid")
        for ref, row in objects.refs()
        for error in row.errors
    ]
    sound = objects.only(frozenset(ref for ref, row in objects.refs() if not row.errors))
    profiles = {row.metadata.name for row in sound.profiles}
    checks: tuple[Iterable[Problem | None], ...] = (
        alias_findings(sound),
        _of_sound_fields(objects, _communities(objects, aliases(sound))),
        _of_sound_fields(objects, _references(objects, profiles, secrets, namespace)),
        _peers(sound.peers),
        _overlaps(sound.pools),
        _advertised_pools(sound),
        _echo(sound),
    )
    for one in itertools.chain.from_iterable(checks):
        if one is not None:
            found.append(one)
        if pieces.fill_slice(PIECES_OF_STEP):
            yield
    return found


def _of_sound_fields(objects: Objects, found: Iterable[Problem]) -> Iterator[Problem]:
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


def alias_findings(objects: Objects) -> Iterator[Problem]:
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


def _communities(objects: Objects, names: Collection[str]) -> Iterator[Problem]:
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
) -> Iterator[Problem]:
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


def _peers(peers: Sequence[BGPPeer]) -> Iterator[Problem]:
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


def _overlaps(pools: Sequence[IPAddressPool]) -> Iterator[Problem | None]:
    """Yield a finding for each pool that has an address of others: the first of them, and their number.

    None is a step of the search.

    A sweep over sorted blocks; of the pools that share an address only so many are compared.
    """
    spans = sorted(
        (network.version, int(network.network_address), int(network.broadcast_address), i, entry)
        for i, pool in enumerate(pools)
        for entry in blocks(pool)
        for network in entry.networks
    )
    others: list[dict[int, tuple[Block, Block]]] = [{} for _ in pools]
    """By pool, the pools with an address of it: the entries of both."""
    live: list[tuple[int, int, int, int, Block]] = []
    for span in spans:
        yield None
        version, start, _, i, entry = span
        live = [one for one in live if one[0] == version and one[2] >= start]
        for _, _, _, k, other in live:
            if k != i:
                others[i].setdefault(k, (entry, other))
                others[k].setdefault(i, (other, entry))
        live.append(span)
        if len(live) > MAX_COMPARED:
            # The one that ends last stays: what overlaps with another one overlaps with it.
            live.remove(min(live, key=lambda one: one[2]))
    refs = [ref_to(IP_ADDRESS_POOL, pool) for pool in pools]
    found: dict[Problem, None] = {}
    for i, of_pool in enumerate(others):
        if of_pool:
            k = _next(sorted(of_pool), i.__lt__)
            entry, other = of_pool[k]
            texts = _listed({refs[i]: entry.text[:64], refs[k]: other.text[:64]})
            text = f"pools overlap: {texts}{_more(refs[i], len(of_pool) - 1)}"
            found[finding((refs[i], refs[k]), "spec.addresses", text, "conflict")] = None
    yield from found


def _next(others: Sequence[T], is_later: Callable[[T], bool]) -> T:
    """Return the first that comes later, else the first of all.

    Of objects that are all in conflict, each then names another one.
    """
    return next(filter(is_later, others), others[0])


def _more(ref: ObjectRef, number: int) -> str:
    """Return a clause about the other objects with which one is in conflict; empty without any."""
    if number <= 0:
        return ""
    count = f"at least {number}" if number >= MAX_COMPARED - 1 else str(number)
    return f"; {ref} is in conflict with {count} more"


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


def _advertised_pools(objects: Objects) -> Iterator[Problem | None]:
    """Yield the findings about pools and the advertisements that select them; None is a step."""
    pools = by_name(objects.pools)
    shortest = {
        name: {version: shortest_length(row, version) for version in (4, 6)}
        for name, row in pools.items()
    }
    of_pool: dict[str, list[BGPAdvertisement]] = defaultdict(list)
    too_short: dict[object, tuple[str, ...]] = {}
    named: set[tuple[str, str]] = set()
    for row in objects.advertisements:
        yield None
        selected = pools_of(row, pools)
        for name in selected:
            of_pool[name].append(row)
        yield from _too_short(row, selected, pools, shortest, too_short, named)
    reported: set[str] = set()
    found: dict[Problem, None] = {}
    for name, rows in of_pool.items():
        yield None
        versions = [version for version, length in shortest[name].items() if length is not None]
        if all(row.metadata.name in reported for row in rows):
            continue
        if len({row.spec.local_pref for row in rows}) == 1:
            continue
        given = Preferences((row for row in rows if for_all_services(row)), versions)
        for row in rows:
            if row.metadata.name in reported or not for_all_services(row):
                continue
            yield None
            if colliding := given.against(row):
                reported.add(row.metadata.name)
                found[_two_preferences(row, colliding, name)] = None
    yield from found


class Preferences:
    """Advertisements of one pool, by what two share that give a prefix two local preferences."""

    def __init__(self, rows: Iterable[BGPAdvertisement], versions: Sequence[int]) -> None:
        self._versions = versions
        self._of: dict[tuple[int, int, str | None], dict[int, list[BGPAdvertisement]]] = {}
        """By version, length of the aggregate, and peer ("" without peers, None all of them)."""
        for row in rows:
            self.add(row)

    def add(self, row: BGPAdvertisement) -> None:
        """Add an advertisement."""
        for version, length in self._lengths(row):
            for peer in (None, *(row.spec.peers or ("",))):
                of_key = self._of.setdefault((version, length, peer), {})
                of_key.setdefault(row.spec.local_pref, []).append(row)

    def against(self, row: BGPAdvertisement) -> list[BGPAdvertisement]:
        """Return the advertisements with another local preference, by name; some of very many."""
        found: dict[str, BGPAdvertisement] = {}
        for version, length in self._lengths(row):
            for peer in (*row.spec.peers, "") if row.spec.peers else (None,):
                for preference, others in self._of.get((version, length, peer), {}).items():
                    if len(found) >= MAX_COMPARED:
                        break
                    if preference != row.spec.local_pref:
                        room = MAX_COMPARED - len(found)
                        found.update((one.metadata.name, one) for one in others[:room])
        return [found[name] for name in sorted(found)]

    def _lengths(self, row: BGPAdvertisement) -> Iterator[tuple[int, int]]:
        lengths = {4: row.spec.aggregation_length, 6: row.spec.aggregation_length_v6}
        for version in self._versions:
            yield version, lengths[version]


def for_all_services(row: BGPAdvertisement) -> bool:
    """True if an advertisement selects no Services by label."""
    return not row.spec.service_selectors


def _too_short(
    row: BGPAdvertisement,
    selected: tuple[str, ...],
    pools: Mapping[str, IPAddressPool],
    shortest: Mapping[str, Mapping[int, int | None]],
    known: dict[object, tuple[str, ...]],
    named: set[tuple[str, str]],
) -> Iterator[Problem]:
    """Yield the findings about a length that is too short: one for the row, one for each further pool.

    ``known`` keeps the pools for which a length is too short, for equal selections. ``named`` has the
    field and the name of each pool that is in a finding.
    """
    spec = row.spec
    lengths = (
        ("aggregationLength", 4, spec.aggregation_length),
        ("aggregationLengthV6", 6, spec.aggregation_length_v6),
    )
    for name, version, length in lengths:
        key = (selected, version, length)
        is_new = key not in known
        if is_new:
            limits = ((pool, shortest[pool][version]) for pool in selected)
            known[key] = tuple(pool for pool, n in limits if n is not None and length < n)
        wrong = known[key]
        further = [pool for pool in wrong[1:] if (name, pool) not in named] if is_new else []
        for pool in (*wrong[:1], *further):
            named.add((name, pool))
            text = (
                f"an aggregate of length {length} is wider than the addresses of pool "
                f"{pool}, which allow {shortest[pool][version]} and longer"
            )
            more = f", and than those of {len(wrong) - 1} more" if len(wrong) > 1 else ""
            refs = (ref_to(BGP_ADVERTISEMENT, row), ref_to(IP_ADDRESS_POOL, pools[pool]))
            yield finding(refs, f"spec.{name}", text + more, "conflict")


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


def _two_preferences(
    row: BGPAdvertisement, others: Sequence[BGPAdvertisement], pool: str
) -> Problem:
    other = _next(others, lambda one: one.metadata.name > row.metadata.name)
    values = {ref_to(BGP_ADVERTISEMENT, one): one.spec.local_pref for one in (row, other)}
    more = _more(ref_to(BGP_ADVERTISEMENT, row), len(others) - 1)
    text = f"localPref differs for pool {pool}: {_listed(values)}{more}"
    return finding(values, PREFERENCE, text, "conflict")


def _echo(objects: Objects) -> Iterator[Problem]:
    """Yield a finding for each peer with BFD echo to which a pool with IPv6 addresses is advertised."""
    echoing = {row.metadata.name: row for row in objects.profiles if row.spec.echo_mode}
    peers = {row.metadata.name: row for row in objects.peers if row.spec.bfd_profile in echoing}
    if not peers:
        return
    pools = by_name(objects.pools)
    six = {
        name: row
        for name, row in pools.items()
        if any(entry.networks[0].version == 6 for entry in blocks(row))
    }
    left = dict(peers)
    for row in objects.advertisements:
        names = [name for name in dict.fromkeys(row.spec.peers or left) if name in left]
        selected = [name for name in pools_of(row, pools) if name in six] if names else []
        for peer in names if selected else ():
            del left[peer]
            name = selected[0]
            refs = (
                ref_to(BFD_PROFILE, echoing[peers[peer].spec.bfd_profile]),
                ref_to(BGP_ADVERTISEMENT, row),
                ref_to(BGP_PEER, peers[peer]),
                ref_to(IP_ADDRESS_POOL, six[name]),
            )
            more = f" (and {len(selected) - 1} more pools)" if len(selected) > 1 else ""
            text = (
                f"pool {name}{more} has IPv6 addresses and is advertised to {peer}, "
                "whose BFD profile has the echo mode, which is for IPv4 only"
            )
            yield finding(refs, "spec.echoMode", text, "conflict")
