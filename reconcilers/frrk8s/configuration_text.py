"""The configuration of the dialect's instances as text, for people: desired and running in one form.

Both are written from the speaker's own values, so that they are equal where everything is applied. No
password is in it, and no route: `waggle routes` has those. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from reconcilers.apply.convert import instance_config, peer_config
from reconcilers.dialect.node_object import RunningInstance
from reconcilers.model import Instance, PasswordRef, Peer
from reconcilers.model import PrefixRule as IntentRule
from speaker.api import (
    DynamicPeerConfig,
    InstanceConfig,
    InvalidConfig,
    PeerConfig,
    Policy,
    PrefixRule,
)
from speaker.api.config import Import

MAX_VALUES: Final = 20
"""Prefixes of one line."""
MAX_CHARACTERS: Final = 128 * 1024
"""Of a text: an object of the API has at most some 1.5 MB, and there are two texts."""
_ANY_PASSWORD: Final = b"-"

AnyPeer = PeerConfig | DynamicPeerConfig


def desired_text(instances: Iterable[Instance], peers: Iterable[Peer]) -> str:
    """Return the configuration that intent rows give."""
    return _limited(_desired(instances, peers))


def running_text(instances: Mapping[str, RunningInstance]) -> str:
    """Return the configuration that the speaker holds."""
    return _limited(_running(instances))


def _desired(instances: Iterable[Instance], peers: Iterable[Peer]) -> Iterator[str]:
    of_instance: dict[str, list[Peer]] = {}
    for peer in peers:
        of_instance.setdefault(peer.instance, []).append(peer)
    for row in sorted(instances, key=lambda row: (row.vrf or "", row.name)):
        try:
            yield from _router(instance_config(row))
        except InvalidConfig as error:
            yield f"router {row.vrf or 'default'}"
            yield f"  cannot be applied: {error}"
            continue
        for peer in sorted(of_instance.get(row.name, ()), key=lambda peer: peer.name):
            yield from _desired_neighbor(peer, row.local_asn)


def _running(instances: Mapping[str, RunningInstance]) -> Iterator[str]:
    for config, peers in sorted(
        instances.values(), key=lambda found: (found[0].vrf or "", found[0].name)
    ):
        yield from _router(config)
        for name in sorted(peers):
            yield from _neighbor(peers[name])


def _desired_neighbor(peer: Peer, asn: int) -> Iterator[str]:
    def password_of(_: PasswordRef) -> bytes:
        return _ANY_PASSWORD

    try:
        yield from _neighbor(peer_config(replace(peer, held_password=None), asn, password_of))
    except InvalidConfig as error:
        yield f"  neighbor {peer.address or peer.interface}"
        yield f"    cannot be applied: {error}"


def _router(config: InstanceConfig) -> Iterator[str]:
    yield f"router {config.vrf or 'default'}"
    yield f"  as {config.local_asn}"
    yield f"  id {config.router_id}"
    for _, port in sorted(set(config.listen))[:1]:
        yield f"  listen {port}"
    if config.originate:
        shown = sorted(config.originate)[:MAX_VALUES]
        yield f"  originate {_several(shown, len(config.originate))}"
    for one in config.imports:
        yield f"  import {one.instance}: {_import(one.import_)}"


def _neighbor(peer: AnyPeer) -> Iterator[str]:
    if isinstance(peer, DynamicPeerConfig):
        yield f"  neighbors {peer.prefix}"
    else:
        yield f"  neighbor {peer.address or peer.interface}"
    yield f"    as {peer.peer_asn or 'any'}"
    if peer.local_asn is not None:
        yield f"    local-as {peer.local_asn}"
    if isinstance(peer, PeerConfig):
        yield f"    port {peer.port}"
        if peer.local_address is not None:
            yield f"    source-address {peer.local_address}"
    times = (peer.hold_time, peer.keepalive_time, peer.connect_retry_time)
    yield "    hold-time {} keepalive-time {} connect-time {}".format(*times)
    if peer.ebgp_multihop > 1:
        yield f"    ebgp-multihop {peer.ebgp_multihop}"
    if peer.password is not None:
        yield "    password set"
    if peer.graceful_restart is not None:
        yield f"    graceful-restart {peer.graceful_restart.restart_time}"
    if peer.bfd is not None:
        yield f"    bfd-profile {peer.bfd.name or 'default'}, without effect"
    yield f"    families {', '.join(map(str, peer.families))}"
    for hop in (peer.next_hop_ipv4, peer.next_hop_ipv6):
        if hop is not None:
            yield f"    next-hop {hop}"
    for hop in (peer.default_next_hop_ipv4, peer.default_next_hop_ipv6):
        if hop is not None:
            yield f"    default-next-hop {hop}"
    yield from (f"    {line}" for line in _accept(peer.import_))
    if peer.disabled_reason is not None:
        yield f"    down: {peer.disabled_reason}"


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
            kept.append("... and more")
            break
        kept.append(line)
    return "".join(f"{line}\n" for line in kept)
