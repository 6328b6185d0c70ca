"""The prefixes that the Services of a namespace may use: an annotation of the Namespace. Pure.

The annotation narrows what is advertised, and never permits what another rule rejects. The prefixes of
a namespace are closed to namespaces without the annotation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
from msgspec.structs import replace

from reconcilers.intent.service_addresses.address_set import AddressSet
from reconcilers.model import ObjectRef, Problem
from resources.addresses import canonical_prefix
from resources.core import Namespace
from resources.enumeration import enumerate_some
from resources.errors import shortened
from speaker.nlri import Family

ANNOTATION: Final = "waggle.dev/service-addresses"
FIELD: Final = f"metadata.annotations[{ANNOTATION}]"
UNREAD: Final = "the annotations of Namespaces cannot be read"
SHOWN_PREFIXES: Final = 4
"""Prefixes of a namespace that a message has."""


class Grant(msgspec.Struct, frozen=True):
    """The grant of one Namespace with the annotation."""

    text: str
    """The value of the annotation."""
    prefixes: tuple[str, ...] = ()
    covered: AddressSet = AddressSet()
    exclusive: AddressSet = AddressSet()
    """Closed to other namespaces: all prefixes but 0.0.0.0/0 and ::/0."""
    error: str = ""
    """Why the value is no list of prefixes; the prefixes are then its last valid value's."""
    valid_before: bool = True
    """False if there was no valid value."""


class Grants(msgspec.Struct, frozen=True):
    """The grants of all Namespaces, by their names.

    Namespaces without the annotation grant what no other namespace grants, or nothing.
    """

    annotated_only: bool = False
    """True if a Namespace without the annotation grants nothing."""
    by_namespace: Mapping[str, Grant] = {}
    granted: AddressSet = AddressSet()
    """By any Namespace, without grants of everything (0.0.0.0/0, ::/0)."""
    unread: bool = False
    """True if no Namespace may be read: their annotations are not known."""

    def unrestricted(self, namespace: str) -> bool:
        """True if a namespace may use all addresses that no other is granted."""
        return not self.annotated_only and namespace not in self.by_namespace

    def rejection(
        self, namespace: str, family: Family, nlri: bytes, *, in_pool: bool = False
    ) -> str | None:
        """Return why no grant lets a Service of a namespace use an address, or None.

        ``in_pool``: the administrator decides elsewhere which namespaces share the address.
        """
        if self.unrestricted(namespace):
            return None if in_pool else self._rejection_of_granted(family, nlri)
        grant = self.by_namespace.get(namespace)
        if grant is None:
            if self.unread:
                return f"{UNREAD}: that of namespace {namespace} is not known"
            required = "which --advertise-namespaces=annotated requires"
            return f"namespace {namespace} has no annotation {ANNOTATION}, {required}"
        if grant.covered.covers(family, nlri):
            return None
        if not grant.valid_before:
            return f"the annotation {ANNOTATION} of namespace {namespace} is no list of prefixes"
        shown = enumerate_some(grant.prefixes, SHOWN_PREFIXES) if grant.prefixes else "no address"
        return f"namespace {namespace} may use {shown} (annotation {ANNOTATION})"

    def _rejection_of_granted(self, family: Family, nlri: bytes) -> str | None:
        """Return the namespace that is granted an address, as a sentence; None without any."""
        if not self.granted.covers(family, nlri):
            return None
        owners = sorted(
            name
            for name, grant in self.by_namespace.items()
            if grant.exclusive.covers(family, nlri)
        )
        shown = enumerate_some(owners, SHOWN_PREFIXES)
        return f"it is granted to namespace {shown} (annotation {ANNOTATION})"

    def changes_since(self, former: Grants) -> frozenset[str] | None:
        """Return the namespaces whose grants have changed; None where it may be any.

        What is `granted` may differ as well.
        """
        if (self.annotated_only, self.unread) != (former.annotated_only, former.unread):
            return None
        mine, theirs = self.by_namespace, former.by_namespace
        if mine is theirs:
            return frozenset()
        return frozenset(
            name for name in mine.keys() | theirs.keys() if mine.get(name) != theirs.get(name)
        )

    def with_changes(
        self, changes: Iterable[tuple[str, Namespace | None]], *, unread: bool = False
    ) -> Grants:
        """Return the grants after changes of Namespaces, by their names; None: it is gone."""
        grants = dict(self.by_namespace)
        for name, row in changes:
            former = grants.pop(name, None)
            text = None if row is None else row.metadata.annotations.get(ANNOTATION)
            if text is not None:
                grants[name] = parse_grant(text, former)
        if (grants, unread) == (self.by_namespace, self.unread):
            return self
        granted = AddressSet().union(*(grant.exclusive for grant in grants.values()))
        return replace(self, by_namespace=grants, granted=granted, unread=unread)

    def problems(self) -> list[Problem]:
        """Return a problem for each Namespace whose grant is no list of prefixes.

        While Namespaces may not be read, one problem says what the Services may use meanwhile.
        """
        if self.unread:
            effect = "no address" if self.annotated_only else "any address"
            text = f"{UNREAD}: Services may use {effect} until they can"
            return [Problem((ObjectRef("Namespace", "", ""),), FIELD, text, category="unresolved")]
        return [
            Problem((ObjectRef("Namespace", "", name),), FIELD, grant.error)
            for name, grant in sorted(self.by_namespace.items())
            if grant.error
        ]


ANY: Final = Grants()
"""Every namespace may use every address."""


def parse_grant(text: str, former: Grant | None = None) -> Grant:
    """Return what a value of the annotation of a Namespace grants.

    ``former`` is what the value before it granted: of a value that is no list of prefixes, the last
    valid one stays in effect.
    """
    prefixes = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        try:
            prefixes.append(canonical_prefix(part))
        except ValueError:
            wrong = f"{shortened(part)} is no prefix: it has to be prefixes, separated by commas"
            if former is None or not former.valid_before:
                effect = "until then the namespace may use no address"
                return Grant(text, error=f"{wrong}; {effect}", valid_before=False)
            effect = "its last valid value stays in effect"
            return replace(former, text=text, error=f"{wrong}; {effect}")
    own = [prefix for prefix in prefixes if not prefix.endswith("/0")]
    return Grant(text, tuple(prefixes), AddressSet.of(prefixes), AddressSet.of(own))
