"""The paths of the apply cell in the local API: its reconcilers, and a full verification."""

from __future__ import annotations

from datetime import UTC, datetime

from cells.api.model import DriftItem, ReconcilerItem
from cells.api.resource import ApiAction, ApiResource, NoBody, UnavailableError
from cells.apply.reconcile import Runners
from cells.apply.verification import NotReadyError, VerificationLoop
from reconcilers.target import Drift, ReconcilerReport


def reconciler_resource(runners: Runners) -> ApiResource:
    """Return the list of reconcilers, in their order: of the speaker, then of the API server."""
    return ApiResource(
        path="/v1/reconcilers",
        kind="ReconcilerList",
        read=lambda _: [reconciler_item(report) for report in runners.reports()],
    )


def verify_action(verification: VerificationLoop) -> ApiAction:
    """Return the action that verifies; its items are the objects that drifted."""

    async def verify(_: NoBody) -> list[DriftItem]:
        try:
            result = await verification.request()
        except NotReadyError as error:
            raise UnavailableError(str(error)) from None
        return [drift_item(drift) for drift in result.drifts]

    return ApiAction(path="/v1/verify", kind="DriftList", run=verify)


def reconciler_item(report: ReconcilerReport) -> ReconcilerItem:
    """Translate a reconciler at work."""
    description = report.description
    ran = report.last_run is not None
    return ReconcilerItem(
        name=description.name,
        order=description.order,
        summary=description.summary,
        target=description.target,
        tables=list(description.tables),
        objects=report.objects if ran else None,
        errors=report.errors if ran else None,
        waiting=report.waiting if ran else None,
        drifted=report.drifted if ran else None,
        last_run_time=datetime.fromtimestamp(report.last_run or 0.0, UTC) if ran else None,
        duration_seconds=round(report.seconds, 6) if ran else None,
    )


def drift_item(drift: Drift) -> DriftItem:
    """Translate an object that drifted."""
    return DriftItem(
        reconciler=drift.reconciler,
        object=drift.object,
        missing=drift.missing,
        unexpected=drift.unexpected,
        different=drift.different,
        details=list(drift.details),
        repaired=drift.error is None,
        error=drift.error,
    )
