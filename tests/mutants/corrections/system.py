"""Mistakes of the speaker, in clusters, of dialects and of the kernel's routes."""

from __future__ import annotations

from typing import Final

_LISTENER: Final = "speaker/server/listener.py"
_TTL: Final = "tests/speaker/server/test_ttl_filter.py"
_SLICES: Final = "speaker/engine/sliced_work.py"
_LEAVING: Final = "tests/speaker/engine/test_leaving.py"
_RANGES: Final = "speaker/engine/instance/dynamic_peers.py"
_DYNAMIC: Final = "tests/speaker/engine/test_dynamic_peers.py"
_OF_LIMITS: Final = "tests/reconcilers/intent/test_address_limits.py"
_LEFTOVERS: Final = "reconcilers/operator/leftovers.py"
_OF_LEFTOVERS: Final = "tests/reconcilers/operator/test_leftovers.py"
_TEMPLATES: Final = "deploy/helm/waggle/templates"
_ROLES: Final = "tests/deploy/chart/test_roles.py"
_FEED: Final = "resources/kubernetes/feed.py"
_MASS: Final = "tests/resources/kubernetes/test_mass_withdraw.py"
_RULES: Final = "resources/metallb/field_rules.py"
_KINDS: Final = "tests/resources/metallb/test_kinds.py"
_OCCURRENCES: Final = "reconcilers/report/occurrences.py"
_OF_OCCURRENCES: Final = "tests/reconcilers/report/test_occurrences.py"
_MANY: Final = "tests/reconcilers/metallb/test_many_conflicts.py"

CHANGES: Final[tuple[tuple[str, ...], ...]] = (
    # TTL security
    (
        "TTL security: the listening socket has the filter before it listens",
        _LISTENER,
        "            self._filter()\n            # At once,",
        "            # At once,",
        _TTL,
    ),
    (
        "TTL security: connections from before the filter are closed",
        _LISTENER,
        "                self._filter()\n                self._refuse_waiting()",
        "                self._filter()",
        _TTL,
    ),
    # Work in slices
    (
        "slices: a lost table leaves in slices",
        _SLICES,
        "                    self._left -= units",
        "                    pass",
        _LEAVING,
    ),
    (
        "slices: prefixes with another path come first",
        _SLICES,
        "            (self._failover if failover else self._rest).append(steps)",
        "            self._rest.append(steps)",
        "tests/speaker/engine/test_sliced_work.py",
    ),
    (
        "slices: a round of intent ends a slice",
        "reconcilers/sliced_work.py",
        "        if self._left > 0:\n            return False",
        "        if True:\n            return False",
        "tests/reconcilers/test_sliced_work.py",
    ),
    # The speaker's smaller ones
    (
        "speaker: in a flooded range a peer that was up has its place",
        _RANGES,
        "known=self.sources.is_known(address)",
        "known=False",
        _DYNAMIC,
    ),
    (
        "speaker: an address whose sessions fail waits for its next place",
        _RANGES,
        "        if contended and self.sources.must_wait(address, now):",
        "        if False:",
        _DYNAMIC,
    ),
    (
        "speaker: routes that are kept for a peer that is away are shown",
        "speaker/engine/engine_views.py",
        "                or known.kept_routes.peers.get(session_peer)\n",
        "",
        "tests/speaker/engine/graceful_restart/test_receiving_speaker.py",
    ),
    (
        "speaker: a limit of prefixes has no stale route beside a new one",
        "speaker/rib/adj_in/held_routes.py",
        "        return marks[-1].fresh + self.counted(family)",
        "        return self.received(family)",
        _LEAVING,
    ),
    (
        "speaker: a changed MED that is not exported makes no UPDATE",
        "speaker/rib/export.py",
        "    return _without_next_hop(one, rules) == _without_next_hop(other, rules)",
        "    return before == after",
        "tests/speaker/engine/test_unchanged_updates.py",
    ),
    (
        "speaker: short sessions are likely two speakers with one address",
        "speaker/peer/peer_status.py",
        "    if end.short_sessions >= SHORT_SESSIONS and trouble is None:",
        "    if False:",
        "tests/speaker/engine/test_down.py",
    ),
    # Problems of tenants
    (
        "tenants: the problems of a cluster's many objects are listed up to a number",
        "reconcilers/intent/object_problems.py",
        "for source in self._order[:LISTED_OBJECTS] for problem",
        "for source in self._order for problem",
        _OF_LIMITS,
    ),
    (
        "tenants: their problems and problems of administrators are apart",
        "reconcilers/intent/object_problems.py",
        "        if problem.of_tenant:",
        "        if False:",
        "tests/reconcilers/intent/test_object_problems.py",
    ),
    (
        "tenants: their problems are not in the agent's health",
        "cells/intent/cell.py",
        "[problem for problem in self._known.values() if not problem.of_tenant]",
        "list(self._known.values())",
        "tests/cells/test_tenant_problems.py",
    ),
    (
        "tenants: the Event of an address that one node refuses names the node",
        "reconcilers/intent/rejections.py",
        'by = by_node(node) if rejection.of_node else ""',
        'by = ""',
        _OF_OCCURRENCES,
    ),
    # Rounds that nothing makes due
    (
        "rounds: what a round of intent generates makes no further round due",
        "reconcilers/intent/compiler.py",
        "            intent.unsent_routes,\n            intent.bfd_sessions,",
        "            intent.unsent_routes,\n            intent.generated,",
        "tests/reconcilers/intent/test_compiler.py",
    ),
    (
        "rounds: a Service that no Event regards makes no comparison of Events due",
        "cells/report/cell.py",
        "operators.filter(lambda _: occurrences.is_due())",
        "operators.filter(lambda _: True)",
        "tests/cells/report/test_session_events.py",
    ),
    (
        "rounds: another object that an Event regards makes a comparison due",
        _OCCURRENCES,
        "        self._read.add(table)\n",
        "",
        _OF_OCCURRENCES,
    ),
    (
        "rounds: an object of the node that appears makes a comparison of Events due",
        _OCCURRENCES,
        "            self._read.update(dialect.compiled_tables)\n",
        "",
        _OF_OCCURRENCES,
    ),
    (
        "rounds: a comparison of Events that fails is due again",
        _OCCURRENCES,
        "        self._compared, self._read = None, set(",
        "        self._read = set(",
        _OF_OCCURRENCES,
    ),
    (
        "rounds: a table of the kernel that has been read is not asked again",
        "reconcilers/intent/kernel_readings.py",
        "            self._read.add(table)\n",
        "",
        "tests/reconcilers/intent/test_kernel_readings.py",
    ),
    (
        "rounds: tables that have been read are not asked again before a write of manifests",
        "cells/state/last_valid_manifests.py",
        "tuple([t for t in self._unread if not t.initialized(snapshot)])\n        if self._unread:",
        "self._unread\n        if not all(t.initialized(snapshot) for t in self._unread):",
        "tests/cells/state/test_last_valid_manifests.py",
    ),
    # What is left
    (
        "leftovers: objects of a dialect that is off are deleted",
        _LEFTOVERS,
        "                await client.delete(leftover.path, leftover.uid)\n",
        "",
        _OF_LEFTOVERS,
    ),
    (
        "leftovers: objects of others stay",
        _LEFTOVERS,
        "for entry in entries} == {manager}:",
        "for entry in entries} >= {manager}:",
        _OF_LEFTOVERS,
    ),
    (
        "leftovers: the objects of a node have it as owner",
        "reconcilers/report/node_objects/objects.py",
        "            OWNERS: self.place.owners(),",
        "            OWNERS: (),",
        "tests/reconcilers/report/node_objects/test_objects.py",
    ),
    # The chart
    (
        "chart: namespaces of dialects are made",
        f"{_TEMPLATES}/namespaces.yaml",
        "{{- if .Values.namespace.ofDialects }}",
        "{{- if false }}",
        f"{_ROLES}::test_namespaces_are_made_that_the_release_writes_to",
    ),
    (
        "chart: agents read no Secret of a shared namespace but the named ones",
        f"{_TEMPLATES}/secrets-rbac.yaml",
        "{{- if and $whole (has $namespace $shared) (not .Values.secrets.names) }}",
        "{{- if false }}",
        f"{_ROLES}::test_agents_read_no_secret_beside_passwords",
    ),
    (
        "chart: an API server that does not know its version is accepted",
        f"{_TEMPLATES}/kubernetes-version.yaml",
        "(and (eq $major 0) (gt $minor 0))",
        "(eq $major 0)",
        (
            "tests/deploy/chart/test_values.py::"
            "test_an_api_server_that_does_not_know_its_version_is_accepted"
        ),
    ),
    # Lists and statuses
    (
        "empty API server: its own objects prove nothing",
        _FEED,
        "        built_in = self.kind.built_in",
        "        built_in = self.kind.built_in - self.kind.built_in",
        _MASS,
    ),
    (
        "empty API server: the loss of the last object is confirmed after five seconds",
        _FEED,
        "LAST_SECONDS if is_last else math.inf",
        "0.0 if is_last else math.inf",
        _MASS,
    ),
    (
        "statuses: numbers alone are written after an interval",
        "reconcilers/report/count_delay.py",
        "        if now < self._due:",
        "        if False:",
        "tests/reconcilers/report/test_count_delay.py",
    ),
    (
        "statuses: a state is written at once",
        "reconcilers/report/count_delay.py",
        "        if _without(wanted, counts) != _without(stored, counts):",
        "        if False:",
        "tests/reconcilers/report/test_count_delay.py",
    ),
    (
        "statuses: an object whose only peer is not configured is not simply in effect",
        "reconcilers/intent/unconfigured.py",
        "        if not texts or not condition.status:",
        "        if True:",
        "tests/reconcilers/intent/test_unconfigured.py",
    ),
    (
        "state files: files of the release before are read",
        "cells/state/claims.py",
        'Format("waggle-claims/1"',
        'Format("waggle-claims/2"',
        "tests/cells/test_state_of_releases.py",
    ),
    # Dialects
    (
        "dialects: an empty password is none",
        "resources/frrk8s/neighbor.py",
        '        empty_is_absent(self, "password")',
        "        empty_is_absent(self)",
        "tests/resources/test_zero_values.py",
    ),
    (
        "dialects: values that differ are one problem",
        "reconcilers/metallb/conflicts/shared_values.py",
        "            if len(of_key) < 2 or claim.key in self._known:",
        "            if len(of_key) < 2:",
        (
            "tests/dialects/test_thousand_conflicts.py::"
            "test_a_thousand_objects_in_conflict_cost_less_than_a_second_in_slices"
            "[BGPPeers: router ID]"
        ),
    ),
    (
        "dialects: pools are compared with a bounded number of others",
        "reconcilers/metallb/conflicts/shared_values.py",
        "            if len(entries) >= MAX_COMPARED:",
        "            if False:",
        _MANY,
    ),
    (
        "dialects: a message is bounded",
        "reconcilers/model/routes.py",
        "        if len(self.message) > MAX_MESSAGE_CHARACTERS:",
        "        if False:",
        "tests/reconcilers/test_model.py",
    ),
    (
        "dialects: a value of an expression is there once, as in MetalLB",
        _RULES,
        'yield from twice_errors(requirement.values, f"{path}[{i}].values")',
        'yield from twice_errors((), f"{path}[{i}].values")',
        _KINDS,
    ),
    (
        "dialects: an expression of a selector is there once, as in MetalLB",
        _RULES,
        "    if any(count > 1 for count in expressions.values()):",
        "    if False:",
        _KINDS,
    ),
    (
        "dialects: the text of a configuration has the line activate of FRR",
        "reconcilers/frrk8s/configuration_text.py",
        'f"neighbor {_end(peer)} activate"',
        'f"neighbor {_end(peer)} activated"',
        "tests/reconcilers/frrk8s/test_configuration_text.py",
    ),
    (
        "dialects: an IPv4-mapped address is a problem whatever families the node has",
        "reconcilers/antrea/route_sets.py",
        "        if self.nlri is not None and self.nlri.startswith(_MAPPED):",
        "        if False:",
        "tests/reconcilers/antrea/test_routes.py",
    ),
    # Routes of the kernel while interfaces are not known
    (
        "kernel routes: what leads over an interface that is not known yet is pending",
        "reconcilers/kernel/resolved_next_hops.py",
        "        if any(hop.interface not in self._names for hop in route.next_hops):",
        "        if False:",
        "tests/reconcilers/kernel/reconciler/test_adoption.py",
        "tests/reconcilers/kernel/reconciler/test_next_hops.py",
    ),
    (
        "kernel routes: next hops of earlier routes move with no others",
        "reconcilers/kernel/reconciler.py",
        "        if self._deferred:\n            is_announced",
        "        if False:\n            is_announced",
        "tests/reconcilers/kernel/reconciler/test_adoption.py",
    ),
    (
        "kernel routes: what was found of a next hop is forgotten with it",
        "reconcilers/kernel/tracked_next_hops.py",
        "            self._routing.keep(wanted)\n",
        "",
        "tests/reconcilers/kernel/reconciler/test_next_hops.py",
    ),
    (
        "kernel routes: no table of a VRF is known before the host",
        "cells/kernel/following.py",
        " and kernel.routing.host_known",
        "",
        "tests/cells/kernel/test_following.py",
    ),
    (
        "kernel routes: so is the interface of a session",
        "reconcilers/kernel/forwarding.py",
        'return Unresolved(f"interface {hop.device} is not known yet", pending=True)',
        'return Unresolved(f"interface {hop.device} is not known yet")',
        "tests/reconcilers/kernel/test_forwarding.py",
    ),
    # Connections
    (
        "connections: an answer that is not read completely closes its own at once",
        "resources/kubernetes/connection.py",
        "            transport.abort()\n        super().close()",
        "            pass\n        super().close()",
        "tests/resources/kubernetes/test_connection.py",
    ),
    (
        "connections: a part of a request makes room while the library is imported",
        "cells/observability/http_connections.py",
        "return self.answering or _END_OF_HEAD in self.unread",
        "return self.answering or bool(self.unread)",
        "tests/cells/observability/test_http_connections.py",
    ),
)
LIVE: Final[tuple[tuple[str, ...], ...]] = (
    (
        "chart: an agent adds no finalizer at a real API server",
        "deploy/manifests/waggle.yaml",
        (
            "    - expression: object == null || variables.finalizers[0] == variables.finalizers[1]\n"
            "      reason: Forbidden\n"
            "      message: an agent may neither add nor remove finalizers\n"
            "    # A kubelet"
        ),
        (
            '    - expression: "true"\n'
            "      reason: Forbidden\n"
            "      message: an agent may neither add nor remove finalizers\n"
            "    # A kubelet"
        ),
        "tests/deploy/rbac/test_forbidden.py::test_an_agent_writes_objects_of_its_own_node_only",
    ),
)
