"""The prefixes within which nothing is accepted: the option's, and with ``auto`` the cluster's."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from reconcilers.frrk8s.field_values import prefix
from reconcilers.frrk8s.options import Frrk8sOptions
from resources.core.kinds import SERVICE_CIDR
from resources.tables import Tables
from speaker.nlri import prefix_to_text
from statedb import Snapshot


class Blocked:
    """The blocked prefixes of a snapshot; the same value until a prefix changes."""

    def __init__(self, tables: Tables, options: Frrk8sOptions) -> None:
        self._tables = tables
        self._configured = options.blocked
        self._blocks_cluster = options.blocks_cluster
        self._cluster: tuple[str, ...] = ()
        """As the objects have them; `_all` is made of these."""
        self._all = self._configured

    def prefixes(self, snapshot: Snapshot) -> tuple[str, ...]:
        """Return the blocked prefixes of FRR-k8s in canonical form, sorted, each once."""
        if self._blocks_cluster:
            of_cluster = self._of_cluster(snapshot)
            if of_cluster != self._cluster:
                self._cluster, self._all = (
                    of_cluster,
                    canonical_prefixes((*self._configured, *of_cluster)),
                )
        return self._all

    def _of_cluster(self, snapshot: Snapshot) -> tuple[str, ...]:
        t = self._tables
        return (
            *(text for row in t.nodes.all(snapshot) for text in row.pod_networks),
            *(text for row in t.of(SERVICE_CIDR).all(snapshot) for text in row.spec.cidrs),
        )


def canonical_prefixes(texts: Iterable[str]) -> tuple[str, ...]:
    """Return FRR-k8s's blocked prefixes in canonical form, sorted, each once. Raises ValueError."""
    written = [prefix_to_text(*prefix(text)) for text in texts]
    networks = map(ipaddress.ip_network, dict.fromkeys(written))
    ordered = sorted(networks, key=lambda n: (n.version, n.network_address.packed, n.prefixlen))
    return tuple(map(str, ordered))
