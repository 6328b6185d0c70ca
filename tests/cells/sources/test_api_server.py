"""An API server fills the tables; what it fails at shows in health and metrics, and stops nothing."""

from __future__ import annotations

import asyncio
import functools
import re
from collections import defaultdict
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import kubernetes_asyncio  # noqa: F401  imported here, as it takes seconds
import pytest
from structlog.testing import capture_logs

from cells import declarations
from cells.dialects import cilium
from cells.dialects.cell import agent_cell
from cells.hive import Level, load
from cells.hive.hive import Hive
from cells.sources.api_server import Kubernetes
from cells.sources.feed_log import FeedLog
from reconcilers.dialect import Unread
from resources.cilium.kinds import ADVERTISEMENT
from resources.ingest import Ingest
from resources.kubernetes.feed_status import FeedStatus, Phase
from resources.tables import Tables
from statedb import Database
from tests.cells.hurry import hurry
from tests.reconcilers.build import peer_config
from tests.resources.kubernetes.objects import advertisement, service
from tests.support.apiserver import ApiServer, status
from tests.support.kinds import KINDS
from tests.support.metrics import scrape
from tests.support.wait import until
from waggle_agent.__main__ import main

CELLS = (
    declarations.METRICS,
    declarations.NODE,
    declarations.DATABASE,
    declarations.RESOURCES,
    agent_cell(cilium.DIALECT),
    declarations.KUBERNETES,
)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let sources try again within the time of a test."""
    hurry(monkeypatch)


def run(
    directory: Path,
    scenario: Callable[[Hive, ApiServer], Awaitable[None]],
    kubeconfig: str | None = None,
) -> None:
    """Run the cells against a scripted API server while the scenario lasts.

    ``kubeconfig`` is the content of another file than that of the server.
    """

    async def whole() -> None:
        async with ApiServer() as server:
            path = server.kubeconfig(directory / "kubeconfig")
            if kubeconfig is not None:
                path.write_text(kubeconfig)
            flags = {
                "--kubeconfig": str(path),
                "--node-name": "n1",
                "--secrets-namespace": "bgp",
            }
            hive = Hive(CELLS, load(CELLS, flags=flags))
            started = asyncio.Event()
            task = asyncio.create_task(hive.run(started.set))
            await started.wait()
            try:
                async with asyncio.timeout(120):
                    await scenario(hive, server)
            finally:
                hive.shutdown()
                await task

    asyncio.run(whole())


def names(hive: Hive) -> set[str]:
    tables, db = hive.get(Tables), hive.get(Database)
    return {row.metadata.name for row in tables.services.all(db.snapshot())}


def levels(hive: Hive) -> dict[str, tuple[Level, str]]:
    """Return level and message of each scope; a scope without a report is ok."""
    found = {"/".join(s.path): (s.level, s.message) for s in hive.health.report()}
    return defaultdict(lambda: (Level.OK, ""), found)


def test_objects_become_rows_and_follow(tmp_path: Path) -> None:
    async def scenario(hive: Hive, server: ApiServer) -> None:
        tables, db = hive.get(Tables), hive.get(Database)
        await until(lambda: all(t.initialized(db.snapshot()) for t in tables.resources))
        server.put(service("web"))
        await until(lambda: names(hive) == {"web"})
        server.delete("Service", "web", "shop")
        await until(lambda: names(hive) == set())

    run(tmp_path, scenario)


def test_an_agent_reads_its_own_node_and_the_secrets_that_are_referred_to(tmp_path: Path) -> None:
    async def scenario(hive: Hive, server: ApiServer) -> None:
        server.put({"kind": "CiliumBGPPeerConfig", **peer_config("p", authSecretRef="k")})
        # A NodeNetwork stands in manifests for what netlink reports on a node.
        await until(lambda: len(server.requests) >= 2 * (len(KINDS) - 1))
        assert not server.queries("list", "nodenetworks")
        for plural in ("nodes", "ciliumbgpnodeconfigs", "ciliumbgpnodeconfigoverrides"):
            for verb in ("list", "watch"):
                await until(functools.partial(server.queries, verb, plural))
                found = server.queries(verb, plural)
                assert [query["fieldSelector"] for query in found] == ["metadata.name=n1"]
        await until(lambda: bool(server.queries("watch", "secrets")))
        (request,) = server.queries("list", "secrets")
        assert request["fieldSelector"] == "metadata.name=k"
        await until(lambda: levels(hive)["kubernetes/Secret/bgp/k"][0] is Level.OK)
        server.delete("CiliumBGPPeerConfig", "p")
        await until(lambda: "kubernetes/Secret/bgp/k" not in levels(hive))

    run(tmp_path, scenario)


def test_an_api_server_that_fails_is_named_in_health_and_metrics(tmp_path: Path) -> None:
    async def scenario(hive: Hive, server: ApiServer) -> None:
        server.put(service("web"))
        await until(lambda: names(hive) == {"web"})
        await server.stop()
        await until(lambda: hive.health.level() is Level.DEGRADED)
        await until(lambda: levels(hive)["kubernetes/Service"][0] is Level.DEGRADED)
        message = levels(hive)["kubernetes/Service"][1]
        assert message.startswith(f"cannot reach {server.url}: ")
        assert message.endswith("; the 1 known before are kept")
        assert names(hive) == {"web"}
        refused = "the last known state is kept: cannot reach {}: Connection refused"
        await until(lambda: levels(hive)["kubernetes"][1].endswith(refused.format(server.url)))
        # One line reports the server, for all kinds that are read from it.
        message = levels(hive)["kubernetes"][1]
        assert re.match(
            r"the API server cannot be read since \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ; ", message
        )
        scraped = scrape(hive)
        assert 'waggle_kubernetes_feed_up{kind="Service",namespace=""} 0.0' in scraped
        assert 'waggle_kubernetes_lists_total{kind="Service",namespace=""} 1.0' in scraped
        restarts = re.findall(r"watch_restarts_total{kind=\"Service\".*} (\S+)", scraped)
        assert sum(map(float, restarts)) == 1
        await server.start()
        await until(lambda: hive.health.level() is Level.OK)
        assert levels(hive)["kubernetes"][1].startswith("reading from kubeconfig ")

    run(tmp_path, scenario)


class Settled:
    """The job that writes the log of the feeds, when the test has seen that all of them settled."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._logs: list[FeedLog] = []

        async def run(feed_log: FeedLog) -> None:
            self._logs.append(feed_log)
            await asyncio.Event().wait()

        monkeypatch.setattr(FeedLog, "run", run)

    def lines(self) -> list[tuple[str, str]]:
        """Write, and return level and event of each line that the agent writes."""
        (feed_log,) = self._logs
        with capture_logs() as found:
            feed_log.write()
        return [(line["log_level"], line["event_name"]) for line in found]


def failing(hive: Hive) -> int:
    """Return how many feeds fail."""
    found = levels(hive)
    return sum(
        path.startswith("kubernetes/") and level is Level.DEGRADED
        for path, (level, _) in found.items()
    )


def test_an_outage_of_all_kinds_is_one_line_of_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settled = Settled(monkeypatch)

    async def scenario(hive: Hive, server: ApiServer) -> None:
        tables, db = hive.get(Tables), hive.get(Database)
        await until(lambda: all(t.initialized(db.snapshot()) for t in tables.resources))
        assert settled.lines() == []
        await server.stop()
        await until(lambda: failing(hive) >= 10 and levels(hive)["kubernetes"][0] is not Level.OK)
        assert settled.lines() == [("warning", "kubernetes.away")]
        await server.start()
        await until(lambda: hive.health.level() is Level.OK)
        assert settled.lines() == [("info", "kubernetes.back")]

    with capture_logs() as logs:
        run(tmp_path, scenario)
    assert [line for line in logs if line["log_level"] in ("warning", "error")] == []


@pytest.mark.parametrize("kubeconfig", ["{", "kind: Config"])
def test_a_kubeconfig_that_cannot_be_used_is_one_line_of_the_log(
    kubeconfig: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settled = Settled(monkeypatch)

    async def scenario(hive: Hive, _: ApiServer) -> None:
        await until(lambda: failing(hive) >= 10 and levels(hive)["kubernetes"][0] is not Level.OK)
        assert "cannot use kubeconfig" in levels(hive)["kubernetes"][1]
        assert settled.lines() == [("warning", "kubernetes.away")]
        assert settled.lines() == []

    with capture_logs() as logs:
        run(tmp_path, scenario, kubeconfig)
    assert [line for line in logs if line["log_level"] in ("warning", "error")] == []


def test_an_api_server_that_answers_for_some_kinds_is_not_reported_as_down(tmp_path: Path) -> None:
    async def scenario(hive: Hive, server: ApiServer) -> None:
        server.put(service("web"))
        await until(lambda: names(hive) == {"web"})
        server.always("list", "services", status(500, "", "broken"))
        server.always("watch", "services", status(500, "", "broken"))
        await server.stop()
        await until(lambda: levels(hive)["kubernetes"][0] is Level.DEGRADED)
        await server.start()
        await until(lambda: levels(hive)["kubernetes/Node"][0] is Level.OK)
        await until(lambda: "answers 500" in levels(hive)["kubernetes/Service"][1])
        assert levels(hive)["kubernetes"][0] is Level.OK

    run(tmp_path, scenario)


def test_missing_forbidden_and_invalid_differ_in_health(tmp_path: Path) -> None:
    async def scenario(hive: Hive, server: ApiServer) -> None:
        server.served["ciliumbgpadvertisements"] = ()
        server.always("list", "secrets", status(403, "Forbidden", "no"))
        server.put({"kind": "CiliumBGPPeerConfig", **peer_config("p", authSecretRef="k")})
        server.put(service("bad", "Mail"))
        wanted = (
            ("CiliumBGPAdvertisement", Level.STOPPED, "is its CRD installed?"),
            ("Secret/bgp/k", Level.DEGRADED, "may not list secrets in namespace bgp: no"),
            ("objects", Level.DEGRADED, "Service/shop/bad: spec.type"),
        )

        def shown(name: str, level: Level, part: str) -> bool:
            found = levels(hive).get(f"kubernetes/{name}", (Level.OK, ""))
            return found[0] is level and part in found[1]

        await until(lambda: all(shown(*want) for want in wanted))
        up = re.findall(r'feed_up{kind="(\w+)",.*} (\S+)', scrape(hive))
        assert ("Secret", "0.0") in up
        assert "CiliumBGPAdvertisement" not in dict(up), "a kind without its CRD raises no alert"
        server.put(service("bad"))
        await until(lambda: levels(hive)["kubernetes/objects"][0] is Level.OK)

    run(tmp_path, scenario)


def test_an_invalid_service_of_a_tenant_is_named_in_the_log_and_leaves_the_agent_healthy(
    tmp_path: Path,
) -> None:
    stored = service("bad", "Mail")
    stored["metadata"]["uid"] = "1"

    async def scenario(hive: Hive, server: ApiServer) -> None:
        server.put(stored)
        wanted = (Level.OK, "invalid objects of tenants: 1")
        await until(lambda: levels(hive).get("kubernetes/objects") == wanted)

    with capture_logs() as logs:
        run(tmp_path, scenario)
    assert [str(one["object"]) for one in logs if one.get("event") == "invalid object"] == [
        "Service/shop/bad"
    ]


def test_a_definition_that_is_deleted_while_running_degrades_its_kind(tmp_path: Path) -> None:
    async def scenario(hive: Hive, server: ApiServer) -> None:
        kind, scope = "CiliumBGPAdvertisement", "kubernetes/CiliumBGPAdvertisement"
        tables, db = hive.get(Tables), hive.get(Database)
        rows = tables.of(ADVERTISEMENT)
        server.put(advertisement("pods"))
        await until(lambda: len(list(rows.all(db.snapshot()))) == 1)
        # With a definition its objects are deleted, one by one in the watch; then lists get 404.
        server.delete(kind, "pods")
        await until(lambda: not list(rows.all(db.snapshot())))
        assert levels(hive)[scope][0] is Level.OK
        server.served["ciliumbgpadvertisements"] = ()
        await server.stop()
        await server.start()
        await until(lambda: "was its CRD deleted?" in levels(hive)[scope][1])
        assert levels(hive)[scope][0] is Level.DEGRADED
        assert hive.health.level() is Level.DEGRADED
        # That is a failure of this kind: the API server answers for the others.
        await until(lambda: levels(hive)["kubernetes"][0] is Level.OK)
        server.served["ciliumbgpadvertisements"] = ("v2",)
        await until(lambda: levels(hive)[scope][0] is Level.OK)
        await until(lambda: hive.health.level() is Level.OK)

    run(tmp_path, scenario)


def test_a_failed_commit_lists_everything_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = Ingest.commit
    failures = iter([True])

    def failing(self: Ingest, *args: object) -> None:
        if next(failures, False):
            raise RuntimeError("no room")
        commit(self, *args)  # type: ignore[arg-type]

    async def scenario(hive: Hive, server: ApiServer) -> None:
        tables, db = hive.get(Tables), hive.get(Database)
        server.put(service("web"))
        await until(lambda: all(t.initialized(db.snapshot()) for t in tables.resources))
        await until(lambda: names(hive) == {"web"})

    monkeypatch.setattr(Ingest, "commit", failing)
    run(tmp_path, scenario)


def test_an_agent_has_one_source(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--manifests", "/x", "--kubeconfig", "/y"], {}) == 2
    assert capsys.readouterr().err == (
        "waggle-agent: --kubeconfig: excludes --manifests: an agent has one source of objects\n"
    )


def feed(phase: Phase, cause: str = "", kind: str = "Service") -> FeedStatus:
    return FeedStatus(kind, "", phase, cause, 3, cause)


def test_an_outage_is_reported_with_the_time_of_its_first_failure(tmp_path: Path) -> None:
    async def scenario(hive: Hive, server: ApiServer) -> None:
        kubernetes = hive.get(Kubernetes)
        now = 1_800_000_000.0
        kubernetes._clock = lambda: now
        for seconds in (0, 60, 3600):
            now = 1_800_000_000.0 + seconds
            kubernetes._on_statuses((feed(Phase.FAILING, f"refused after {seconds} s"),))
            message = levels(hive)["kubernetes"][1]
            assert "cannot be read since 2027-01-15T08:00:00Z" in message
            assert message.endswith(f"refused after {seconds} s")

    run(tmp_path, scenario)


def test_the_names_of_objects_that_cannot_be_read_are_rows_until_they_can(tmp_path: Path) -> None:
    async def scenario(hive: Hive, server: ApiServer) -> None:
        kubernetes, database = hive.get(Kubernetes), hive.get(Database)
        table = hive.get(Tables).unread_objects

        def named(name: str, phase: Phase) -> FeedStatus:
            is_unread = phase is Phase.FORBIDDEN
            return FeedStatus("Secret", "kube-system", phase, "", 0, "", name, unread=is_unread)

        def rows() -> set[str]:
            return {row.name for row in table.all(database.snapshot())}

        kubernetes._on_statuses(
            (named("tor", Phase.FORBIDDEN), named("spine", Phase.FOLLOWING), feed(Phase.FORBIDDEN))
        )
        assert rows() == {"tor"}
        kubernetes._on_statuses((named("tor", Phase.FOLLOWING), named("spine", Phase.FORBIDDEN)))
        assert rows() == {"spine"}
        kubernetes._on_statuses((named("tor", Phase.FOLLOWING),))
        assert rows() == set()

    run(tmp_path, scenario)


def test_a_kind_that_was_answered_is_unread_until_its_objects_are_in_the_table(
    tmp_path: Path,
) -> None:
    async def scenario(hive: Hive, server: ApiServer) -> None:
        kubernetes, database = hive.get(Kubernetes), hive.get(Database)
        services = hive.get(Tables).services
        assert kubernetes.unread.waits_for
        assert kubernetes.unread.kinds.keys() == {kind.table for kind in kubernetes.source.kinds}
        await until(lambda: not kubernetes.unread.kinds)
        committed = services.register_initializer("a list that is not committed")
        assert kubernetes.unread == Unread("Service", {services.name: "Service"})
        kubernetes._answers_until = 0.0
        assert kubernetes.unread == Unread("", {services.name: "Service"})
        with database.write(services) as txn:
            committed(txn)
        assert kubernetes.unread == Unread()

    run(tmp_path, scenario)


@pytest.mark.parametrize("phase", [Phase.FOLLOWING, Phase.HOLDING])
def test_an_api_server_whose_list_is_held_answers(tmp_path: Path, phase: Phase) -> None:
    async def scenario(hive: Hive, server: ApiServer) -> None:
        kubernetes = hive.get(Kubernetes)
        kubernetes._on_statuses((feed(phase), feed(Phase.FAILING, "refused", "Node")))
        assert levels(hive)["kubernetes"][0] is Level.OK
        kubernetes._on_statuses((feed(Phase.FAILING, "refused"),))
        assert "; the last known state is kept: refused" in levels(hive)["kubernetes"][1]

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    ("phases", "expected"),
    [
        ([], False),
        ([Phase.FOLLOWING], True),
        ([Phase.MISSING], True),
        ([Phase.FOLLOWING, Phase.MISSING], True),
        *(
            ([Phase.FOLLOWING, phase], False)
            for phase in Phase
            if phase not in (Phase.FOLLOWING, Phase.MISSING)
        ),
    ],
)
def test_a_source_is_current_while_it_follows_every_kind_that_the_api_server_has(
    phases: list[Phase], expected: bool
) -> None:
    kubernetes: Any = object.__new__(Kubernetes)
    kubernetes._statuses = {
        str(number): feed(phase, kind=str(number)) for number, phase in enumerate(phases)
    }
    assert kubernetes.is_current is expected
