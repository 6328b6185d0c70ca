"""A neighbour of a router: the session, what is advertised to it and what is accepted from it."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from resources.crds.schema_markers import Rule, doc
from resources.empty_fields import empty_is_absent
from resources.frrk8s.limits import Asn, Duration
from resources.meta import Struct
from resources.secret_value import SecretValue

Mode = Literal["all", "filtered"]
PrefixLength = Annotated[int, Meta(ge=1, le=128)]
AllowAsIn = Literal["", "none", "origin", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10"]
"""Whether, and how often, the own AS may be in the AS path of a route; empty: not set."""


class SecretReference(Struct, frozen=True):
    """Names a Secret; the namespace has no effect, it is always the one of FRR-k8s."""

    name: Annotated[str, doc("The name of the Secret.")] = ""
    namespace: Annotated[str, doc("Has no effect: the namespace is that of FRR-k8s.")] = ""


class AllowedOut(Struct, frozen=True):
    """Prefixes that are advertised."""

    prefixes: Annotated[
        tuple[str, ...],
        doc(
            "The prefixes that are advertised, each of the router's or of a VRF's that it imports. "
            "Without effect with mode all."
        ),
    ] = ()
    mode: Annotated[
        Mode,
        doc(
            "filtered: the listed prefixes are advertised. all: all prefixes that this object gives "
            "the router, and the prefixes of the VRFs that it imports."
        ),
    ] = "filtered"


class LocalPrefPrefixes(Struct, frozen=True):
    """Prefixes with a local preference."""

    local_pref: Annotated[
        int,
        Meta(ge=0, le=4294967295),
        doc("The local preference; sent to iBGP peers only (RFC 4271 section 5.1.5)."),
    ] = 0
    prefixes: Annotated[
        tuple[str, ...], Meta(min_length=1), doc("Prefixes that are advertised to the neighbour.")
    ] = ()


class CommunityPrefixes(Struct, frozen=True):
    """Prefixes with a community."""

    community: Annotated[
        str,
        doc(
            "A community (RFC 1997) as two numbers of 16 bits, 65001:100, or a large one (RFC 8092) "
            "as large:65001:1:100."
        ),
    ] = ""
    prefixes: Annotated[
        tuple[str, ...], Meta(min_length=1), doc("Prefixes that are advertised to the neighbour.")
    ] = ()


class NextHop(Struct, frozen=True):
    """The next hop of advertised routes, by family."""

    ipv4: Annotated[
        str | None,
        doc(
            "The next hop of IPv4 prefixes, in place of the address of the session.",
            {"format": "ipv4"},
        ),
    ] = None
    ipv6: Annotated[
        str | None,
        doc(
            "The global next hop of IPv6 prefixes, in place of the address of the session.",
            {"format": "ipv6"},
        ),
    ] = None


class Advertise(Struct, frozen=True):
    """The routes that are advertised to a neighbour."""

    allowed: Annotated[AllowedOut, doc("The prefixes that are advertised.")] = msgspec.field(
        default_factory=AllowedOut
    )
    with_local_pref: Annotated[
        tuple[LocalPrefPrefixes, ...], doc("Local preferences of advertised prefixes.")
    ] = ()
    with_community: Annotated[
        tuple[CommunityPrefixes, ...], doc("Communities of advertised prefixes.")
    ] = ()
    next_hop: Annotated[NextHop, doc("The next hops of advertised prefixes.")] = msgspec.field(
        default_factory=NextHop
    )


class PrefixSelector(Struct, frozen=True):
    """A prefix, and the accepted lengths of more specific prefixes."""

    prefix: Annotated[str, doc("The prefix.")] = ""
    le: Annotated[
        PrefixLength | None,
        doc(
            "The greatest accepted length; without one the longest with ge, else the prefix's own."
        ),
    ] = None
    ge: Annotated[PrefixLength | None, doc("The smallest accepted length.")] = None


class AllowedIn(Struct, frozen=True):
    """Prefixes that are accepted."""

    prefixes: Annotated[
        tuple[PrefixSelector, ...], doc("What is accepted. Without effect with mode all.")
    ] = ()
    mode: Annotated[
        Mode,
        doc(
            "filtered: what the list selects is accepted. all: everything that the agent does not "
            "always block."
        ),
    ] = "filtered"


class Receive(Struct, frozen=True):
    """The routes that are accepted from a neighbour."""

    allowed: Annotated[AllowedIn, doc("The prefixes that are accepted.")] = msgspec.field(
        default_factory=AllowedIn
    )


class Neighbor(Struct, frozen=True):
    """One neighbour of a router."""

    cel: ClassVar[tuple[Rule, ...]] = (
        # Apart: an API server limits the estimated cost of each rule.
        Rule(
            "!has(self.connectTime) || duration(self.connectTime).getSeconds() >= 1",
            "is not from 1 to 65535 seconds",
            "connectTime",
        ),
        Rule(
            "!has(self.connectTime) || duration(self.connectTime).getSeconds() <= 65535",
            "is not from 1 to 65535 seconds",
            "connectTime",
        ),
        Rule(
            "!has(self.connectTime) || duration(self.connectTime).getMilliseconds() % 1000 == 0",
            "is not a whole number of seconds",
            "connectTime",
        ),
    )
    asn: Annotated[
        Annotated[int, Meta(ge=0, le=4294967295)] | None,
        doc("The AS number of the neighbour; either this or dynamicASN."),
    ] = None
    dynamic_asn: Annotated[
        Literal["internal", "external"] | None,
        doc("internal: the AS number of the router. external: any other number."),
    ] = None
    local_asn: Annotated[
        Asn | None,
        doc(
            "The AS number that this neighbour sees in place of the router's, and it alone "
            "(no-prepend, replace-as)."
        ),
    ] = None
    allow_as_in: Annotated[
        AllowAsIn,
        doc(
            "Whether routes with the own AS in the AS path are accepted. none: no, and no other "
            "object may accept them. origin: where the path ends with it. A number: where the path "
            "has it that often at most. Empty: no, unless another object accepts them."
        ),
    ] = ""
    sourceaddress: Annotated[
        str,
        doc("The address of this node that the session is opened from, or an interface with it."),
    ] = ""
    address: Annotated[
        str, doc("The IPv4 or IPv6 address of the neighbour; either this or interface.")
    ] = ""
    interface: Annotated[
        str, doc("The interface on which the neighbour's link-local address is discovered.")
    ] = ""
    port: Annotated[
        Annotated[int, Meta(ge=0, le=16384)] | None, doc("The neighbour's TCP port; 179.")
    ] = None
    password: Annotated[
        SecretValue | None, doc("The TCP MD5 password (RFC 2385); up to 80 octets.")
    ] = None
    password_secret: Annotated[
        SecretReference,
        doc(
            "A Secret of type kubernetes.io/basic-auth whose key password is the TCP MD5 password."
        ),
    ] = msgspec.field(default_factory=SecretReference)
    hold_time: Annotated[
        Duration | None,
        doc("The hold time, in whole seconds: 0, or at least 3. With keepaliveTime. 180 s."),
    ] = None
    keepalive_time: Annotated[
        Duration | None, doc("The keepalive time; not above holdTime. With holdTime. 60 s.")
    ] = None
    connect_time: Annotated[
        Duration | None, doc("The pause between attempts to connect. 60 s.")
    ] = None
    ebgp_multi_hop: Annotated[bool, doc("Whether the neighbour is several hops away.")] = False
    bfd_profile: Annotated[str, doc("The name of a BFD profile of this object.")] = ""
    enable_graceful_restart: Annotated[
        bool, doc("Whether routes are kept while a side restarts (RFC 4724).")
    ] = False
    disable_mp: Annotated[bool, doc("Has no effect.")] = msgspec.field(
        name="disableMP", default=False
    )
    dual_stack_address_family: Annotated[
        bool, doc("Whether both unicast families are exchanged over the session.")
    ] = False
    address_families: Annotated[
        tuple[Literal["unicast", "evpn"], ...],
        Meta(max_length=2),
        doc("The families of the session; unicast where none is given.", {"default": ["unicast"]}),
    ] = ()
    to_advertise: Annotated[Advertise, doc("What is advertised; nothing by default.")] = (
        msgspec.field(default_factory=Advertise)
    )
    to_receive: Annotated[Receive, doc("What is accepted; nothing by default.")] = msgspec.field(
        default_factory=Receive
    )

    def __post_init__(self) -> None:
        """Take an empty password as none."""
        empty_is_absent(self, "password")
