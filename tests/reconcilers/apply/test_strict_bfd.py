"""A strict peer waits for BFD: draft-ietf-idr-bgp-bfd-strict-mode, by the configuration of one end."""

from __future__ import annotations

from msgspec.structs import replace

from reconcilers.apply.peers import NO_BFD, Peers
from reconcilers.bfd_session import DOWN, UP, BfdSession
from reconcilers.target import Runner
from speaker.api import BfdProfile
from tests.reconcilers.apply.intent_rows import INSTANCE, PEER, Rows

STRICT = replace(PEER, bfd=BfdProfile(strict=True))


class Strict(Rows):
    """The intent of a node with BFD sessions."""

    def __init__(self) -> None:
        super().__init__()
        peers = Peers(self.db, self.intent, self.resources, self.speaker, bfd=True)
        others = [q.reconciler for q in self.runner.queues if not isinstance(q.reconciler, Peers)]
        self.runner = Runner(self.db, self.intent.reconcile_statuses, [*others, peers])

    def bfd(self, state: str, *, holds: bool) -> None:
        with self.db.write(self.intent.bfd_sessions) as txn:
            row = BfdSession(instance="i", peer="p", strict=True, state=state, holds_bgp=holds)
            self.intent.bfd_sessions.upsert(txn, row)
        self.run()

    @property
    def reason(self) -> str | None:
        """Why the peer is kept down; None if it is not."""
        config = self.speaker.peer_config("i", "p")
        assert config is not None
        held = config.disabled_reason == NO_BFD
        assert config.disabled_for_a_while is held, "the routes of a restarting peer stay"
        return config.disabled_reason


def test_a_strict_peer_waits_until_bfd_is_up() -> None:
    rows = Strict()
    rows.apply([INSTANCE], [STRICT])
    assert rows.reason == NO_BFD
    rows.bfd(DOWN, holds=True)
    assert rows.reason == NO_BFD
    rows.bfd(UP, holds=False)
    assert rows.reason is None
    rows.bfd(DOWN, holds=True)
    assert rows.reason == NO_BFD


def test_a_session_stays_while_the_process_is_unknown() -> None:
    rows = Strict()
    rows.apply([INSTANCE], [STRICT])
    rows.bfd(UP, holds=False)
    router = rows.router()
    assert router.status().established
    rows.bfd(DOWN, holds=False)
    assert router.status().established


def test_a_peer_that_becomes_strict_stays_as_it_is_until_its_bfd_session_is_known() -> None:
    rows = Strict()
    rows.apply([INSTANCE], [PEER])
    router = rows.router()
    rows.apply([INSTANCE], [STRICT])
    assert router.status().established
    rows.bfd(DOWN, holds=False)
    assert router.status().established
    rows.bfd(DOWN, holds=True)
    assert rows.reason == NO_BFD


def test_another_peer_does_not_wait() -> None:
    rows = Strict()
    rows.apply([INSTANCE], [replace(PEER, bfd=BfdProfile())])
    assert rows.reason is None


def test_a_node_without_bfd_holds_no_peer() -> None:
    rows = Rows()
    rows.apply([INSTANCE], [STRICT])
    config = rows.speaker.peer_config("i", "p")
    assert config is not None
    assert config.disabled_reason is None
