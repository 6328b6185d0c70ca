"""How ``waggle explain`` explains what a dialect advertises, and what it does not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from reconcilers.dialect.candidate import Candidate
from reconcilers.dialect.compilation import NodeContext
from reconcilers.dialect.extension import Extension
from reconcilers.dialect.route_source import KindSource
from reconcilers.model import ObjectRef, Peer, RouteExplanation
from resources.kind import Kind, NodeSelectors
from speaker.nlri import Family
from statedb import Snapshot

if TYPE_CHECKING:
    from reconcilers.dialect.protocol import Dialect


class Target(NamedTuple):
    """The subject of an explanation: a prefix, an address, or an object."""

    text: str
    prefix: tuple[Family, bytes] | None = None
    kind: str | None = None
    namespace: str | None = None
    name: str | None = None

    def names(self, ref: ObjectRef) -> bool:
        """True if the target of an explanation is this object."""
        return (
            self.name == ref.name
            and self.kind in (None, ref.kind)
            and self.namespace in (None, ref.namespace)
        )


def explanation_of(
    candidate: Candidate,
    reason: str,
    message: str = "",
    *,
    advertised: tuple[bytes, ...] = (),
    rule: ObjectRef | None = None,
) -> RouteExplanation:
    """Return the explanation of a candidate of any dialect, without the instance and the peer."""
    return RouteExplanation(
        instance=None,
        peer=None,
        object=candidate.object,
        type=candidate.type,
        family=candidate.family,
        nlri=candidate.nlri,
        advertised=advertised,
        reason=reason,
        message=message,
        rule=rule,
    )


def of_kind_sources(
    dialect: Dialect,
    snapshot: Snapshot,
    _context: NodeContext,
    _rules: Mapping[str, Any],
    _target: Target | None,
) -> Iterator[Candidate]:
    """Yield the candidates of every `KindSource` for an explanation, whatever the dialect."""
    for source in dialect.sources:
        if isinstance(source, KindSource):
            yield from source.candidates(snapshot)


def explain_selected(candidate: Any, peer: Peer, rules: Any) -> RouteExplanation:  # noqa: ANN401
    """Return the explanation of a `KindSource`'s candidate: advertised, if rules select it."""
    selection = None if rules is None else candidate.select(rules)
    reason, message = "Advertised", ""
    if selection is None:
        reason, message = "NoRule", "no rule of the peer selects it"
    elif candidate.family not in peer.families:
        reason, message = "FamilyNotConfigured", f"the peer has no family {candidate.family}"
    return explanation_of(
        candidate,
        reason,
        message,
        advertised=() if message else (candidate.nlri,),
        rule=selection.rule if selection else next(iter(peer.origins), None),
    )


class Explanation(Extension, frozen=True):
    """The candidates of a dialect, and their explanations; a dialect without one has the defaults."""

    candidates: Callable[
        [Any, Snapshot, NodeContext, Mapping[str, Any], Target | None], Iterable[Candidate]
    ] = of_kind_sources
    """Returns every address that the node could advertise, of the target only if there is one, given
    the dialect, and the rules of route sets by name."""
    explain: Callable[[Any, Peer, Any], RouteExplanation] = explain_selected
    """Explains what is advertised to a peer for a candidate (`explanation_of`), given the rules of the
    peer's route set, or None."""
    kinds: Mapping[str, str] = {}
    """Aliases of kinds for ``waggle explain``, in lower case, with the kind of each."""
    selecting: Mapping[Kind[Any], NodeSelectors] = {}
    """Kinds whose objects give nodes peers, with their node selectors: where a node has none, their
    problems are the reason, or that no selector selects it."""


def dialect_explanation(dialect: Dialect | type[Dialect]) -> Explanation:
    """Return the explanation of a dialect."""
    return next(iter(dialect.each(Explanation)), Explanation())


def explained_kinds(dialects: Iterable[Dialect | type[Dialect]]) -> dict[str, str]:
    """Return the kinds of which dialects have an explanation beside Services, by alias."""
    return {k: v for dialect in dialects for k, v in dialect_explanation(dialect).kinds.items()}
