"""The configuration of the dialect's instances in FRR's words: desired and running in one form.

For people, and for tools that look for FRR's lines in an FRRNodeState: what FRR has a command for is
that command, and everything else is a comment. No program reads it as a configuration. Both texts are
written from the speaker's own values, so that they are equal where everything is applied, but for what
is installed in the kernel. No password is in them, and no route: `waggle routes` has those. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from reconcilers.apply.to_speaker import instance_config, peer_config
from reconcilers.dialect.node_object import RunningInstance
from reconcilers.kernel_state import KernelNextHops, KernelSettings, KernelTable
from reconcilers.model import Instance, PasswordRef, Peer
from reconcilers.model import PrefixRule as IntentRule
from resources.enumeration import counted
from speaker.api import (
    BfdProfile,
    DynamicPeerConfig,
    InstanceConfig,
    InvalidConfig,
    PeerConfig,
    Policy,
    PrefixRule,
)
from speaker.api.config import Import
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST, Family, parsed_prefix

MAX_VALUES: Final = 20
"""Prefixes of one list."""
_FAMILIES: Final = {IPV4_UNICAST: "ipv4 unicast", IPV6_UNICAST: "ipv6 unicast"}
MAX_CHARACTERS: Final = 128 * 1024
"""Of a text: an object of the API has at most some 1.5 MB, and there are two texts."""
_ANY_PASSWORD: Final = b"-"

AnyPeer = PeerConfig | DynamicPeerConfig


def desired_text(instances: Iterable[Instance], peers: Iterable[Peer]) -> str:
    """Return the configuration that intent rows give, as text in FRR's words."""
    return _limited(_desired(instances, peers))


def running_text(
    instances: Mapping[str, RunningInstance],
    of_kernel: Mapping[str, Sequence[str]],
    redistributed: Mapping[str, Sequence[str]],
) -> str:
    """Return the configuration that the speaker runs, as text in FRR's words.

    By instance: ``of_kernel``, what is installed in the kernel; ``redistributed``, what of the kernel
    it originates (`Instance.redistributes`).
    """
    return _limited(_running(instances, of_kernel, redistributed))


def kernel_lines(
    instance: str,
    tables: Iterable[KernelTable],
    next_hops: Iterable[KernelNextHops],
    settings: KernelSettings | None = None,
) -> Iterator[str]:
    """Yield the configuration text of what is in the kernel, and what keeps all routes from it."""
    own = [table for table in tables if instance in table.instances]
    if own and settings is not None:
        yield from (f"kernel: {problem}" for problem in settings.problems)
        equal = ", AS paths of equal length" if settings.multipath_relax else ""
        most = counted(settings.multipath, "next hop")
        yield f"kernel protocol {settings.protocol}, at most {most}{equal}"
    for table in own:
        failed = "".join(f", {number} {reason}" for reason, number in table.failed)
        where = f"kernel table {table.table} {table.family} metric {table.metric}"
        yield f"{where}: {counted(table.installed, 'route')} installed{failed}"
    of_instance = [row for row in next_hops if row.instance == instance]
    for row in of_instance[:MAX_VALUES]:
        gateways = " ".join(row.next_hops) or row.problem or "blackhole"
        yield f"kernel next hops: {gateways}"
    if len(of_instance) > MAX_VALUES:
        yield f"and {counted(len(of_instance) - MAX_VALUES, 'more set')} of next hops"


class _Rejected(NamedTuple):
    """A neighbour that the speaker rejects."""

    end: str
    reason: str


def _desired(instances: Iterable[Instance], peers: Iterable[Peer]) -> Iterator[str]:
    of_instance: dict[str, list[Peer]] = {}
    for peer in peers:
        of_instance.setdefault(peer.instance, []).append(peer)
    for row in sorted(instances, key=lambda row: (row.vrf or "", row.name)):
        try:
            config = instance_config(row)
        except InvalidConfig as error:
            yield _router_line(row.local_asn, row.vrf)
            yield f" ! cannot be applied: {error}"
            continue
        given = sorted(of_instance.get(row.name, ()), key=lambda peer: peer.name)
        neighbors = [_desired_peer(peer, row.local_asn) for peer in given]
        yield from _router(config, neighbors, row.redistributes)


def _running(
    instances: Mapping[str, RunningInstance],
    of_kernel: Mapping[str, Sequence[str]],
    redistributed: Mapping[str, Sequence[str]],
) -> Iterator[str]:
    for config, peers in sorted(
        instances.values(), key=lambda pair: (pair[0].vrf or "", pair[0].name)
    ):
        neighbors = [peers[name] for name in sorted(peers)]
        yield from _router(config, neighbors, redistributed.get(config.name, ()))
        yield from (f"! {line}" for line in of_kernel.get(config.name, ()))


def _desired_peer(peer: Peer, asn: int) -> PeerConfig | _Rejected:
    def password_of(_: PasswordRef) -> bytes:
        return _ANY_PASSWORD

    try:
        return peer_config(replace(peer, held_password=None), asn, password_of)
    except InvalidConfig as error:
        return _Rejected(peer.address or peer.interface or peer.name, str(error))


def _router_line(asn: int, vrf: str | None) -> str:
    return f"router bgp {asn} vrf {vrf}" if vrf else f"router bgp {asn}"


def _router(
    config: InstanceConfig, peers: Sequence[AnyPeer | _Rejected], redistributed: Sequence[str]
) -> Iterator[str]:
    yield _router_line(config.local_asn, config.vrf)
    yield f" bgp router-id {config.router_id}"
    for _, port in sorted(set(config.listen))[:1]:
        yield f" ! listens on port {port}"
    for peer in peers:
        if isinstance(peer, _Rejected):
            yield f" ! neighbor {peer.end}: cannot be applied: {peer.reason}"
        else:
            yield from _neighbor(peer)
    for text in redistributed[:MAX_VALUES]:
        yield f" ! {text}"
    applied = [peer for peer in peers if not isinstance(peer, _Rejected)]
    originated: dict[Family, list[str]] = {family: [] for family in _FAMILIES}
    for text in sorted(config.originate):
        originated[parsed_prefix(text)[0]].append(text)
    for family, words in _FAMILIES.items():
        lines = list(_networks(originated[family]))
        for imported in config.imports:
            accepted = "" if imported.import_ == "all" else f" ! {_import(imported.import_)}"
            lines.append(f"import vrf {imported.instance}{accepted}")
        carried = [peer for peer in applied if family in peer.families]
        lines += [f"neighbor {_end(peer)} activate" for peer in carried]
        lines += [line for peer in carried for line in _allowas_in(peer)]
        if lines:
            yield f" address-family {words}"
            yield from (f"  {line}" for line in lines)
            yield " exit-address-family"
    yield "exit"


def _networks(prefixes: Sequence[str]) -> Iterator[str]:
    for text in prefixes[:MAX_VALUES]:
        yield f"network {text}"
    if len(prefixes) > MAX_VALUES:
        yield f"! and {counted(len(prefixes) - MAX_VALUES, 'more network')}"


def _allowas_in(peer: AnyPeer) -> Iterator[str]:
    if peer.allowas_in_origin:
        yield f"neighbor {_end(peer)} allowas-in origin"
    if peer.allowas_in:
        yield f"neighbor {_end(peer)} allowas-in {peer.allowas_in}"


def _end(peer: AnyPeer) -> str:
    if isinstance(peer, DynamicPeerConfig):
        return peer.prefix
    return peer.address or peer.interface or peer.name


def _neighbor(peer: AnyPeer) -> Iterator[str]:
    neighbor = f"neighbor {_end(peer)}"
    by_interface = " interface" if isinstance(peer, PeerConfig) and peer.address is None else ""
    yield f" {neighbor}{by_interface} remote-as {peer.peer_asn or 'any'}"
    if peer.local_asn is not None:
        yield f" {neighbor} local-as {peer.local_asn} no-prepend replace-as"
    if isinstance(peer, PeerConfig):
        yield f" {neighbor} port {peer.port}"
        if peer.local_address is not None:
            yield f" {neighbor} update-source {peer.local_address}"
    yield f" {neighbor} timers {peer.keepalive_time} {peer.hold_time}"
    yield f" {neighbor} timers connect {peer.connect_retry_time}"
    if peer.ebgp_multihop > 1:
        yield f" {neighbor} ebgp-multihop {peer.ebgp_multihop}"
    if peer.graceful_restart is not None:
        yield f" {neighbor} graceful-restart"
    if peer.bfd is not None:
        yield f" {neighbor} bfd"
        if peer.bfd.name:
            yield f" {neighbor} bfd profile {peer.bfd.name}"
    yield from (f" ! {neighbor}: {text}" for text in _remarks(peer))


def _remarks(peer: AnyPeer) -> Iterator[str]:
    """Yield what FRR has no command of a neighbour for, or one with a secret."""
    if peer.password is not None:
        yield "password set"
    if peer.graceful_restart is not None:
        yield f"restart time {peer.graceful_restart.restart_time}"
    if peer.bfd is not None:
        yield f"bfd {_bfd_settings(peer.bfd)}"
    hops = (peer.next_hop_ipv4, peer.next_hop_ipv6)
    defaults = (peer.default_next_hop_ipv4, peer.default_next_hop_ipv6)
    for what, addresses in (("next hop", hops), ("default next hop", defaults)):
        for address in addresses:
            if address is not None:
                yield f"{what} {address}"
    yield from _accept(peer.import_)
    if peer.disabled_reason is not None:
        yield f"down: {peer.disabled_reason}"


def _bfd_settings(profile: BfdProfile) -> str:
    """Return the values of a profile in the words of FRR's profiles."""
    texts = [
        f"receive-interval {profile.receive_interval}",
        f"transmit-interval {profile.transmit_interval}",
        f"detect-multiplier {profile.detect_multiplier}",
        f"echo-interval {profile.echo_interval}" if profile.echo_mode else "",
        "passive-mode" if profile.passive else "",
        f"minimum-ttl {profile.minimum_ttl}",
    ]
    return ", ".join(filter(None, texts))


def _accept(policy: Import) -> Iterator[str]:
    if not isinstance(policy, Policy):
        yield f"accept {_import(policy)}"
        return
    for term in policy.terms:
        prefixes = term.match.prefixes
        yield f"{term.action} {'all' if prefixes is None else _rules(prefixes)}"


def _import(policy: Import) -> str:
    if isinstance(policy, Policy):
        return f"policy {policy.name}"
    return policy if isinstance(policy, str) else _rules(policy)


def _rules(rules: Sequence[PrefixRule]) -> str:
    shown = [str(IntentRule(rule.prefix, rule.ge, rule.le)) for rule in rules[:MAX_VALUES]]
    return _several(shown, len(rules)) if rules else "none"


def _several(shown: Sequence[str], count: int) -> str:
    more = count - len(shown)
    return f"{', '.join(shown)} and {more} more" if more > 0 else ", ".join(shown)


def _limited(lines: Iterable[str]) -> str:
    kept: list[str] = []
    size = 0
    for line in lines:
        size += len(line.encode()) + 1
        if size > MAX_CHARACTERS:
            kept.append("! and more")
            break
        kept.append(line)
    return "".join(f"{line}\n" for line in kept)
