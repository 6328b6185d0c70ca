"""The policy in effect on a node: the oldest that selects it. Pure.

Antrea compares ages in whole seconds, and leaves open which one of two of the same age is in effect;
here the name decides, so that all nodes agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from reconcilers.age import Age, age
from reconcilers.model import Condition, Problem, ref_to
from resources.antrea.bgppolicy import MAX_RELEASED_ASN, NEXT_FIELDS, BGPPolicy
from resources.antrea.kinds import BGP_POLICY
from resources.json_names import json_name

EFFECTIVE: Final = "Effective"
"""The type of the condition, and the reason of the policy in effect."""
OLDER: Final = "OlderPolicyEffective"
NOT_SELECTED: Final = "NodeNotSelected"
INVALID: Final = "FieldNotAccepted"
FLAG: Final = "--antrea-next-fields"


class Choice(NamedTuple):
    """The policy in effect, if any, and the conditions and problems of all policies."""

    policy: BGPPolicy | None
    conditions: tuple[Condition, ...]
    problems: tuple[Problem, ...]


def choose(
    policies: Iterable[BGPPolicy], labels: Mapping[str, str] | None, *, next_fields: bool
) -> Choice:
    """Choose the effective BGPPolicy of a node with these labels; None: there is no such node."""
    chosen: BGPPolicy | None = None
    conditions: list[Condition] = []
    problems: list[Problem] = []
    for policy in sorted(policies, key=_age):
        invalid = () if next_fields else tuple(_unreleased_asns(policy))
        problems += invalid
        if not next_fields:
            problems += _unreleased_fields(policy)
        status, reason, message = False, NOT_SELECTED, "its nodeSelector does not select the node"
        if labels is None:
            message = "there is no such Node"
        elif policy.spec.node_selector.matches(labels):
            if invalid:
                reason, message = INVALID, invalid[0].message
            elif chosen is not None:
                reason, message = OLDER, f"BGPPolicy {chosen.metadata.name} comes first"
            else:
                status, reason, message = True, EFFECTIVE, "it configures the node"
                chosen = policy
        ref = ref_to(BGP_POLICY, policy)
        generation = policy.metadata.generation or None
        conditions.append(Condition(ref, EFFECTIVE, status, reason, message, generation))
    return Choice(chosen, tuple(conditions), tuple(problems))


def _age(policy: BGPPolicy) -> Age:
    return age(policy.metadata.creation_timestamp, ref_to(BGP_POLICY, policy))


def _unreleased_asns(policy: BGPPolicy) -> Iterator[Problem]:
    """Yield a problem for each AS number beyond the released range: the policy cannot be used."""
    asns = [("spec.localASN", policy.spec.local_asn)]
    asns += [(f"spec.bgpPeers[{i}].asn", peer.asn) for i, peer in enumerate(policy.spec.bgp_peers)]
    for field, asn in asns:
        if asn > MAX_RELEASED_ASN:
            text = (
                f"{asn} is not within 1 to {MAX_RELEASED_ASN}, and the policy is not in effect; "
                f"{FLAG} accepts AS numbers of four octets"
            )
            yield Problem((ref_to(BGP_POLICY, policy),), field, text)


def _unreleased_fields(policy: BGPPolicy) -> Iterator[Problem]:
    for i, peer in enumerate(policy.spec.bgp_peers):
        for name in NEXT_FIELDS:
            if getattr(peer, name) is not None:
                field = f"spec.bgpPeers[{i}].{json_name(name)}"
                text = f"is proposed for a later release of the API, and ignored without {FLAG}"
                ref = ref_to(BGP_POLICY, policy)
                yield Problem((ref,), field, text, category="unsupported")
