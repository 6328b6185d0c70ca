"""A cluster whose intent is applied to the real engine, and a router that peers with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reconcilers.dialect import Dialect
from reconcilers.target import Reconciler, RoundSummary, Runner
from speaker.api import PeerConfig
from speaker.nlri import IPV4_UNICAST, Family, prefix_to_text
from tests.reconcilers.build import service, usual
from tests.speaker.network import Host, Network
from tests.support import kinds
from tests.support.engine_speaker import EngineSpeaker
from tests.support.speaker_reconcilers import runner

ROUTER = "192.0.2.9"


class Applied:
    """A cluster with one instance, one peer, a pod network and a Service; nothing has run yet."""

    def __init__(
        self, also: Iterable[Reconciler] = (), dialects: Sequence[type[Dialect]] = ()
    ) -> None:
        """``also`` are reconcilers before the speaker's, ``dialects`` are beside Cilium's."""
        self.cluster = usual(also=dialects)
        self.cluster.put(kinds.SERVICE, service("web", "198.51.100.1"))
        self.network = Network()
        self.speaker = EngineSpeaker(self.network)
        self.runner = self.new_runner(also)

    def new_runner(self, also: Iterable[Reconciler] = ()) -> Runner:
        """Make a runner that has not run yet, and more reconcilers for it."""
        cluster = self.cluster
        return runner(cluster.db, cluster.intent, cluster.resources, self.speaker, also)

    def run(self, now: float = 0.0) -> RoundSummary:
        """Compile the intent, and apply it."""
        self.cluster.run()
        return self.runner.run(now)

    def set_up(self) -> Applied:
        """Apply everything, and forget the calls."""
        self.run()
        self.speaker.take()
        return self

    def router(self) -> Host:
        """Add the router at the other end of the session, and bring the session up."""
        host = self.network.host("router", ROUTER, 65010)
        host.peer(PeerConfig(name="agent", address="192.0.2.1", peer_asn=65001, import_="all"))
        self.network.run(5)
        assert [status.established for status in self.speaker.peers()] == [True]
        return host

    def held(self, instance: str = "i", family: Family = IPV4_UNICAST) -> set[str]:
        """Return the prefixes that the speaker holds in all route sets of an instance."""
        return {
            prefix_to_text(family, nlri)
            for route_set in self.speaker.route_sets(instance)
            for nlri in (self.speaker.route_set_prefixes(instance, route_set) or {}).get(family, ())
        }

    def route_set(self) -> str:
        """Return the name of the only route set that the speaker holds."""
        (name,) = self.speaker.route_sets("i")
        return name
