"""What an explanation of a scenario's step has to be, by the objects as they are written.

An advertised prefix leads over the rule of the route that is sent to an object that has the prefix; any
other prefix has a sentence of its reason, which names rules and labels that are there.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from reconcilers.compile_manifests import CompiledManifests
from reconcilers.model import ObjectRef, RouteExplanation
from reconcilers.prefixes import covers
from speaker.nlri import Family, prefix_to_text
from tests.support.obstacles import Obstacles
from tests.support.scenario import written_objects

Document = dict[str, Any]
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

FAMILY: Final = r"(?:ipv4|ipv6)-unicast"
OBJECT: Final = r"[A-Z]\w+/\S+"
NEEDS: Final = r"\S+(?: (?:not)?in \([^)]*\))?"
LACKS: Final = r"(?:no label \S+|\S+=\S*)"
SENTENCES: Final[Mapping[str, str]] = {
    "AddressType": rf"{OBJECT} advertises \w+(?:, \w+)* of the object only",
    "Conflict": "other objects contradict it; the problem names them",
    "Denied": "--advertise-deny has a prefix that it is in",
    "ExternalName": "it is a name, and nothing forwards to it",
    "Family": (
        f"its routes go to peers of {FAMILY}|the peer is configured for {FAMILY} only"
        f"|the session carries {FAMILY} only"
    ),
    "FamilyNotConfigured": f"the session has no family {FAMILY}",
    "FamilyNotEnabled": f"the node has no pod CIDR and InternalIP of {FAMILY}",
    "Headless": "it is headless: nothing forwards to its addresses",
    "InterfaceDown": r"interface \S+ is switched off",
    "LoadBalancerClass": "its class is other, and --metallb-class is none",
    "LocalPreferenceConflict": r"\S+ gives it local preference \d+, and \S+ \d+",
    "Martian": r"it is (?:a|of) [\w\" -]+ \([0-9a-f.:]+/\d+\)|it is a \S+ address \([^ ]+/\d+\)",
    "NoAddress": (
        r"it has no address of type \w+ \(yet\)|it has no cluster IP|spec\.externalIPs is empty"
    ),
    "NoAdvertisements": (
        rf"CiliumBGPPeerConfig \S+ (?:has no advertisements for {FAMILY}"
        "|lists no families, and nothing is advertised in the default ones)"
    ),
    "NoEndpoint": "it has no endpoint that is ready or serving|it has no ready endpoint anywhere",
    "NoInterface": r"the node has no interface \S+",
    "NoLocalEndpoint": (
        "its traffic policy is Local(?: and no ready endpoint is here"
        r"|, and no endpoint is on node \S+|, and no endpoint on this node is ready or serving)"
    ),
    "NoMatchingAdvertisement": rf"{OBJECT} selects {NEEDS}; {OBJECT} has {LACKS}",
    "NoPeerConfig": "the peer refers to no CiliumBGPPeerConfig, which selects what is advertised",
    "NoPeers": (
        r"node \S+ has no peers: (?:nothing selects it, or what selects it lists none"
        rf"|nearest to selecting it is nodeSelectors? {NEEDS} of {OBJECT}; node \S+ has {LACKS})"
    ),
    "NoPool": r"there is no CiliumPodIPPool \S+",
    "NoRule": rf"no rule for the peer selects \w+; its rules are in {OBJECT}",
    "NoSelector": rf"{OBJECT} has no selector, which selects nothing",
    "NodeAddress": "it is an address of this node",
    "NodeExcluded": (
        "the node has the label node.kubernetes.io/exclude-from-external-load-balancers"
    ),
    "NotAdvertisable": r"\S+ is an? [\w-]+ address",
    "NotAdvertised": rf"{OBJECT} advertises (?:nothing|\w+(?:, \w+)*), and not \w+",
    "NotAssigned": "it is assigned to no node",
    "NotExposed": r"its annotation \S+ (?:\(.*\) does not select the node|is \w+)"
    r"|another proxy serves it: .+",
    "NotInAllowList": r"no object allows it towards \S+ \(toAdvertise\.allowed\)",
    "NotLoadBalancer": r"it is of type \w+",
    "NotOwner": (
        r"no BGPAdvertisement for this node selects pool \S+"
        rf"(?:; the nearest is nodeSelectors {NEEDS} of {OBJECT}; node \S+ has {LACKS})?"
        r"(?:; objects are not in effect: .+)?"
    ),
    "NotSelected": (
        rf"{OBJECT} selects {NEEDS}; {OBJECT} has {LACKS}"
        rf"|the object is for other nodes: nodeSelector {NEEDS}; node \S+ has {LACKS}"
    ),
    "OtherNode": r"it is assigned to node \S+",
    "PeerAddress": "it is the address of a peer",
}
"""The sentence of each reason, but of `LeftOut`, whose sentence is a problem's."""
WITHOUT_RULE: Final = frozenset(
    {"LoadBalancerClass", "NoPeers", "NoRule", "NodeExcluded", "NotOwner", "LeftOut"}
)
"""Reasons of the Service, the node or the peer itself, or that no object is such a rule."""
NAMED: Final = re.compile(
    r"(?<![\w./])([A-Z]\w+)/(?:([a-z0-9.-]+)/)?([a-z0-9](?:[a-z0-9.-]*[a-z0-9])?)"
)
HAS: Final = re.compile(
    r"; (?:node |\w+/)(?:\S+/)?(?P<name>\S+) has "
    r"(?:no label (?P<lacks>[^\s;]+)|(?P<key>\S+?)=(?P<value>[^\s;]*))"
)
OF_TYPE: Final = re.compile(r"it has no address of type (\w+)")
OF_OBJECT: Final = ("io.kubernetes.service.", "io.cilium.")
"""How the labels begin that selectors see, and objects do not have."""


def documents(directory: Path) -> list[Document]:
    """Return the objects of the manifests as they are written."""
    found: list[Document] = []
    for file in directory.iterdir():
        if file.suffix == ".yaml":
            found += written_objects(file.read_text())
    return found


def exists(made: CompiledManifests, ref: ObjectRef) -> bool:
    """Return whether an object is in the manifests, or generated from them."""
    snapshot = made.db.snapshot()
    node = made.settings.node
    if ref == ObjectRef("Node", "", node) or (ref.kind, ref.namespace) == ("Interface", node):
        return True  # of the host, with or without an object
    kind = made.resources.kinds.named(ref.kind)
    if kind is not None and made.resources.of(kind).get(snapshot, (ref.namespace, ref.name)):
        return True
    return any(row.object == ref for row in made.intent.generated.all(snapshot))


class Explained:
    """The explanations of a step, beside its objects and the routes that are sent."""

    def __init__(self, made: CompiledManifests, present: list[Document]) -> None:
        self._made = made
        self._present = present
        self._snapshot = made.db.snapshot()
        self._peers = {
            (peer.instance, peer.name): peer for peer in made.intent.peers.all(self._snapshot)
        }
        self._problems = [*made.intent.problems.all(self._snapshot)]
        self._obstacles = Obstacles([*present, *made.rendered()], made.settings.node)

    def check(self, verdicts: Iterable[RouteExplanation]) -> None:
        """Check each explanation."""
        for verdict in verdicts:
            if verdict.advertised:
                self._check_chain(verdict)
            else:
                self.check_obstacle(verdict)

    def check_origins(self, verdicts: Sequence[RouteExplanation]) -> None:
        """Check that each object that a route has as an origin is explained."""
        explained: dict[object, set[ObjectRef]] = {}
        for verdict in verdicts:
            for nlri in verdict.advertised:
                key = (verdict.instance, verdict.peer, verdict.family, nlri)
                assert verdict.object is not None, verdict
                explained.setdefault(key, set()).add(verdict.object)
        routes = [*self._made.intent.routes.all(self._snapshot)]
        for (instance, name), peer in self._peers.items():
            for route in routes:
                if route.route_set == peer.route_set:
                    objects = explained[instance, name, route.family, route.nlri]
                    for origin in route.origins:
                        assert any(self._is_of(origin.object, ref) for ref in objects), origin

    # What is advertised

    def _check_chain(self, verdict: RouteExplanation) -> None:
        """Check that a route leads over its rule to an object, which has the prefix."""
        family, nlri, ref, rule = verdict.family, verdict.nlri, verdict.object, verdict.rule
        assert None not in (family, nlri, ref, rule), verdict
        assert family is not None
        assert nlri is not None
        assert ref is not None
        assert rule is not None
        for named in (ref, rule):
            assert exists(self._made, named), (named, verdict)
        own = ipaddress.ip_network(prefix_to_text(family, nlri))
        assert own in set(self._networks(ref)), (verdict, "the object has no such address")
        rules: set[ObjectRef] = set()
        for sent in verdict.advertised:
            origins = self._origins(verdict, family, sent)
            rules |= {origin.rule for origin in origins if self._is_of(origin.object, ref)}
            if sent != nlri:
                assert covers(sent, nlri), verdict
                lengths = {
                    length
                    for origin in origins
                    for length in _aggregation_lengths(self._documents(origin.rule))
                }
                assert sent[0] in lengths, verdict
        assert rule in rules, (verdict, rules)

    def _origins(self, verdict: RouteExplanation, family: Family, nlri: bytes) -> Sequence[Any]:
        peer = self._peers[verdict.instance or "", verdict.peer or ""]
        assert peer.route_set is not None, verdict
        route = self._made.intent.routes.get(self._snapshot, (peer.route_set, family, nlri))
        assert route is not None, verdict
        return route.origins

    @staticmethod
    def _is_of(origin: ObjectRef, ref: ObjectRef) -> bool:
        """Whether a route is of the object: an FRRConfiguration allows prefixes of others."""
        return origin == ref or origin.kind == ref.kind == "FRRConfiguration"

    def _documents(self, ref: ObjectRef) -> Iterator[Document]:
        """Yield the object as it is written, or as it is generated."""
        for item in (*self._present, *self._made.rendered()):
            metadata = item["metadata"]
            namespace = metadata.get("namespace") or ""
            if ObjectRef(item["kind"], namespace, metadata.get("name", "")) == ref:
                yield item

    def _networks(self, ref: ObjectRef) -> Iterator[Network]:
        """Yield the addresses and networks that an object has, or the node's for it."""
        node = self._made.settings.node
        if ref.kind == "Interface":
            for item in self._present:
                if item["kind"] == "NodeNetwork" and item["metadata"]["name"] == node:
                    devices = item["spec"]["devices"]
                    yield from _networks([d for d in devices if d["name"] == ref.name])
        elif ref.kind == "CiliumPodIPPool":
            for item in self._present:
                if item["kind"] == "CiliumNode" and item["metadata"]["name"] == node:
                    pools = item["spec"]["ipam"]["pools"]["allocated"]
                    yield from _networks([pool for pool in pools if pool["pool"] == ref.name])
        else:
            yield from _networks([*self._documents(ref)])
        if ref.kind == "Node":
            yield from _networks([*self._documents(ObjectRef("CiliumNode", "", ref.name))])

    # What is not

    def check_obstacle(self, verdict: RouteExplanation) -> None:
        """Check the sentence of an explanation, and what it names."""
        reason, message = verdict.reason, verdict.message
        assert verdict.rule or reason in WITHOUT_RULE, verdict
        if reason == "LeftOut":
            of_problems = [p for p in self._problems if p.message and p.message in message]
            assert of_problems, verdict
            ref = verdict.rule or verdict.object
            assert any(ref in problem.objects for problem in of_problems), verdict
        else:
            if reason == "NoPeers":
                for problem in self._problems:
                    message = message.replace(f"; {problem.message}", "")
                message = message.removesuffix("; there is no such node")
            assert reason in SENTENCES, verdict
            assert re.fullmatch(SENTENCES[reason], message), verdict
        if verdict.rule is not None:
            assert exists(self._made, verdict.rule), verdict
        if verdict.object is not None:
            # The sentence is about a pool that is missing.
            assert exists(self._made, verdict.object) is (reason != "NoPool") or (
                verdict.object.kind == "CiliumPodIPPool" and reason != "NoPool"
            ), verdict
        self._check_names(verdict)
        if verdict.rule is not None and reason != "LeftOut":
            peer = self._peers.get((verdict.instance or "", verdict.peer or ""))
            assert self._obstacles.can_be(verdict, peer), (verdict, "it is no such obstacle")

    def _check_names(self, verdict: RouteExplanation) -> None:
        """Check that the objects of a sentence are there, the rule among them, with these labels."""
        named = {
            ObjectRef(kind, namespace or "", name)
            for kind, namespace, name in NAMED.findall(verdict.message)
            if self._made.resources.kinds.named(kind) is not None
        }
        for ref in named - {verdict.object}:
            assert exists(self._made, ref), (ref, verdict)
        if verdict.reason != "LeftOut" and verdict.rule is not None and named:
            assert verdict.rule in named, verdict
        if verdict.reason == "LocalPreferenceConflict":
            assert verdict.rule is not None
            assert verdict.rule.name in re.split(r"\W+", verdict.message), verdict
        wanted = OF_TYPE.match(verdict.message)
        if wanted is not None and verdict.rule is not None:
            rule = json.dumps([*self._documents(verdict.rule)])
            assert f'"{wanted[1]}"' in rule, (verdict, "the rule is not about such addresses")
        for has in HAS.finditer(verdict.message):
            labels = self._labels(has["name"])
            if has["lacks"] is not None:
                assert all(has["lacks"] not in found for found in labels), verdict
            elif not has["key"].startswith(OF_OBJECT):
                assert any(found.get(has["key"]) == has["value"] for found in labels), verdict

    def _labels(self, name: str) -> list[dict[str, str]]:
        named = (item["metadata"] for item in self._present if item["metadata"]["name"] == name)
        return [metadata.get("labels", {}) for metadata in named]


def _networks(value: object) -> Iterator[Network]:
    """Yield each text of a document that is an address or a network."""
    if isinstance(value, dict):
        for part in value.values():
            yield from _networks(part)
    elif isinstance(value, list):
        for part in value:
            yield from _networks(part)
    elif isinstance(value, str):
        with contextlib.suppress(ValueError):
            yield ipaddress.ip_network(value)


def _aggregation_lengths(value: object) -> Iterator[int]:
    """Yield the lengths of aggregates that documents give."""
    if isinstance(value, dict):
        for key, part in value.items():
            if key.startswith("aggregationLength"):
                yield part
            else:
                yield from _aggregation_lengths(part)
    elif isinstance(value, Iterable) and not isinstance(value, str):
        for part in value:
            yield from _aggregation_lengths(part)
