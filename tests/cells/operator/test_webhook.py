"""The webhook's server and its certificate, against an API server that is a dictionary of objects."""

from __future__ import annotations

import asyncio
import base64
import datetime as dt
import io
import json
import socket
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import pytest
from structlog.testing import capture_logs

from cells.hive import HealthTree, StartError
from cells.operator.webhook import certificate, server
from cells.operator.webhook.cell import Webhook
from cells.operator.webhook.certificate import CONFIGURATIONS, CertificateKeeper
from cells.operator.webhook.server import BODY_OCTETS, WebhookServer
from reconcilers.admission import Verdict
from reconcilers.dialect import Unread
from resources.kubernetes import StatusError, Writer
from resources.kubernetes.certificates import LIFETIME, RENEWAL, due, from_secret
from tests.reconcilers.admission.claims import claim
from tests.reconcilers.admission.test_review import Place

SECRET = "/api/v1/namespaces/kube-system/secrets/waggle-webhook"
CONFIGURATION = f"{CONFIGURATIONS}/waggle"
NAMES = ("localhost", "127.0.0.1")
DAY = dt.timedelta(days=1)
DESCRIPTORS = Path("/proc/self/fd")


class Objects:
    """Stores objects by path, with resource versions; a writer of one connection."""

    def __init__(self) -> None:
        self.stored: dict[str, dict[str, Any]] = {}
        self.writes = 0
        self.refuses = ""
        """The path of an object of which no change is accepted."""

    async def get(self, path: str) -> dict[str, Any] | None:
        return json.loads(json.dumps(self.stored[path])) if path in self.stored else None

    async def create(self, path: str, content: dict[str, Any]) -> None:
        name = f"{path}/{content['metadata']['name']}"
        if name in self.stored:
            raise StatusError(409, "AlreadyExists")
        self._put(name, content)

    async def replace(self, path: str, content: dict[str, Any]) -> None:
        present = self.stored[path]["metadata"]["resourceVersion"]
        if content["metadata"]["resourceVersion"] != present:
            raise StatusError(409, "Conflict")
        self._put(path, content)

    async def merge(self, path: str, content: dict[str, Any]) -> None:
        if path == self.refuses:
            raise StatusError(503, "etcd is away")
        self._put(path, {**self.stored[path], **content})

    def _put(self, path: str, content: dict[str, Any]) -> None:
        self.writes += 1
        metadata = {**content["metadata"], "resourceVersion": str(self.writes)}
        self.stored[path] = {**content, "metadata": metadata}

    def configure(self) -> None:
        """Install the configuration, as the chart does."""
        hooks: list[dict[str, Any]] = [
            {"name": name, "clientConfig": {"service": {}}} for name in ("one", "two")
        ]
        self._put(CONFIGURATION, {"metadata": {"name": "waggle"}, "webhooks": hooks})

    @property
    def bundles(self) -> set[str]:
        hooks = self.stored[CONFIGURATION]["webhooks"]
        return {hook["clientConfig"].get("caBundle", "") for hook in hooks}


class Replica:
    """One operator's webhook."""

    def __init__(self, objects: Objects, *, leads: bool = True) -> None:
        self.objects = objects
        self.leads = leads
        self.now = dt.datetime.now(dt.UTC)
        self.owners: list[dict[str, Any]] = []
        self.waits_for = ""
        self.seen: list[Verdict] = []
        self.place = Place(claim("one", 1))
        self.server = WebhookServer(
            "127.0.0.1",
            0,
            self.place.reviewer,
            lambda _: self.waits_for,
            lambda _, verdict: self.seen.append(verdict),
        )
        self.tree = HealthTree()
        self.keeper = CertificateKeeper(
            self.server,
            namespace="kube-system",
            secret="waggle-webhook",
            owners=self.find_owners,
            configuration="waggle",
            names=NAMES,
            leads=lambda: self.leads,
            health=self.tree.scope("webhook"),
            now=lambda: self.now,
        )

    async def find_owners(self, _: Writer) -> list[dict[str, Any]]:
        return self.owners

    async def step(self) -> bool:
        return await self.keeper.step(cast("Writer", self.objects))

    @asynccontextmanager
    async def client(self) -> AsyncIterator[aiohttp.ClientSession]:
        """Connect as the API server does: with the authorities of the configuration."""
        (bundle,) = self.objects.bundles
        tls = ssl.create_default_context(cadata=base64.b64decode(bundle).decode())
        base = f"https://localhost:{self.server.port}"
        connector = aiohttp.TCPConnector(ssl=tls, force_close=True)
        async with aiohttp.ClientSession(base, connector=connector) as session:
            yield session


def review(value: Any, **fields: Any) -> dict[str, Any]:  # noqa: ANN401
    """Spell an AdmissionReview."""
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "0-1",
            "kind": {"group": "claims.example", "version": "v1", "kind": "Claim"},
            "operation": "CREATE",
            "object": value,
            **fields,
        },
    }


@asynccontextmanager
async def replica(age: dt.timedelta = DAY * 0) -> AsyncIterator[Replica]:
    """Serve as the leader, with a certificate of some age."""
    objects = Objects()
    objects.configure()
    it = Replica(objects)
    it.now -= age
    assert await it.step()
    try:
        yield it
    finally:
        await it.server.stop()


async def post(client: aiohttp.ClientSession, body: Any) -> tuple[int, Any]:  # noqa: ANN401
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    async with client.post("/validate/claims", data=io.BytesIO(data)) as response:
        text = await response.text()
        return response.status, json.loads(text) if response.status == 200 else text


def test_an_object_is_reviewed_over_tls() -> None:
    async def main() -> None:
        async with replica() as it, it.client() as client:
            status, answer = await post(client, review(claim("two", 2)))
            assert status == 200
            assert answer == {
                "apiVersion": "admission.k8s.io/v1",
                "kind": "AdmissionReview",
                "response": {
                    "uid": "0-1",
                    "allowed": False,
                    "status": {
                        "code": 403,
                        "reason": "Forbidden",
                        "message": "Claim/one, Claim/two: spec.value: port: 1 and 2 (nodes a0, b0)",
                    },
                },
            }
            _, answer = await post(client, review(claim("two", 1)))
            assert answer["response"] == {"uid": "0-1", "allowed": True}
            assert [verdict.allowed for verdict in it.seen] == [False, True]

    asyncio.run(main())


def test_a_dry_run_is_reviewed_like_any_other() -> None:
    async def main() -> None:
        async with replica() as it, it.client() as client:
            _, answer = await post(client, review(claim("two", 2), dryRun=True))
            assert not answer["response"]["allowed"]

    asyncio.run(main())


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[" * 100_000, 400),
        (b"\xff\xfe", 400),
        (b"{}", 400),
        (json.dumps({**review({}), "apiVersion": "admission.k8s.io/v1beta1"}).encode(), 400),
        (json.dumps({**review({}), "request": {"uid": 7}}).encode(), 400),
        (json.dumps(review({"spec": "?"})).replace('"?"', "1" * 10_000).encode(), 400),
        (json.dumps(review({"spec": "?"})).replace("?", "\\ud800").encode(), 400),
        (b" " * (BODY_OCTETS + 1), 413),
        (json.dumps(review({"spec": "x" * 10 * 1_048_576})).encode(), 413),
    ],
    ids=[
        *("empty", "cut", "deep", "no UTF-8", "no review", "v1beta1", "no request"),
        *("long number", "surrogate", "too large", "10 MiB"),
    ],
)
def test_what_is_no_review_is_refused_with_a_reason(body: bytes, status: int) -> None:
    async def main() -> None:
        async with replica() as it, it.client() as client:
            assert (await post(client, body))[0] == status
            assert (await post(client, review(claim("two", 1))))[0] == 200, "it goes on"

    asyncio.run(main())


def test_nothing_is_reviewed_before_all_objects_are_read() -> None:
    async def main() -> None:
        async with replica() as it, it.client() as client:
            it.waits_for = "claims"
            assert await post(client, review(claim("two", 2))) == (
                503,
                "not ready: waits for claims\n",
            )

    asyncio.run(main())


def test_a_hundred_reviews_at_once_are_all_answered() -> None:
    async def main() -> None:
        async with replica() as it, it.client() as client:
            values = [i % 2 + 1 for i in range(100)]
            answers = await asyncio.gather(
                *(post(client, review(claim("two", value))) for value in values)
            )
            allowed = [answer["response"]["allowed"] for _, answer in answers]
            assert allowed == [value == 1 for value in values]

    asyncio.run(main())


def test_a_renewal_under_load_refuses_no_request() -> None:
    async def main() -> None:
        async with replica(LIFETIME - RENEWAL) as it, it.client() as client:
            before = from_secret(it.objects.stored[SECRET]["data"])
            running = True

            async def load() -> int:
                count = 0
                while running:
                    assert (await post(client, review(claim("two", 1))))[0] == 200
                    count += 1
                return count

            load_task = asyncio.create_task(load())
            await asyncio.sleep(0)
            it.now += LIFETIME - RENEWAL + DAY / 2
            assert await it.step()
            after = from_secret(it.objects.stored[SECRET]["data"])
            assert after is not None
            assert after != before
            await post(client, review(claim("two", 1)))
            running = False
            assert await load_task > 0
            assert it.tree.level().name == "OK"

    asyncio.run(main())


def test_a_certificate_that_has_expired_is_replaced_and_a_clock_set_back_changes_nothing() -> None:
    async def main() -> None:
        # As an operator finds it that was away for long: the API server refuses what it has.
        async with replica(LIFETIME + DAY) as it:
            async with it.client() as client:
                with pytest.raises(aiohttp.ClientConnectorCertificateError, match="expired"):
                    await post(client, review(claim("two", 1)))
            it.now += LIFETIME + DAY
            assert await it.step()
            renewed = from_secret(it.objects.stored[SECRET]["data"])
            async with it.client() as client:
                assert (await post(client, review(claim("two", 1))))[0] == 200
                it.now -= DAY
                assert await it.step()
                assert (await post(client, review(claim("two", 1))))[0] == 200
            assert from_secret(it.objects.stored[SECRET]["data"]) == renewed

    asyncio.run(main())


def test_the_deployment_owns_the_secret_of_an_earlier_release_too() -> None:
    async def main() -> None:
        async with replica() as it:
            stored = it.objects.stored[SECRET]
            assert stored["metadata"]["ownerReferences"] == []
            it.owners = [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "o", "uid": "u"}]
            assert await it.step()
            assert it.objects.stored[SECRET]["metadata"]["ownerReferences"] == it.owners
            assert it.objects.stored[SECRET]["data"] == stored["data"]
            writes = it.objects.writes
            assert await it.step()
            assert it.objects.writes == writes

    asyncio.run(main())


def test_a_follower_serves_what_the_leader_stored_and_writes_nothing() -> None:
    async def main() -> None:
        objects = Objects()
        objects.configure()
        follower, leader = Replica(objects, leads=False), Replica(objects)
        writes = objects.writes
        assert not await follower.step()
        assert objects.writes == writes
        assert not follower.server.listens
        assert await leader.step()
        writes = objects.writes
        assert await follower.step()
        assert objects.writes == writes
        async with follower.client() as client:
            assert (await post(client, review(claim("two", 1))))[0] == 200
        await leader.server.stop()
        await follower.server.stop()

    asyncio.run(main())


def test_two_that_believe_they_lead_agree_on_one_certificate() -> None:
    async def main() -> None:
        objects = Objects()
        objects.configure()
        one, other = Replica(objects), Replica(objects)
        await asyncio.gather(one.step(), other.step())
        await asyncio.gather(one.step(), other.step())
        stored = from_secret(objects.stored[SECRET]["data"])
        assert stored is not None
        assert objects.bundles == {stored.bundle}
        for it in (one, other):
            async with it.client() as client:
                assert (await post(client, review(claim("two", 1))))[0] == 200
            await it.server.stop()

    asyncio.run(main())


def test_a_missing_configuration_is_reported_in_health() -> None:
    async def main() -> None:
        it = Replica(Objects())
        assert not await it.step()
        (line,) = [s.message for s in it.tree.report() if s.message]
        assert line == "the ValidatingWebhookConfiguration waggle does not exist"
        it.objects.configure()
        assert await it.step()
        await it.server.stop()

    asyncio.run(main())


def test_a_configuration_that_is_applied_anew_has_the_authorities_within_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    it = Replica(Objects())
    it.objects.configure()
    now, applied, trusted = 0.0, 0.0, 0.0

    async def pause(seconds: float) -> None:
        nonlocal now, applied, trusted
        now += seconds
        if applied and "" not in it.objects.bundles:
            trusted = now
            raise asyncio.CancelledError
        if now >= 100 and not applied:
            applied = now
            it.objects.configure()

    monkeypatch.setattr(certificate, "asyncio", SimpleNamespace(sleep=pause))

    async def main() -> None:
        with pytest.raises(asyncio.CancelledError):
            await it.keeper.run(cast("Writer", it.objects))
        await it.server.stop()

    asyncio.run(main())
    assert trusted - applied <= 5


def test_a_new_authority_issues_no_certificate_before_the_api_server_trusts_it() -> None:
    async def main() -> None:
        async with replica() as it:
            # A certificate follows on another, until the authority is old, too.
            it.objects.refuses = CONFIGURATION
            before = None
            with suppress(StatusError):
                while True:
                    before = from_secret(it.objects.stored[SECRET]["data"])
                    it.now += LIFETIME / 2
                    assert await it.step()
            assert before is not None
            for _ in range(3):
                with pytest.raises(StatusError):
                    await it.step()
                stored = from_secret(it.objects.stored[SECRET]["data"])
                assert stored is not None
                assert stored.authority_key != before.authority_key
                assert stored.certificate == before.certificate
            it.objects.refuses = ""
            for _ in range(2):
                assert await it.step()
            renewed = from_secret(it.objects.stored[SECRET]["data"])
            assert renewed is not None
            assert renewed.certificate != before.certificate

    asyncio.run(main())


def test_reviews_are_counted_by_kind_and_verdict_and_a_denial_is_logged() -> None:
    webhook = object.__new__(Webhook)
    webhook._reviews = Counter()
    webhook._reviewed = {"Claim": cast("Any", None)}
    webhook._observe("Made up", Verdict(allowed=True))
    webhook._observe("Made up by a client", Verdict(allowed=True))
    with capture_logs() as logs:
        for allowed in (True, False, True):
            webhook._observe("Claim", Verdict(allowed=allowed, message="" if allowed else "no"))
    assert [(line["event_name"], line["kind"], line["reason"]) for line in logs] == [
        ("webhook.denied", "Claim", "no")
    ]
    (family,) = webhook.collect()
    assert family.name == "waggle_webhook_reviews"
    assert {(*one.labels.values(), one.value) for one in family.samples} == {
        ("Claim", "allowed", 2.0),
        ("Claim", "denied", 1.0),
        ("other", "allowed", 2.0),
    }


Damage = Callable[[Objects], None]


def delete(objects: Objects) -> None:
    del objects.stored[SECRET]


def cut_key(objects: Objects) -> None:
    objects.stored[SECRET]["data"]["tls.key"] = "????"


def take_foreign_key(objects: Objects) -> None:
    """Each part can be read, and they do not belong together."""
    data = objects.stored[SECRET]["data"]
    data["tls.key"] = data["ca.key"]


def take_foreign_authority(objects: Objects) -> None:
    other = due(None, dt.datetime.now(dt.UTC), NAMES, published=False)
    assert other is not None
    data = objects.stored[SECRET]["data"]
    objects.stored[SECRET]["data"] = {**other.data, **{k: data[k] for k in ("tls.crt", "tls.key")}}


def take_authority_as_certificate(objects: Objects) -> None:
    """A certificate without a name of the server."""
    data = objects.stored[SECRET]["data"]
    data |= {"tls.crt": data["ca.crt"], "tls.key": data["ca.key"]}


def restore(objects: Objects) -> None:
    """A Secret that is valid by itself, of another time or cluster."""
    other = due(None, dt.datetime.now(dt.UTC), NAMES, published=False)
    assert other is not None
    objects.stored[SECRET]["data"] = other.data


def restore_with_other_names(objects: Objects) -> None:
    other = due(None, dt.datetime.now(dt.UTC), ("elsewhere",), published=False)
    assert other is not None
    objects.stored[SECRET]["data"] = other.data


DAMAGES = (
    delete,
    cut_key,
    take_foreign_key,
    take_foreign_authority,
    take_authority_as_certificate,
    restore,
    restore_with_other_names,
)


async def answers(*replicas: Replica) -> None:
    for it in replicas:
        async with it.client() as client:
            assert (await post(client, review(claim("two", 1))))[0] == 200


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_secret_that_is_damaged_while_servers_run_refuses_no_request(damage: Damage) -> None:
    async def main() -> None:
        async with replica() as leader:
            follower = Replica(leader.objects, leads=False)
            await follower.step()
            before = from_secret(leader.objects.stored[SECRET]["data"])
            damage(leader.objects)
            # Before the leader has seen it, both present what they have.
            assert not await follower.step()
            await answers(leader, follower)
            assert await leader.step()
            await answers(leader, follower)
            for _ in range(2):
                assert await leader.step()
                await answers(leader, follower)
            assert await follower.step()
            await answers(leader, follower)
            after = from_secret(leader.objects.stored[SECRET]["data"])
            assert after is not None
            assert before is not None
            assert after.key != before.key
            assert after.authority_key != before.authority_key
            await follower.server.stop()

    asyncio.run(main())


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_secret_that_is_damaged_as_the_leader_starts_leaves_the_others_trusted(
    damage: Damage,
) -> None:
    async def main() -> None:
        async with replica() as it:
            it.leads = False
            damage(it.objects)
            leader = Replica(it.objects)
            assert await leader.step()
            await answers(it, leader)
            assert await it.step()
            await answers(it, leader)
            await leader.server.stop()

    asyncio.run(main())


def test_a_secret_that_is_damaged_twice_refuses_no_request() -> None:
    async def main() -> None:
        async with replica() as it:
            for _ in range(3):
                delete(it.objects)
                assert await it.step()
                await answers(it)

    asyncio.run(main())


def test_an_address_in_use_refuses_the_operator_before_it_has_a_certificate() -> None:
    async def scenario() -> None:
        replica = Replica(Objects())
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            replica.server.port = other.getsockname()[1]
            with pytest.raises(
                StartError, match=r"--webhook: cannot listen on 127\.0\.0\.1:\d+: add"
            ):
                await replica.server.reserve()
        await replica.server.reserve()
        assert not replica.server.listens
        await replica.step()
        assert replica.server.listens
        await replica.server.stop()

    asyncio.run(scenario())


def test_a_leader_that_was_slower_keeps_the_certificate_of_the_other_one() -> None:
    async def main() -> None:
        objects = Objects()
        objects.configure()
        slow, fast = Replica(objects), Replica(objects)
        create = objects.create

        async def late(path: str, content: dict[str, Any]) -> None:
            objects.create = create  # type: ignore[method-assign]
            assert await fast.step()
            await create(path, content)

        objects.create = late  # type: ignore[method-assign]
        assert not await slow.step()
        waits = "waits for a leader to make the Secret waggle-webhook"
        assert [s.message for s in slow.tree.report()] == [waits]
        assert await slow.step()
        assert slow.keeper.presented == fast.keeper.presented
        for it in (slow, fast):
            await it.server.stop()

    asyncio.run(main())


def test_an_error_of_the_api_server_degrades_the_health_until_the_next_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    it = Replica(Objects())
    it.objects.configure()
    pauses: list[float] = []
    states: list[tuple[str, str]] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        (status,) = it.tree.report()
        states.append((str(status.level), status.message))
        it.objects.refuses = ""
        if len(pauses) == 3:
            raise asyncio.CancelledError

    it.objects.refuses = CONFIGURATION
    monkeypatch.setattr(certificate, "asyncio", SimpleNamespace(sleep=pause))

    async def main() -> None:
        with pytest.raises(asyncio.CancelledError):
            await it.keeper.run(cast("Writer", it.objects))
        await it.server.stop()

    asyncio.run(main())
    assert pauses == [1, 5, 5]
    assert states[0][0] == "degraded"
    assert states[0][1].startswith("the certificate cannot be kept: ")
    presented = it.keeper.presented
    assert presented is not None
    where = f"listening on 127.0.0.1:{it.server.port}"
    assert states[1] == ("ok", f"{where}, certificate until {presented.end:%Y-%m-%d}")


def test_a_certificate_and_a_listener_are_lines_of_the_log() -> None:
    async def main() -> None:
        with capture_logs() as logs:
            async with replica() as it:
                presented = it.keeper.presented
        assert presented is not None
        named = {line["event_name"]: dict(line) for line in logs}
        assert named["webhook.certificate"]["until"] == presented.end.isoformat()
        listening = named["webhook.listening"]
        assert (listening["address"], listening["port"]) == ("127.0.0.1", it.server.port)
        assert "webhook.published" in named
        assert len(logs) == 3

    asyncio.run(main())


def webhook_of(unread: Unread) -> Webhook:
    """Return a webhook of one dialect with its own kind and a kind that it reads."""

    def read(_: object, *, operator: bool) -> tuple[SimpleNamespace, ...]:
        return tuple(SimpleNamespace(table=t) for t in ("claims", "nodes") if operator)

    webhook = object.__new__(Webhook)
    dialect: Any = SimpleNamespace(read=read, options=None)
    webhook._reviewed = {"Claim": dialect}
    webhook._kubernetes = cast("Any", SimpleNamespace(unread=unread))
    return webhook


@pytest.mark.parametrize(
    ("unread", "waits_for"),
    [
        (Unread(), ""),
        (Unread(waits_for="Service"), "Service"),
        (Unread(kinds={"nodes": "Node"}), "Node"),
        (Unread(kinds={"others": "Other"}), ""),
        (Unread(kinds={"nodes": "Node"}, waits_for="Service"), "Node"),
    ],
)
def test_a_review_waits_for_what_its_own_dialect_reads(unread: Unread, waits_for: str) -> None:
    webhook = webhook_of(unread)
    assert webhook._unready("Claim") == waits_for
    assert webhook._unready("Unknown") == ""


def test_the_ends_of_the_certificate_and_of_its_authority_are_known_once_it_is_presented() -> None:
    webhook = webhook_of(Unread())
    end = dt.datetime(2026, 1, 2, tzinfo=dt.UTC)
    presented = SimpleNamespace(end=end, end_of_authority=end + DAY)
    keeper: Any = SimpleNamespace(presented=None)
    webhook._keeper = keeper
    assert webhook.certificate_ends == {}
    keeper.presented = presented
    assert webhook.certificate_ends == {
        "webhook": end.timestamp(),
        "webhook-authority": (end + DAY).timestamp(),
    }


def test_a_body_that_does_not_arrive_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        monkeypatch.setattr(server, "BODY_SECONDS", 0.05)
        it = Replica(Objects())

        async def read() -> bytes:
            await asyncio.sleep(3600)
            return b""

        answer = await it.server._post(cast("Any", SimpleNamespace(read=read)))
        assert (answer.status, answer.text) == (408, "the body did not arrive in 0.05 s\n")

    asyncio.run(main())


def test_a_certificate_that_is_loaded_leaves_no_descriptor_open() -> None:
    certificates = due(None, dt.datetime.now(dt.UTC), NAMES, published=False)
    assert certificates is not None
    it: Any = object.__new__(WebhookServer)
    it._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    before = len(list(DESCRIPTORS.iterdir()))
    it.load(certificates)
    assert len(list(DESCRIPTORS.iterdir())) == before
