"""Entries of changed rows: which tables are recorded, and name, cause and fields of their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import islice
from typing import Any, Final, NamedTuple

from cells.api.history import HistoryItem
from cells.history.differences import differences
from reconcilers.bfd_session import BfdSession
from reconcilers.intent_tables import IntentTables
from reconcilers.model import Condition, Peer, Problem, ReconcileStatus, Route, UnsentRoutes
from reconcilers.sliced_work import Slices
from resources.core.kinds import CONFIG_MAP, SECRET
from resources.kind import Kind
from resources.tables import Tables
from speaker.attribute import community_text
from speaker.nlri import prefix_to_text
from statedb import Table

MOST_CAUSES: Final = 6
WITHOUT_CONTENT: Final = frozenset((SECRET.name, CONFIG_MAP.name))
"""Kinds whose objects are named, without any value."""


class Recorded(NamedTuple):
    """A table whose changes are recorded."""

    kind: str
    table: Table[Any]
    name: Callable[[Any], str]
    fields: Callable[[Any], Any]
    """Returns the compared values: a struct or a mapping."""
    causes: Callable[[Any, Any], list[str]]
    """Objects, of the row before and after; one of the two may be None."""
    message: Callable[[Any], str] = lambda _: ""
    by_field: bool = False
    """Whether a row that appears or disappears without a value in its fields is no change."""

    def entry(self, old: Any, new: Any, now: datetime) -> Slices[HistoryItem | None]:  # noqa: ANN401
        """Return the entry of a change; None where no field differs."""
        row = old if new is None else new
        before = None if old is None else self.fields(old)
        after = None if new is None else self.fields(new)
        changes = yield from differences(before, after)
        both = old is not None and new is not None and before is not None
        if not changes and (both or self.by_field):
            return None
        return HistoryItem(
            event_time=now,
            type="ADDED" if old is None else "DELETED" if new is None else "MODIFIED",
            kind=self.kind,
            name=self.name(row),
            address=row.address if isinstance(row, Peer) else None,
            route_set=row.route_set if isinstance(row, Route) else None,
            changes=changes,
            message=self.message(row) or None,
            causes=tuple(islice(dict.fromkeys(self.causes(old, new)), MOST_CAUSES)),
        )


def recorded_tables(tables: Tables, intent: IntentTables) -> list[Recorded]:
    """Return the tables, causes before what follows from them."""
    return [*(_of_kind(tables, kind) for kind in tables.kinds), *_of_intent(intent)]


def _of_kind(tables: Tables, kind: Kind[Any]) -> Recorded:
    hidden = kind.name in WITHOUT_CONTENT

    def fields(row: Any) -> Any:  # noqa: ANN401
        return None if hidden else row

    return Recorded(
        kind.name,
        tables.of(kind),
        lambda row: "/".join(filter(None, row.key)),
        fields,
        lambda old, new: [
            f"{owner.kind}/{owner.name}" for owner in (new or old).metadata.owner_references
        ],
    )


def _of_intent(intent: IntentTables) -> Iterator[Recorded]:
    def by_origin(old: Any, new: Any) -> list[str]:  # noqa: ANN401
        origin = (new or old).origin
        return [] if origin is None else [str(origin)]

    def of_peer(row: Any) -> str:  # noqa: ANN401
        return f"{row.instance}/{row.peer}"

    yield Recorded(
        "Instance",
        intent.instances,
        lambda row: row.name,
        lambda row: row,
        by_origin,
    )
    yield Recorded(
        "Peer",
        intent.peers,
        lambda row: f"{row.instance}/{row.name}",
        lambda row: row,
        lambda old, new: [str(ref) for ref in (new or old).origins],
    )
    yield Recorded("Route", intent.routes, _prefix, _route_fields, _route_causes)
    yield Recorded(
        "Condition",
        intent.conditions,
        lambda row: f"{row.object}/{row.type}",
        _condition_fields,
        lambda old, new: [str((new or old).object)],
        lambda row: row.message,
    )
    yield Recorded(
        "Problem",
        intent.problems,
        _problem_name,
        lambda row: {"category": row.category, "count": row.count},
        lambda old, new: [str(ref) for ref in (new or old).objects],
        lambda row: row.message,
    )
    yield Recorded(
        "Unsent",
        intent.unsent_routes,
        of_peer,
        _unsent_fields,
        lambda _, __: [],
    )
    yield Recorded(
        "BFD",
        intent.bfd_sessions,
        of_peer,
        _bfd_fields,
        lambda _, __: [],
        lambda row: row.diagnostic,
    )
    yield Recorded(
        "Reconciler",
        intent.reconcile_statuses,
        lambda row: f"{row.reconciler}/{row.object}",
        _status_fields,
        lambda _, __: [],
        by_field=True,
    )


def _prefix(row: Route) -> str:
    return prefix_to_text(row.family, row.nlri)


def _route_fields(row: Route) -> dict[str, Any]:
    attributes = row.attributes
    return {
        "communities": [community_text(value) for value in attributes.communities] or None,
        "largeCommunities": [":".join(map(str, value)) for value in attributes.large_communities]
        or None,
        "localPreference": attributes.local_preference,
        "med": attributes.med,
        "nextHop": attributes.next_hop,
        "origin": "INCOMPLETE" if attributes.incomplete else None,
        "origins": [str(origin.object) for origin in row.origins],
    }


def _route_causes(old: Route | None, new: Route | None) -> list[str]:
    """Return the objects whose contribution differs, then the objects with their rules."""
    before = () if old is None else old.contributions
    after = () if new is None else new.contributions
    differing = [item for item in after if item not in before]
    differing += [item for item in before if item not in after]
    origins = [item.origin for item in differing or after]
    return [*(str(origin.object) for origin in origins), *(str(origin.rule) for origin in origins)]


def _condition_fields(row: Condition) -> dict[str, Any]:
    return {"status": str(row.status), "reason": row.reason}


def _problem_name(row: Problem) -> str:
    return ": ".join(filter(None, (*(str(ref) for ref in row.objects[:1]), row.field)))


def _unsent_fields(row: UnsentRoutes) -> dict[str, Any]:
    return {"family": str(row.family), "reason": row.reason}


def _bfd_fields(row: BfdSession) -> dict[str, Any]:
    return {"state": row.state, "remoteState": row.remote_state}


def _status_fields(row: ReconcileStatus) -> dict[str, Any]:
    return {"error": row.error}
