"""The job that keeps the webhook's certificate: stored, renewed, presented, and trusted.

The Secret is written by the leader alone and read by every replica. The leader also writes the
authorities (``caBundle``) into the ValidatingWebhookConfiguration, which the chart installs. A replica
presents another certificate than before once its authority is there: a Secret that is restored from a
backup has a foreign one.
"""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Awaitable, Callable
from typing import Any, Final

import structlog

from cells.hive import Health
from cells.operator.webhook.server import WebhookServer
from resources.kubernetes import KubernetesError, StatusError, Writer
from resources.kubernetes.certificates import Certificates, due, from_secret, is_trusted

INTERVAL: Final = 5.0
"""Seconds between two reads of the Secret and the configuration. A new configuration has no
authorities: with failure policy Fail the API server refuses every object until they are written."""
FIRST_INTERVAL: Final = 1.0
"""The same, until there is a certificate and the API server trusts it."""
CONFIGURATIONS: Final = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"

log = structlog.get_logger("waggle.webhook")


class CertificateKeeper:
    """Keeps the certificate of one server."""

    def __init__(
        self,
        server: WebhookServer,
        *,
        namespace: str,
        secret: str,
        owners: Callable[[Writer], Awaitable[list[dict[str, Any]]]],
        configuration: str,
        names: tuple[str, ...],
        leads: Callable[[], bool],
        health: Health,
        now: Callable[[], dt.datetime],
    ) -> None:
        """``owners`` returns the owner references of the Secret.

        ``names`` are the DNS names and addresses by which an API server calls the webhook.
        """
        self._owners = owners
        self._server = server
        self._secrets = f"/api/v1/namespaces/{namespace}/secrets"
        self._secret = secret
        self._configuration = f"{CONFIGURATIONS}/{configuration}"
        self._configuration_name = configuration
        self._names = names
        self._leads = leads
        self._health = health
        self._now = now
        self.presented: Certificates | None = None
        """The certificate of the listening server."""
        self._published: str | None = None
        """The authorities that the configuration is known to have."""

    async def run(self, writer: Writer) -> None:
        """Go on until cancelled."""
        while True:
            try:
                done = await self.step(writer)
            except KubernetesError as error:
                done = False
                self._health.degraded(f"the certificate cannot be kept: {error}")
            await asyncio.sleep(INTERVAL if done else FIRST_INTERVAL)

    async def step(self, writer: Writer) -> bool:
        """Do what is due once; returns whether nothing is waited for. Raises `KubernetesError`."""
        path = f"{self._secrets}/{self._secret}"
        secret = await writer.get(path)
        stored = from_secret((secret or {}).get("data"))
        try:
            return await self._keep(writer, path, secret, stored)
        except KubernetesError:
            if stored is not None and not self._server.listens:
                # Its authority may have been published earlier, or by another replica.
                await self._present(stored)
            raise

    async def _keep(
        self,
        writer: Writer,
        path: str,
        secret: dict[str, Any] | None,
        stored: Certificates | None,
    ) -> bool:
        if self._leads():
            is_published = stored is not None and self._published == stored.bundle
            renewed = due(
                stored,
                self._now(),
                self._names,
                published=is_published,
                presented=self.presented,
                trusted=(await self._trusted(writer) if None in (stored, self.presented) else ""),
            )
            owners = await self._owners(writer)
            metadata = (secret or {}).get("metadata") or {}
            if renewed is None and owners and metadata.get("ownerReferences") != owners:
                renewed = stored
            if renewed is not None:
                stored = await self._store(writer, path, secret, renewed, owners)
        if stored is None:
            # What is in memory is presented until it is replaced.
            self._health.degraded(f"waits for a leader to make the Secret {self._secret}")
            return False
        published = not self._leads() or await self._publish(writer, stored)
        if self.presented not in (stored, None):
            bundle = await self._trusted(writer)
            if bundle and not is_trusted(stored, bundle):
                self._health.degraded(
                    f"waits for a leader to publish the authority of the Secret {self._secret}"
                )
                return False
        await self._present(stored)
        if not published:
            self._health.degraded(
                f"the ValidatingWebhookConfiguration {self._configuration_name} does not exist"
            )
            return False
        where = f"{self._server.host}:{self._server.port}"
        self._health.ok(f"listening on {where}, certificate until {stored.end:%Y-%m-%d}")
        return True

    async def _present(self, certificates: Certificates) -> None:
        """Present a certificate from now on, and listen."""
        if certificates != self.presented:
            self._server.load(certificates)
            self.presented = certificates
            until = certificates.end.isoformat()
            log.info("certificate", event_name="webhook.certificate", until=until)
        if not self._server.listens:
            await self._server.start()

    async def _store(
        self,
        writer: Writer,
        path: str,
        secret: dict[str, Any] | None,
        certificates: Certificates,
        owners: list[dict[str, Any]],
    ) -> Certificates | None:
        """Write the Secret; returns what it has, or None if another writer was faster."""
        if secret is None:
            metadata: dict[str, Any] = {"name": self._secret}
        else:
            version = secret["metadata"].get("resourceVersion", "")
            metadata = {"name": self._secret, "resourceVersion": version}
        metadata["ownerReferences"] = owners
        content = {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "Opaque",
            "metadata": metadata,
            "data": certificates.data,
        }
        try:
            if secret is None:
                await writer.create(self._secrets, content)
            else:
                await writer.replace(path, content)
        except StatusError as error:
            if error.status == 409:
                return None
            raise
        return certificates

    async def _trusted(self, writer: Writer) -> str:
        """Return the authorities that the configuration has, empty if none."""
        configuration = await writer.get(self._configuration) or {}
        bundles = [
            hook["clientConfig"].get("caBundle") for hook in configuration.get("webhooks") or []
        ]
        return next(filter(None, bundles), "")

    async def _publish(self, writer: Writer, certificates: Certificates) -> bool:
        """Write the authorities into the configuration; returns whether it exists."""
        configuration = await writer.get(self._configuration)
        if configuration is None:
            self._published = None
            return False
        bundle = certificates.bundle
        webhooks = configuration.get("webhooks") or []
        if any(hook["clientConfig"].get("caBundle") != bundle for hook in webhooks):
            changed = [
                {**hook, "clientConfig": {**hook["clientConfig"], "caBundle": bundle}}
                for hook in webhooks
            ]
            version = configuration["metadata"].get("resourceVersion", "")
            await writer.merge(
                self._configuration,
                {"metadata": {"resourceVersion": version}, "webhooks": changed},
            )
            log.info("authorities written", event_name="webhook.published")
        self._published = bundle
        return True
