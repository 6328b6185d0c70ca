"""The capabilities as frozen values; ``code`` is the registered code, ``str()`` the displayed name."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from speaker.iana import CapabilityCode, Family, Role


class Multiprotocol(msgspec.Struct, frozen=True):
    """RFC 4760: a family that the sender supports."""

    code: ClassVar[int] = CapabilityCode.MULTIPROTOCOL
    family: Family

    def __str__(self) -> str:
        """Return the displayed name."""
        return str(self.family)


class RouteRefreshCapability(msgspec.Struct, frozen=True):
    """RFC 2918."""

    code: ClassVar[int] = CapabilityCode.ROUTE_REFRESH

    def __str__(self) -> str:
        """Return the displayed name."""
        return "route-refresh"


class ExtendedNextHop(msgspec.Struct, frozen=True):
    """RFC 8950: families whose next hop may be of another address family."""

    code: ClassVar[int] = CapabilityCode.EXTENDED_NEXT_HOP
    entries: tuple[tuple[Family, int], ...]
    """NLRI family and next-hop AFI."""

    def __str__(self) -> str:
        """Return the displayed name."""
        return "extended-next-hop"


class ExtendedMessage(msgspec.Struct, frozen=True):
    """RFC 8654: messages of up to 65,535 octets."""

    code: ClassVar[int] = CapabilityCode.EXTENDED_MESSAGE

    def __str__(self) -> str:
        """Return the displayed name."""
        return "extended-message"


class RoleCapability(msgspec.Struct, frozen=True):
    """RFC 9234: the sender's role towards its peer; a number beyond `Role` is kept."""

    code: ClassVar[int] = CapabilityCode.ROLE
    role: int

    def __str__(self) -> str:
        """Return the displayed name."""
        try:
            return f"role {Role(self.role).name.lower().replace('_', '-')}"
        except ValueError:
            return f"role {self.role}"


class GracefulRestartCapability(msgspec.Struct, frozen=True):
    """RFC 4724, with the N bit of RFC 8538 as ``notification``; the restart time is in seconds."""

    code: ClassVar[int] = CapabilityCode.GRACEFUL_RESTART
    restart_time: int
    restarting: bool = False
    notification: bool = False
    families: tuple[tuple[Family, bool], ...] = ()
    """Family and F bit: whether its forwarding state was preserved."""

    def __str__(self) -> str:
        """Return the displayed name."""
        return f"graceful-restart {self.restart_time}s"


class FourOctetAs(msgspec.Struct, frozen=True):
    """RFC 6793: the sender's AS number."""

    code: ClassVar[int] = CapabilityCode.FOUR_OCTET_AS
    asn: int

    def __str__(self) -> str:
        """Return the displayed name."""
        return "four-octet-as"


class AddPath(msgspec.Struct, frozen=True):
    """RFC 7911: for each family whether the sender receives (1), sends (2) or both (3)."""

    code: ClassVar[int] = CapabilityCode.ADD_PATH
    entries: tuple[tuple[Family, int], ...]

    def __str__(self) -> str:
        """Return the displayed name."""
        return "add-path"


class EnhancedRouteRefresh(msgspec.Struct, frozen=True):
    """RFC 7313."""

    code: ClassVar[int] = CapabilityCode.ENHANCED_ROUTE_REFRESH

    def __str__(self) -> str:
        """Return the displayed name."""
        return "enhanced-route-refresh"


class LongLivedGracefulRestart(msgspec.Struct, frozen=True):
    """RFC 9494: for each family whether forwarding was preserved, and the stale time in seconds."""

    code: ClassVar[int] = CapabilityCode.LONG_LIVED_GRACEFUL_RESTART
    families: tuple[tuple[Family, bool, int], ...] = ()

    def __str__(self) -> str:
        """Return the displayed name."""
        return "long-lived-graceful-restart"


class Fqdn(msgspec.Struct, frozen=True):
    """The sender's names (draft-walton-bgp-hostname-capability); escaped, at most 64 characters."""

    code: ClassVar[int] = CapabilityCode.FQDN
    hostname: str
    domain: str
    raw: bytes

    def __str__(self) -> str:
        """Return the displayed name."""
        return "fqdn"


class SoftwareVersion(msgspec.Struct, frozen=True):
    """The sender's program (draft-abraitis-bgp-version-capability); escaped, at most 64 characters."""

    code: ClassVar[int] = CapabilityCode.SOFTWARE_VERSION
    version: str
    raw: bytes

    def __str__(self) -> str:
        """Return the displayed name."""
        return "software-version"


class Unknown(msgspec.Struct, frozen=True):
    """A capability with a code that this speaker does not support."""

    code: int
    value: bytes

    def __str__(self) -> str:
        """Return the displayed name."""
        return f"capability {self.code}"


class Ignored(msgspec.Struct, frozen=True):
    """A supported capability with an invalid value; ``rule`` is the violated rule."""

    code: int
    value: bytes
    rule: str

    def __str__(self) -> str:
        """Return the displayed name."""
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
