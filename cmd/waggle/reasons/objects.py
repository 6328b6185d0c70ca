"""Reasons of conditions and of Events: words, meanings, remedies."""

from __future__ import annotations

from typing import Final

CONDITIONS: Final[tuple[tuple[str, str, str], ...]] = (
    ("Accepted", "the object is valid and in effect", ""),
    ("Invalid", "the object has an invalid field", "the field that the message names"),
    ("Unresolved", "an object that it names does not exist", "create it, or correct the name"),
    (
        "Conflict",
        "objects contradict each other",
        "change one of the objects that the message names",
    ),
    ("NoNode", "no node has the labels of the node selector", "the selector, or the labels"),
    (
        "OtherNamespace",
        "objects of this kind are used in another namespace only",
        "move the object, or choose the namespace by option",
    ),
    ("RawConfig", "raw configuration has no effect", "the fields of the API"),
    ("EVPN", "EVPN has no effect", "remove it, or use a dialect that has it"),
    (
        "KernelRoutes",
        "accepted routes are not installed in the kernel",
        "`waggle routes kernel` has the reason",
    ),
    ("LeftOut", "the object is not in effect on some nodes", "`waggle check` has the problems"),
    ("NoMatchingNode", "the node selector selects no node", "the selector, or the labels"),
    ("MissingPeerConfigs", "PeerConfigs that are named do not exist", "create them"),
    (
        "ConflictingClusterConfigs",
        "several ClusterConfigs select a node",
        "selectors that do not overlap",
    ),
    (
        "ConflictingPeeringPolicies",
        "several PeeringPolicies select a node",
        "selectors that do not overlap",
    ),
    ("BGPReconcileError", "the configuration of the node has problems", "the message"),
    ("SessionNotEstablished", "a session is down for long", "`waggle peers` has the reason"),
    ("Effective", "the policy configures the node", ""),
    ("OlderPolicyEffective", "an older policy selects the node", "one policy for each node"),
    ("NodeNotSelected", "the node selector does not select the node", "the selector, the labels"),
    (
        "FieldNotAccepted",
        "a field that the released version does not have is used",
        "`--antrea-next-fields`, or remove it",
    ),
    ("ConfigurationError", "the RouteAdvertisements is wrong", "the field that the message names"),
    ("ConfigurationPending", "an object that it needs is missing", "create what the message names"),
    ("InternalError", "a defect of the operator", "report it, with the log of the operator"),
    ("NoOverlayTransportAccepted", "the network is advertised with its transport", ""),
    (
        "NoOverlayRouteAdvertisementsIsMissing",
        "no RouteAdvertisements advertise the pods of the network",
        "RouteAdvertisements that select it, with PodNetwork",
    ),
    (
        "NoOverlayRouteAdvertisementsNotAccepted",
        "the RouteAdvertisements of the network are not accepted",
        "see their condition",
    ),
    ("EVPNTransportAccepted", "the network is advertised with its transport", ""),
    (
        "EVPNRouteAdvertisementsIsMissing",
        "no RouteAdvertisements advertise the pods of the network",
        "RouteAdvertisements that select it, with PodNetwork",
    ),
    (
        "EVPNRouteAdvertisementsNotAccepted",
        "the RouteAdvertisements of the network are not accepted",
        "see their condition",
    ),
    ("EVPNConfigError", "EVPN is not enabled", "enable it at the CNI"),
    ("VTEPNotFound", "the VTEP of the network does not exist", "create it"),
    ("VTEPNotAccepted", "the VTEP of the network is not accepted", "see its condition"),
    ("Allocated", "each node has an address of the VTEP", ""),
    (
        "AllocationFailed",
        "a node has no address of the VTEP",
        "an address within its prefixes on each node",
    ),
    ("CIDROverlap", "two VTEPs have addresses in common", "other prefixes"),
    ("EVPNIPv6NotSupported", "EVPN has no IPv6 addresses of VTEPs", "IPv4 prefixes"),
    ("ManagedModeNotSupported", "nothing allocates addresses of VTEPs", "`mode: Unmanaged`"),
    ("ConfigError", "the configuration of the node has problems", "the message"),
    ("SyncStateSuccess", "the configuration is in effect", ""),
)
EVENTS: Final[tuple[tuple[str, str, str], ...]] = (
    ("SessionEstablished", "a session is Established", ""),
    ("SessionDown", "a session is down; the message has the cause", "`waggle peers`"),
    (
        "SessionNotEstablished",
        "a session is not Established for long",
        "`waggle peers -o wide` has the likely cause",
    ),
    ("BFDSessionUp", "BFD is Up", ""),
    ("BFDSessionDown", "BFD is down; with it the BGP session", "`waggle bfd`"),
    (
        "ListenFailed",
        "the agent cannot listen on its port",
        "another program has it: `ss -lntp sport = :179`",
    ),
    ("RejectedConfiguration", "the speaker rejects an object", "the field that the message names"),
    ("InvalidConfiguration", "an object is invalid, and the last valid one is used", "the message"),
    ("ApplyFailed", "a reconciler fails and is retried", "`waggle reconcilers`"),
    ("Drained", "the node is drained", ""),
)
