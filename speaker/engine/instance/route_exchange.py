"""The route messages of one Established session: UPDATE and ROUTE-REFRESH, one at a time.

The slow path; runs of plain UPDATEs take `speaker.engine.instance.plain_updates`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from speaker.api import PrefixLimit, SessionError
from speaker.engine.established_peer import EstablishedPeer
from speaker.engine.instance.outbound_updates import OutboundUpdates
from speaker.engine.observer import ObserverSlot
from speaker.iana import ErrorCode
from speaker.message import RefreshKind
from speaker.peer.engine_context import EngineContext
from speaker.peer.peer import MAX_REPORTED_DATA
from speaker.rib.inbound import MalformedReport


@final
class RouteExchange:
    """Processes the route messages of a session (`speaker.peer.session.RouteHandler`)."""

    __slots__ = ("_context", "_established", "_on_end_of_rib", "_outbound", "_slot")

    def __init__(
        self,
        context: EngineContext,
        established: EstablishedPeer,
        outbound: OutboundUpdates,
        slot: ObserverSlot,
        on_end_of_rib: Callable[[], None],
    ) -> None:
        """``on_end_of_rib`` is called after the End-of-RIB of a family."""
        self._context = context
        self._established = established
        self._outbound = outbound
        self._slot = slot
        self._on_end_of_rib = on_end_of_rib

    def update(self, body: bytes) -> None:
        """Process the body of an UPDATE (`RouteHandler`). Raises `NotificationError`."""
        established = self._established
        inbound = established.inbound
        update = inbound.process(body)
        observer = self._slot.observer
        if observer is not None:
            observer.update_received(established, body, update)
        if inbound.last_end_of_rib is not None:
            established.stale.sweep(inbound.last_end_of_rib)
            inbound.last_end_of_rib = None
            self._on_end_of_rib()
        if established.limits is not None:
            enforce_limits(self._context, established)
        if update.faults or inbound.path_limit_exceeded:
            report = inbound.malformed_report(update)
            if report is not None:
                self._report(report)

    def _report(self, report: MalformedReport) -> None:
        peer = self._established.peer
        self._context.report(
            SessionError(
                instance=peer.instance.name,
                peer=peer.name,
                address=peer.address,
                sent=False,
                code=int(ErrorCode.UPDATE_MESSAGE),
                subcode=report.subcode,
                text=report.text,
                data=report.data[:MAX_REPORTED_DATA].hex(),
                survived=True,
            )
        )

    def route_refresh(self, body: bytes) -> None:
        """Process the body of a ROUTE-REFRESH (`RouteHandler`; RFC 2918, RFC 7313).

        Raises `NotificationError`.
        """
        established = self._established
        message = established.inbound.decode_route_refresh(body)
        if message is None:
            return
        family = message.family
        if message.subtype == RefreshKind.BEGIN:
            established.stale.refresh_started(family)
        elif message.subtype == RefreshKind.END:
            established.stale.sweep(family)
        elif message.subtype == RefreshKind.REQUEST:
            self._outbound.answer_route_refresh(established, family)


def enforce_limits(context: EngineContext, established: EstablishedPeer) -> None:
    """Report prefix limits that were reached, and end the session beyond one (RFC 4486)."""
    limits = established.limits
    if limits is None or not limits.reached(established.adj_in):
        return
    peer = established.peer
    for reached in limits.take(established.adj_in):
        context.report(
            PrefixLimit(
                instance=peer.instance.name,
                peer=peer.name,
                family=reached.family,
                received=reached.received,
                limit=reached.limit,
                ended=reached.ends,
            )
        )
        if reached.ends:
            peer.prefix_limit_exceeded(reached.reason, reached.cease, reached.restart_after)
            return
