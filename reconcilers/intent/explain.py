"""Explains for every address of this node why it is advertised to a peer, or is not: `waggle explain`.

Nothing is kept for it: each dialect evaluates its rules again when a question comes. Reads one
snapshot; the answer is as of the last run of the compiler.
"""

from __future__ import annotations

import heapq
import ipaddress
import itertools
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from reconcilers.dialect import (
    Candidate,
    Dialect,
    Feeding,
    NodeContext,
    Target,
    dialect_explanation,
    service_address,
)
from reconcilers.intent.address_limits import AddressesOfService, AddressLimits
from reconcilers.intent.nearest_selector import nearest_selector
from reconcilers.intent.nearest_targets import nothing_found
from reconcilers.intent.service_addresses import AddressRules, Rejection
from reconcilers.intent_tables import IntentTables
from reconcilers.model import ObjectRef, Peer, RouteExplanation
from reconcilers.prefixes import covers
from resources.enumeration import counted, joined
from resources.kind import Kind, NodeSelectors
from resources.tables import Tables
from speaker.nlri import Family, prefix_to_wire
from statedb import Snapshot

EXPLAINED_KINDS: Final[Mapping[str, str]] = {
    "service": "Service",
    "services": "Service",
    "svc": "Service",
    "node": "Node",
    "podcidr": "Node",
    "interface": "Interface",
}
"""Aliases of the kinds of Kubernetes and of the host, in lower case."""

SLICE_CANDIDATES: Final = 50
"""Candidates of one slice of explanations."""
COMPARED_CANDIDATES: Final = 2000
"""Candidates whose prefix is compared in one slice."""


class NothingFoundError(Exception):
    """No object of this node has the prefix or the name; ``str()`` is one sentence."""


def parse_target(text: str, kinds: Mapping[str, str]) -> Target:
    """Parse what `waggle explain` explains: ``10.0.0.1[/32]``, a Service, ``KIND/[NAMESPACE/]NAME``.

    ``kinds`` are the kinds of dialects (`Explanation.kinds`). Raises ValueError with the reason.
    """
    parts = text.split("/")
    try:
        ipaddress.ip_address(parts[0])
    except ValueError:
        pass
    else:
        try:
            network = ipaddress.ip_network(text, strict=False)
        except ValueError:
            raise ValueError(f"{text!r} is neither a prefix nor an address") from None
        return Target(text, prefix=prefix_to_wire(str(network)))
    spellings = {**EXPLAINED_KINDS, **kinds}
    kind = spellings.get(parts[0].lower()) if len(parts) > 1 else None
    if kind is not None:
        parts = parts[1:]
    elif len(parts) > 1:
        kind = "Service"
    if len(parts) > 2 or not all(parts):
        names = ["NAMESPACE/NAME", "Node/NAME", *(f"{kind}/NAME" for kind in _of_dialects(kinds))]
        raise ValueError(
            f"{text!r} is neither a prefix nor an object such as Service/NAMESPACE/NAME, "
            f"{', '.join(names)} or Interface/NAME"
        )
    namespace = parts[0] if len(parts) == 2 else None
    return Target(text, kind=kind, namespace=namespace, name=parts[-1])


def _of_dialects(kinds: Mapping[str, str]) -> list[str]:
    return sorted(set(kinds.values()) - set(EXPLAINED_KINDS.values()))


class Explainer:
    """Explains the intent as of one snapshot."""

    def __init__(
        self,
        snapshot: Snapshot,
        resources: Tables,
        intent: IntentTables,
        context: NodeContext,
        feeding: Feeding,
        rules: Mapping[str, Mapping[str, Any]],
        addresses: AddressRules,
        limits: AddressLimits,
        states: Mapping[str, Any],
    ) -> None:
        """``rules``: by dialect and route set, under the names of both; ``states``: by dialect."""
        self._snapshot = snapshot
        self._resources = resources
        self._intent = intent
        self._context = context
        self._feeding = feeding
        self._dialects = feeding.dialects
        self._rules = rules
        self._addresses = addresses
        self._limits = limits
        self._states = states
        self._of_service: tuple[ObjectRef, AddressesOfService | None] | None = None
        """The addresses of the Service that was explained last: its candidates follow each other."""

    def explain(
        self,
        target: Target | None = None,
        chosen: Callable[[str, str | None, str | None], bool] = lambda *_: True,
    ) -> Iterator[Sequence[RouteExplanation]]:
        """Yield the explanations of the target at each peer; without a target, of all addresses.

        In slices, each of one peer: a slice is a few milliseconds' work, and empty ones are work
        without a result. ``chosen`` selects peers by instance, name and address. Raises
        `NothingFoundError` before the first explanation where no object of this node is the target.
        """
        candidates: dict[str, Sequence[Candidate]] = {}
        for name in self._dialects:
            candidates[name] = yield from self._candidates(name, target)
        if target is not None and not any(candidates.values()):
            for name in self._dialects:
                candidates[name] = yield from self._candidates(name, None)
            raise NothingFoundError((yield from self._nothing(target, candidates)))
        peers = [
            peer
            for peer in sorted(
                self._intent.peers.all(self._snapshot), key=lambda row: (row.instance, row.name)
            )
            if chosen(peer.instance, peer.name, peer.address)
        ]
        general = self._left_out(chosen)
        if not peers and not general and not self._intent.peers.count(self._snapshot):
            general = [self._without_peers()]
        if target is None or not peers or _has(candidates, target):
            yield general
            general, matched = [], bool(general) or not peers
        else:
            matched = False
        related: dict[str, dict[str, Sequence[Candidate]]] = {}
        for peer in peers:
            of_peer = related.get(peer.dialect)
            if of_peer is None:
                own = self._dialects[peer.dialect]
                names = [dialect.name for dialect in (own, *self._feeding.feeders(own))]
                of_peer = {name: candidates.get(name, ()) for name in names}
                if target is not None and target.prefix is not None:
                    of_peer = yield from _of_prefix(of_peer, *target.prefix)
                related[peer.dialect] = of_peer
            for explanations in self._at(peer, of_peer, target):
                if explanations and general:
                    yield general
                    general = []
                matched = matched or bool(explanations)
                yield explanations
        if target is not None and not matched:
            raise NothingFoundError((yield from self._nothing(target, candidates)))

    def _nothing(
        self, target: Target, candidates: Mapping[str, Sequence[Candidate]]
    ) -> Generator[tuple[()], None, str]:
        return nothing_found(self._context.node, target, candidates.values())

    def _at(
        self, peer: Peer, of_target: Mapping[str, Sequence[Candidate]], target: Target | None
    ) -> Iterator[Sequence[RouteExplanation]]:
        """Yield the explanations at one peer in slices; dialects that feed its own come after it."""
        whole: list[RouteExplanation] = []
        own = self._dialects[peer.dialect]
        for dialect in (own, *self._feeding.feeders(own)):
            candidates = of_target.get(dialect.name, ())
            for start in range(0, len(candidates), SLICE_CANDIDATES):
                some = self._explained(dialect, peer, candidates[start : start + SLICE_CANDIDATES])
                if target is None or target.prefix is None:
                    yield some
                else:
                    whole += some
                    yield ()
        if target is not None and target.prefix is not None:
            yield _longest_match(whole, *target.prefix)

    def _explained(
        self, dialect: Dialect, peer: Peer, candidates: Sequence[Candidate]
    ) -> list[RouteExplanation]:
        sets = self._rules[peer.dialect]
        route_set = peer.unlimited_set or peer.route_set
        rules = sets.get(route_set) if route_set is not None else None
        explain = dialect_explanation(dialect).explain
        explanations = (
            self._with_conflicts(
                self._with_rejections(candidate, explain(candidate, peer, rules)), route_set
            )
            for candidate in candidates
        )
        return [
            replace(self._with_limit(explanation, peer), instance=peer.instance, peer=peer.name)
            for explanation in explanations
        ]

    def _with_limit(self, explanation: RouteExplanation, peer: Peer) -> RouteExplanation:
        """Remove prefixes that wait because the peer has a limit."""
        family = explanation.family
        if peer.unlimited_set is None or peer.route_set is None or family is None:
            return explanation
        routes, snapshot = self._intent.routes, self._snapshot
        kept = tuple(
            nlri
            for nlri in explanation.advertised
            if routes.get(snapshot, (peer.route_set, family, nlri)) is not None
        )
        if kept == explanation.advertised:
            return explanation
        if kept:
            return replace(explanation, advertised=kept)
        limit = self._intent.advertise_limits.get(snapshot, (peer.instance, peer.name, family))
        text = "the peer has a limit, and older Services have its prefixes"
        if limit is not None:
            most = counted(limit.limit, "prefix", "prefixes")
            text = (
                f"the peer is sent no more than {most} of {family} ({limit.reason}), "
                "and older Services have them"
            )
        return replace(explanation, advertised=(), reason="PeerLimit", message=text)

    def _with_rejections(
        self, candidate: Candidate, explanation: RouteExplanation
    ) -> RouteExplanation:
        """Apply the rules for addresses that Services name."""
        family, nlri = candidate.family, candidate.nlri
        address = service_address(candidate)
        if address is None or family is None or nlri is None:
            return explanation
        rejection = self._beyond_limit(candidate.object, nlri)
        if rejection is None:
            rejection = self._addresses.reject_address(candidate.object, family, address)
        advertised: tuple[bytes, ...] = ()
        if rejection is None:
            rejections = {
                p: self._addresses.reject_prefix(family, p) for p in explanation.advertised
            }
            advertised = tuple(p for p, reason in rejections.items() if reason is None)
            rejection = next((reason for reason in rejections.values() if reason is not None), None)
        if advertised == explanation.advertised or rejection is None:
            return explanation
        if advertised:
            return replace(explanation, advertised=advertised)
        return replace(
            explanation, advertised=(), reason=rejection.reason, message=rejection.message
        )

    def _beyond_limit(self, ref: ObjectRef, nlri: bytes) -> Rejection | None:
        """Return why an address is one too many for its Service or namespace, or None."""
        if self._of_service is None or self._of_service[0] != ref:
            self._of_service = (ref, self._limits.of_object(self._snapshot, ref))
        beyond = self._of_service[1]
        return None if beyond is None else self._limits.reject(beyond, nlri)

    def _with_conflicts(
        self, explanation: RouteExplanation, route_set: str | None
    ) -> RouteExplanation:
        """Remove prefixes whose contributions contradict each other."""
        table, family = self._intent.conflicting_routes, explanation.family
        if route_set is None or family is None:
            return explanation
        kept = tuple(
            nlri
            for nlri in explanation.advertised
            if table.get(self._snapshot, (route_set, family, nlri)) is None
        )
        if kept == explanation.advertised:
            return explanation
        if kept:
            return replace(explanation, advertised=kept)
        text = "other objects contradict it; the problem names them"
        return replace(explanation, advertised=(), reason="Conflict", message=text)

    # Candidates

    def _rules_for(self, dialect: Dialect) -> dict[str, Any]:
        """Return the rules of the route sets to which a dialect contributes, by name."""
        both = (self._feeding.merging(dialect), dialect)
        sets = (rules for named in both if named for rules in self._rules[named.name].values())
        return {rules.name: rules for rules in sets}

    def _candidates(
        self, name: str, target: Target | None
    ) -> Generator[Sequence[RouteExplanation], None, list[Candidate]]:
        """Return the candidates of a dialect in order, after slices of work without a result."""
        dialect = self._dialects[name]
        rules = self._rules_for(dialect)
        parts: list[list[Candidate]] = [[]]
        context = replace(self._context, state=self._states.get(name))
        candidates = dialect_explanation(dialect).candidates(
            dialect, self._snapshot, context, rules, target
        )
        for looked_at, candidate in enumerate(candidates, 1):
            if _concerns(candidate, target):
                parts[-1].append(candidate)
            if not looked_at % SLICE_CANDIDATES:
                parts[-1].sort(key=_order)
                parts.append([])
                yield ()
        parts[-1].sort(key=_order)
        selected: list[Candidate] = []
        for candidate in heapq.merge(*parts, key=_order):
            selected.append(candidate)
            if not len(selected) % SLICE_CANDIDATES:
                yield ()
        return selected

    # Peers and objects that are missing

    def _left_out(
        self, chosen: Callable[[str, str | None, str | None], bool]
    ) -> list[RouteExplanation]:
        explanations: list[RouteExplanation] = []
        for problem in sorted(self._intent.problems.all(self._snapshot)):
            if problem.unconfigured:
                instance, *rest = problem.unconfigured
                peer = rest[0] if rest else None
                if chosen(instance, peer, None):
                    rule = problem.objects[0] if problem.objects else None
                    explanations.append(_general(instance, peer, "LeftOut", problem.message, rule))
        return explanations

    def _without_peers(self) -> RouteExplanation:
        node = self._context.node
        selecting: dict[Kind[Any], NodeSelectors] = {}
        for dialect in self._dialects.values():
            selecting |= dialect_explanation(dialect).selecting
        kinds = {"Node", *(kind.name for kind in selecting)}
        reasons = [
            problem.message
            for problem in sorted(self._intent.problems.all(self._snapshot))
            if problem.objects and problem.objects[0].kind in kinds
        ]
        text = f"node {node} has no peers: nothing selects it, or what selects it lists none"
        nearest = nearest_selector(self._snapshot, self._resources, selecting, node)
        if nearest is not None:
            text = f"node {node} has no peers: nearest to selecting it is {nearest.text}"
        elif filtered := self._read_for_node_alone(selecting):
            text = f"{text}; of {filtered} only objects that select the node are read: with -f and all "
            text += "of them waggle explain has the nearest"
        rule = None if nearest is None else nearest.ref
        return _general(None, None, "NoPeers", joined([text, *reasons]), rule)

    def _read_for_node_alone(self, kinds: Iterable[Kind[Any]]) -> str:
        """Return the kinds of which an agent of an API server stores no objects for other nodes."""
        if self._context.operator_in_process:
            return ""
        return ", ".join(sorted(kind.name for kind in kinds if kind.of_node is not None))


def _of_prefix(
    candidates: Mapping[str, Sequence[Candidate]], family: Family, nlri: bytes
) -> Generator[tuple[()], None, dict[str, Sequence[Candidate]]]:
    """Return the candidates with which `_longest_match` has the same result, after empty slices.

    If one of them is the prefix itself, no longer one matches: other explanations match by a prefix
    that is equal, of an object within it. Without such a candidate any aggregate may match.
    """
    exact = False
    within: dict[str, Sequence[Candidate]] = {}
    for name, all_of_name in candidates.items():
        selected: list[Candidate] = []
        for start in range(0, len(all_of_name), COMPARED_CANDIDATES):
            for candidate in all_of_name[start : start + COMPARED_CANDIDATES]:
                own = candidate.nlri
                if own is not None and candidate.family == family and covers(nlri, own):
                    selected.append(candidate)
                    exact = exact or own == nlri
            yield ()
        within[name] = selected
    return within if exact else dict(candidates)


def _longest_match(
    explanations: Sequence[RouteExplanation], family: Family, nlri: bytes
) -> Sequence[RouteExplanation]:
    """Return the explanations with the longest prefix that contains ``nlri`` (RFC 4632).

    A prefix of an explanation is that of its object, or an aggregate that is advertised for it.
    """
    matching = [
        (prefix[0], explanation)
        for explanation in explanations
        if explanation.family == family
        for prefix in {explanation.nlri, *explanation.advertised}
        if prefix is not None and covers(prefix, nlri)
    ]
    longest = max((length for length, _ in matching), default=None)
    return [explanation for length, explanation in matching if length == longest]


def _concerns(candidate: Candidate, target: Target | None) -> bool:
    if target is None or target.prefix is not None:
        return target is None or candidate.nlri is not None
    return target.names(candidate.object)


def _has(available: Mapping[str, Sequence[Candidate]], target: Target) -> bool:
    """True if some dialect has a candidate that is the target, or whose prefix covers it."""
    candidates = itertools.chain.from_iterable(available.values())
    if target.prefix is None:
        return any(True for _ in candidates)
    family, nlri = target.prefix
    return any(
        candidate.family == family and candidate.nlri is not None and covers(candidate.nlri, nlri)
        for candidate in candidates
    )


def _order(candidate: Candidate) -> tuple[Any, ...]:
    family, nlri = candidate.family, candidate.nlri
    return (candidate.object, candidate.type, family is None, family or (), nlri or b"")


def _general(
    instance: str | None, peer: str | None, reason: str, message: str, rule: ObjectRef | None
) -> RouteExplanation:
    return RouteExplanation(
        instance=instance,
        peer=peer,
        object=None,
        type="",
        family=None,
        nlri=None,
        advertised=(),
        reason=reason,
        message=message,
        rule=rule,
    )
