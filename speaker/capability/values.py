"""The capabilities as frozen values; ``code`` is IANA's, ``str()`` is for people."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from speaker.iana import CapabilityCode, Family, Role


class Multiprotocol(msgspec.Struct, frozen=True):
    """RFC 4760: a family that the sender speaks."""

    code: ClassVar[int] = CapabilityCode.MULTIPROTOCOL
    family: Family

    def __str__(self) -> str:
        """Spell it for people."""
        return str(self.family)


class RouteRefreshCapability(msgspec.Struct, frozen=True):
    """RFC 2918."""

    code: ClassVar[int] = CapabilityCode.ROUTE_REFRESH

    def __str__(self) -> str:
        """Spell it for people."""
        return "route-refresh"


class ExtendedNextHop(msgspec.Struct, frozen=True):
    """RFC 8950: families whose next hop may be of another address family."""

    code: ClassVar[int] = CapabilityCode.EXTENDED_NEXT_HOP
    entries: tuple[tuple[Family, int], ...]
    """NLRI family and next-hop AFI."""

    def __str__(self) -> str:
        """Spell it for people."""
        return "extended-next-hop"


class ExtendedMessage(msgspec.Struct, frozen=True):
    """RFC 8654: messages of up to 65,535 octets."""

    code: ClassVar[int] = CapabilityCode.EXTENDED_MESSAGE

    def __str__(self) -> str:
        """Spell it for people."""
        return "extended-message"


class RoleCapability(msgspec.Struct, frozen=True):
    """RFC 9234: what the sender is to its peer; a number beyond `Role` is kept."""

    code: ClassVar[int] = CapabilityCode.ROLE
    role: int

    def __str__(self) -> str:
        """Spell it for people."""
        try:
            return f"role {Role(self.role).name.lower().replace('_', '-')}"
        except ValueError:
            return f"role {self.role}"


class GracefulRestartCapability(msgspec.Struct, frozen=True):
    """RFC 4724, and the N bit of RFC 8538; the time is in seconds."""

    code: ClassVar[int] = CapabilityCode.GRACEFUL_RESTART
    restart_time: int
    restarting: bool = False
    notification: bool = False
    families: tuple[tuple[Family, bool], ...] = ()
    """Family, and whether its forwarding state was preserved."""

    def __str__(self) -> str:
        """Spell it for people."""
        return f"graceful-restart {self.restart_time}s"


class FourOctetAs(msgspec.Struct, frozen=True):
    """RFC 6793: the sender's AS number."""

    code: ClassVar[int] = CapabilityCode.FOUR_OCTET_AS
    asn: int

    def __str__(self) -> str:
        """Spell it for people."""
        return "four-octet-as"


class AddPath(msgspec.Struct, frozen=True):
    """RFC 7911: for each family whether the sender receives (1), sends (2) or both (3)."""

    code: ClassVar[int] = CapabilityCode.ADD_PATH
    entries: tuple[tuple[Family, int], ...]

    def __str__(self) -> str:
        """Spell it for people."""
        return "add-path"


class EnhancedRouteRefresh(msgspec.Struct, frozen=True):
    """RFC 7313."""

    code: ClassVar[int] = CapabilityCode.ENHANCED_ROUTE_REFRESH

    def __str__(self) -> str:
        """Spell it for people."""
        return "enhanced-route-refresh"


class LongLivedGracefulRestart(msgspec.Struct, frozen=True):
    """RFC 9494: for each family whether forwarding was preserved, and the stale time in seconds."""

    code: ClassVar[int] = CapabilityCode.LONG_LIVED_GRACEFUL_RESTART
    families: tuple[tuple[Family, bool, int], ...] = ()

    def __str__(self) -> str:
        """Spell it for people."""
        return "long-lived-graceful-restart"


class Fqdn(msgspec.Struct, frozen=True):
    """The sender's names (draft-walton-bgp-hostname-capability); escaped, at most 64 characters."""

    code: ClassVar[int] = CapabilityCode.FQDN
    hostname: str
    domain: str
    raw: bytes

    def __str__(self) -> str:
        """Spell it for people."""
        return "fqdn"


class SoftwareVersion(msgspec.Struct, frozen=True):
    """The sender's program (draft-abraitis-bgp-version-capability); escaped, at most 64 characters."""

    code: ClassVar[int] = CapabilityCode.SOFTWARE_VERSION
    version: str
    raw: bytes

    def __str__(self) -> str:
        """Spell it for people."""
        return "software-version"


class Unknown(msgspec.Struct, frozen=True):
    """A capability that this speaker does not know."""

    code: int
    value: bytes

    def __str__(self) -> str:
        """Spell it for people."""
        return f"capability {self.code}"


class Ignored(msgspec.Struct, frozen=True):
    """A known capability with a value that cannot be."""

    code: int
    value: bytes
    rule: str

    def __str__(self) -> str:
        """Spell it for people."""
        return f"capability {self.code} (ignored: {self.rule})"


Capability = (
    Multiprotocol
    | RouteRefreshCapability
    | ExtendedNextHop
    | ExtendedMessage
    | RoleCapability
    | GracefulRestartCapability
    | FourOctetAs
    | AddPath
    | EnhancedRouteRefresh
    | LongLivedGracefulRestart
    | Fqdn
    | SoftwareVersion
    | Unknown
    | Ignored
)
