"""Whether a route of a peer is accepted: words, meanings, remedies."""

from __future__ import annotations

from typing import Final

REASONS: Final[tuple[tuple[str, str, str], ...]] = (
    (
        "Accepted",
        "the route is accepted, or would be; WHY also names a better path, if there is one",
        "",
    ),
    (
        "NotAllowed",
        "no selector accepts the prefix",
        "add it to what the peer may announce (`toReceive.allowed`, `--cilium-import` ...)",
    ),
    ("AlwaysBlock", "an option of the agent rejects the prefix from all peers", "`--always-block`"),
    ("Rejected", "a rule of an object rejects the prefix", "the object that OBJECT names"),
    (
        "Ineligible",
        "accepted and not used: an AS loop, an unusable next hop ...",
        "WHY has the cause; it is in the path that the peer sends",
    ),
    (
        "NotReceived",
        "it would be accepted; the peer has not advertised it",
        "look at the export policy of the peer",
    ),
    (
        "SessionDown",
        "it would be accepted; the session is not Established",
        "`waggle peers` has the reason",
    ),
    (
        "NoSession",
        "it would be accepted; the session is not configured yet",
        "`waggle peers` has the problems",
    ),
    ("Family", "the peer is not configured for the family", "add the family to the peer"),
)
