"""The interfaces of the speaker's unnumbered peers, and the neighbours that are discovered there.

Follows the same commands as the core, like `speaker.server.instance_listeners`.
"""

from __future__ import annotations

from collections.abc import Callable

from speaker.api import PeerConfig, PeerStatus
from speaker.engine.inputs import (
    Input,
    NeighborFound,
    RemoveInstance,
    RemovePeer,
    SetPeer,
    Shutdown,
)
from speaker.server.discovery.interface import Interface


class Neighbors:
    """The interfaces of all unnumbered peers."""

    def __init__(self, feed: Callable[[Input], None]) -> None:
        self._feed = feed
        self._wanted: dict[tuple[str, str], str] = {}
        """Instance and peer -> interface."""
        self._watched: dict[str, Interface] = {}

    def follow(self, item: Input) -> None:
        """Start or stop watching an interface, by a command."""
        match item:
            case SetPeer(instance, config):
                self._set((instance, config.name), interface_of(config))
            case RemovePeer(instance, name):
                self._set((instance, name), None)
            case RemoveInstance(name):
                for key in [key for key in self._wanted if key[0] == name]:
                    self._set(key, None)
            case Shutdown():
                for key in list(self._wanted):
                    self._set(key, None)

    def _set(self, key: tuple[str, str], interface: str | None) -> None:
        before = self._wanted.pop(key, None)
        if interface is not None:
            self._wanted[key] = interface
            known = self._watched.get(interface)
            if known is None:
                known = self._watched[interface] = Interface(interface, self._found)
                known.start()
            elif known.neighbor is not None:
                self._found(interface, known.neighbor)
        if before is not None and before not in self._wanted.values():
            self._watched.pop(before).cancel()

    def _found(self, interface: str, neighbor: str | None) -> None:
        self._feed(NeighborFound(interface, neighbor))

    def error(self, status: PeerStatus) -> str | None:
        """Return why nothing can be received on the interface of a peer without an address yet."""
        if status.address is not None or status.interface is None:
            return None
        watched = self._watched.get(status.interface)
        return None if watched is None else watched.error


def interface_of(config: object) -> str | None:
    """Return the interface of an unnumbered peer, or None for any other."""
    if isinstance(config, PeerConfig) and config.address is None:
        return config.interface
    return None
