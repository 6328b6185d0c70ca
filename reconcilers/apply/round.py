"""One apply round: the intent against what the speaker was told, in order, and what came of it.

Level-triggered: a round reads one snapshot and works for as long as something differs; what failed is
tried again after a pause that doubles. An instance's failure never stops another one's round. The
outcome of each object is a row, written in one transaction.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import msgspec
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanContext

from reconcilers.apply import reconcilers as steps
from reconcilers.apply.convert import instance_config, peer_config
from reconcilers.model import Instance, Peer, ReconcileStatus, SecretRef
from reconcilers.tables import KEY, IntentTables
from resources.core import Secret
from speaker.api import PeerConfig
from speaker.api.port import SpeakerPort
from statedb import Database, Snapshot, Table

_tracer = trace.get_tracer("waggle.reconcilers")

FIRST_RETRY = 0.5
LAST_RETRY = 30.0
"""Seconds."""


class ApplySummary(msgspec.Struct, frozen=True):
    """What a round did."""

    changed: bool
    """Whether the speaker was called at all."""
    errors: int
    retry_at: float | None
    """When something that failed is due again, on the clock that `run` is given."""


class ApplyRound:
    """Applies the intent to a speaker; `run` is one round. Call it after the first intent round."""

    def __init__(
        self,
        db: Database,
        intent: IntentTables,
        secrets: Table[Secret],
        speaker: SpeakerPort,
        rng: random.Random | None = None,
    ) -> None:
        self._db = db
        self._intent = intent
        self._secrets = secrets
        self._speaker = speaker
        self._rng = rng or random.Random()  # noqa: S311  jitter, not secrecy
        self._routes = intent.routes.changes(db)
        self._applied: dict[str, steps.Applied] = {}
        self._outcomes: dict[tuple[str, str], ReconcileStatus] = {}
        self._revisions: tuple[int, ...] | None = None
        self._owed: set[tuple[str, str]] = set()
        """Route sets of instances that have to be told whole: new, or an update failed."""

    def run(self, now: float, parent: SpanContext | None = None) -> ApplySummary:
        """Do one round; ``now`` is a monotonic time in seconds, ``parent`` the intent round's span."""
        snapshot = self._db.snapshot()
        i = self._intent
        revisions = tuple(
            table.revision(snapshot) for table in (i.instances, i.peers, self._secrets)
        )
        update = self._changed_routes(snapshot)
        retry_at = self._next_retry()
        due = retry_at is not None and retry_at <= now
        configuration = revisions != self._revisions or due
        if not configuration and not update:
            return ApplySummary(False, self._error_count(), retry_at)
        with self._span("apply.round", parent):
            changed: dict[tuple[str, str], ReconcileStatus] = {}
            try:
                if configuration:
                    self._configuration(snapshot, now, update, changed)
                else:
                    for name, applied in self._applied.items():
                        self._tell_routes(snapshot, name, applied.route_sets, update, now, changed)
            except BaseException:
                # The changes were taken from their iterator: what they were for is owed whole.
                self._revisions = None
                self._owed |= {(n, s) for n, a in self._applied.items() for s in a.route_sets}
                raise
            self._revisions = revisions
            self._write_outcomes(changed)
        return ApplySummary(True, self._error_count(), self._next_retry())

    @contextmanager
    def _span(self, name: str, parent: SpanContext | None = None) -> Iterator[Span]:
        context = None
        if parent is not None and parent.is_valid:
            context = trace.set_span_in_context(trace.NonRecordingSpan(parent), Context())
        with _tracer.start_as_current_span(name, context=context) as span:
            yield span

    def _changed_routes(self, snapshot: Snapshot) -> steps.RouteUpdate:
        return {
            (change.row.route_set, change.row.family, change.row.nlri): (
                None if change.deleted else change.row
            )
            for change in self._routes.next(snapshot)
        }

    # The steps

    def _configuration(
        self,
        snapshot: Snapshot,
        now: float,
        update: steps.RouteUpdate,
        changed: dict[tuple[str, str], ReconcileStatus],
    ) -> None:
        i = self._intent
        desired = {row.name: row for row in i.instances.all(snapshot)}
        with self._span("apply.instance"):
            for name in [name for name in self._applied if name not in desired]:
                self._attempt(steps.INSTANCE, name, now, changed, partial(self._remove, name))
            for name in sorted(desired):
                work = partial(self._instance, desired[name])
                self._attempt(steps.INSTANCE, name, now, changed, work)
        for name in sorted(self._applied):
            if name in desired:
                peers = self._desired_peers(snapshot, name, now, changed)
                wanted = {p.route_set for p in peers.values() if p.route_set is not None}
                self._add_sets(name, wanted)
                # A set that no peer is to have any more is left as it is until they have moved:
                # its routes going away would be told to them.
                self._tell_routes(snapshot, name, wanted, update, now, changed)
                self._peers(name, peers, now, changed)
                self._drop_sets(name, wanted)

    def _instance(self, row: Instance) -> None:
        config = instance_config(row)
        applied = self._applied.get(row.name)
        if applied is not None and applied.config == config:
            return
        self._speaker.set_instance(config)
        # Another identity is another router: nothing of the former one is left.
        self._applied[row.name] = steps.Applied(config)
        self._owed = {(instance, s) for instance, s in self._owed if instance != row.name}

    def _remove(self, name: str) -> None:
        applied = self._applied[name]
        for peer in list(applied.peers):
            self._speaker.remove_peer(name, peer)
            del applied.peers[peer]
        for route_set in list(applied.route_sets):
            self._speaker.remove_route_set(name, route_set)
            applied.route_sets.discard(route_set)
        self._speaker.remove_instance(name)
        del self._applied[name]

    def _desired_peers(
        self,
        snapshot: Snapshot,
        instance: str,
        now: float,
        changed: dict[tuple[str, str], ReconcileStatus],
    ) -> dict[str, PeerConfig]:
        def password_of(ref: SecretRef) -> bytes | None:
            secret = self._secrets.get(snapshot, (ref.namespace, ref.name))
            if secret is None or ref.key not in secret.data:
                return None
            # A newline at the end is an editor's, not the password's (H14).
            return secret.data[ref.key].reveal().rstrip(b"\r\n")

        desired: dict[str, PeerConfig] = {}
        local_asn = self._applied[instance].config.local_asn
        row: Peer
        for row in self._intent.peers.prefix(snapshot, KEY, (instance,)):
            try:
                desired[row.name] = peer_config(row, local_asn, password_of)
            except ValueError as error:
                self._note(steps.NEIGHBOR, f"{instance}/{row.name}", error, now, changed)
                # What cannot be applied leaves what is there alone.
                present = self._applied[instance].peers.get(row.name)
                if present is not None:
                    desired[row.name] = present
        return desired

    def _add_sets(self, instance: str, wanted: set[str]) -> None:
        applied = self._applied[instance]
        for route_set in wanted - applied.route_sets:
            applied.route_sets.add(route_set)
            self._owed.add((instance, route_set))

    def _drop_sets(self, instance: str, wanted: set[str]) -> None:
        applied = self._applied[instance]
        for route_set in applied.route_sets - applied.route_sets_in_use - wanted:
            self._speaker.remove_route_set(instance, route_set)
            applied.route_sets.discard(route_set)
            self._owed.discard((instance, route_set))

    def _tell_routes(
        self,
        snapshot: Snapshot,
        instance: str,
        wanted: set[str],
        update: steps.RouteUpdate,
        now: float,
        changed: dict[tuple[str, str], ReconcileStatus],
    ) -> None:
        for route_set in sorted(wanted):
            told: list[steps.RouteChange]
            if (instance, route_set) in self._owed:
                rows = self._intent.routes.prefix(snapshot, KEY, (route_set,))
                told = [(row.family, row.nlri, row) for row in rows]
            else:
                told = [
                    (family, nlri, route)
                    for (name, family, nlri), route in update.items()
                    if name == route_set
                ]
                if not told:
                    continue
            with self._span("apply.routes"):
                work = partial(self._tell, instance, route_set, told)
                self._attempt("routes", f"{instance}/{route_set}", now, changed, work)

    def _tell(self, instance: str, route_set: str, told: list[steps.RouteChange]) -> None:
        # Until it has worked the set is owed whole, whatever goes wrong in between.
        self._owed.add((instance, route_set))
        if not told:
            self._speaker.update_routes(instance, route_set, {})
        for call in steps.by_source(told):
            self._speaker.update_routes(instance, route_set, call)
        self._owed.discard((instance, route_set))

    def _peers(
        self,
        instance: str,
        desired: dict[str, PeerConfig],
        now: float,
        changed: dict[tuple[str, str], ReconcileStatus],
    ) -> None:
        with self._span("apply.neighbor"):
            applied = self._applied[instance]
            for peer, error in steps.reconcile_peers(self._speaker, applied, desired):
                self._note(steps.NEIGHBOR, f"{instance}/{peer}", error, now, changed)

    # Outcomes

    def _attempt(
        self,
        reconciler: str,
        name: str,
        now: float,
        changed: dict[tuple[str, str], ReconcileStatus],
        work: Callable[[], None],
    ) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001  one object's error is that object's
            self._note(reconciler, name, error, now, changed)
        else:
            self._note(reconciler, name, None, now, changed)

    def _note(
        self,
        reconciler: str,
        name: str,
        error: Exception | None,
        now: float,
        changed: dict[tuple[str, str], ReconcileStatus],
    ) -> None:
        key = (reconciler, name)
        before = self._outcomes.get(key)
        if error is None:
            outcome = ReconcileStatus(reconciler, name)
        else:
            attempts = 1 + (before.attempts if before is not None else 0)
            pause = min(LAST_RETRY, FIRST_RETRY * 2 ** (attempts - 1))
            retry_at = now + pause * self._rng.uniform(0.75, 1.25)
            outcome = ReconcileStatus(
                reconciler, name, f"{type(error).__name__}: {error}", attempts, retry_at
            )
        if outcome != before:
            self._outcomes[key] = changed[key] = outcome

    def _next_retry(self) -> float | None:
        times = [o.retry_at for o in self._outcomes.values() if o.retry_at is not None]
        return min(times, default=None)

    def _error_count(self) -> int:
        return sum(outcome.error is not None for outcome in self._outcomes.values())

    def _write_outcomes(self, changed: dict[tuple[str, str], ReconcileStatus]) -> None:
        alive = {(steps.INSTANCE, name) for name in self._applied}
        for name, applied in self._applied.items():
            alive |= {(steps.NEIGHBOR, f"{name}/{peer}") for peer in applied.peers}
            alive |= {("routes", f"{name}/{route_set}") for route_set in applied.route_sets}
        gone = [k for k, o in self._outcomes.items() if k not in alive and o.error is None]
        if not changed and not gone:
            return
        with self._db.write(self._intent.reconcile_statuses) as txn:
            for key in gone:
                del self._outcomes[key]
                changed.pop(key, None)
                self._intent.reconcile_statuses.delete(txn, key)
            for outcome in changed.values():
                self._intent.reconcile_statuses.upsert(txn, outcome)
