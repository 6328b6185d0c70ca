"""The outcome of each RouteAdvertisements: what it selects, and the objects of its nodes.

What has been generated is kept with the rows that it was generated of, by identity: a change of one
node costs that node. The outcome is the same as without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from reconcilers.ovnk import translation
from reconcilers.ovnk.errors import InternalError, NotAccepted
from reconcilers.ovnk.node_prefixes import OfNode
from reconcilers.ovnk.options import OvnkOptions
from reconcilers.ovnk.selection import (
    Advertised,
    Cluster,
    Selected,
    advertised,
    select_networks,
)
from reconcilers.ovnk.stored_objects import StoredKey, stored_key
from reconcilers.ovnk.translation import OfSource
from resources.core import Node
from resources.ovnk.routeadvertisements import RouteAdvertisements


class Version(NamedTuple):
    """A version of the objects of one RouteAdvertisements, and its difference from the former one."""

    identity: object
    """Compared by identity, as ``former``."""
    former: object
    """The version before it; None of the first one."""
    changed: frozenset[StoredKey]
    """Keys of objects that have come, gone or changed since the former version."""


class Result(NamedTuple):
    """The outcome of one RouteAdvertisements."""

    row: RouteAdvertisements
    selected: Selected
    wanted: Mapping[StoredKey, OfSource]
    version: Version | None
    """The version of `wanted`; None with an error."""
    error: NotAccepted | None

    @property
    def name(self) -> str:
        """The name of the RouteAdvertisements with this result."""
        return self.row.metadata.name


class _Known(NamedTuple):
    """The stored result of one RouteAdvertisements."""

    advertised: Advertised
    names: tuple[str, ...]
    keys: dict[str, tuple[StoredKey, ...]]
    """By node."""
    wanted: dict[StoredKey, OfSource]
    version: Version


class Results:
    """Computes outcomes, and keeps them from one snapshot to the next."""

    def __init__(self, options: OvnkOptions, evpn_form: str) -> None:
        """``evpn_form`` is ``text`` or ``fields``."""
        self._options = options
        self.evpn_form = evpn_form
        self._known: dict[str, _Known] = {}
        self._nodes: dict[str, tuple[Node, OfNode]] = {}
        """Of the last outcomes."""

    def of(
        self,
        rows: Sequence[RouteAdvertisements],
        cluster: Cluster,
        of_nodes: Mapping[str, OfNode],
        nothing: OfNode,
    ) -> list[Result]:
        """Return the results of RouteAdvertisements; ``nothing`` is for nodes without anything."""
        nodes = {
            node.metadata.name: (node, of_nodes.get(node.metadata.name, nothing))
            for node in cluster.nodes
        }
        before = self._nodes
        changed = [
            name
            for name, (node, given) in nodes.items()
            if (last := before.get(name)) is None or last[0] is not node or last[1] != given
        ]
        results = [self._one(row, cluster, nodes, changed) for row in rows]
        for name in self._known.keys() - {result.name for result in results}:
            del self._known[name]
        self._nodes = nodes
        return results

    def _one(
        self,
        row: RouteAdvertisements,
        cluster: Cluster,
        nodes: Mapping[str, tuple[Node, OfNode]],
        changed: Sequence[str],
    ) -> Result:
        known = self._known.pop(row.metadata.name, None)
        selected = Selected(())
        try:
            if not row.invalid:
                selected = select_networks(row, cluster.attachments)
            what, of_row = advertised(row, selected, cluster)
            names = tuple([node.metadata.name for node in of_row])
            now = self._generate(what, names, nodes, changed, known)
        except NotAccepted as error:
            return Result(row, selected, {}, None, error)
        except Exception as error:  # noqa: BLE001  the others go on
            text = f"{type(error).__name__}: {error}"
            return Result(row, selected, {}, None, InternalError(text))
        self._known[row.metadata.name] = now
        return Result(row, selected, now.wanted, now.version, None)

    def _generate(
        self,
        what: Advertised,
        names: tuple[str, ...],
        nodes: Mapping[str, tuple[Node, OfNode]],
        changed: Sequence[str],
        known: _Known | None,
    ) -> _Known:
        """Generate the objects of changed nodes, of all where what is advertised has changed."""
        if known is None or known.names != names or known.advertised != what:
            known = _Known(what, names, {}, {}, Version(object(), None, frozenset()))
            todo: Sequence[str] = names
        else:
            todo = [name for name in changed if name in known.keys]
        keys: set[StoredKey] = set()
        for name in todo:
            node, given = nodes[name]
            objects = {
                stored_key(what.name, generated): generated
                for generated in translation.generate(
                    what, node, given, self._options, typed=self.evpn_form == "fields"
                )
            }
            for key in known.keys.get(name, ()):
                keys.add(key)
                known.wanted.pop(key, None)
            known.wanted.update(objects)
            known.keys[name] = tuple(objects)
            keys.update(objects)
        if not keys:
            return known
        version = Version(object(), known.version.identity, frozenset(keys))
        return known._replace(version=version)
