"""Options of the operator and of its webhook."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from resources.option_declarations import Options, setting


class OperatorOptions(Options, frozen=True):
    """Options of the operator cell."""

    fib: Annotated[
        bool | Literal["auto"],
        setting(
            "whether agents install received routes in the kernel, as their --fib has it; false: the "
            "operator reports objects that accept routes as partially applied",
            flag="--fib",
            metavar="auto|true|false",
        ),
    ] = "auto"
    lease_namespace: Annotated[
        str,
        setting("namespace of the Lease by which one operator leads", flag="--lease-namespace"),
    ] = "kube-system"
    identity: Annotated[
        str | None,
        setting(
            "name of this candidate in the Lease; the host's name and a random part by default"
        ),
    ] = None
    lease_duration_seconds: Annotated[
        int,
        msgspec.Meta(ge=1),
        setting(
            "how long a Lease lasts that is not renewed: until another leads when a leader dies",
            flag="--lease-duration-seconds",
        ),
    ] = 15
    renew_deadline_seconds: Annotated[
        float,
        msgspec.Meta(gt=0.0),
        setting(
            "for how long renewing may fail before a leader ends; less than the Lease lasts",
            flag="--renew-deadline-seconds",
        ),
    ] = 10.0
    lease_retry_seconds: Annotated[
        float,
        msgspec.Meta(gt=0.0),
        setting("seconds between two reads of the Lease", flag="--lease-retry-seconds"),
    ] = 2.0
    deployment: Annotated[
        str | None,
        setting(
            "Deployment of the operator, in the namespace of the Lease: it owns the Lease and the "
            "webhook's Secret, which are deleted with it",
            flag="--operator-deployment",
            metavar="NAME",
        ),
    ] = None
    status_report: Annotated[
        bool,
        setting(
            "write conditions; if false, written conditions are removed",
            flag="--status-report",
        ),
    ] = True
    migrate_storage_versions: Annotated[
        bool,
        setting(
            "rewrite objects that are stored in an old version of their kind",
            flag="--migrate-storage-versions",
        ),
    ] = True


class WebhookOptions(Options, frozen=True):
    """Options of the webhook cell."""

    address: Annotated[
        str | None,
        setting(
            "review objects before the API server stores them, over HTTPS here; "
            "a port alone means loopback",
            flag="--webhook",
            metavar="[HOST:]PORT",
        ),
    ] = None
    names: Annotated[
        tuple[str, ...],
        setting(
            "names and addresses by which the API server calls the webhook",
            flag="--webhook-names",
            metavar="NAME[,NAME...]",
        ),
    ] = ("waggle-webhook.kube-system.svc", "localhost", "127.0.0.1")
    stored_in: Annotated[
        str,
        setting(
            "Secret with the webhook's certificate, in the namespace of the Lease",
            flag="--webhook-secret",
            metavar="NAME",
        ),
    ] = "waggle-webhook"
    configuration: Annotated[
        str,
        setting(
            "ValidatingWebhookConfiguration that calls the webhook; its caBundle is written",
            flag="--webhook-configuration",
            metavar="NAME",
        ),
    ] = "waggle"
