"""The rule of the intent that decides about a received route: the selector, and its object.

The speaker decides by prefix rules, and knows no objects. Its decisions are translated here; without a
running agent the same policy is evaluated on the intent alone. Pure.
"""

from __future__ import annotations

from typing import Final

import msgspec

from reconcilers.apply.import_policy import import_policy
from reconcilers.model import ObjectRef, Peer, PrefixRule
from speaker.api import PolicyDecision
from speaker.attribute import PathAttributes
from speaker.nlri import Family
from speaker.rib.path import Path, Source
from speaker.rib.policy import compile_import

ALL: Final = "all"
NOT_ALLOWED: Final = "NotAllowed"
REJECTED: Final = "Rejected"
"""The label of a rule of an object by which prefixes are never accepted."""


class ReceivedDecision(msgspec.Struct, frozen=True):
    """Whether a prefix is accepted from a peer, and by what."""

    accepted: bool
    filter: str
    """The selector that accepts it (``10.0.0.0/8 le 24``, ``all``); the label and the prefix of the
    rule that rejects it (``AlwaysBlock 10.96.0.0/12``); or ``NotAllowed`` where nothing accepts it."""
    object: ObjectRef | None = None
    """The object with that rule; None for options of the agent, and where no rule decides."""

    @property
    def reason(self) -> str:
        """The verdict on a received route as one word."""
        return "Accepted" if self.accepted else self.filter.partition(" ")[0]


def translated(peer: Peer, decision: PolicyDecision) -> ReceivedDecision:
    """Return the speaker's verdict on a received route in the terms of the peer's intent."""
    rule = decision.rule
    if decision.accepted:
        if rule is None:
            first = peer.accept_origins[0] if peer.accept_origins else None
            return ReceivedDecision(accepted=True, filter=ALL, object=first)
        decided = _rule(peer.accept or (), decision)
        return ReceivedDecision(accepted=True, filter=str(decided), object=decided.origin)
    if rule is None:
        return ReceivedDecision(accepted=False, filter=NOT_ALLOWED)
    decided = _rule(peer.reject, decision)
    text = f"{decided.label or REJECTED} {decided.prefix}"
    return ReceivedDecision(accepted=False, filter=text, object=decided.origin)


def decide(peer: Peer, family: Family, nlri: bytes) -> ReceivedDecision:
    """Return the intent's verdict on a received prefix, as if the peer advertised it."""
    policy = compile_import(peer.name, import_policy(peer))
    if policy is None:
        return translated(peer, PolicyDecision(accepted=True))
    path = Path(PathAttributes(), Source(peer.name))
    return translated(peer, policy.decide(path, family, nlri))


def _rule(rules: tuple[PrefixRule, ...], decision: PolicyDecision) -> PrefixRule:
    """Return the first rule of the intent with the prefix and lengths of the speaker's."""
    speakers = decision.rule
    assert speakers is not None  # noqa: S101  the callers have looked
    for rule in rules:
        if (rule.prefix, rule.ge, rule.le) == (speakers.prefix, speakers.ge, speakers.le):
            return rule
    # The intent has changed since the speaker was configured.
    return PrefixRule(speakers.prefix, speakers.ge, speakers.le)
