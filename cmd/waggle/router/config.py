"""The router's YAML file, decoded strictly: an unknown key is an error.

Opens no socket. An error is one sentence with the file and the key.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import yaml

from cells.text import plain_reason
from speaker.api import (
    BMP_PORT,
    AddPathMode,
    BmpCollector,
    Confederation,
    DynamicPeerConfig,
    GracefulRestart,
    InstanceConfig,
    InvalidConfig,
    InvalidSecret,
    MaximumPrefixes,
    Monitor,
    PeerConfig,
    Policy,
    Secret,
)
from speaker.iana import ROLES
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST, Family, prefix_to_wire
from speaker.rib.policy import compile_export
from waggle.router.policies import PolicyFile, PrefixList

INSTANCE = "router"
MAX_FILE = 64 * 1024 * 1024

Port = Annotated[int, msgspec.Meta(ge=0, le=65535)]
Asn = Annotated[int, msgspec.Meta(ge=0, le=0xFFFFFFFF)]


class ConfigError(ValueError):
    """An invalid file; the text names the file and the key."""


class _Value(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, kw_only=True):
    pass


class Listen(_Value, frozen=True):
    """A listening address."""

    address: str
    port: Port = 179


class Restart(_Value, frozen=True):
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


class Limit(_Value, frozen=True):
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
            None if self.family is None else Family.parse(self.family),
            self.warning_percent,
            self.warning_only,
            self.restart_after,
        )


class ConfederationFile(_Value, frozen=True):
    """See `speaker.api.Confederation`."""

    identifier: Asn
    members: list[Asn] = []


class Neighbor(_Value, frozen=True):
    """One neighbour, or with ``prefix`` every neighbour that connects from it."""

    address: str | None = None
    prefix: str | None = None
    name: str | None = None
    asn: Asn | Literal["internal", "external"] = 0
    """See `speaker.api.PeerAs`."""
    local_asn: Asn | None = msgspec.field(name="localASN", default=None)
    port: Port = 179
    passive: bool = False
    families: list[str] = []
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
    maximum_prefixes: list[Limit] = []
    ebgp_multihop: int = msgspec.field(name="ebgpMultihop", default=1)
    ttl_security: int = 0
    interface: str | None = None
    local_address: str | None = None
    next_hop_ipv4: str | None = msgspec.field(name="nextHopIPv4", default=None)
    next_hop_ipv6: str | None = msgspec.field(name="nextHopIPv6", default=None)
    password: str | None = None
    graceful_restart: Restart | None = None
    limit: int = 1000
    """The number of simultaneous neighbours of a prefix."""

    def settings(self, policies: Mapping[str, Policy]) -> PeerConfig | DynamicPeerConfig:
        """Return the peer. Raises `InvalidConfig`, `InvalidSecret` or ValueError."""
        if self.address is None and self.prefix is None and self.interface is None:
            raise ValueError("one of address, prefix and interface is required")
        if self.prefix is not None and (self.address or self.interface):
            raise ValueError("prefix excludes address and interface")
        families = tuple(Family.parse(text) for text in self.families)
        keepalive = self.keepalive_time
        if keepalive is None:
            keepalive = max(1, self.hold_time // 3) if self.hold_time else 0
        shared: dict[str, Any] = {
            "name": self.name or self.address or self.prefix or self.interface,
            "peer_asn": self.asn,
            "local_asn": self.local_asn,
            "hold_time": self.hold_time,
            "keepalive_time": keepalive,
            "connect_retry_time": self.connect_retry_time,
            "delay_open_time": self.delay_open_time,
            "role": None if self.role is None else ROLES[self.role],
            "role_strict": self.role_strict,
            "enforce_first_as": self.enforce_first_as,
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
            "export": self.export if self.export in _EXPORTS else "all",
            "export_policy": (
                None
                if self.export in _EXPORTS
                else _choice("export", self.export, _EXPORTS, policies)
            ),
            "next_hop_ipv4": self.next_hop_ipv4,
            "next_hop_ipv6": self.next_hop_ipv6,
        }
        if self.prefix is not None:
            return DynamicPeerConfig(prefix=self.prefix, limit=self.limit, **shared)
        return PeerConfig(
            address=self.address,
            interface=self.interface,
            port=self.port,
            passive=self.passive,
            local_address=self.local_address,
            **shared,
        )

    def __repr__(self) -> str:
        """Return a text without the password."""
        return f"Neighbor({self.address or self.prefix or self.interface!r})"


_IMPORTS = ("all", "none")
_EXPORTS = ("all", "local", "none")


def _choice(
    key: str, text: str, words: tuple[str, ...], policies: Mapping[str, Policy]
) -> str | Policy:
    if text in words:
        return text
    try:
        return policies[text]
    except KeyError:
        raise ValueError(f"{key}: {text!r} is neither {', '.join(words)} nor a policy") from None


class CollectorFile(_Value, frozen=True):
    """One BMP monitoring station; see `speaker.api.BmpCollector`."""

    address: str
    port: int = BMP_PORT
    name: str | None = None
    local_address: str | None = None
    monitor: tuple[Monitor, ...] | None = None
    """Overrides `Bmp.monitor`."""
    retry_time: int = 30
    longest_retry_time: int = 720
    queue_limit: int = 64 * 1024 * 1024


class Bmp(_Value, frozen=True):
    """BMP monitoring stations (RFC 7854)."""

    collectors: list[CollectorFile] = []
    monitor: tuple[Monitor, ...] = ("pre-policy", "post-policy", "loc-rib")
    statistics_interval: int = 60
    system_name: str | None = None
    """None: the host name."""
    system_description: str | None = None


class Config(_Value, frozen=True):
    """The whole file."""

    asn: Asn
    router_id: str = msgspec.field(name="routerID")
    listen: list[Listen] = []
    originate: list[str] = []
    vrf: str | None = None
    """The VRF device of all sockets."""
    neighbors: list[Neighbor] = []
    confederation: ConfederationFile | None = None
    """With it ``asn`` is the member AS number (RFC 5065)."""
    prefix_lists: dict[str, PrefixList] = {}
    policies: dict[str, PolicyFile] = {}
    api_socket: str | None = None
    bmp: Bmp = Bmp()
    selection_deferral_time: int = 120
    """Seconds: the longest deferral of route selection after a restart (RFC 4724 section 4.1)."""

    def instance(self) -> InstanceConfig:
        """Return the instance. Raises `InvalidConfig`."""
        return InstanceConfig(
            name=INSTANCE,
            local_asn=self.asn,
            router_id=self.router_id,
            vrf=self.vrf,
            listen=tuple((listen.address, listen.port) for listen in self.listen),
            confederation=(
                None
                if self.confederation is None
                else Confederation(self.confederation.identifier, tuple(self.confederation.members))
            ),
            selection_deferral_time=self.selection_deferral_time,
        )

    def peers(self) -> list[PeerConfig | DynamicPeerConfig]:
        """Return the peers. Raises `ConfigError` naming the neighbour."""
        peers: dict[str, PeerConfig | DynamicPeerConfig] = {}
        policies = self._policies()
        for place, neighbor in enumerate(self.neighbors):
            try:
                peer = neighbor.settings(policies)
            except (InvalidConfig, InvalidSecret, ValueError) as error:
                raise ConfigError(f"neighbors[{place}]: {error}") from None
            if peer.name in peers:
                raise ConfigError(f"neighbors[{place}]: duplicate name {peer.name}")
            peers[peer.name] = peer
        return list(peers.values())

    def collectors(self) -> list[BmpCollector]:
        """Return the monitoring stations. Raises `ConfigError` naming the invalid one."""
        bmp = self.bmp
        found: dict[str, BmpCollector] = {}
        for place, entry in enumerate(bmp.collectors):
            name = entry.name or f"{entry.address} port {entry.port}"
            if name in found:
                raise ConfigError(f"bmp.collectors[{place}]: duplicate name {name}")
            monitor = bmp.monitor if entry.monitor is None else entry.monitor
            try:
                found[name] = BmpCollector(
                    name=name,
                    address=entry.address,
                    port=entry.port,
                    local_address=entry.local_address,
                    monitor=monitor,
                    statistics_interval=bmp.statistics_interval,
                    retry_time=entry.retry_time,
                    longest_retry_time=entry.longest_retry_time,
                    queue_limit=entry.queue_limit,
                    system_name=bmp.system_name or socket.gethostname(),
                    system_description=(
                        bmp.system_description or f"waggle router AS {self.asn} ({self.router_id})"
                    ),
                )
            except InvalidConfig as error:
                raise ConfigError(f"bmp.collectors[{place}]: {error}") from None
        return list(found.values())

    def _policies(self) -> dict[str, Policy]:
        found = {}
        for name, policy in self.policies.items():
            if name in _EXPORTS:
                raise ConfigError(f"policies.{name}: {name} is a reserved word")
            try:
                found[name] = policy.policy(name, self.prefix_lists)
            except ValueError as error:
                raise ConfigError(str(error)) from None
            try:
                # Compiled here as well, so that an invalid policy is an error of the file.
                compile_export(name, found[name])
            except InvalidConfig as error:
                raise ConfigError(error.rule) from None
        return found

    def originated(self) -> list[tuple[Family, bytes]]:
        """Return the originated prefixes. Raises `ConfigError` naming the invalid one."""
        found = []
        for place, text in enumerate(self.originate):
            try:
                found.append(route_to_wire(text))
            except ValueError as error:
                raise ConfigError(f"originate[{place}]: {error}") from None
        return found


def route_to_wire(text: str) -> tuple[Family, bytes]:
    """Parse a prefix to originate: family and wire form.

    Raises ValueError, also for prefixes without addresses that are routed (RFC 6890).
    """
    family, nlri = prefix_to_wire(text)
    length, head = nlri[0], nlri[1:3].ljust(2, b"\0")
    if family == IPV4_UNICAST:
        multicast = length >= 4 and head[0] >= 224
        local = length >= 8 and head[0] in (0, 127)
    else:
        multicast = length >= 8 and head[0] == 0xFF
        link_local = length >= 10 and head[0] == 0xFE and head[1] & 0xC0 == 0x80
        local = link_local or (length == 128 and int.from_bytes(nlri[1:], "big") <= 1)
    if multicast:
        raise ValueError(f"{text}: a multicast or reserved prefix has no unicast routes")
    if local:
        raise ValueError(f"{text}: addresses of one host or link are not routed")
    return family, nlri


def load(path: Path) -> Config:
    """Load and validate a file. Raises `ConfigError`."""
    try:
        with path.open("rb") as file:
            text = file.read(MAX_FILE + 1)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    if len(text) > MAX_FILE:
        raise ConfigError(f"{path}: larger than {MAX_FILE} octets")
    try:
        # The C loader if available: a lab may originate a hundred thousand prefixes.
        data = yaml.load(text, Loader=_LOADER)  # noqa: S506  a safe loader, see below
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: {_one_line(error)}") from None
    try:
        config = msgspec.convert(data, Config)
        config.instance()
        config.peers()
        config.originated()
        config.collectors()
    except msgspec.ValidationError as error:
        raise ConfigError(f"{path}: {_sentence(str(error))}") from None
    except (ConfigError, InvalidConfig) as error:
        raise ConfigError(f"{path}: {error}") from None
    return config


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _one_line(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or "not YAML"
    return f"line {mark.line + 1}: {problem}" if mark is not None else str(problem)


def _sentence(text: str) -> str:
    """Rewrite the message of msgspec as ``neighbors[0]: unknown key "holdtime"``."""
    message, _, place = text.partition(" - at `$")
    place = place.rstrip("`").lstrip(".")
    unknown = re.fullmatch(r"Object contains unknown field `(.*)`", message)
    missing = re.fullmatch(r"Object missing required field `(.*)`", message)
    if unknown:
        message = f'unknown key "{unknown[1]}"'
    elif missing:
        message = f'the key "{missing[1]}" is missing'
    else:
        message = plain_reason(message)
    return f"{place}: {message}" if place else message
