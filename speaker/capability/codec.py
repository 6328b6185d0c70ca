"""Capabilities (RFC 5492) to and from octets. Decoding is total over the values of capabilities."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from speaker.capability import capabilities as v
from speaker.errors import EncodingError, Truncated
from speaker.iana import CapabilityCode, Family
from speaker.wire import Reader

_MAX_TEXT_LENGTH: Final = 64


def decode_capabilities(data: bytes) -> list[v.Capability]:
    """Decode the capabilities of one parameter. Raises `Truncated` if the lengths do not add up."""
    reader = Reader(data)
    capabilities: list[v.Capability] = []
    while reader.remaining:
        code = reader.u8()
        value = reader.take(reader.u8())
        decode = _DECODERS.get(code)
        if decode is None:
            capabilities.append(v.Unknown(code, value))
            continue
        try:
            capabilities.append(decode(value))
        except (Truncated, _InvalidValue) as error:
            capabilities.append(v.Ignored(code, value, str(error)))
    return capabilities


def encode_capabilities(capabilities: Iterable[v.Capability]) -> bytes:
    """Encode capabilities. Raises `EncodingError` for a value of more than 255 octets."""
    parts = []
    for capability in capabilities:
        value = _encode(capability)
        if len(value) > 255:
            raise EncodingError(f"capability {capability} takes {len(value)} octets, at most 255")
        parts.append(bytes((capability.code, len(value))) + value)
    return b"".join(parts)


class _InvalidValue(Exception):  # noqa: N818  a signal within this module
    """A value that the capability's RFC does not allow."""


def _exact_length(data: bytes, size: int) -> bytes:
    if len(data) != size:
        raise _InvalidValue(f"{len(data)} octets instead of {size}")
    return data


def _items_of(data: bytes, size: int) -> list[bytes]:
    if len(data) % size:
        raise _InvalidValue(f"{len(data)} octets are no multiple of {size}")
    return [data[i : i + size] for i in range(0, len(data), size)]


def _family(data: bytes) -> Family:
    return Family(int.from_bytes(data[:2], "big"), data[2])


def sanitize(raw: bytes) -> str:
    """Return text of a peer with non-printable characters escaped, at most 64 characters."""
    text = raw.decode("utf-8", "backslashreplace")
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return shown if len(shown) <= _MAX_TEXT_LENGTH else shown[: _MAX_TEXT_LENGTH - 1] + "…"


def _multiprotocol(data: bytes) -> v.Capability:
    _exact_length(data, 4)
    return v.Multiprotocol(Family(int.from_bytes(data[:2], "big"), data[3]))


def _extended_next_hop(data: bytes) -> v.Capability:
    # The SAFI has two octets here (RFC 8950 section 4); one beyond 255 matches no family.
    entries = []
    for item in _items_of(data, 6):
        afi, safi, next_hop = (int.from_bytes(item[i : i + 2], "big") for i in (0, 2, 4))
        entries.append((Family(afi, safi), next_hop))
    return v.ExtendedNextHop(tuple(entries))


def _role(data: bytes) -> v.Capability:
    return v.RoleCapability(_exact_length(data, 1)[0])


def _graceful_restart(data: bytes) -> v.Capability:
    reader = Reader(data)
    head = reader.u16()
    families = tuple((_family(item), bool(item[3] & 0x80)) for item in _items_of(reader.rest(), 4))
    return v.GracefulRestartCapability(
        head & 0x0FFF, bool(head & 0x8000), bool(head & 0x4000), families
    )


def _four_octet_as(data: bytes) -> v.Capability:
    return v.FourOctetAs(int.from_bytes(_exact_length(data, 4), "big"))


def _add_path(data: bytes) -> v.Capability:
    # Undefined modes are ignored, entry by entry (RFC 7911 section 4).
    return v.AddPath(
        tuple((_family(item), item[3]) for item in _items_of(data, 4) if 1 <= item[3] <= 3)
    )


def _long_lived(data: bytes) -> v.Capability:
    return v.LongLivedGracefulRestart(
        tuple(
            (_family(item), bool(item[3] & 0x80), int.from_bytes(item[4:], "big"))
            for item in _items_of(data, 7)
        )
    )


def _fqdn(data: bytes) -> v.Capability:
    reader = Reader(data)
    hostname = reader.take(reader.u8())
    domain = reader.take(reader.u8()) if reader.remaining else b""
    return v.Fqdn(sanitize(hostname), sanitize(domain), data)


def _software_version(data: bytes) -> v.Capability:
    reader = Reader(data)
    version = reader.take(reader.u8())
    return v.SoftwareVersion(sanitize(version), data)


def _orf(data: bytes) -> v.Capability:
    # RFC 5291 section 5: families, each with its ORF types. Unsupported: only the framing is checked.
    reader = Reader(data)
    if not data:
        raise _InvalidValue("no octets")
    while reader.remaining:
        reader.take(4)
        reader.take(2 * reader.u8())
    return v.Unknown(CapabilityCode.ORF, data)


def _flag(value: v.Capability) -> Callable[[bytes], v.Capability]:
    def decode(data: bytes) -> v.Capability:
        _exact_length(data, 0)
        return value

    return decode


_DECODERS: Final[dict[int, Callable[[bytes], v.Capability]]] = {
    CapabilityCode.MULTIPROTOCOL: _multiprotocol,
    CapabilityCode.ROUTE_REFRESH: _flag(v.RouteRefreshCapability()),
    CapabilityCode.ORF: _orf,
    CapabilityCode.EXTENDED_NEXT_HOP: _extended_next_hop,
    CapabilityCode.EXTENDED_MESSAGE: _flag(v.ExtendedMessage()),
    CapabilityCode.ROLE: _role,
    CapabilityCode.GRACEFUL_RESTART: _graceful_restart,
    CapabilityCode.FOUR_OCTET_AS: _four_octet_as,
    CapabilityCode.ADD_PATH: _add_path,
    CapabilityCode.ENHANCED_ROUTE_REFRESH: _flag(v.EnhancedRouteRefresh()),
    CapabilityCode.LONG_LIVED_GRACEFUL_RESTART: _long_lived,
    CapabilityCode.FQDN: _fqdn,
    CapabilityCode.SOFTWARE_VERSION: _software_version,
}


def _afi_safi(family: Family) -> bytes:
    return family.afi.to_bytes(2, "big") + bytes((family.safi,))


def _encode(capability: v.Capability) -> bytes:
    match capability:
        case v.Multiprotocol(family):
            return family.afi.to_bytes(2, "big") + bytes((0, family.safi))
        case v.ExtendedNextHop(entries):
            return b"".join(
                b"".join(n.to_bytes(2, "big") for n in (f.afi, f.safi, afi)) for f, afi in entries
            )
        case v.RoleCapability(role):
            return bytes((role,))
        case v.GracefulRestartCapability(time, restarting, notification, families):
            head = time | (0x8000 if restarting else 0) | (0x4000 if notification else 0)
            return head.to_bytes(2, "big") + b"".join(
                _afi_safi(f) + bytes((0x80 if kept else 0,)) for f, kept in families
            )
        case v.FourOctetAs(asn):
            return asn.to_bytes(4, "big")
        case v.AddPath(entries):
            return b"".join(_afi_safi(f) + bytes((mode,)) for f, mode in entries)
        case v.LongLivedGracefulRestart(stale):
            return b"".join(
                _afi_safi(f) + bytes((0x80 if kept else 0,)) + time.to_bytes(3, "big")
                for f, kept, time in stale
            )
        case v.Fqdn() | v.SoftwareVersion():
            return capability.raw
        case v.Unknown() | v.Ignored():
            return capability.value
        case _:
            return b""
