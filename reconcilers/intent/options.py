"""The options of the neutral intent, for all dialects: draining, and which addresses are advertised."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

import msgspec

from resources.option_declarations import InvalidOption, Options, setting

Drain: TypeAlias = Literal["off", "withdraw", "deprefer"]
DRAIN_TAINTS: Final = ("node.kubernetes.io/unschedulable",)
"""The taint of a cordoned node."""


class IntentOptions(Options, frozen=True):
    """Options of the intent; read by the agent, ``waggle render`` and ``waggle explain``."""

    drain: Annotated[
        Drain,
        setting(
            "routes of a cordoned or tainted node. off: unchanged; withdraw: withdraw all of them; "
            "deprefer: advertise them with GRACEFUL_SHUTDOWN and LOCAL_PREF 0 (RFC 8326)",
            flag="--drain",
        ),
    ] = "off"
    drain_taints: Annotated[
        tuple[str, ...],
        setting(
            "key of a taint that drains the node; repeatable; by default that of a cordoned node",
            flag="--drain-taint",
            metavar="KEY",
        ),
    ] = DRAIN_TAINTS
    drain_prepend: Annotated[
        int,
        msgspec.Meta(ge=0, le=16),
        setting(
            "with --drain=deprefer: how many more times the local AS is prepended",
            flag="--drain-prepend",
        ),
    ] = 0
    advertise_allow: Annotated[
        tuple[str, ...],
        setting(
            "prefix; repeatable. Of the addresses in externalIPs and ingress status of Services only "
            "those within are advertised; by default all that are not rejected for another reason",
            flag="--advertise-allow",
            metavar="CIDR",
        ),
    ] = ()
    advertise_deny: Annotated[
        tuple[str, ...],
        setting(
            "prefix; repeatable. No address within, of externalIPs or ingress status of Services, is "
            "advertised",
            flag="--advertise-deny",
            metavar="CIDR",
        ),
    ] = ()
    advertise_permit: Annotated[
        tuple[str, ...],
        setting(
            "prefix; repeatable. Addresses of Services within are advertised although a Node, a Pod, "
            "the Kubernetes API, another Service, a peer, a next hop or a default gateway has them",
            flag="--advertise-permit",
            metavar="CIDR",
        ),
    ] = ()
    advertise_namespaces: Annotated[
        Literal["any", "annotated"],
        setting(
            "namespaces whose Services may use addresses that no annotation "
            "waggle.dev/service-addresses of the Namespace grants. any: Namespaces without it; "
            "annotated: none",
            flag="--advertise-namespaces",
        ),
    ] = "any"
    service_cidr: Annotated[
        tuple[str, ...],
        setting(
            "range of cluster IPs; repeatable. No external IP within is advertised. For clusters "
            "without ServiceCIDR objects, which have the ranges since Kubernetes 1.33",
            flag="--service-cidr",
            metavar="CIDR",
        ),
    ] = ()
    advertise_min_length_ipv4: Annotated[
        int,
        msgspec.Meta(ge=0, le=32),
        setting(
            "shortest IPv4 aggregate of addresses of Services that is advertised",
            flag="--advertise-min-length-ipv4",
        ),
    ] = 8
    advertise_min_length_ipv6: Annotated[
        int,
        msgspec.Meta(ge=0, le=128),
        setting(
            "shortest IPv6 aggregate of addresses of Services that is advertised",
            flag="--advertise-min-length-ipv6",
        ),
    ] = 16
    advertise_service_limit: Annotated[
        int,
        msgspec.Meta(ge=0),
        setting(
            "addresses in externalIPs and ingress status of one Service that are advertised, the first "
            "ones of its lists; 0: no limit",
            flag="--advertise-service-limit",
        ),
    ] = 64
    advertise_namespace_limit: Annotated[
        int,
        msgspec.Meta(ge=0),
        setting(
            "addresses in externalIPs of the Services of one namespace that are advertised, from "
            "the oldest Services; 0: no limit",
            flag="--advertise-namespace-limit",
        ),
    ] = 1000
    advertise_namespace_limit_ingress: Annotated[
        bool,
        setting(
            "addresses in the ingress status count towards --advertise-namespace-limit as well",
            flag="--advertise-namespace-limit-ingress",
        ),
    ] = False
    advertise_peer_limit: Annotated[
        int,
        msgspec.Meta(ge=0),
        setting(
            "prefixes of a family that each peer is sent; addresses of the newest Services wait. 0: no "
            "limit",
            flag="--advertise-peer-limit",
        ),
    ] = 0
    advertise_peer_limits: Annotated[
        tuple[str, ...],
        setting(
            "the same for one peer, by its name, address or interface; repeatable",
            flag="--advertise-limit-of-peer",
            metavar="PEER=N",
        ),
    ] = ()

    def peer_limit(self, *names: str | None) -> int:
        """Return the limit that an option sets for a peer with any of these names; 0: none."""
        limits = dict(map(_peer_limit, self.advertise_peer_limits))
        given = (limits[name] for name in names if name is not None and name in limits)
        return next(given, self.advertise_peer_limit)

    def __post_init__(self) -> None:
        """Check taints, prefixes and the limits of peers. Raises `InvalidOption`."""
        if self.drain_taints != DRAIN_TAINTS:
            # Not imported for --help.
            from resources.label_selectors import is_key

            for text in self.drain_taints:
                if is_key(text):
                    continue
                raise InvalidOption("--drain-taint", f"{text!r} is not the key of a taint")
        for text in self.advertise_peer_limits:
            try:
                _peer_limit(text)
            except ValueError:
                wrong = f"{text!r} is not PEER=N"
                raise InvalidOption("--advertise-limit-of-peer", wrong) from None
        for flag, texts in (
            ("--advertise-allow", self.advertise_allow),
            ("--advertise-deny", self.advertise_deny),
            ("--advertise-permit", self.advertise_permit),
            ("--service-cidr", self.service_cidr),
        ):
            _check_prefixes(flag, texts)


def _check_prefixes(flag: str, texts: tuple[str, ...]) -> None:
    """Check the prefixes of an option. Raises `InvalidOption`."""
    if not texts:
        return
    from resources.addresses import canonical_prefix  # --help needs none of it

    for text in texts:
        try:
            canonical_prefix(text)
        except ValueError as error:
            raise InvalidOption(flag, str(error)) from None


def _peer_limit(text: str) -> tuple[str, int]:
    """Return the name of a peer, and its limit. Raises ValueError."""
    name, _, number = text.rpartition("=")
    if not name or not number.isascii() or not number.isdecimal():
        raise ValueError(text)
    return name, int(number)
