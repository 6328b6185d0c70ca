"""The whole file of the router, and what the speaker is configured with by it."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import msgspec

from reconcilers.kernel.options import FibOptions
from reconcilers.redistribution import Redistribution
from resources.host import KernelTable
from speaker.api import (
    BmpCollector,
    Confederation,
    DynamicPeerConfig,
    InstanceConfig,
    InvalidConfig,
    InvalidSecret,
    PeerConfig,
    Policy,
)
from speaker.bfd.session_values import Key
from speaker.nlri import IPV4_UNICAST, Family, prefix_to_wire
from waggle.router_config.bfd import BfdSettings
from waggle.router_config.bmp import Bmp
from waggle.router_config.file_values import Asn, ConfigError, Port, Value, with_key
from waggle.router_config.kernel import Kernel
from waggle.router_config.kernel_source import KernelSource
from waggle.router_config.neighbor import Neighbor
from waggle.router_config.policies import (
    PolicyFile,
    PrefixList,
    Rules,
    check_prefixes,
    prefix_rules,
)

INSTANCE = "router"


class Listen(Value, frozen=True):
    """A listening address."""

    address: str
    port: Port = 179


class ConfederationFile(Value, frozen=True):
    """See `speaker.api.Confederation`."""

    identifier: Asn
    members: tuple[Asn, ...] = ()


class Config(Value, frozen=True, dict=True):
    """The whole file."""

    asn: Asn
    router_id: str = msgspec.field(name="routerID")
    listen: tuple[Listen, ...] = ()
    originate: tuple[str | KernelSource, ...] = ()
    vrf: str | None = None
    """The VRF device of all sockets."""
    neighbors: tuple[Neighbor, ...] = ()
    confederation: ConfederationFile | None = None
    """With it ``asn`` is the member AS number (RFC 5065)."""
    prefix_lists: dict[str, PrefixList] = msgspec.field(default_factory=dict)
    policies: dict[str, PolicyFile] = msgspec.field(default_factory=dict)
    kernel: bool | Kernel = False
    """Whether received routes are installed in the kernel, or how."""
    api_socket: str | None = None
    bmp: Bmp = Bmp()
    bfd_profiles: dict[str, BfdSettings] = msgspec.field(default_factory=dict)
    bfd_socket: str | None = None
    """Of a ``waggle-bfd`` that runs; by default the router starts one."""
    selection_deferral_time: int = 120
    """Seconds: the longest deferral of route selection after a restart (RFC 4724 section 4.1)."""

    def instance(self) -> InstanceConfig:
        """Return the instance. Raises `InvalidConfig` or `ConfigError`."""
        for place, listen in enumerate(self.listen):
            if listen in self.listen[:place]:
                raise ConfigError(
                    f"listen[{place}]: {listen.address} port {listen.port} is listed twice"
                )
        return InstanceConfig(
            name=INSTANCE,
            local_asn=self.asn,
            router_id=self.router_id,
            vrf=self.vrf,
            listen=tuple((listen.address, listen.port) for listen in self.listen),
            confederation=(
                None
                if self.confederation is None
                else Confederation(self.confederation.identifier, self.confederation.members)
            ),
            selection_deferral_time=self.selection_deferral_time,
        )

    def peers(self) -> Sequence[PeerConfig | DynamicPeerConfig]:
        """Return the peers, the same ones at each call. Raises `ConfigError` naming the neighbour."""
        return self._peers

    @cached_property
    def _peers(self) -> Sequence[PeerConfig | DynamicPeerConfig]:
        # Policies may have a hundred thousand prefixes.
        peers: dict[int, PeerConfig | DynamicPeerConfig] = {}
        policies = self._policies()
        for place, neighbor in enumerate(self.neighbors):
            try:
                peers[place] = neighbor.settings(policies, self.bfd_profiles)
            except InvalidConfig as error:
                raise ConfigError(f"neighbors[{place}]: {with_key(error)}") from None
            except (InvalidSecret, ValueError) as error:
                raise ConfigError(f"neighbors[{place}]: {error}") from None
        for sentence in duplicates(peers):
            raise ConfigError(sentence)
        return tuple(peers.values())

    def bfd_keys(self) -> dict[str, Key]:
        """Read the keys of BFD sessions, by the name of the neighbour. Raises `ConfigError`."""
        keys: dict[str, Key] = {}
        for place, neighbor in enumerate(self.neighbors):
            try:
                key = neighbor.bfd_key(self.bfd_profiles)
            except ValueError as error:
                raise ConfigError(f"neighbors[{place}].{error}") from None
            if key is not None:
                keys[neighbor.known_as] = key
        return keys

    def collectors(self) -> list[BmpCollector]:
        """Return the monitoring stations. Raises `ConfigError` naming the invalid one."""
        return self.bmp.settings(f"waggle router AS {self.asn} ({self.router_id})")

    def warnings(self) -> Iterator[str]:
        """Yield what is valid, and perhaps not what is meant."""
        own_ipv6 = any(":" in text for text in self.originate if isinstance(text, str))
        for place, neighbor in enumerate(self.neighbors):
            if neighbor.sends_ipv6_over_ipv4(own_ipv6=own_ipv6):
                yield (
                    f"neighbors[{place}]: IPv6 routes over an IPv4 session without nextHopIPv6: their "
                    "next hop is an IPv6 address of the session's interface, or where it has none an "
                    "IPv4-mapped one, which BIRD rejects"
                )

    def _policies(self) -> dict[str, Policy]:
        """Return the policies, which `load` has checked."""
        return {name: policy.policy(name, self.rules) for name, policy in self.policies.items()}

    @cached_property
    def rules(self) -> Mapping[str, Rules]:
        """The prefix lists for the speaker; policies with one of them share it."""
        return {name: prefix_rules(prefixes) for name, prefixes in self.prefix_lists.items()}

    def share_rules(self, former: Config) -> None:
        """Share equal prefix lists with a former file: policies with them are compared by identity.

        Call it before `peers`.
        """
        known = former.rules
        self.__dict__["rules"] = {
            name: known[name] if known.get(name) == rules else rules
            for name, rules in self.rules.items()
        }

    def check_prefix_lists(self) -> None:
        """Check the prefix lists, used ones and others. Raises `ConfigError` naming the prefix."""
        for name, rules in self.prefix_lists.items():
            try:
                check_prefixes(f"prefixLists.{name}", rules)
            except ValueError as error:
                raise ConfigError(str(error)) from None

    def originated(self) -> list[tuple[Family, bytes]]:
        """Return the originated prefixes. Raises `ConfigError` naming the invalid one."""
        prefixes = []
        for place, text in enumerate(self.originate):
            if not isinstance(text, str):
                continue
            try:
                prefixes.append(route_to_wire(text))
            except ValueError as error:
                raise ConfigError(f"originate[{place}]: {error}") from None
        return prefixes

    def redistributions(self) -> list[Redistribution]:
        """Return what is originated of the kernel. Raises `ConfigError` naming the invalid entry."""
        redistributions = []
        for place, source in enumerate(self.originate):
            if isinstance(source, str):
                continue
            try:
                installed = self.kernel.protocol if isinstance(self.kernel, Kernel) else None
                redistributions.append(source.redistribution(installed))
            except ValueError as error:
                raise ConfigError(f"originate[{place}].{error}") from None
        return redistributions

    def fib(self) -> FibOptions | None:
        """Return how received routes are installed, or None. Raises `ConfigError`."""
        if isinstance(self.kernel, bool):
            return Kernel().options() if self.kernel else None
        return self.kernel.options()

    @property
    def kernel_tables(self) -> frozenset[KernelTable]:
        """The tables of the kernel that are originated."""
        return frozenset(redistribution.table for redistribution in self.redistributions())


def duplicates(peers: Mapping[int, PeerConfig | DynamicPeerConfig]) -> Iterator[str]:
    """Yield an error for each neighbour, by its place, that has the name or end of an earlier one."""
    names: set[str] = set()
    ends: dict[tuple[str | None, ...], str] = {}
    for place, peer in peers.items():
        if peer.name in names:
            yield f"neighbors[{place}]: duplicate name {peer.name}"
            continue
        names.add(peer.name)
        key, *end = _end(peer)
        other = ends.setdefault((key, *end), peer.name)
        if other != peer.name:
            yield f"neighbors[{place}]: {key}: {end[0]} is that of neighbor {other}"


def _end(peer: PeerConfig | DynamicPeerConfig) -> tuple[str | None, ...]:
    """Return by which connections are matched with a neighbour: the key, its value, the interface."""
    if isinstance(peer, DynamicPeerConfig):
        return ("prefix", str(ipaddress.ip_network(peer.prefix)))
    if peer.address is None:
        return ("interface", peer.interface)
    address = ipaddress.ip_address(peer.address)
    zone = address.scope_id if isinstance(address, ipaddress.IPv6Address) else None
    return ("address", str(address).partition("%")[0], peer.interface or zone)


def route_to_wire(text: str) -> tuple[Family, bytes]:
    """Parse a prefix to originate: family and wire form.

    Raises ValueError, also for prefixes without addresses that are routed (RFC 6890).
    """
    family, nlri = prefix_to_wire(text)
    length, head = nlri[0], nlri[1:3].ljust(2, b"\0")
    if family == IPV4_UNICAST:
        multicast = length >= 3 and head[0] >= 224
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
