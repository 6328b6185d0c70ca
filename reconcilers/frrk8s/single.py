"""Compiles one object alone: its rules, and its values in a form that can be compared. Pure.

Source: FRR-k8s internal/controller/api_to_config.go and its definition; what its engine refuses is
refused as well, with the field.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from reconcilers.frrk8s.exports import Available, Exported, advertised_routes
from reconcilers.frrk8s.unit import (
    Compiled,
    Missing,
    NeighborKey,
    NeighborPart,
    NeighborSettings,
    ProfilePart,
    RouterPart,
    Session,
    Unit,
    VrfPrefixes,
)
from reconcilers.frrk8s.values import (
    NANOSECONDS,
    Prefix,
    address,
    bfd_profile,
    prefix,
    shown_vrf,
    vrf_name,
)
from reconcilers.model import (
    Attributes,
    FieldRef,
    PasswordRef,
    PeerAs,
    PrefixRule,
    SecretRef,
)
from reconcilers.slices import Pieces, Slices
from resources.addresses import interface_errors, router_id_errors
from resources.durations import parse_duration
from resources.errors import MAX_LISTED_ERRORS, FieldError, checked_items, shortened
from resources.frrk8s.evpn import evpn_errors
from resources.frrk8s.frrconfiguration import Router
from resources.frrk8s.neighbor import Advertise, Neighbor, PrefixSelector
from resources.passwords import password_error
from speaker.nlri import IPV4_UNICAST, prefix_to_text

HOLD_TIME: Final = 180
KEEPALIVE_TIME: Final = 60
CONNECT_TIME: Final = 60
"""Seconds, where a neighbour has none."""
PORT: Final = 179
SECRETS_NAMESPACE: Final = "waggle.dev/secrets-namespace"
"""Annotation of an FRRConfiguration that ``waggle render`` generates: the namespace of the Secrets that
it refers to, where they are those of another dialect."""
MAX_SECRET_NAME: Final = 253
COMPARED: Final = 64
"""Different entries of earlier neighbours with which one is compared: an object may have thousands."""
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
"""A DNS subdomain (RFC 1123)."""
_DOTTED_QUAD: Final = re.compile(r"\d{1,3}(\.\d{1,3}){3}", re.ASCII)
"""Written as an IPv4 address: one that cannot be a source is not the name of an interface."""
RAW_CONFIG: Final = "RawConfig"
EVPN: Final = "EVPN"
BFD: Final = "BFD"
"""Reasons of the condition PartiallyApplied."""


def compile_unit(unit: Unit, elsewhere: VrfPrefixes, pieces: Pieces) -> Slices[Compiled]:
    """Compile a unit in slices of prefixes and neighbours.

    ``elsewhere`` has the prefixes of the VRFs of other units of the node.
    """
    return _Compiler(unit, elsewhere, pieces).compiled()


def routed_vrfs(unit: Unit) -> dict[str, frozenset[Prefix]]:
    """Return the prefixes of each VRF that a unit has a router of; invalid ones are left out."""
    found: dict[str, set[Prefix]] = {}
    for router in unit.row.spec.bgp.routers:
        prefixes = found.setdefault(vrf_name(router.vrf), set())
        for text in router.prefixes:
            try:
                prefixes.add(prefix(text))
            except ValueError:
                continue
    return {vrf: frozenset(prefixes) for vrf, prefixes in found.items()}


def imported_elsewhere(unit: Unit) -> frozenset[str]:
    """Return the VRFs that a unit imports and has no router of."""
    routers = unit.row.spec.bgp.routers
    imported = {vrf_name(one.vrf) for router in routers for one in router.imports}
    if not imported:
        return frozenset()
    return frozenset(imported - {vrf_name(router.vrf) for router in routers})


class _Compiler:
    """Compiles one unit; collects every broken rule."""

    def __init__(self, unit: Unit, elsewhere: VrfPrefixes, pieces: Pieces) -> None:
        self._pieces = pieces
        self._unit = unit
        self._elsewhere = elsewhere
        self._own: dict[str, frozenset[Prefix]] | None = None
        """The prefixes of its VRFs, once one of them is imported."""
        self._routed = frozenset(vrf_name(router.vrf) for router in unit.row.spec.bgp.routers)
        self._errors: list[FieldError] = []
        self._missing: list[Missing] = []
        self._unsupported: list[tuple[str, FieldError]] = []
        self._profiles: set[str] = set()
        self._routes: list[Mapping[Prefix, Attributes]] = []
        """The different routes of the last neighbours."""
        self._exports: list[tuple[Advertise, Available, tuple[bool, bool], Exported]] = []
        """The different entries of the last neighbours, with what their routes depend on."""

    def compiled(self) -> Slices[Compiled]:
        row = self._unit.row
        if row.invalid:
            return Compiled(errors=row.invalid)
        profiles = tuple(self._bfd_profiles())
        routers = []
        for i, router in enumerate(row.spec.bgp.routers):
            routers.append((yield from self._router(router, f"spec.bgp.routers[{i}]")))
        if row.spec.raw.raw_config:
            self._not_done(RAW_CONFIG, "spec.raw.rawConfig", "raw configuration has no effect")
        if self._errors:
            return Compiled(errors=tuple(self._errors), missing=tuple(self._missing))
        return Compiled(
            tuple(routers),
            profiles,
            missing=tuple(self._missing),
            unsupported=tuple(self._unsupported),
            passwords=tuple(
                part
                for router in routers
                for part in router.neighbors
                if part.session.password is not None
            ),
        )

    def _error(self, path: str, message: str) -> None:
        self._errors.append(FieldError(path, message))

    def _not_done(self, reason: str, path: str, message: str) -> None:
        self._unsupported.append((reason, FieldError(path, message)))

    # Profiles and routers

    def _bfd_profiles(self) -> Iterator[ProfilePart]:
        for i, spec in enumerate(self._unit.row.spec.bgp.bfd_profiles):
            path = f"spec.bgp.bfdProfiles[{i}]"
            if spec.name in self._profiles:
                self._error(f"{path}.name", f"BFD profile {shortened(spec.name)} is there twice")
                continue
            self._profiles.add(spec.name)
            yield ProfilePart(path, bfd_profile(spec))

    def _router(self, router: Router, path: str) -> Slices[RouterPart]:
        vrf = vrf_name(router.vrf)
        if router.asn == 0:
            self._error(f"{path}.asn", f"AS number 0 in VRF {shown_vrf(vrf)} (RFC 7607)")
        self._errors += router_id_errors(router.id or None, f"{path}.id")
        if vrf:
            self._errors += interface_errors(vrf, f"{path}.vrf")
        before = len(self._errors)
        prefixes = yield from self._prefixes(router.prefixes, f"{path}.prefixes")
        unchecked = len(self._errors) > before + MAX_LISTED_ERRORS
        resolved = len(self._missing)
        imports = self._imports(router, vrf, path)
        if router.evpn is not None:
            self._errors += evpn_errors(router.evpn, f"{path}.evpn")
            self._not_done(EVPN, f"{path}.evpn", f"EVPN of VRF {shown_vrf(vrf)} has no effect")
        available = Available(
            prefixes.union(*(self._imported(name) for name in imports)),
            complete=len(self._missing) == resolved and not unchecked,
        )
        neighbors = []
        for i, neighbor in checked_items(router.neighbors, f"{path}.neighbors", self._errors):
            where = f"{path}.neighbors[{i}]"
            part = yield from self._neighbor(neighbor, router, available, where)
            if part is not None:
                neighbors.append(part)
            if self._pieces.fill_slice():
                yield
        return RouterPart(
            vrf, path, router.asn, router.id or None, prefixes, imports, tuple(neighbors)
        )

    def _prefixes(self, texts: Sequence[str], path: str) -> Slices[frozenset[Prefix]]:
        found = set()
        for i, text in checked_items(texts, path, self._errors):
            try:
                found.add(prefix(text))
            except ValueError as error:
                self._error(f"{path}[{i}]", str(error))
            if self._pieces.fill_slice():
                yield
        return frozenset(found)

    def _imports(self, router: Router, vrf: str, path: str) -> frozenset[str]:
        found = set()
        for i, one in checked_items(router.imports, f"{path}.imports", self._errors):
            name, where = vrf_name(one.vrf), f"{path}.imports[{i}].vrf"
            if name == vrf:
                self._error(where, f"VRF {shown_vrf(vrf)} imports itself")
            elif name and (errors := list(interface_errors(name, where))):
                self._errors += errors
            elif name not in self._routed and name not in self._elsewhere:
                text = f"no object of this node has a router of VRF {shown_vrf(name)}"
                self._missing.append(Missing(where, text))
            found.add(name)
        return frozenset(found)

    def _imported(self, vrf: str) -> frozenset[Prefix]:
        """Return the prefixes of an imported VRF: the object's own router is all that counts."""
        if vrf not in self._routed:
            return self._elsewhere.get(vrf, frozenset())
        if self._own is None:
            self._own = routed_vrfs(self._unit)
        return self._own[vrf]

    # Neighbours

    def _neighbor(
        self, spec: Neighbor, router: Router, available: Available, path: str
    ) -> Slices[NeighborPart | None]:
        key = self._key(spec, vrf_name(router.vrf), path)
        if key is None:
            return None
        hold, keepalive = self._timers(spec, key, path)
        next_hops = self._next_hops(spec, key, path)
        session = Session(
            self._asn(spec, key, path),
            self._port(spec, key, path),
            self._source(spec, key, path),
            self._password(spec, key, path),
            self._bfd(spec, key, path),
            spec.ebgp_multi_hop,
            spec.dual_stack_address_family or key.is_interface,
            hold,
            keepalive,
            self._connect_time(spec, key, path),
            self._local_asn(spec, router, key, path),
            *next_hops,
        )
        families = frozenset(spec.address_families or ("unicast",))
        if "evpn" in families:
            text = f"{key}: the family evpn is not exchanged"
            self._not_done(EVPN, f"{path}.addressFamilies", text)
        both = session.dual_stack
        exported = yield from self._exported(spec.to_advertise, available, both, key, path)
        self._errors += exported.errors
        accept = yield from self._accept(spec, key, path)
        settings = NeighborSettings(
            session, spec.enable_graceful_restart, families, accept, spec.password
        )
        routes = self._shared(exported.routes)
        return NeighborPart(key, path, settings, routes, exported.preferences)

    def _exported(
        self, spec: Advertise, available: Available, both: bool, key: NeighborKey, path: str
    ) -> Slices[Exported]:
        """Compile what is advertised, or return that of an earlier neighbour with an equal entry."""
        families = (both, ":" in key.end)
        for before, was_available, had, exported in self._exports:
            if had == families and was_available is available and before == spec:
                return exported
        where = f"{path}.toAdvertise"
        found = yield from advertised_routes(spec, available, both, key, where, self._pieces)
        if not found.errors and not found.preferences:
            # Errors and local preferences have the path of their neighbour.
            self._exports.append((spec, available, families, found))
            del self._exports[:-COMPARED]
        return found

    def _shared(self, routes: Mapping[Prefix, Attributes]) -> Mapping[Prefix, Attributes]:
        """Return the equal routes of an earlier neighbour, if there are any."""
        for before in self._routes:
            if before == routes:
                return before
        self._routes.append(routes)
        del self._routes[:-COMPARED]
        return routes

    def _key(self, spec: Neighbor, vrf: str, path: str) -> NeighborKey | None:
        where = f" in VRF {vrf}" if vrf else ""
        if spec.address and spec.interface:
            ends = f"address {shortened(spec.address)} and interface {shortened(spec.interface)}"
            self._error(f"{path}.address", f"a neighbor{where} has both {ends}")
            return None
        if spec.interface:
            errors = list(interface_errors(spec.interface, f"{path}.interface"))
            self._errors += errors
            return None if errors else NeighborKey(vrf, spec.interface, is_interface=True)
        if not spec.address:
            self._error(f"{path}.address", f"a neighbor{where} has neither address nor interface")
            return None
        try:
            return NeighborKey(vrf, address(spec.address))
        except ValueError as error:
            self._error(f"{path}.address", f"neighbor{where}: {error}")
            return None

    def _asn(self, spec: Neighbor, key: NeighborKey, path: str) -> PeerAs:
        if spec.asn and spec.dynamic_asn:
            text = f"{key} has both asn {spec.asn} and dynamicASN {spec.dynamic_asn}"
            self._error(f"{path}.asn", text)
        elif not spec.asn and not spec.dynamic_asn:
            self._error(f"{path}.asn", f"{key} has neither asn nor dynamicASN")
        return spec.dynamic_asn or spec.asn or 0

    def _port(self, spec: Neighbor, key: NeighborKey, path: str) -> int:
        if spec.port == 0:
            self._error(f"{path}.port", f"{key}: 0 is not a port")
        return PORT if spec.port is None else spec.port

    def _source(self, spec: Neighbor, key: NeighborKey, path: str) -> str | None:
        text = spec.sourceaddress
        if not text:
            return None
        try:
            found = address(text)
        except ValueError as refused:
            field = f"{path}.sourceaddress"
            if _DOTTED_QUAD.fullmatch(text):
                self._error(field, f"{key}: {refused}")
            elif any(interface_errors(text, field)):
                reason = f"{key}: {shortened(text)} is neither an address nor an interface"
                self._error(field, reason)
            return text
        if not key.is_interface and (":" in found) != (":" in key.end):
            self._error(f"{path}.sourceaddress", f"{key}: {text} is not of its family")
        return found

    def _password(self, spec: Neighbor, key: NeighborKey, path: str) -> PasswordRef | None:
        secret = spec.password_secret.name
        if spec.password is None and not secret:
            return None
        field = f"{path}.password" if spec.password is not None else f"{path}.passwordSecret"
        if spec.password is not None and secret:
            text = f"{key} has both a password and the Secret {shortened(secret)}"
            self._error(f"{path}.passwordSecret", text)
        if key.is_interface:
            text = f"{key}: a session by interface cannot have a password"
            self._error(field, text)
        if secret and (len(secret) > MAX_SECRET_NAME or not _NAME.fullmatch(secret)):
            self._error(
                f"{path}.passwordSecret.name",
                f"{key}: {shortened(secret)} cannot be the name of a Secret",
            )
        if spec.password is None:
            metadata = self._unit.row.metadata
            namespace = metadata.annotations.get(SECRETS_NAMESPACE, metadata.namespace)
            return SecretRef(namespace, secret)
        if spec.password.known:
            reason = password_error(spec.password.reveal())
            if reason is not None:
                self._error(field, f"{key}: {reason}")
        return FieldRef(self._unit.ref, self._unit.path(f"{path}.password"))

    def _bfd(self, spec: Neighbor, key: NeighborKey, path: str) -> str | None:
        name = spec.bfd_profile
        if not name:
            return None
        # The profile of an object of another dialect is an object of its own.
        if name not in self._profiles and self._unit.fields is None:
            text = f"{key}: this object has no BFD profile {shortened(name)}"
            self._error(f"{path}.bfdProfile", text)
        self._not_done(BFD, f"{path}.bfdProfile", f"{key}: BFD is not spoken")
        return name

    def _timers(self, spec: Neighbor, key: NeighborKey, path: str) -> tuple[int, int]:
        if spec.hold_time is None and spec.keepalive_time is None:
            return HOLD_TIME, KEEPALIVE_TIME
        hold = self._duration(spec.hold_time, key, f"{path}.holdTime")
        keepalive = self._duration(spec.keepalive_time, key, f"{path}.keepaliveTime")
        if spec.hold_time is None or spec.keepalive_time is None:
            name, other = "holdTime", "keepaliveTime"
            if spec.hold_time is None:
                name, other = other, name
            self._error(f"{path}.{name}", f"{key} has {name} without {other}")
        elif hold is not None and keepalive is not None:
            if not (0 <= hold < NANOSECONDS or 3 <= hold // NANOSECONDS <= 65535):
                text = f"{key}: {shortened(spec.hold_time)} is neither 0 nor 3 s to 65535 s"
                self._error(f"{path}.holdTime", text)
            elif keepalive < 0 or keepalive > hold:
                text = f"{key}: {shortened(spec.keepalive_time)} is not from 0 to holdTime"
                self._error(f"{path}.keepaliveTime", f"{text} ({shortened(spec.hold_time)})")
            return hold // NANOSECONDS, keepalive // NANOSECONDS
        return HOLD_TIME, KEEPALIVE_TIME

    def _duration(self, text: str | None, key: NeighborKey, path: str) -> int | None:
        """Return a duration in nanoseconds; None with an error, or without a text."""
        if text is None:
            return None
        try:
            return parse_duration(text)
        except ValueError as error:
            self._error(path, f"{key}: {error}")
            return None

    def _connect_time(self, spec: Neighbor, key: NeighborKey, path: str) -> int:
        where = f"{path}.connectTime"
        time = self._duration(spec.connect_time, key, where)
        if time is None:
            return CONNECT_TIME
        if time % NANOSECONDS or not 1 <= time // NANOSECONDS <= 65535:
            text = f"{key}: {spec.connect_time!r} is not a whole number of seconds from 1 to 65535"
            self._error(where, text)
        return time // NANOSECONDS

    def _local_asn(self, spec: Neighbor, router: Router, key: NeighborKey, path: str) -> int | None:
        found = spec.local_asn
        reason = None
        if found is None:
            return None
        if spec.dynamic_asn == "internal" or spec.asn == router.asn:
            reason = "only an external neighbor can have a local AS"
        elif found == router.asn:
            reason = f"{found} is the AS of the router"
        elif found == spec.asn:
            reason = f"{found} is the AS of the neighbor"
        if reason is not None:
            self._error(f"{path}.localASN", f"{key}: {reason}")
        return found

    def _next_hops(
        self, spec: Neighbor, key: NeighborKey, path: str
    ) -> tuple[str | None, str | None]:
        given = spec.to_advertise.next_hop
        both = spec.dual_stack_address_family or key.is_interface
        found: list[str | None] = []
        for name, text, version in (("ipv4", given.ipv4, 4), ("ipv6", given.ipv6, 6)):
            where = f"{path}.toAdvertise.nextHop.{name}"
            value = None
            if text is not None:
                try:
                    value = address(text)
                except ValueError as error:
                    self._error(where, f"{key}: {error}")
                else:
                    if ipaddress.ip_address(value).version != version:
                        self._error(where, f"{key}: {text!r} is not an IPv{version} address")
                    elif not both and (":" in key.end) != (version == 6):
                        reason = f"the session has no IPv{version} routes"
                        self._error(where, f"{key}: next hop {shortened(text)}: {reason}")
            found.append(value)
        return found[0], found[1]

    # Import

    def _accept(
        self, spec: Neighbor, key: NeighborKey, path: str
    ) -> Slices[frozenset[PrefixRule] | None]:
        allowed = spec.to_receive.allowed
        if allowed.mode == "all":
            return None
        rules = set()
        where = f"{path}.toReceive.allowed.prefixes"
        for i, selector in checked_items(allowed.prefixes, where, self._errors):
            try:
                rules.add(self._rule(selector))
            except _InvalidSelectorError as error:
                self._error(f"{where}[{i}].{error.field}", f"{key}: {error}")
            if self._pieces.fill_slice():
                yield
        return frozenset(rules)

    def _rule(self, selector: PrefixSelector) -> PrefixRule:
        try:
            family, nlri = prefix(selector.prefix)
        except ValueError as error:
            raise _InvalidSelectorError("prefix", str(error)) from None
        longest = 32 if family == IPV4_UNICAST else 128
        ge, le = selector.ge, selector.le
        for name, length in (("ge", ge), ("le", le)):
            if length is not None and not nlri[0] <= length <= longest:
                text = f"{name} {length} of {selector.prefix} is not from {nlri[0]} to {longest}"
                raise _InvalidSelectorError(name, text)
        if ge is not None and le is not None and ge > le:
            raise _InvalidSelectorError("ge", f"ge {ge} of {selector.prefix} is above le {le}")
        return PrefixRule(prefix_to_text(family, nlri), ge, le, self._unit.ref)


class _InvalidSelectorError(Exception):
    """A selector of received prefixes that is invalid."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field
