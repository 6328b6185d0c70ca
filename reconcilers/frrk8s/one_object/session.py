"""The session with a neighbour: AS numbers, addresses, timers, next hops, and where its password is."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Container
from typing import Final

from reconcilers.frrk8s.field_values import NANOSECONDS, address
from reconcilers.frrk8s.unit_parts import NeighborKey, Session, Unit, UnitFindings
from reconcilers.model import FieldRef, PasswordRef, PeerAs, SecretRef
from resources.addresses import interface_errors
from resources.durations import parse_duration
from resources.errors import shortened
from resources.frrk8s.frrconfiguration import Router
from resources.frrk8s.neighbor import Neighbor
from resources.passwords import password_error

PORT: Final = 179
_DOTTED_QUAD: Final = re.compile(r"\d{1,3}(\.\d{1,3}){3}", re.ASCII)
"""Written as an IPv4 address: an invalid source is not the name of an interface."""
SECRETS_NAMESPACE: Final = "waggle.dev/secrets-namespace"
"""Annotation of an FRRConfiguration that ``waggle render`` generates: the namespace of the Secrets that
it refers to, where they belong to another dialect."""
MAX_SECRET_NAME: Final = 253
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
"""A DNS subdomain (RFC 1123)."""
HOLD_TIME: Final = 180
KEEPALIVE_TIME: Final = 60
CONNECT_TIME: Final = 60
"""Seconds, where a neighbour has none."""


def compile_session(
    unit: Unit,
    spec: Neighbor,
    router: Router,
    key: NeighborKey,
    path: str,
    findings: UnitFindings,
    profiles: Container[str],
) -> Session:
    """Compile the session with a neighbour of one object, which has these BFD ``profiles``."""
    # The profile of an object of another dialect is an object of its own.
    known = profiles if unit.fields is None else None
    hold, keepalive = hold_and_keepalive(spec, key, path, findings)
    next_hops = _next_hops(spec, key, path, findings)
    return Session(
        _asn(spec, key, path, findings),
        _port(spec, key, path, findings),
        _source(spec, key, path, findings),
        password(unit, spec, key, path, findings),
        _bfd(spec, key, path, findings, known),
        spec.ebgp_multi_hop,
        spec.dual_stack_address_family or key.is_interface,
        hold,
        keepalive,
        connect_time(spec, key, path, findings),
        _local_asn(spec, router, key, path, findings),
        *next_hops,
    )


def _asn(spec: Neighbor, key: NeighborKey, path: str, findings: UnitFindings) -> PeerAs:
    if spec.asn and spec.dynamic_asn:
        text = f"{key} has both asn {spec.asn} and dynamicASN {spec.dynamic_asn}"
        findings.error(f"{path}.asn", text)
    elif not spec.asn and not spec.dynamic_asn:
        findings.error(f"{path}.asn", f"{key} has neither asn nor dynamicASN")
    return spec.dynamic_asn or spec.asn or 0


def _port(spec: Neighbor, key: NeighborKey, path: str, findings: UnitFindings) -> int:
    if spec.port == 0:
        findings.error(f"{path}.port", f"{key}: 0 is not a port")
    return PORT if spec.port is None else spec.port


def _source(spec: Neighbor, key: NeighborKey, path: str, findings: UnitFindings) -> str | None:
    text = spec.sourceaddress
    if not text:
        return None
    try:
        source = address(text)
    except ValueError as refused:
        field = f"{path}.sourceaddress"
        if _DOTTED_QUAD.fullmatch(text):
            findings.error(field, f"{key}: {refused}")
        elif any(interface_errors(text, field)):
            reason = f"{key}: {shortened(text)} is neither an address nor an interface"
            findings.error(field, reason)
        return text
    if not key.is_interface and (":" in source) != (":" in key.end):
        findings.error(f"{path}.sourceaddress", f"{key}: {text} is not of its family")
    return source


def _bfd(
    spec: Neighbor,
    key: NeighborKey,
    path: str,
    findings: UnitFindings,
    profiles: Container[str] | None,
) -> str | None:
    name = spec.bfd_profile
    if not name:
        return None
    if profiles is not None and name not in profiles:
        text = f"{key}: this object has no BFD profile {shortened(name)}"
        findings.error(f"{path}.bfdProfile", text)
    return name


def _local_asn(
    spec: Neighbor, router: Router, key: NeighborKey, path: str, findings: UnitFindings
) -> int | None:
    local_asn = spec.local_asn
    reason = None
    if local_asn is None:
        return None
    if spec.dynamic_asn == "internal" or spec.asn == router.asn:
        reason = "only an external neighbor can have a local AS"
    elif local_asn == router.asn:
        reason = f"{local_asn} is the AS of the router"
    elif local_asn == spec.asn:
        reason = f"{local_asn} is the AS of the neighbor"
    if reason is not None:
        findings.error(f"{path}.localASN", f"{key}: {reason}")
    return local_asn


def _next_hops(
    spec: Neighbor, key: NeighborKey, path: str, findings: UnitFindings
) -> tuple[str | None, str | None]:
    given = spec.to_advertise.next_hop
    both = spec.dual_stack_address_family or key.is_interface
    next_hops: list[str | None] = []
    for name, text, version in (("ipv4", given.ipv4, 4), ("ipv6", given.ipv6, 6)):
        where = f"{path}.toAdvertise.nextHop.{name}"
        value = None
        if text is not None:
            try:
                value = address(text)
            except ValueError as error:
                findings.error(where, f"{key}: {error}")
            else:
                if ipaddress.ip_address(value).version != version:
                    findings.error(where, f"{key}: {text!r} is not an IPv{version} address")
                elif not both and (":" in key.end) != (version == 6):
                    reason = f"the session has no IPv{version} routes"
                    findings.error(where, f"{key}: next hop {shortened(text)}: {reason}")
        next_hops.append(value)
    return next_hops[0], next_hops[1]


def password(
    unit: Unit, spec: Neighbor, key: NeighborKey, path: str, findings: UnitFindings
) -> PasswordRef | None:
    """Return where one object has the password of the session with a neighbour: a field or a Secret."""
    secret = spec.password_secret.name
    if spec.password is None and not secret:
        return None
    field = f"{path}.password" if spec.password is not None else f"{path}.passwordSecret"
    if spec.password is not None and secret:
        text = f"{key} has both a password and the Secret {shortened(secret)}"
        findings.error(f"{path}.passwordSecret", text)
    if key.is_interface:
        text = f"{key}: a session by interface cannot have a password"
        findings.error(field, text)
    if secret and (len(secret) > MAX_SECRET_NAME or not _NAME.fullmatch(secret)):
        findings.error(
            f"{path}.passwordSecret.name",
            f"{key}: {shortened(secret)} cannot be the name of a Secret",
        )
    if spec.password is None:
        metadata = unit.row.metadata
        namespace = metadata.annotations.get(SECRETS_NAMESPACE, metadata.namespace)
        return SecretRef(namespace, secret)
    if spec.password.known:
        reason = password_error(spec.password.reveal())
        if reason is not None:
            findings.error(field, f"{key}: {reason}")
    return FieldRef(unit.ref, unit.path(f"{path}.password"))


def hold_and_keepalive(
    spec: Neighbor, key: NeighborKey, path: str, findings: UnitFindings
) -> tuple[int, int]:
    """Return the hold time and keepalive time of one object's session with a neighbour, in seconds."""
    if spec.hold_time is None and spec.keepalive_time is None:
        return HOLD_TIME, KEEPALIVE_TIME
    hold = _duration(spec.hold_time, key, f"{path}.holdTime", findings)
    keepalive = _duration(spec.keepalive_time, key, f"{path}.keepaliveTime", findings)
    if spec.hold_time is None or spec.keepalive_time is None:
        name, other = "holdTime", "keepaliveTime"
        if spec.hold_time is None:
            name, other = other, name
        findings.error(f"{path}.{name}", f"{key} has {name} without {other}")
    elif hold is not None and keepalive is not None:
        if not (0 <= hold < NANOSECONDS or 3 <= hold // NANOSECONDS <= 65535):
            text = f"{key}: {shortened(spec.hold_time)} is neither 0 nor 3 s to 65535 s"
            findings.error(f"{path}.holdTime", text)
        elif keepalive < 0 or keepalive > hold:
            text = f"{key}: {shortened(spec.keepalive_time)} is not from 0 to holdTime"
            findings.error(f"{path}.keepaliveTime", f"{text} ({shortened(spec.hold_time)})")
        return hold // NANOSECONDS, keepalive // NANOSECONDS
    return HOLD_TIME, KEEPALIVE_TIME


def _duration(text: str | None, key: NeighborKey, path: str, findings: UnitFindings) -> int | None:
    """Return a duration in nanoseconds; None with an error, or without a text."""
    if text is None:
        return None
    try:
        return parse_duration(text)
    except ValueError as error:
        findings.error(path, f"{key}: {error}")
        return None


def connect_time(spec: Neighbor, key: NeighborKey, path: str, findings: UnitFindings) -> int:
    """Return the pause before one object's session with a neighbour is tried again, in seconds."""
    where = f"{path}.connectTime"
    time = _duration(spec.connect_time, key, where, findings)
    if time is None:
        return CONNECT_TIME
    if time % NANOSECONDS or not 1 <= time // NANOSECONDS <= 65535:
        text = f"{key}: {spec.connect_time!r} is not a whole number of seconds from 1 to 65535"
        findings.error(where, text)
    return time // NANOSECONDS
