"""The next hops of received routes are written for the intent, and kept while a session is down."""

from __future__ import annotations

from typing import cast

import msgspec
from reactivex.subject import Subject

from cells.apply.next_hops import NextHopLoop
from cells.hive.jobs import Jobs
from cells.speaker.events import SpeakerEvents
from reconcilers.intent.session_addresses import forget_session_addresses
from reconcilers.model import NextHops
from reconcilers.tables import IntentTables
from speaker.api import SpeakerPort
from statedb import Database
from tests.reconcilers.intent.service_addresses.build import cluster


class _Status(msgspec.Struct):
    instance: str
    name: str
    next_hops: tuple[str, ...]


class _Speaker:
    def __init__(self) -> None:
        self.statuses: list[_Status] = []

    def peers(self) -> list[_Status]:
        return self.statuses


class _Events:
    observable: Subject[object] = Subject()


class _NoJobs:
    def add(self, *_: object) -> None:
        """Nothing runs."""


def loop(db: Database, intent: IntentTables, speaker: _Speaker) -> NextHopLoop:
    return NextHopLoop(
        db,
        intent,
        cast("SpeakerPort", speaker),
        cast("SpeakerEvents", _Events()),
        cast("Jobs", _NoJobs()),
    )


def test_next_hops_of_configured_peers_are_written_where_they_differ() -> None:
    found = cluster()
    found.run()
    speaker = _Speaker()
    job = loop(found.db, found.intent, speaker)
    table = found.intent.next_hops

    def rows() -> list[NextHops]:
        return list(table.all(found.db.snapshot()))

    speaker.statuses = [_Status("i", "p", ("192.0.2.253",)), _Status("i", "other", ("192.0.2.7",))]
    job.write()
    assert rows() == [NextHops("i", "p", ("192.0.2.253",))]
    revision = table.revision(found.db.snapshot())
    speaker.statuses = [_Status("i", "p", ())]
    job.write()
    assert table.revision(found.db.snapshot()) == revision
    speaker.statuses = [_Status("i", "p", ("192.0.2.252",))]
    job.write()
    assert rows() == [NextHops("i", "p", ("192.0.2.252",))]


def test_they_go_with_their_peer() -> None:
    found = cluster()
    found.run()
    with found.db.write(found.intent.next_hops) as txn:
        found.intent.next_hops.upsert(txn, NextHops("i", "gone", ("192.0.2.1",)))
    forget_session_addresses(found.db, found.intent)
    assert not list(found.intent.next_hops.all(found.db.snapshot()))
