"""The passwords of peers: of Secrets, and of fields of the objects that configure them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from reconcilers.intent_tables import BY_PASSWORD, IntentTables
from reconcilers.model import FieldRef, PasswordRef, Peer, SecretRef
from resources.field_path import value_at
from resources.passwords import password_octets
from resources.secret_value import SecretValue
from resources.tables import Tables
from statedb import ChangeIterator, Database, Snapshot


class Passwords:
    """Reads passwords, and follows the objects that have them."""

    def __init__(self, db: Database, intent: IntentTables, resources: Tables) -> None:
        self._db = db
        self._peers = intent.peers
        self._resources = resources
        self._changes: dict[str, ChangeIterator[Any]] = {}
        """By kind: its objects have a password of some peer, or had one."""

    def follow(self, ref: PasswordRef | None) -> bool:
        """Follow the kind of object with a peer's password; the first `changed` has all peers of it.

        Returns True for a kind that was not followed.
        """
        kind = None if ref is None else self._resources.kinds.named(ref.owner.kind)
        if kind is None or kind.name in self._changes:
            return False
        self._changes[kind.name] = self._resources.of(kind).changes(self._db)
        return True

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables whose objects have the passwords of peers to apply."""
        kinds = self._resources.kinds
        return tuple(kind.table for name in self._changes if (kind := kinds.named(name)))

    def changed(self, snapshot: Snapshot) -> Iterator[Peer]:
        """Iterate over the peers to apply again, as the object with their password has changed."""
        for kind, changes in self._changes.items():
            for change in changes.next(snapshot):
                yield from self._peers.find(snapshot, BY_PASSWORD, (kind, *change.row.key))

    def reader(self, snapshot: Snapshot) -> Callable[[PasswordRef], bytes | None]:
        """Return a function that reads the password to apply to a peer: None without one."""

        def read(ref: PasswordRef) -> bytes | None:
            value = self._value(snapshot, ref)
            if value is None:
                return None
            octets = value.reveal()
            if isinstance(ref, SecretRef) and ref.verbatim:
                return octets
            # A newline at the end comes from an editor and is not part of the password.
            return password_octets(octets)

        return read

    def _value(self, snapshot: Snapshot, ref: PasswordRef) -> SecretValue | None:
        owner = ref.owner
        kind = self._resources.kinds.named(owner.kind)
        row = (
            None
            if kind is None
            else self._resources.of(kind).get(snapshot, (owner.namespace, owner.name))
        )
        if row is None:
            return None
        value = value_at(row, ref.field) if isinstance(ref, FieldRef) else row.data.get(ref.key)
        return value if isinstance(value, SecretValue) else None
