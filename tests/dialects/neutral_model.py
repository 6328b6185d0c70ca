"""The neutral model as an API: a dialect for tests of what instances and peers can have.

Each `Router` object is one instance with its peers, which are advertised nothing. No released API has
all of it: confederations, imports and prefixes that are never accepted, in instances without a VRF.
``python -m tests.dialects.neutral_model`` is ``waggle-agent`` with this dialect, off by default. The
dialect of the page "Add a dialect" is `beacon`.
"""

from __future__ import annotations

import sys
from typing import Any, ClassVar, Literal

from cells.agent import agent_cells
from cells.dialects import cilium
from reconcilers.dialect import Dialect, NodeContext, NodeIntent
from reconcilers.model import (
    Instance,
    InstanceImport,
    ObjectRef,
    Peer,
    PrefixRule,
)
from resources.kind import Kind
from resources.meta import Resource, Struct
from speaker.api import Confederation
from speaker.nlri import Family
from statedb import Snapshot
from tests.support.cells import entry
from waggle_agent.__main__ import main


class RouterRule(Struct, frozen=True):
    """Prefixes that are accepted from a neighbour, or never accepted."""

    prefix: str
    ge: int | None = None
    le: int | None = None
    label: str = ""


class RouterPeer(Struct, frozen=True):
    """One neighbour."""

    name: str
    address: str
    asn: int | Literal["internal", "external"]
    port: int = 179
    local_address: str | None = None
    families: tuple[str, ...] = ("ipv4-unicast",)
    accept: tuple[RouterRule, ...] = ()
    accept_all: bool = False
    reject: tuple[RouterRule, ...] = ()


class RouterSpec(Struct, frozen=True):
    """One instance."""

    asn: int
    router_id: str
    listen_port: int | None = None
    vrf: str | None = None
    peers: tuple[RouterPeer, ...] = ()
    originates: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    confederation: int | None = None
    members: tuple[int, ...] = ()


class RouterRow(Resource, frozen=True):
    """An object of kind Router."""

    spec: RouterSpec


ROUTER = Kind(
    "Router",
    RouterRow,
    group="test.waggle.dev",
    versions=("v1",),
    plural="routers",
    namespaced=False,
    table="routers",
)


class NeutralDialect(Dialect):
    """Compiles every Router to an instance of its name."""

    name: ClassVar = "neutral"
    title: ClassVar = "The neutral model"
    kinds: ClassVar[tuple[Kind[Any], ...]] = (ROUTER,)

    def compile(self, snapshot: Snapshot, context: NodeContext) -> NodeIntent:
        """See `Dialect`."""
        del context
        instances, peers = [], []
        for row in self.tables.of(ROUTER).all(snapshot):
            ref = ObjectRef(ROUTER.name, "", row.metadata.name)
            spec = row.spec
            instances.append(
                Instance(
                    name=row.metadata.name,
                    vrf=spec.vrf,
                    local_asn=spec.asn,
                    router_id=spec.router_id,
                    listen_port=spec.listen_port,
                    origin=ref,
                    originates=spec.originates,
                    imports=tuple(InstanceImport(name, None) for name in spec.imports),
                    confederation=(
                        None
                        if spec.confederation is None
                        else Confederation(spec.confederation, spec.members)
                    ),
                )
            )
            peers += [_peer(row.metadata.name, ref, peer) for peer in spec.peers]
        return NodeIntent(tuple(instances), tuple(peers))


def _peer(instance: str, ref: ObjectRef, peer: RouterPeer) -> Peer:
    return Peer(
        instance=instance,
        name=peer.name,
        address=peer.address,
        interface=None,
        peer_asn=peer.asn,
        peer_port=peer.port,
        local_address=peer.local_address,
        connect_retry_time=1,
        families=tuple(map(Family.parse, peer.families)),
        accept=None if peer.accept_all else tuple(_rule(rule, ref) for rule in peer.accept),
        accept_origins=(ref,),
        reject=tuple(_rule(rule, ref) for rule in peer.reject),
        origins=(ref,),
    )


def _rule(rule: RouterRule, ref: ObjectRef) -> PrefixRule:
    return PrefixRule(rule.prefix, rule.ge, rule.le, None if rule.label else ref, rule.label)


def router(name: str, *peers: dict[str, Any], **spec: Any) -> dict[str, Any]:  # noqa: ANN401
    """Spell a Router; ``created`` is its creationTimestamp."""
    metadata = {"name": name, "creationTimestamp": spec.pop("created", "")}
    given = {"asn": 65001, "routerID": "192.0.2.77", **spec, "peers": list(peers)}
    return {
        "apiVersion": "test.waggle.dev/v1",
        "kind": "Router",
        "metadata": metadata,
        "spec": given,
    }


CELLS = agent_cells(cilium.DIALECT, entry(NeutralDialect))
"""Of an agent."""


if __name__ == "__main__":
    sys.exit(main(cells=CELLS))
