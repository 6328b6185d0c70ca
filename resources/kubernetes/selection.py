"""Which objects of a kind are asked for: what a node does not need, it does not hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from resources.kinds import CILIUM_NODE, NODE, NODE_CONFIG, NODE_CONFIG_OVERRIDE, SECRET


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a kind's objects; the default is all of them."""

    namespaces: tuple[str, ...] = ()
    """Empty: all. Each is listed by itself, so that a Role of that namespace is enough."""
    fields: str = ""
    labels: str = ""

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """The query parameters."""
        found = (("fieldSelector", self.fields), ("labelSelector", self.labels))
        return [(name, value) for name, value in found if value]


EVERYTHING = Selection()


def of_node(node: str, secrets_namespaces: Iterable[str]) -> Mapping[str, Selection]:
    """What the agent of one node needs, by kind: not other nodes, not other namespaces' Secrets."""
    own = Selection(fields=f"metadata.name={node}")
    kinds = (NODE, CILIUM_NODE, NODE_CONFIG, NODE_CONFIG_OVERRIDE)
    secrets = Selection(namespaces=tuple(dict.fromkeys(secrets_namespaces)))
    return {**{kind.name: own for kind in kinds}, SECRET.name: secrets}
