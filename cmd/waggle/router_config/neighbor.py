"""The neighbours of the router's file."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

import msgspec

from resources.schema import did_you_mean
from speaker.api import (
    AddPathMode,
    DynamicPeerConfig,
    GracefulRestart,
    MaximumPrefixes,
    PeerConfig,
    Policy,
    Secret,
)
from speaker.bfd.session_values import Key
from speaker.iana import ROLES
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST, Family
from waggle.router_config.bfd import BfdSettings, NeighborBfd, bfd_key, bfd_profile
from waggle.router_config.file_values import Asn, Port, Value, parse_family


def _family(key: str, text: str) -> Family:
    """Parse a family. Raises ValueError with the key."""
    try:
        return parse_family(text)
    except ValueError as error:
        raise ValueError(f"{key}: {error}") from None


class Restart(Value, frozen=True):
    """Graceful restart; times in seconds, see `speaker.api.GracefulRestart`."""

    restart_time: int = 120
    stale_time: int = 360
    long_lived_time: int = 0
    notification: bool = True
    forwarding_preserved: bool = True

    def settings(self) -> GracefulRestart:
        """Return the settings for the speaker."""
        return GracefulRestart(
            restart_time=self.restart_time,
            stale_time=self.stale_time,
            long_lived_time=self.long_lived_time,
            notification=self.notification,
            forwarding_preserved=self.forwarding_preserved,
        )


class Limit(Value, frozen=True):
    """See `speaker.api.MaximumPrefixes`."""

    limit: int
    family: str | None = None
    warning_percent: int = 75
    warning_only: bool = False
    restart_after: int | None = None

    def settings(self) -> MaximumPrefixes:
        """Return the settings for the speaker. Raises ValueError."""
        return MaximumPrefixes(
            self.limit,
            None if self.family is None else _family("maximumPrefixes.family", self.family),
            self.warning_percent,
            self.warning_only,
            self.restart_after,
        )


class Neighbor(Value, frozen=True):
    """One neighbour, or with ``prefix`` every neighbour that connects from it."""

    address: str | None = None
    prefix: str | None = None
    name: str | None = None
    asn: Asn | Literal["internal", "external"] = 0
    """See `speaker.api.PeerAs`."""
    local_asn: Asn | None = msgspec.field(name="localASN", default=None)
    port: Port = 179
    passive: bool = False
    families: tuple[str, ...] = ()
    import_: str = msgspec.field(name="import", default="none")
    """``all``, ``none`` or the name of a policy; none without one (RFC 8212)."""
    export: str = "none"
    """``all``, ``local``, ``none`` or the name of a policy, which is applied to all routes."""
    add_path: AddPathMode = "none"
    hold_time: int = 90
    keepalive_time: int | None = None
    connect_retry_time: int = 120
    delay_open_time: int = 0
    role: Literal["provider", "rs-server", "rs-client", "customer", "peer"] | None = None
    """The local role (RFC 9234)."""
    role_strict: bool = False
    enforce_first_as: bool | None = msgspec.field(name="enforceFirstAS", default=None)
    """See `speaker.api.PeerSettings`."""
    allowas_in_origin: bool = msgspec.field(name="allowASInOrigin", default=False)
    """See `speaker.api.PeerSettings`."""
    allowas_in: int = msgspec.field(name="allowASIn", default=0)
    """See `speaker.api.PeerSettings`."""
    maximum_prefixes: tuple[Limit, ...] = ()
    ebgp_multihop: int = msgspec.field(name="ebgpMultihop", default=1)
    ttl_security: int = 0
    interface: str | None = None
    local_address: str | None = None
    next_hop_ipv4: str | None = msgspec.field(name="nextHopIPv4", default=None)
    next_hop_ipv6: str | None = msgspec.field(name="nextHopIPv6", default=None)
    password: str | None = None
    graceful_restart: Restart | None = None
    bfd: str | NeighborBfd | None = None
    """The name of a profile, or settings."""
    limit: int = 1000
    """The number of simultaneous neighbours of a prefix."""

    def settings(
        self,
        policies: Mapping[str, Policy],
        profiles: Mapping[str, BfdSettings] = MappingProxyType({}),
    ) -> PeerConfig | DynamicPeerConfig:
        """Return the peer. Raises `InvalidConfig`, `InvalidSecret` or ValueError."""
        if self.address is None and self.prefix is None and self.interface is None:
            raise ValueError("one of address, prefix and interface is required")
        if self.prefix is not None and (self.address or self.interface):
            raise ValueError("prefix excludes address and interface")
        if self.interface is None and _needs_interface(self.address):
            raise ValueError(
                f"interface: {self.address} is a link-local address: the key interface, or the "
                "address with %INTERFACE, is required"
            )
        families = tuple(_family("families", text) for text in self.families)
        if len(set(families)) < len(families):
            raise ValueError("families: each family once")
        if self.bfd is not None and self.prefix is not None:
            raise ValueError(
                "bfd: not for the neighbors of a prefix, whose addresses are not known"
            )
        keepalive = self.keepalive_time
        if keepalive is None:
            keepalive = max(1, self.hold_time // 3) if self.hold_time else 0
        shared: dict[str, Any] = {
            "name": self.known_as,
            "peer_asn": self.asn,
            "local_asn": self.local_asn,
            "hold_time": self.hold_time,
            "keepalive_time": keepalive,
            "connect_retry_time": self.connect_retry_time,
            "delay_open_time": self.delay_open_time,
            "role": None if self.role is None else ROLES[self.role],
            "role_strict": self.role_strict,
            "enforce_first_as": self.enforce_first_as,
            "allowas_in_origin": self.allowas_in_origin,
            "allowas_in": self.allowas_in,
            "maximum_prefixes": tuple(limit.settings() for limit in self.maximum_prefixes),
            "ebgp_multihop": self.ebgp_multihop,
            "ttl_security": self.ttl_security,
            "password": None if self.password is None else Secret(self.password),
            "graceful_restart": (
                None if self.graceful_restart is None else self.graceful_restart.settings()
            ),
            "families": families or (IPV4_UNICAST, IPV6_UNICAST),
            "add_path": self.add_path,
            "import_": _choice("import", self.import_, _IMPORTS, policies),
            "export": self.export if self.export in EXPORTS else "all",
            "export_policy": (
                None
                if self.export in EXPORTS
                else _choice("export", self.export, EXPORTS, policies)
            ),
            "next_hop_ipv4": self.next_hop_ipv4,
            "next_hop_ipv6": self.next_hop_ipv6,
        }
        if self.prefix is not None:
            return DynamicPeerConfig(prefix=self.prefix, limit=self.limit, **shared)
        return PeerConfig(
            address=_spelled(self.address),
            interface=self.interface,
            port=self.port,
            passive=self.passive,
            local_address=self.local_address,
            bfd=None if self.bfd is None else bfd_profile(self.bfd, profiles),
            **shared,
        )

    def bfd_key(self, profiles: Mapping[str, BfdSettings]) -> Key | None:
        """Read the key of the BFD session, if it has one. Raises ValueError."""
        return None if self.bfd is None else bfd_key(self.bfd, profiles)

    @property
    def known_as(self) -> str:
        """The name, or what stands for it."""
        return self.name or _spelled(self.address) or self.prefix or self.interface or ""

    def sends_ipv6_over_ipv4(self, *, own_ipv6: bool) -> bool:
        """True if IPv6 routes may be advertised over IPv4 without a next hop that is configured.

        Without ``families`` both are in the OPEN: then only where the router originates IPv6 prefixes.
        """
        end = self.address or self.prefix
        if end is None or ":" in end or self.next_hop_ipv6 is not None or self.export == "none":
            return False
        families = tuple(map(parse_family, self.families))
        return IPV6_UNICAST in families if families else own_ipv6

    def __repr__(self) -> str:
        """Return a text without the password."""
        return f"Neighbor({self.address or self.prefix or self.interface!r})"


_IMPORTS = ("all", "none")
EXPORTS = ("all", "local", "none")
"""The words that no policy may have as its name."""


def _spelled(address: str | None) -> str | None:
    """Return an address in the spelling of the kernel: a neighbour has one name, however it is written.

    What is no address is the speaker's to find.
    """
    try:
        return None if address is None else str(ipaddress.ip_address(address))
    except ValueError:
        return address


def _needs_interface(text: str | None) -> bool:
    """True for a link-local IPv6 address without a zone; other errors are the speaker's to find."""
    try:
        address = ipaddress.IPv6Address(text or "::")
    except ValueError:
        return False
    return address.is_link_local and address.scope_id is None


def _choice(
    key: str, text: str, words: tuple[str, ...], policies: Mapping[str, Policy]
) -> str | Policy:
    if text in words:
        return text
    try:
        return policies[text]
    except KeyError:
        hint = did_you_mean(text, (*words, *policies))
        raise ValueError(
            f"{key}: {text!r} is neither {', '.join(words)} nor a policy{hint}"
        ) from None
