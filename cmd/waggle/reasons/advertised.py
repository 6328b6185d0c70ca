"""Why a route is advertised to a peer, or is not: words, meanings, remedies."""

from __future__ import annotations

from typing import Final

_ADDRESS = "another address; `waggle docs service-addresses` has all that are never advertised"
_ALLOW = "the option of the agents or the annotation of the Namespace that WHY names"

REASONS: Final[tuple[tuple[str, str, str], ...]] = (
    ("Advertised", "the route is advertised; ADVERTISED has `as PREFIX` if an aggregate is", ""),
    (
        "ByObjects",
        "the objects of the cluster advertise it; no agent has answered, WHY has the session's status",
        "`waggle explain --node NAME` reads from the agent; `waggle doctor` why it is silent",
    ),
    (
        "NoPeers",
        "no configuration selects the node",
        "compare the node selectors with the labels of the Node; `waggle status` has the problems",
    ),
    (
        "LeftOut",
        "an instance or a peer is not configured: no router ID, address, AS number, PeerConfig ...",
        "correct the field that WHY names",
    ),
    (
        "NoPeerConfig",
        "the PeerConfig of the peer does not exist",
        "create it, or correct the reference",
    ),
    (
        "NoAdvertisements",
        "the family has no selector for Advertisements; in v1 the virtual router exports nothing",
        "add `advertisements` to the family of the PeerConfig; in v1 `exportPodCIDR` or a selector",
    ),
    (
        "NoAdvertisement",
        "no Advertisement has the labels that the family selects",
        "label an Advertisement, or change the selector",
    ),
    (
        "Family",
        "the peer is not configured for the family of the prefix",
        "add the family to the peer",
    ),
    (
        "FamilyNotConfigured",
        "the neighbor has no family of the prefix",
        "give the neighbor an address of the family, or dual-stack",
    ),
    (
        "FamilyNotEnabled",
        "the node has no pod CIDR and InternalIP of the family",
        "give the Node both; `waggle explain node/NAME`",
    ),
    (
        "NoRoutes",
        "the policy advertises nothing to the peer",
        "add `advertisements` to the policy",
    ),
    (
        "NotAdvertised",
        "the policy does not advertise routes of this type",
        "add the type to `advertisements`",
    ),
    (
        "Drained",
        "the node is drained, and its routes are withdrawn",
        "remove the taint or the label",
    ),
    (
        "NoRule",
        "no selected rule has an entry of this type",
        "add an entry to an Advertisement that the peer selects",
    ),
    (
        "NotInAllowList",
        "no FRRConfiguration allows the prefix towards the neighbor",
        "add it to `toAdvertise.allowed`",
    ),
    (
        "NotInEffect",
        "the prefix is not in effect, as the objects of the node are invalid or conflict",
        "correct the objects that WHY names, or choose `--on-conflict`",
    ),
    (
        "NotInKernel",
        "the kernel has no such route in the table that is redistributed",
        "start the program that installs it; `ip route show table N`",
    ),
    (
        "NoSelector",
        "the rule has no selector, and so selects nothing",
        "add a selector; an empty one selects all",
    ),
    (
        "NotSelected",
        "the selector does not match the labels, or names another interface",
        "compare the labels in WHY",
    ),
    (
        "AddressType",
        "the rule selects addresses of other types of the Service",
        "add the type to `service.addresses`",
    ),
    (
        "NotLoadBalancer",
        "the Service is not of type LoadBalancer",
        "change its type, or advertise its other addresses",
    ),
    (
        "LoadBalancerClass",
        "the Service is of the class of another load balancer",
        "remove `loadBalancerClass`, or choose this one",
    ),
    (
        "Headless",
        "the Service is headless: nothing forwards to its addresses",
        "give it a cluster IP",
    ),
    (
        "NotExposed",
        "a label or annotation of the Service keeps Cilium from forwarding to the address on the node",
        "change the label or annotation in WHY, or the label of the node",
    ),
    ("ExternalName", "the Service is a name, and nothing forwards to it", "use another type"),
    (
        "NoAddress",
        "the object has no such address (yet)",
        "see which controller assigns addresses: pools, quota, its log",
    ),
    ("NoPool", "the pool of the address or of the allocation does not exist", "create the pool"),
    (
        "NotOwner",
        "no BGPAdvertisement for this node selects the pool",
        "add the pool to one, or the node to its `nodeSelectors`",
    ),
    (
        "NoMatchingAdvertisement",
        "no BGPAdvertisement selects the Service by its labels",
        "compare `serviceSelectors` with the labels of the Service",
    ),
    (
        "PeerNotSelected",
        "the BGPAdvertisements of the Service are for other BGPPeers",
        "add the peer to `peers`",
    ),
    (
        "LocalPreferenceConflict",
        "BGPAdvertisements give the Service two local preferences",
        "give them the same one",
    ),
    (
        "Conflict",
        "other objects contradict the route",
        "correct one of the objects that WHY names",
    ),
    (
        "TooManyCommunities",
        "BGPAdvertisements give a prefix of the Service more than 63 communities",
        "remove some",
    ),
    (
        "NetworkUnavailable",
        "the node has the condition NetworkUnavailable",
        "repair the network of the node",
    ),
    (
        "NodeExcluded",
        "the node has the label that excludes it from load balancers",
        "remove `node.kubernetes.io/exclude-from-external-load-balancers`",
    ),
    (
        "NoLocalEndpoint",
        "the traffic policy is Local, and no ready endpoint is on this node",
        "run a Pod of the Service on the node, or choose the policy Cluster",
    ),
    (
        "NoEndpoint",
        "the Service has no ready endpoint anywhere (of MetalLB: no serving endpoint)",
        "see its Pods and their readiness",
    ),
    ("NotAssigned", "the egress IP is assigned to no node", "see the status of the Egress"),
    ("OtherNode", "the egress IP is assigned to another node", ""),
    ("EgressOff", "egress IPs are not advertised", "`--antrea-egress=true`"),
    ("NoInterface", "the node has no interface of that name", "correct the name"),
    ("InterfaceDown", "the interface is down", "set it up: `ip link set NAME up`"),
    (
        "NotAdvertisable",
        "the address is loopback, multicast, link-local ...",
        "use an address that routers forward to",
    ),
    ("Martian", "no router forwards packets to the address", _ADDRESS),
    ("NodeAddress", "it is the address of a node", _ADDRESS),
    ("PeerAddress", "it is the address of a peer", _ADDRESS),
    ("PodAddress", "it is in a pod network", _ADDRESS),
    ("ApiServer", "it is the address of the API server", _ADDRESS),
    ("ClusterIP", "it is in the range of cluster IPs", _ADDRESS),
    ("ServiceRange", "it overlaps a range of cluster IPs", _ADDRESS),
    ("NextHop", "it is the next hop of a route of the node", _ADDRESS),
    ("Gateway", "it is the gateway of a node", _ADDRESS),
    ("Denied", "`--advertise-deny` has the address", _ALLOW),
    ("NotAllowed", "`--advertise-allow` does not have the address", _ALLOW),
    ("NotInNamespace", "the Namespace may not use the address", _ALLOW),
    (
        "AggregateTooShort",
        "the aggregate is shorter than the prefixes that the Service may use",
        "a longer `aggregationLength`",
    ),
    (
        "ServiceLimit",
        "the Service has as many addresses as it may announce",
        "`--service-address-limit`, or fewer addresses",
    ),
    (
        "NamespaceLimit",
        "older Services of the namespace have as many addresses as it may announce",
        "the limit of the namespace, or fewer addresses",
    ),
    (
        "PeerLimit",
        "the peer is sent no more prefixes than its limit, and older Services have them",
        "raise the limit that WHY names, after the one of the peer",
    ),
    ("NoSession", "the session is not configured yet", "`waggle peers` has the problems"),
    ("SessionDown", "the session is not Established", "`waggle peers` has the reason"),
    (
        "FamilyNotNegotiated",
        "the session does not carry the family",
        "configure the family at the peer; `waggle peers -o wide` has its capabilities",
    ),
    (
        "NoNextHop",
        "IPv4 routes over IPv6 have no next hop",
        "an IPv4 address of the session, or the capability Extended Next Hop at the peer (RFC 8950)",
    ),
    ("NotEncodable", "the attributes do not fit a message", "fewer communities"),
    (
        "NotSent",
        "the route has not been sent yet",
        "repeat the command; if it stays: `waggle reconcilers`, `waggle verify`",
    ),
)
