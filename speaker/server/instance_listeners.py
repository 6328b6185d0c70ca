"""The listening sockets of each instance, and the TCP MD5 keys on them.

Follows the same commands as the core. The core never sees a listening socket, only connections.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Callable

import msgspec

from speaker.api import (
    DynamicPeerConfig,
    Event,
    InstanceConfig,
    InstanceStatus,
    PeerConfig,
    Secret,
)
from speaker.engine.inputs import Input, RemoveInstance, RemovePeer, SetInstance, SetPeer
from speaker.server.bound_devices import BoundDevices
from speaker.server.connection import Connection
from speaker.server.listener import Listener
from speaker.server.transports import Transports


class _Instance:
    """One instance's listeners, and the passwords of its peers by address or prefix."""

    def __init__(self, config: InstanceConfig) -> None:
        self.config = config
        self.may_connect = False
        """Whether its addresses were free at some time."""
        self.listeners: list[Listener] = []
        self.passwords: dict[str, dict[str, Secret]] = {}
        """By address or prefix, and by the names of its peers: several while peers trade addresses, and
        where they differ in their port only."""
        self.addresses: dict[str, str] = {}
        """Peer name -> its address or prefix."""
        self.least_ttl: dict[str, tuple[str, int]] = {}
        """Peer name -> its address or prefix, and the least TTL of its packets (0: any)."""
        self.filters_are_due = False

    def password(self, address: str) -> Secret | None:
        """Return the key of an address or prefix: of several, the last that was set."""
        of_peers = self.passwords.get(address)
        return next(reversed(of_peers.values())) if of_peers else None

    @property
    def keys(self) -> dict[str, Secret]:
        """The key of each address or prefix that has one."""
        keys = {address: self.password(address) for address in self.passwords}
        return {address: key for address, key in keys.items() if key is not None}

    def set_filters(self) -> None:
        """Give all listeners the least TTL of each peer."""
        self.filters_are_due = False
        least = self.least_ttl_of_addresses
        for listener in self.listeners:
            listener.set_least_ttl(least)

    @property
    def least_ttl_of_addresses(self) -> dict[str, int]:
        """The least TTL by address or prefix; peers may differ in their port only."""
        lowest: dict[str, int] = {}
        for address, least in self.least_ttl.values():
            lowest[address] = min(least, lowest.get(address, least))
        return lowest


class InstanceListeners:
    """All instances."""

    def __init__(
        self, transports: Transports, devices: BoundDevices, on_event: Callable[[Event], None]
    ) -> None:
        self._transports = transports
        self._devices = devices
        self._on_event = on_event
        self._instances: dict[str, _Instance] = {}

    def prepare(self, item: Input) -> None:
        """Apply a command to the listening sockets, before the core processes it."""
        match item:
            case SetInstance(config):
                self._set(config)
            case RemoveInstance(name):
                self._remove(name)
            case SetPeer(instance, config):
                self._set_peer(instance, config.name, _key(config), config.password)
                self._set_least_ttl(instance, config.name, _key(config), config.ttl_security)
            case RemovePeer(instance, name):
                self._set_peer(instance, name, None, None)
                self._set_least_ttl(instance, name, None, 0)

    def _set(self, config: InstanceConfig) -> None:
        known = self._instances.get(config.name)
        if known is not None:
            if known.config == config:
                return
            # An instance that has listened loses no session by what happens to its addresses.
            may_connect = known.may_connect or not any(
                listener.waits_for_address for listener in known.listeners
            )
            self._remove(config.name)
        instance = self._instances[config.name] = _Instance(config)
        if known is not None:
            instance.may_connect = may_connect
            instance.passwords = known.passwords
            instance.addresses = known.addresses
            instance.least_ttl = known.least_ttl
        for address, port in config.listen:
            self._listen(instance, address, port)

    def _listen(self, instance: _Instance, address: str, port: int) -> None:
        name = instance.config.name
        listener = Listener(
            instance=name,
            address=address,
            port=port,
            device=instance.config.vrf,
            accept=lambda: self._accept(name, listener),
            changed=self._on_event,
            devices=self._devices,
        )
        instance.listeners.append(listener)
        listener.start(instance.keys, instance.least_ttl_of_addresses)

    def _accept(self, instance: str, listener: Listener) -> Connection:
        """Create the protocol of an accepted connection, which is refused if it is not protected."""
        protection = listener.protection

        def refuse(remote: str) -> bool:
            return (
                listener.protection != protection
                or _is_among(listener.unprotected, remote)
                or _is_among(listener.unfiltered, remote)
            )

        return self._transports.accept(instance, refuse)

    def _remove(self, name: str) -> None:
        instance = self._instances.pop(name, None)
        if instance is None:
            return
        for listener in instance.listeners:
            listener.close_now()

    def _set_peer(
        self, instance: str, name: str, address: str | None, password: Secret | None
    ) -> None:
        known = self._instances.get(instance)
        if known is None:
            return
        before = known.addresses.pop(name, None)
        if before is not None and (of_peers := known.passwords.get(before)) is not None:
            of_peers.pop(name, None)
            if not of_peers:
                del known.passwords[before]
        if address is not None:
            known.addresses[name] = address
            if password is not None:
                known.passwords.setdefault(address, {})[name] = password
        for changed in dict.fromkeys((before, address)):
            if changed is not None:
                for listener in known.listeners:
                    listener.set_password(changed, known.password(changed))

    def _set_least_ttl(self, instance: str, name: str, address: str | None, hops: int) -> None:
        known = self._instances.get(instance)
        if known is None:
            return
        before = known.least_ttl.pop(name, None)
        after = None if address is None else (address, 256 - hops if hops else 0)
        if after is not None:
            known.least_ttl[name] = after
        were_any = before is not None and before[1]
        if before == after or not (were_any or any(least for _, least in known.least_ttl.values())):
            return
        if not known.filters_are_due:
            # Once for all peers of a reload: a filter has instructions for each of them.
            known.filters_are_due = True
            for listener in known.listeners:
                # What is accepted until then is not the peer's.
                listener.protection += 1
            asyncio.get_running_loop().call_soon(known.set_filters)

    def refuse_connection(self, name: str | None) -> str:
        """Return why an instance opens no connections at present; empty if it does.

        A second process with the configuration of a first one would end the sessions of that one. None
        is a connection of all instances: to a station, which would take the second one for the first.
        """
        if name is None:
            reasons = map(self.refuse_connection, self._instances)
            return next(filter(None, reasons), "")
        instance = self._instances.get(name)
        if instance is None or instance.may_connect:
            return ""
        for listener in instance.listeners:
            if listener.waits_for_address:
                return listener.error or f"listen on {listener.address} port {listener.port} first"
        instance.may_connect = True
        return ""

    def complete(self, status: InstanceStatus) -> InstanceStatus:
        """Add the listening sockets to the status of an instance."""
        instance = self._instances.get(status.name)
        if instance is None:
            return status
        errors = [listener.error for listener in instance.listeners if listener.error]
        errors += [
            f"TCP MD5 for {peer} could not be set on the listening socket"
            for listener in instance.listeners
            for peer in sorted(listener.unprotected)
        ]
        errors += [
            f"TTL security for {len(listener.unfiltered)} peers could not be set on the socket"
            for listener in instance.listeners
            if listener.unfiltered
        ]
        return msgspec.structs.replace(
            status,
            listening=tuple(filter(None, (listener.bound for listener in instance.listeners))),
            listen_error="; ".join(errors) or None,
        )

    async def close(self) -> None:
        """Close all listening sockets."""
        for name in list(self._instances):
            listeners = self._instances[name].listeners
            for listener in listeners:
                await listener.close()
            listeners.clear()


def _key(config: PeerConfig | DynamicPeerConfig) -> str | None:
    """Return the address or prefix of a peer, in the one spelling that the kernel knows."""
    if isinstance(config, DynamicPeerConfig):
        return str(ipaddress.ip_network(config.prefix))
    return None if config.address is None else str(ipaddress.ip_address(config.address))


def _is_among(peers: set[str], remote: str) -> bool:
    if not peers:
        return False
    address = ipaddress.ip_address(remote)
    return any(address in ipaddress.ip_network(peer.partition("%")[0]) for peer in peers)
