"""Why a received route is not in the kernel: words, meanings, remedies."""

from __future__ import annotations

from typing import Final

REASONS: Final[tuple[tuple[str, str, str], ...]] = (
    ("ImportPolicy", "the import policy of the peer does not accept the prefix", "its selectors"),
    ("AlwaysBlock", "an option of the agent rejects it from all peers", "`--always-block`"),
    (
        "ASLoop",
        "the path has been at this router, or in its AS, before",
        "other AS numbers, or `allowASIn` where that is meant",
    ),
    ("Ineligible", "the speaker does not use the path for another reason", "the message names it"),
    (
        "Malformed",
        "the UPDATE was malformed: the route is withdrawn (RFC 7606)",
        "a defect of the peer; `waggle peers` has the attribute",
    ),
    ("Family", "the session does not carry prefixes of the family", "add the family to the peer"),
    (
        "NextHop",
        "the next hop cannot be resolved",
        "a route or an interface to it; `ip route get NEXT-HOP`",
    ),
    ("Local", "the prefix is this node's own", ""),
    ("NotBest", "another path is better, or is installed alone", ""),
    ("Martian", "no router forwards packets to such addresses", "the export policy of the peer"),
    (
        "DefaultRoute",
        "no rule names the default route",
        "a selector that names it, with `0.0.0.0/0`",
    ),
    ("NoVRF", "the node does not have the VRF, so there is no table", "create the VRF device"),
    (
        "TableShared",
        "routes of another VRF are in the table of the VRF",
        "give each VRF a table of its own",
    ),
    (
        "Withheld",
        "with the route the node did not reach its cluster, and it is not approved yet",
        "correct the routes of the peer, then `waggle routes kernel --approve`",
    ),
    ("Off", "routes of this instance are not installed", "`--fib`"),
    (
        "Occupied",
        "a route of another program has the same table, prefix and metric",
        "another metric (`--fib-metric`), or remove that route",
    ),
    (
        "Missing",
        "another program removed the route, or the kernel did as the interface went down",
        "it is installed again; `ip monitor route` shows who removes it",
    ),
    (
        "Different",
        "the kernel has the route with other next hops",
        "it is corrected; as for Missing",
    ),
    (
        "NotPermitted",
        "the process has no CAP_NET_ADMIN in its network namespace, or the file system is read-only",
        "`agent.kernelRoutes` of the chart, or the capabilities of the unit",
    ),
    ("TableFull", "the kernel takes no more routes", "memory, `net.ipv6.route.max_size`"),
    (
        "UnusableNextHop",
        "the kernel does not reach the gateway by the interface",
        "the addresses and the state of the interface",
    ),
    ("Unexpected", "the kernel has a route of this agent that is not to be there", "it is removed"),
    ("Refused", "the kernel rejected the route", "the message has its error"),
)
