"""One mutant or more of each row of docs/rfcs.md: a text of a module, and what replaces it.

A mutant flips a default, drops a check or changes a number of the rule. The text occurs once in its
module, and the row names the module.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Mutant(NamedTuple):
    """One change of one module."""

    rule: str
    """The first column of the row: ``4271 section 6``."""
    module: str
    text: str
    replaced_by: str
    tests: tuple[str, ...] = ()
    """The tests that have to notice it, the quickest first; docs/rfcs.md has a row's."""


MUTANTS: Final = (
    Mutant("1997", "speaker/rib/export.py", "if NO_ADVERTISE in communities:", "if False:"),
    Mutant(
        "1997",
        "speaker/rib/export.py",
        "if self.ebgp and not self.confederation and NO_EXPORT in communities:",
        "if False:",
    ),
    Mutant(
        "2385",
        "speaker/server/sockets.py",
        "            set_password(sock, address, password)",
        "            pass",
    ),
    Mutant("2545", "speaker/message/multiprotocol.py", "return (16, 32)", "return (4, 16, 32)"),
    Mutant("2545", "speaker/rib/export.py", "if _is_link_local(theirs) and", "if False and"),
    Mutant(
        "2918",
        "speaker/engine/instance/outbound_updates.py",
        "self._refreshes.setdefault(established, set()).add(family)",
        "del established, family",
    ),
    Mutant("2918", "speaker/message/route_refresh.py", "body[2], body[4:])", "0, body[4:])"),
    Mutant("4271 section 4", "speaker/message/open.py", "if version != VERSION:", "if False:"),
    Mutant(
        "4271 section 4",
        "speaker/message/header.py",
        "if data[position : position + 16] != MARKER:",
        "if False:",
    ),
    Mutant("4271 section 5", "speaker/attribute/encode.py", "if attributes.partial:", "if False:"),
    Mutant(
        "4271 section 5",
        "speaker/rib/export.py",
        "med=attributes.med if keeps_med else None,",
        "med=attributes.med,",
    ),
    Mutant(
        "4271 section 5",
        "speaker/rib/export.py",
        "flags=unknown.flags | 0x20",
        "flags=unknown.flags",
    ),
    Mutant(
        "4271 section 6",
        "speaker/peer/open_exchange.py",
        "expected = None if asn == local_asn else str(local_asn)",
        "expected = None",
    ),
    Mutant(
        "4271 section 6",
        "speaker/peer/open_exchange.py",
        "if asn in (local_asn, instance_asn) else None",
        "if asn == local_asn else None",
    ),
    Mutant(
        "4271 section 6.8",
        "speaker/peer/collision.py",
        "(local_id, local_asn) > (remote_id, remote_asn)",
        "(local_id, local_asn) < (remote_id, remote_asn)",
    ),
    Mutant(
        "4271 section 8",
        "speaker/peer/damping.py",
        "self._failures = min(self._failures + 1, 16)",
        "self._failures = 0",
    ),
    Mutant(
        "4271 section 8",
        "speaker/fsm.py",
        "_HOLD_END: Final = _end(_A.SEND_HOLD_EXPIRED)",
        "_HOLD_END: Final = _end(_A.SEND_CEASE)",
    ),
    Mutant(
        "4271 section 9",
        "speaker/rib/decision.py",
        "if path.rank.med == lowest[path.rank.neighbor_as]]",
        "]",
    ),
    Mutant(
        "4271 section 9",
        "speaker/rib/decision.py",
        "return (ebgp, metric(path), *rest)",
        "return (metric(path), ebgp, *rest)",
    ),
    Mutant("4271 section 9", "speaker/rib/decision.py", "== steps and (", "== steps or ("),
    Mutant(
        "4271 section 9",
        "speaker/rib/next_hop_metrics.py",
        "if table == self._tables.get(instance, {}):",
        "if True:",
    ),
    Mutant(
        "4271 section 9",
        "speaker/rib/export.py",
        "if not self.ebgp and path.source.internal:",
        "if False:",
    ),
    Mutant(
        "4271 section 10",
        "speaker/peer/engine_context.py",
        "seconds * self.rng.uniform(0.75, 1.0)",
        "seconds",
    ),
    Mutant("4360", "speaker/rib/export.py", "if not value[0] & _NOT_TRANSITIVE)", ")"),
    Mutant(
        "4456",
        "speaker/rib/path.py",
        'return source.router_id if originator is None else int.from_bytes(originator, "big")',
        "return source.router_id",
    ),
    Mutant(
        "4486",
        "speaker/engine/prefix_limits.py",
        "beyond = received > limit.limit",
        "beyond = received > limit.limit + 1",
    ),
    Mutant(
        "4486",
        "speaker/engine/prefix_limits.py",
        'data + self.limit.to_bytes(4, "big")',
        "data",
    ),
    Mutant(
        "4724",
        "speaker/engine/best_path_stream.py",
        "if due is None or self._deferred:",
        "if due is None:",
    ),
    Mutant(
        "4724",
        "speaker/engine/best_path_stream.py",
        "due = self._selection_due = self._backlog.swaps + 2",
        "due = self._selection_due = self._backlog.swaps",
    ),
    Mutant(
        "2545",
        "speaker/engine/path_sets.py",
        "    if is_link_local(next_hop):",
        "    if False:",
    ),
    Mutant(
        "4724",
        "speaker/engine/stale_routes.py",
        "        if self._stop_tracking(family):\n            self._remove_stale(family)",
        "        self._stop_tracking(family)",
    ),
    Mutant(
        "4760",
        "speaker/message/multiprotocol.py",
        "known = family in session.families and has_prefixes(family)",
        "known = True",
    ),
    Mutant(
        "4760",
        "speaker/negotiated.py",
        "return families or frozenset({IPV4_UNICAST})",
        "return families",
    ),
    Mutant(
        "5065",
        "speaker/rib/export.py",
        "as_path=prepend(attributes.as_path, rules.local_asn, AS_CONFED_SEQUENCE),",
        "as_path=attributes.as_path,",
    ),
    Mutant(
        "5065",
        "speaker/rib/export.py",
        "as_path = without_confederation(attributes.as_path)",
        "as_path = attributes.as_path",
    ),
    Mutant(
        "5082",
        "speaker/server/sockets.py",
        "                sock.setsockopt(socket.IPPROTO_IP, _IP_MINTTL, min_ttl)",
        "                pass",
    ),
    Mutant("5492", "speaker/peer/open_exchange.py", "+ bytes((0, family.safi))", "+ bytes((0, 0))"),
    Mutant(
        "6286",
        "speaker/peer/open_exchange.py",
        "if asn == local_asn and opened.router_id == local_router_id:",
        "if opened.router_id == local_router_id:",
    ),
    Mutant(
        "6286",
        "speaker/peer/collision.py",
        "(local_id, local_asn) > (remote_id, remote_asn)",
        "local_id > remote_id",
    ),
    Mutant(
        "6608",
        "speaker/iana.py",
        "UNEXPECTED_IN_OPEN_CONFIRM = 2",
        "UNEXPECTED_IN_OPEN_CONFIRM = 4",
    ),
    Mutant(
        "6793",
        "speaker/attribute/as_path.py",
        "extra = hop_count(path) - hop_count(as4_path)",
        "extra = 0",
    ),
    Mutant("6793", "speaker/peer/open_exchange.py", "if opened.asn == AS_TRANS:", "if False:"),
    Mutant(
        "7313",
        "speaker/engine/stale_routes.py",
        "stale.phase = Phase.REFRESHING\n            self._start(stale, self._refresh_seconds)",
        "stale.phase = Phase.REFRESHING",
    ),
    Mutant(
        "7606",
        "speaker/attribute/attribute_rules.py",
        "if origin > 2:",
        "if origin > 3:",
    ),
    Mutant(
        "7606",
        "speaker/attribute/attribute_rules.py",
        "if not value or len(value) % size:",
        "if len(value) % size:",
    ),
    Mutant("7607", "speaker/attribute/attribute_rules.py", "if not asn:", "if False:"),
    Mutant(
        "7854",
        "speaker/engine/monitoring/bmp_observer.py",
        "        station.buffer.append(peer.up(time))\n        received = ",
        "        received = ",
    ),
    Mutant(
        "7911",
        "speaker/rib/adj_out_add_path.py",
        'return path.source.sent_path_id.to_bytes(4, "big") + nlri',
        'return b"\\0\\0\\0\\1" + nlri',
    ),
    Mutant(
        "7947",
        "speaker/rib/export.py",
        "as_path=as_path if transparent else prepend(as_path, rules.local_asn),",
        "as_path=prepend(as_path, rules.local_asn),",
    ),
    Mutant("7947", "speaker/rib/export.py", "if self.transparent:", "if False:"),
    Mutant(
        "7947",
        "speaker/attribute/attribute_rules.py",
        "if not session.peer_asn or not session.enforce_first_as:",
        "if not session.peer_asn:",
    ),
    Mutant(
        "8092",
        "speaker/attribute/attribute_rules.py",
        "for item in _items_of(value, 12)",
        "for item in ()",
    ),
    Mutant(
        "5880",
        "speaker/bfd/session.py",
        "return configured if self.state is State.UP else max(configured, SLOW_INTERVAL)",
        "return configured",
    ),
    Mutant(
        "5880",
        "speaker/bfd/poll_sequence.py",
        "self.rx = max(required, self.rx)",
        "self.rx = required",
    ),
    Mutant(
        "5880",
        "speaker/bfd/authentication.py",
        "if not int(key.meticulous) <= ahead <= 3 * packet.detect_multiplier:",
        "if not ahead <= 3 * packet.detect_multiplier:",
    ),
    Mutant(
        "5881",
        "speaker/bfd/engine.py",
        "SINGLE_HOP_TTL: Final = 255",
        "SINGLE_HOP_TTL: Final = 254",
    ),
    Mutant(
        "5882",
        "speaker/peer/peer.py",
        "restarts = not independent and self.may_restart(session)",
        "restarts = self.may_restart(session)",
    ),
    Mutant(
        "5883",
        "speaker/bfd/engine.py",
        "if origin.ttl < session.settings.minimum_ttl:",
        "if False:",
    ),
    Mutant(
        "9384",
        "speaker/peer/peer.py",
        "BFD_DOWN: Final = Notification.cease(CeaseSubcode.BFD_DOWN)",
        "BFD_DOWN: Final = Notification.cease(CeaseSubcode.OTHER_CONFIGURATION_CHANGE)",
    ),
    Mutant(
        "8212",
        "speaker/api/config/peer.py",
        '    import_: Import = "none"',
        '    import_: Import = "all"',
    ),
    Mutant(
        "8212",
        "speaker/api/config/peer.py",
        '    export: Export = "set"',
        '    export: Export = "all"',
    ),
    Mutant(
        "8212",
        "speaker/api/policy.py",
        'default: Literal["accept", "reject"] = "reject"',
        'default: Literal["accept", "reject"] = "accept"',
    ),
    Mutant(
        "8538",
        "speaker/message/notification.py",
        "return self.code == ErrorCode.CEASE and self.subcode == CeaseSubcode.HARD_RESET",
        "return self.code == ErrorCode.CEASE",
    ),
    Mutant(
        "8654",
        "speaker/message/header.py",
        "limit = MAX_MESSAGE if kind in _NEVER_EXTENDED else maximum",
        "limit = maximum",
    ),
    Mutant(
        "8654",
        "speaker/negotiated.py",
        "return MAX_EXTENDED_MESSAGE if self.extended_message else MAX_MESSAGE",
        "return MAX_EXTENDED_MESSAGE",
    ),
    Mutant("8671", "speaker/bmp/numbers.py", "ADJ_RIB_OUT = 0x10", "ADJ_RIB_OUT = 0x08"),
    Mutant(
        "8950",
        "speaker/engine/export_rules.py",
        "if len(own) == size or family in negotiated.extended_next_hop:",
        "if True:",
    ),
    Mutant(
        "8950",
        "speaker/message/multiprotocol.py",
        "return (4, 16, 32) if family in session.extended_next_hop else (4,)",
        "return (4, 16, 32)",
    ),
    Mutant(
        "9003",
        "speaker/message/notification.py",
        'decode(errors="ignore").encode()',
        'decode(errors="replace").encode()',
    ),
    Mutant(
        "9069",
        "speaker/engine/monitoring/monitored_peers.py",
        "kind=PeerKind.LOC_RIB,",
        "kind=PeerKind.GLOBAL,",
    ),
    Mutant(
        "9072",
        "speaker/message/open.py",
        "extended = reader.next == _EXTENDED",
        "extended = length == _EXTENDED",
    ),
    Mutant(
        "9234",
        "speaker/peer/open_exchange.py",
        "if not roles_match(local, role):",
        "if False:",
    ),
    Mutant(
        "9234",
        "speaker/rib/export.py",
        "if attributes.otc is not None and self.role in _NOT_UPWARDS:",
        "if False:",
    ),
    Mutant(
        "9234",
        "speaker/rib/route_leaks.py",
        "return None, replace(attributes, otc=peer_asn)",
        "return None, attributes",
    ),
    Mutant(
        "9494",
        "speaker/rib/export.py",
        "if LLGR_STALE in communities and not self.long_lived:",
        "if False:",
    ),
    Mutant(
        "9494",
        "speaker/engine/stale_routes.py",
        "            self._depreference(stale.family)\n            self._start(stale, seconds)",
        "            self._start(stale, seconds)",
    ),
    Mutant(
        "9687",
        "speaker/peer/session/session_timers.py",
        "max(MIN_SEND_HOLD_SECONDS, 2.0 * self.hold_time)",
        "1e9",
    ),
    Mutant(
        "9774",
        "speaker/rib/inbound.py",
        "if kind in (AS_SET, AS_CONFED_SET):",
        "if False:",
    ),
)
