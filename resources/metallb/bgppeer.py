"""BGPPeer: a session that nodes open to a router. v1beta2, and v1beta1 of manifests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final, Literal, NamedTuple

import msgspec
from msgspec import Meta

from resources.addresses import (
    address_errors,
    canonical_address,
    interface_errors,
    router_id_errors,
)
from resources.crds.schema_markers import ATOMIC_MAP, SchemaPart, doc
from resources.durations import NANOSECONDS, duration_errors, parse_duration
from resources.empty_fields import empty_is_absent
from resources.errors import FieldError
from resources.label_selectors import LabelSelector, LabelSelectorRequirement
from resources.meta import Resource, Struct
from resources.metallb.field_rules import (
    AnyAsn,
    selectors_errors,
)
from resources.metallb.objects import MetalLBObject
from resources.passwords import password_error
from resources.secret_value import SecretValue

DEFAULT_PORT: Final = 179
DEFAULT_VRF: Final = "default"
_MAX_SECONDS: Final = 65535
_IMMUTABLE: SchemaPart = {
    "x-kubernetes-validations": [
        {
            "rule": "self == oldSelf",
            "message": "EnableGracefulRestart cannot be changed after creation",
        }
    ]
}
_CONNECT_TIME: SchemaPart = {
    "x-kubernetes-validations": [
        {
            "rule": "duration(self).getSeconds() >= 1 && duration(self).getSeconds() <= 65535",
            "message": "connect time should be between 1 seconds to 65535",
        },
        {
            "rule": "duration(self).getMilliseconds() % 1000 == 0",
            "message": "connect time should contain a whole number of seconds",
        },
    ]
}


class SecretReference(Struct, frozen=True):
    """v1.SecretReference; the namespace is MetalLB's, whatever is written."""

    name: Annotated[str, doc("The name of the Secret, in the namespace of MetalLB.")] = ""
    namespace: Annotated[str, doc("Has no effect.")] = ""


class BGPPeerSpec(Struct, frozen=True):
    """The specification of v1beta2."""

    my_asn: Annotated[AnyAsn, doc("The AS number of the node; not 0.")]
    peer_asn: Annotated[
        AnyAsn, doc("The AS number of the router. Exactly one of peerASN and dynamicASN is given.")
    ] = 0
    dynamic_asn: Annotated[
        Literal["internal", "external"] | None,
        doc("The router may have any AS number that is, or is not, that of the node."),
    ] = None
    local_asn: Annotated[
        Annotated[int, Meta(ge=1, le=4294967295)] | None,
        doc("An AS number that the node has in this session only, in place of myASN."),
    ] = None
    peer_address: Annotated[
        str,
        doc(
            "The address of the router. Exactly one of peerAddress and interface is given.",
        ),
    ] = ""
    interface: Annotated[
        str, doc("The interface whose neighbour is the router (RFC 5549, unnumbered).")
    ] = ""
    source_address: Annotated[str, doc("The address from which the session is opened.")] = ""
    peer_port: Annotated[
        Annotated[int, Meta(ge=1, le=16384)], doc("The TCP port on which the router listens.")
    ] = DEFAULT_PORT
    hold_time: Annotated[
        str | None,
        doc(
            "How long the router may be silent, at least 3s; 0s: for ever. Without it, three times "
            "keepaliveTime; without both, 180 seconds."
        ),
    ] = None
    keepalive_time: Annotated[
        str | None,
        doc("How often a KEEPALIVE is sent. Without it, a third of holdTime; without both, 60s."),
    ] = None
    connect_time: Annotated[
        str | None, doc("The pause between two attempts to connect.", _CONNECT_TIME)
    ] = None
    router_id: Annotated[
        str, doc("The BGP identifier of the node, an IPv4 address; the same at all peers.")
    ] = msgspec.field(default="", name="routerID")
    node_selectors: Annotated[
        tuple[LabelSelector, ...],
        doc("The nodes that have the session: one selector is enough. None selects all nodes."),
    ] = ()
    password: Annotated[
        SecretValue | None, doc("The TCP MD5 password (RFC 2385). A Secret is better.")
    ] = None
    password_secret: Annotated[
        SecretReference,
        doc(
            "A Secret of type kubernetes.io/basic-auth whose key password is the password.",
            ATOMIC_MAP,
        ),
    ] = msgspec.field(default_factory=SecretReference)
    bfd_profile: Annotated[str, doc("The name of a BFDProfile.")] = ""
    enable_graceful_restart: Annotated[
        bool,
        doc("Whether the router keeps our routes while we restart (RFC 4724).", _IMMUTABLE),
    ] = False
    ebgp_multi_hop: Annotated[bool, doc("Whether the router may be more than one hop away.")] = (
        False
    )
    vrf: Annotated[str, doc("The VRF that has the session; empty is the default VRF.")] = ""
    disable_mp: Annotated[bool, doc("Deprecated, and without effect.")] = msgspec.field(
        default=False, name="disableMP"
    )
    dual_stack_address_family: Annotated[
        bool, doc("Whether the session carries both families, whatever its address.")
    ] = False

    def __post_init__(self) -> None:
        """Take an empty password as none."""
        empty_is_absent(self, "password")


class BGPPeer(MetalLBObject, frozen=True, kw_only=True):
    """One peer."""

    spec: BGPPeerSpec


def vrf_of(peer: BGPPeer) -> str:
    """Return the VRF of a BGPPeer; empty for the default one, however it is written."""
    return "" if peer.spec.vrf == DEFAULT_VRF else peer.spec.vrf


def end_of(peer: BGPPeer) -> str:
    """Return the address of a BGPPeer in canonical form, or its interface."""
    return (
        canonical_address(peer.spec.peer_address) if peer.spec.peer_address else peer.spec.interface
    )


class Timers(NamedTuple):
    """The timers of a peer in whole seconds, as they are used; None where they are not given."""

    hold: int | None
    keepalive: int | None
    connect: int | None


def timers(spec: BGPPeerSpec) -> Timers:
    """Return the timers of a BGPPeer: one of hold and keepalive time gives the other.

    Raises `ValueError` for texts that are no durations.
    """
    hold, keepalive = _hold_and_keepalive(spec)
    connect = None if spec.connect_time is None else parse_duration(spec.connect_time)
    return Timers(*(None if t is None else t // NANOSECONDS for t in (hold, keepalive, connect)))


def _hold_and_keepalive(spec: BGPPeerSpec) -> tuple[int | None, int | None]:
    """Return both in nanoseconds. Source: MetalLB internal/config/config.go, parseTimers."""
    hold = None if spec.hold_time is None else parse_duration(spec.hold_time)
    keepalive = None if spec.keepalive_time is None else parse_duration(spec.keepalive_time)
    if hold is not None and keepalive is None:
        keepalive = hold // 3
    elif keepalive is not None and hold is None:
        hold = keepalive * 3
    return hold, keepalive


def peer_errors(peer: BGPPeer) -> Iterator[FieldError]:
    """Yield the rules that a MetalLB BGPPeer breaks, each on its own."""
    spec = peer.spec
    yield from _as_errors(spec)
    yield from _address_errors(spec)
    yield from router_id_errors(spec.router_id or None, "spec.routerID")
    yield from _timer_errors(spec)
    yield from selectors_errors(spec.node_selectors, "spec.nodeSelectors")
    yield from _password_errors(spec)
    if spec.ebgp_multi_hop and spec.peer_asn == spec.my_asn:
        yield FieldError("spec.ebgpMultiHop", f"the peer is internal: both AS are {spec.my_asn}")


def _as_errors(spec: BGPPeerSpec) -> Iterator[FieldError]:
    if spec.my_asn == 0:
        yield FieldError("spec.myASN", "AS 0 is reserved (RFC 7607)")
    if spec.peer_asn and spec.dynamic_asn:
        yield FieldError("spec.dynamicASN", f"peerASN is given as well ({spec.peer_asn})")
    if not spec.peer_asn and not spec.dynamic_asn:
        yield FieldError("spec.peerASN", "peerASN or dynamicASN is required")
    local = spec.local_asn
    if local is None:
        return
    path = "spec.localASN"
    if spec.dynamic_asn == "internal" or (spec.peer_asn and spec.peer_asn == spec.my_asn):
        yield FieldError(path, f"{local}: an internal peer has no other local AS")
    elif local == spec.my_asn:
        yield FieldError(path, f"{local} is myASN")
    elif local == spec.peer_asn:
        yield FieldError(path, f"{local} is peerASN")


def _address_errors(spec: BGPPeerSpec) -> Iterator[FieldError]:
    if spec.peer_address and spec.interface:
        text = f"peerAddress is given as well ({spec.peer_address[:64]!r})"
        yield FieldError("spec.interface", text)
    if not spec.peer_address and not spec.interface:
        yield FieldError("spec.peerAddress", "peerAddress or interface is required")
    if spec.peer_address:
        yield from address_errors(spec.peer_address, "spec.peerAddress", unicast=True)
    if spec.interface:
        yield from interface_errors(spec.interface, "spec.interface")
    if spec.vrf:
        yield from interface_errors(spec.vrf, "spec.vrf")
    if spec.source_address:
        path = "spec.sourceAddress"
        errors = list(address_errors(spec.source_address, path, unicast=True))
        yield from errors
        of_session = spec.peer_address or spec.source_address
        if not errors and (":" in spec.source_address) != (":" in of_session):
            text = f"{spec.source_address} is not of the family of {of_session[:64]}"
            yield FieldError(path, text)


def _timer_errors(spec: BGPPeerSpec) -> Iterator[FieldError]:
    errors = [
        *duration_errors(spec.hold_time, "spec.holdTime"),
        *duration_errors(spec.keepalive_time, "spec.keepaliveTime"),
    ]
    yield from errors
    if not errors:
        yield from _hold_errors(spec)
    connect = list(duration_errors(spec.connect_time, "spec.connectTime"))
    yield from connect
    if spec.connect_time is not None and not connect:
        seconds, rest = divmod(parse_duration(spec.connect_time), NANOSECONDS)
        if rest or not 1 <= seconds <= _MAX_SECONDS:
            text = f"{spec.connect_time!r} is not a whole number of seconds from 1 to 65535"
            yield FieldError("spec.connectTime", text)


def _hold_errors(spec: BGPPeerSpec) -> Iterator[FieldError]:
    hold, keepalive = _hold_and_keepalive(spec)
    if hold is None or keepalive is None:
        return
    seconds = hold // NANOSECONDS
    if hold < 0 or seconds in (1, 2) or seconds > _MAX_SECONDS:
        path, given = "spec.holdTime", f"{spec.hold_time!r}"
        if spec.hold_time is None:
            path, given = (
                "spec.keepaliveTime",
                f"a hold time of three times {spec.keepalive_time!r}",
            )
        text = f"{given} is neither 0 nor from 3 s to 65535 s (RFC 4271 section 4.2)"
        yield FieldError(path, text)
    elif keepalive < 0 or keepalive > hold:
        text = f"{spec.keepalive_time!r} is negative, or longer than the hold time"
        yield FieldError("spec.keepaliveTime", text)


def _password_errors(spec: BGPPeerSpec) -> Iterator[FieldError]:
    """Yield the rules of passwords; no message has anything of one."""
    password, given = spec.password, spec.password is not None
    if password is not None and password.known:
        reason = password_error(password.reveal())
        if reason is not None:
            yield FieldError("spec.password", f"{reason} (TCP MD5, RFC 2385)")
    if given and spec.password_secret.name:
        yield FieldError("spec.passwordSecret", "password is given as well")
    if spec.interface:
        for is_given, name in ((given, "password"), (spec.password_secret.name, "passwordSecret")):
            if is_given:
                text = "a session over an interface, without an address, cannot have a password"
                yield FieldError(f"spec.{name}", text)


# v1beta1


class NodeSelectorRequirement(Struct, frozen=True):
    """An expression of v1beta1, whose list of values is never empty."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: Annotated[tuple[str, ...], Meta(min_length=1)]


class NodeSelectorV1Beta1(Struct, frozen=True):
    """A selector of v1beta1."""

    match_labels: dict[str, str] = msgspec.field(default_factory=dict)
    match_expressions: tuple[NodeSelectorRequirement, ...] = ()


class BGPPeerSpecV1Beta1(Struct, frozen=True):
    """The specification of v1beta1; 0 is the default port."""

    my_asn: AnyAsn
    peer_asn: AnyAsn
    peer_address: str
    source_address: str = ""
    peer_port: Annotated[int, Meta(ge=0, le=16384)] = 0
    hold_time: str | None = None
    keepalive_time: str | None = None
    router_id: str = msgspec.field(default="", name="routerID")
    node_selectors: tuple[NodeSelectorV1Beta1, ...] = ()
    password: SecretValue | None = None
    bfd_profile: str = ""
    ebgp_multi_hop: bool = False


class BGPPeerV1Beta1(Resource, frozen=True):
    """One peer of v1beta1."""

    spec: BGPPeerSpecV1Beta1

    @property
    def present(self) -> BGPPeer:
        """The same BGPPeer of v1beta2; timers that are absent stay absent."""
        spec = self.spec
        return BGPPeer(
            metadata=self.metadata,
            spec=BGPPeerSpec(
                my_asn=spec.my_asn,
                peer_asn=spec.peer_asn,
                peer_address=spec.peer_address,
                source_address=spec.source_address,
                peer_port=spec.peer_port or DEFAULT_PORT,
                hold_time=spec.hold_time,
                keepalive_time=spec.keepalive_time,
                router_id=spec.router_id,
                node_selectors=tuple(map(_selector, spec.node_selectors)),
                password=spec.password,
                bfd_profile=spec.bfd_profile,
                ebgp_multi_hop=spec.ebgp_multi_hop,
            ),
        )


def _selector(old: NodeSelectorV1Beta1) -> LabelSelector:
    return LabelSelector(
        match_labels=old.match_labels,
        match_expressions=tuple(
            LabelSelectorRequirement(key=r.key, operator=r.operator, values=r.values)
            for r in old.match_expressions
        ),
    )
