"""The resources cell: the tables of Kubernetes objects, for every source.

Sources are cells of their own. This one holds the tables, the trace links of commits that are not yet
reconciled, and the options that several sources have in common.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol
from urllib.parse import urlsplit

from cells.dialects.wiring import DialectKinds
from cells.hive import Group, Wiring
from cells.options import ResourcesOptions
from cells.sources.object_changes import watch_stream
from resources.tables import Tables
from resources.trace_links import TraceLinks
from statedb import Database


class EventTraceLinks(TraceLinks):
    """The spans of object events, for the next intent round."""


class ApplyTraceLinks(TraceLinks):
    """The spans of intent rounds and of best paths, for the next apply round."""


class FollowedSource(Protocol):
    """A source that may be behind, as the API server's; members of this group are the enabled ones."""

    @property
    def is_current(self) -> bool:
        """Whether everything that it has is in the tables."""
        ...

    @property
    def server(self) -> str:
        """The URL of the API server that is read; empty before the first connection."""
        ...


class ApiServers:
    """The API servers that are read, for parts that are built and started before their sources."""

    def __init__(self) -> None:
        self._sources: list[FollowedSource] = []

    def add(self, source: FollowedSource) -> None:
        """Add the source of one."""
        self._sources.append(source)

    def hosts(self) -> Iterator[str]:
        """Iterate over the hosts by which this process reaches them: addresses, or names."""
        for source in self._sources:
            if host := urlsplit(source.server).hostname:
                yield host


class MassWithdrawHold:
    """How long the loss of many objects has to be confirmed."""

    def __init__(self, options: ResourcesOptions) -> None:
        self.seconds = options.mass_withdraw_hold
        """0: not at all."""


class SecretsNamespace:
    """The namespace of the Secrets with peers' passwords."""

    def __init__(self, options: ResourcesOptions) -> None:
        self.name = options.secrets_namespace
        """Empty: no Secret of it is read."""


def make_tables(database: Database, dialects: Group[DialectKinds]) -> Tables:
    """Return the tables of Kubernetes' own kinds and of the kinds of enabled dialects."""
    return Tables(database, [k for d in dialects for k in (*d.kinds, *d.cluster_kinds)])


WIRING = Wiring(
    provides=(
        SecretsNamespace,
        MassWithdrawHold,
        ApiServers,
        make_tables,
        EventTraceLinks,
        ApplyTraceLinks,
    ),
    contributes=(watch_stream,),
)
