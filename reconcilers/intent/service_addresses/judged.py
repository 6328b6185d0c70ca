"""The addresses of the objects of one dialect's route sources, for when they are judged differently."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, final

from reconcilers.intent.service_addresses.address_rules import AddressChanges
from statedb import Key

SINGLE_ADDRESSES: Final = 1024
"""Addresses of a change that are compared one by one, and not as ranges."""


class _Addresses(NamedTuple):
    namespace: str
    nlri: tuple[bytes, ...]
    """Host routes."""


@final
class JudgedAddresses:
    """The addresses that each object has named, advertised or not; objects are by source and key."""

    def __init__(self) -> None:
        self._of_object: dict[tuple[str, Key], _Addresses] = {}

    def note(
        self, object_: tuple[str, Key], namespace: str, nlri: Iterable[bytes], *, added: bool
    ) -> None:
        """Note the judged addresses of an object; ``added``: known addresses remain."""
        judged = tuple(nlri)
        before = self._of_object.get(object_)
        if before is not None and before.nlri == judged:
            return
        if before is not None and added:
            judged = tuple(dict.fromkeys((*before.nlri, *judged)))
        if judged:
            self._of_object[object_] = _Addresses(namespace, judged)
        else:
            self._of_object.pop(object_, None)

    def affected(self, changes: AddressChanges) -> Iterator[tuple[str, Key]]:
        """Yield the objects with an address that may be judged differently now."""
        # Single addresses are most changes: one call for each object.
        single = changes.addresses.host_routes(SINGLE_ADDRESSES)
        routes = changes.host_routes.union(single or ())
        for object_, (namespace, addresses) in self._of_object.items():
            if (
                not routes.isdisjoint(addresses)
                or namespace in changes.namespaces
                or (single is None and any(map(changes.may_concern, addresses)))
            ):
                yield object_
