"""The composition of the apply cell."""

from __future__ import annotations

from cells.apply.api import reconciler_resource, verify_action
from cells.apply.compat_metrics import CompatCollector
from cells.apply.configuration_metrics import ConfigurationMetrics
from cells.apply.loop import ApplyLog, ApplyLoop, FirstPass
from cells.apply.peer_limits import LearnedLimitLoop, PeerLimitReport
from cells.apply.reconcile import Runners
from cells.apply.session_addresses import SessionAddressLoop
from cells.apply.session_readings import NextHopWriter, SessionReadings, UnsentRoutesWriter
from cells.apply.verification import DriftMetrics, VerificationLoop
from cells.hive import Group, Wiring, provide
from cells.hive.jobs import Jobs
from cells.intent.cell import BfdRunner
from cells.observability.metrics import MetricsCollector
from cells.options import ApplyOptions
from cells.speaker.events import SpeakerEvents
from reconcilers.apply.import_policy import ImportPolicies
from reconcilers.apply.instances import Instances
from reconcilers.apply.peers import Peers
from reconcilers.apply.received_limits import ReceivedLimits
from reconcilers.apply.route_sets import RouteSets
from reconcilers.intent_tables import IntentTables
from reconcilers.target import Reconciler, Runner
from resources.tables import Tables
from speaker.api import SpeakerPort
from statedb import Database


def make_peers(
    database: Database,
    intent_tables: IntentTables,
    tables: Tables,
    speaker: SpeakerPort,
    options: ApplyOptions,
    bfd: Group[BfdRunner],
) -> Peers:
    """Return the reconciler of peers."""
    keep = None if options.keep_received == "all" else options.keep_received
    enforced = options.enforce_first_as
    received = ReceivedLimits(keep, options.received_limit, enforce_first_as=enforced)
    return Peers(database, intent_tables, tables, speaker, received, bfd=bool(bfd))


def make_runner(
    database: Database,
    intent_tables: IntentTables,
    reconcilers: Group[Reconciler],
    outcomes: ApplyLog,
) -> Runner:
    """Return the runner of all reconcilers that the cells contribute."""
    statuses = intent_tables.reconcile_statuses
    return Runner(database, statuses, reconcilers, report=outcomes.note)


def make_runners(runner: Runner) -> Runners:
    """Return the runners of an agent: first the speaker's, then what other cells add."""
    return Runners(runner)


def make_session_readings(
    database: Database,
    intent_tables: IntentTables,
    speaker: SpeakerPort,
    events: SpeakerEvents,
    jobs: Jobs,
) -> SessionReadings:
    """Return the job that reads the sessions, for next hops and routes that are not sent."""
    writers = (NextHopWriter(database, intent_tables), UnsentRoutesWriter(database, intent_tables))
    return SessionReadings(speaker, events, writers, jobs)


WIRING = Wiring(
    provides=(FirstPass, ApplyLoop, make_runner, make_runners),
    private=(
        ApplyLog,
        VerificationLoop,
        SessionAddressLoop,
        LearnedLimitLoop,
        PeerLimitReport,
        ConfigurationMetrics,
    ),
    # What an earlier process knew is read before the first round.
    invokes=(
        SessionAddressLoop,
        LearnedLimitLoop,
        ApplyLoop,
        VerificationLoop,
        make_session_readings,
        PeerLimitReport,
    ),
    contributes=(
        provide(Instances, as_=Reconciler),
        provide(RouteSets, as_=Reconciler),
        provide(ImportPolicies, as_=Reconciler),
        provide(make_peers, as_=Reconciler),
        provide(DriftMetrics, as_=MetricsCollector),
        provide(make_runners, as_=MetricsCollector),
        provide(PeerLimitReport, as_=MetricsCollector),
        provide(ConfigurationMetrics, as_=MetricsCollector),
        provide(CompatCollector, as_=MetricsCollector),
        reconciler_resource,
        verify_action,
    ),
)
