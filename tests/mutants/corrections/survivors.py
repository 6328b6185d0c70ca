"""Mutations of one operand or one argument that no test noticed once."""

from __future__ import annotations

from typing import Final

_WRITER: Final = "resources/kubernetes/writer.py"
_OF_WRITER: Final = "tests/resources/kubernetes/test_writer.py"
_API_SERVER: Final = "cells/sources/api_server.py"
_OF_API_SERVER: Final = "tests/cells/sources/test_api_server.py"
_TO_CILIUM: Final = "reconcilers/antrea/convert/to_cilium.py"
_OF_DRAFTS: Final = "tests/reconcilers/antrea/test_convert.py"

CHANGES: Final[tuple[tuple[str, ...], ...]] = (
    # What would lose something
    (
        "survivor: names of a list go on after the first page",
        _WRITER,
        "            if not answer.metadata.continue_:",
        "            if True:",
        _OF_WRITER,
    ),
    (
        "survivor: --node-address has an effect for Cilium",
        "reconcilers/cilium/compile_node.py",
        "preferring(nodes[name], self._options.node_address)",
        "preferring(nodes[name], ())",
        "tests/cmd/test_render.py",
    ),
    # The others
    (
        "survivor: a Lease is valid from the request on",
        "cells/operator/election.py",
        "election.written(await writer.replace(self._path, content), began)",
        "election.written(await writer.replace(self._path, content), loop.time())",
        "tests/cells/operator/test_election.py",
    ),
    (
        "survivor: a deletion has the UID as precondition",
        _WRITER,
        '        preconditions = {"uid": uid} if uid else {}',
        "        preconditions: dict[str, str] = {}",
        _OF_WRITER,
    ),
    (
        "survivor: a slice of reads ends",
        "speaker/server/transports.py",
        "            if self._clock() >= until:",
        "            if False:",
        "tests/speaker/server/test_read_queue.py",
    ),
    (
        "survivor: an entry that becomes a range of the same name ends its session",
        "cmd/waggle/commands/router/reload.py",
        "        *_removed(of_other_kind),\n",
        "",
        "tests/cmd/test_router_reload.py",
        "tests/cmd/test_router_reload_model.py",
    ),
    (
        "survivor: a collector has its localAddress",
        "cmd/waggle/router_config/bmp.py",
        "local_address=entry.local_address",
        "local_address=None",
        "tests/cmd/test_router.py",
    ),
    (
        "survivor: decode has --add-path",
        "cmd/waggle/commands/decode/program.py",
        "add_path_receive=_families(args.add_path)",
        "add_path_receive=_families(())",
        "tests/cmd/test_decode.py",
        "tests/cmd/test_decode_messages.py",
    ),
    (
        "survivor: problems of converted drafts are printed",
        "cmd/waggle/commands/convert.py",
        "            for content in rewriter.objects\n",
        "            for content in rewriter.objects[:0]\n",
        "tests/cmd/test_convert.py",
    ),
    (
        "survivor: an authority is published once the configuration has it",
        "cells/operator/webhook/certificate.py",
        "                published=is_published,",
        "                published=True,",
        "tests/cells/operator/test_webhook.py",
    ),
    (
        "survivor: a file that changes again while it settles waits again",
        "resources/manifests/settling.py",
        "now if whole else _due(first, now)",
        "now if whole or before else _due(first, now)",
        "tests/resources/manifests/test_settling.py",
    ),
    (
        "survivor: forbidden Events degrade health",
        "cells/report/event_writes.py",
        '            self._health.degraded(f"{text}{of_all}")',
        '            self._health.ok(f"{text}{of_all}")',
        (
            "tests/cells/faults/test_cluster.py::"
            "test_events_that_are_forbidden_degrade_health_and_stop_nothing"
        ),
    ),
    (
        "survivor: an outage has the time of its first failure",
        _API_SERVER,
        "        if not self._away_since:",
        "        if True:",
        _OF_API_SERVER,
    ),
    (
        "survivor: a list that is held is an answer of the API server",
        _API_SERVER,
        "if any(status.phase in (Phase.FOLLOWING, Phase.HOLDING) for status in statuses):",
        "if any(status.phase is Phase.FOLLOWING for status in statuses):",
        _OF_API_SERVER,
    ),
    (
        "survivor: a feed that holds a list reads the API server",
        "resources/kubernetes/reflector.py",
        "            reading = (Phase.FOLLOWING, Phase.HOLDING)",
        "            reading = (Phase.FOLLOWING,)",
        "tests/resources/kubernetes/test_mass_withdraw.py",
    ),
    (
        "survivor: an outage ends with a list that is held",
        "resources/kubernetes/reflector.py",
        "            if self._cause and phase in (Phase.FOLLOWING, Phase.HOLDING):",
        "            if self._cause and phase is Phase.FOLLOWING:",
        "tests/resources/kubernetes/test_mass_withdraw.py",
    ),
    (
        "survivor: a verification before the first round is refused",
        "cells/apply/verification.py",
        "        if not self._first_pass.is_set():",
        "        if False:",
        "tests/cells/apply/test_verification.py",
    ),
    (
        "survivor: when_ready after all gates calls at once",
        "cells/hive/health.py",
        "        self._callbacks.append(callback)\n        self._notify()",
        "        self._callbacks.append(callback)",
        "tests/cells/hive/test_health.py",
    ),
    (
        "survivor: a problem is one, whatever the nodes lack of it",
        "reconcilers/admission/cluster_problems.py",
        "(replace(p, unconfigured=()) for p in compiled[name].problems_of(name))",
        "compiled[name].problems_of(name)",
        "tests/reconcilers/admission/test_cluster_problems.py",
    ),
    (
        "survivor: an unknown field of a NodeNetwork is reported",
        "resources/host/kinds.py",
        "    strict=True,",
        "    strict=False,",
        "tests/resources/host/test_network.py",
    ),
    (
        "survivor: fields of a status stay with their managers",
        "resources/kubernetes/field_managers.py",
        "            kept.append(dict(entry))",
        "            pass",
        "tests/resources/kubernetes/test_field_managers.py",
    ),
    (
        "survivor: a problem of a neighbour names the oldest object",
        "reconcilers/frrk8s/router_rows.py",
        "sorted(units, key=lambda unit: unit.age)",
        "sorted(units, key=lambda unit: unit.age, reverse=True)",
        "tests/reconcilers/frrk8s/test_neighbor_problems.py",
    ),
    (
        "survivor: the reviews of the webhook are a metric",
        "cells/operator/webhook/cell.py",
        "        return [reviews]",
        "        return []",
        "tests/cells/operator/test_webhook.py",
    ),
    (
        "survivor: --limit 0 is refused",
        "cells/arguments.py",
        "not text.isascii() or not text.isdigit() or not int(text):",
        "not text.isascii() or not text.isdigit():",
        "tests/cmd/test_history_command.py",
    ),
    (
        "survivor: apiSocket takes effect at the next start, with a message at a reload",
        "cmd/waggle/commands/router/program.py",
        '            ("apiSocket", after.api_socket != config.api_socket),\n',
        "",
        "tests/cmd/test_router_reload.py",
    ),
    (
        "survivor: an empty line of a watch is none",
        "resources/kubernetes/lines.py",
        "        return [line for line in lines if line.strip()]",
        "        return lines",
        "tests/resources/kubernetes/test_lines.py",
    ),
    (
        "survivor: the text of a configuration has the BFD profile",
        "reconcilers/frrk8s/configuration_text.py",
        '    if peer.bfd is not None:\n        yield f" {neighbor} bfd"',
        '    if False:\n        yield f" {neighbor} bfd"',
        "tests/reconcilers/frrk8s/test_configuration_text.py",
    ),
    (
        "survivor: a draft with a password has a note",
        _TO_CILIUM,
        "    if peer.secret is not None:",
        "    if peer.secret is None:",
        _OF_DRAFTS,
    ),
    (
        "survivor: the note of a namespace selector has its field",
        _TO_CILIUM,
        '        f"{services.path}.namespaceSelector",',
        '        "namespaceSelector",',
        _OF_DRAFTS,
    ),
    (
        "survivor: the note of a missing node selector has its field",
        "reconcilers/antrea/convert/draft.py",
        '_join(path, "nodeSelector"), "is missing: every node is selected"',
        '"nodeSelector", "is missing: every node is selected"',
        _OF_DRAFTS,
    ),
    (
        "survivor: the removal of a route set is linked to the span that causes it",
        "speaker/server/speaker.py",
        (
            "        self._inputs.trace_links.note()\n"
            "        self._inputs.feed(RemoveRouteSet(instance, route_set))"
        ),
        "        self._inputs.feed(RemoveRouteSet(instance, route_set))",
        (
            "tests/speaker/server/test_speaker.py::"
            "test_every_change_of_routes_is_linked_to_the_span_that_causes_it"
        ),
    ),
)
