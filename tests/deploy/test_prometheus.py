"""A real Prometheus scrapes an agent and an operator: every query of dashboards and alerts has data.

So has every choice of a dashboard: the label values of a selector, as Grafana asks for them.

The metrics of BFD and of routes in the kernel come from their collectors, at a third address.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import shutil
import ssl
import subprocess
import urllib.parse
import urllib.request
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from prometheus_client import CollectorRegistry, start_http_server

from cells.api.client import at_socket
from cells.bfd.metrics import BfdMetrics
from cells.hive import Cell, load
from cells.hive.hive import Hive
from cells.kernel.metrics import KernelMetrics
from cells.observability.http import HttpServer
from deploy.alerts import ALERTS, rules
from deploy.grafana.generate import Choice, choices, queries
from reconcilers.intent_tables import IntentTables
from reconcilers.kernel.writer.protocol_messages import Cause, Change, Changed, Reason, Routes
from speaker.api import InstanceConfig, MaximumPrefixes, PeerConfig, SpeakerPort
from speaker.server import Speaker
from statedb import Table
from tests.cells.bfd.test_metrics import COUNTERS, PROCESS
from tests.cells.bfd.test_metrics import UP as BFD_UP
from tests.cmd.lab import NODE, configuration, service
from tests.reconcilers.kernel.memory_writer import MemoryWriter
from tests.reconcilers.kernel.reconciler.reconciler_in_memory import BOTH, MAIN, PREFIX, wire
from tests.reconcilers.kernel.reconciler.reconciler_in_memory import Agent as KernelAgent
from tests.support.apiserver import ApiServer
from tests.support.certificates import authority_and_server
from tests.support.ports import free_port
from tests.support.wait import until
from waggle_agent.__main__ import CELLS as AGENT_CELLS
from waggle_operator.__main__ import CELLS as OPERATOR_CELLS

PROMETHEUS: Final = shutil.which("prometheus")
pytestmark = [
    pytest.mark.program,
    pytest.mark.skipif(PROMETHEUS is None, reason="prometheus is not installed"),
]
OCCUPIED: Final = "203.0.0.0/16"
"""A prefix with a route of another program in the kernel."""
ROUTER: Final = "127.0.0.2"
CLUSTER: Final = "west"
TRIES: Final = 120
"""Twice a second: a scrape for which a busy machine has no time within half a second leaves a gap."""


@contextlib.asynccontextmanager
async def running(cells: tuple[Cell, ...], **flags: object) -> AsyncIterator[Hive]:
    """Run a program in this process, with metrics on a free port."""
    given = {"--http-address": "127.0.0.1:0", "disable_cell": ["logging"], **flags}
    hive = Hive(cells, load(cells, flags=given))
    task = asyncio.create_task(hive.run())
    try:
        await until(lambda: hive.readiness.ready)
        yield hive
    finally:
        hive.shutdown()
        await task


@contextlib.asynccontextmanager
async def api_server(tls: ssl.SSLContext) -> AsyncIterator[ApiServer]:
    """Run an API server with a certificate."""
    server = ApiServer()
    await server.start(tls)
    try:
        yield server
    finally:
        await server.stop()


@contextlib.asynccontextmanager
async def router(port: int) -> AsyncIterator[Speaker]:
    """Run the router of the first peer."""
    speaker = Speaker()
    await speaker.start()
    try:
        instance = InstanceConfig(
            name="i", local_asn=65000, router_id="192.0.2.1", listen=((ROUTER, port),)
        )
        speaker.set_instance(instance)
        yield speaker
    finally:
        await speaker.stop()


NODE_PEER: Final = PeerConfig(
    name="node",
    address="127.0.0.1",
    peer_asn=65001,
    passive=True,
    import_="all",
    maximum_prefixes=(MaximumPrefixes(1, restart_after=1),),
)
"""One of the two Services waits: the router ends the first session, and accepts one prefix."""


class Prometheus:
    """The program, which scrapes its targets twice a second."""

    def __init__(self, directory: Path, targets: dict[str, tuple[str, int]]) -> None:
        self._targets = len(targets)
        self._url = f"http://127.0.0.1:{free_port('127.0.0.1')}"
        (directory / "rules.yaml").write_text(rules())
        jobs = [
            {
                "job_name": job,
                "honor_labels": True,
                "static_configs": [
                    {
                        "targets": ["{}:{}".format(*address)],
                        "labels": {"node": NODE, "cluster": CLUSTER},
                    }
                ],
            }
            for job, address in targets.items()
        ]
        every = {"scrape_interval": "500ms", "evaluation_interval": "1s"}
        config = {"global": every, "rule_files": ["rules.yaml"], "scrape_configs": jobs}
        (directory / "prometheus.yaml").write_text(yaml.safe_dump(config))
        assert PROMETHEUS is not None
        self._process = subprocess.Popen(
            [
                PROMETHEUS,
                f"--config.file={directory / 'prometheus.yaml'}",
                f"--storage.tsdb.path={directory / 'data'}",
                f"--web.listen-address={self._url.removeprefix('http://')}",
                "--log.level=warn",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(60)

    async def ask(self, path: str, **query: str) -> Any:  # noqa: ANN401  JSON
        url = f"{self._url}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        return await asyncio.to_thread(_get, url)

    async def series(self, expression: str) -> list[Any]:
        """Return the result of a query at this time."""
        found: list[Any] = (await self.ask("query", query=expression))["result"]
        return found

    async def wait(self) -> None:
        """Wait until all targets have been scraped often enough for rates."""
        for _ in range(TRIES):
            with contextlib.suppress(OSError):
                if (
                    len(await self.series("count_over_time(up[1m]) >= 3 and up == 1"))
                    == self._targets
                ):
                    return
            await asyncio.sleep(0.5)
        pytest.fail("Prometheus has not scraped all targets")


def _get(url: str) -> Any:  # noqa: ANN401  JSON
    with urllib.request.urlopen(url, timeout=60) as response:  # noqa: S310  loopback
        return json.load(response)["data"]


def chosen(expression: str) -> str:
    """Return a query with the variables of this test."""
    values = {"$__rate_interval": "20s", "$node": NODE, "$peer": ".*", "$cluster": CLUSTER}
    for name, value in values.items():
        expression = expression.replace(name, value)
    return expression


def asked() -> Iterator[tuple[str, str]]:
    """Yield each query of the dashboards with the variables of this test."""
    for where, expression in queries():
        yield where, chosen(expression)


EXPECTED: Final = {"cluster": {CLUSTER}, "node": {NODE}, "peer": {"tor-1", "tor-2"}}
"""The values of the choices."""


async def label_values(prometheus: Prometheus, choice: Choice) -> set[str]:
    """Return the values of a choice, by the request that Grafana sends for ``label_values``."""
    query = {"match[]": chosen(choice.selector)}
    return set(await prometheus.ask(f"label/{choice.label}/values", **query))


def test_every_query_of_dashboards_and_alerts_has_data(tmp_path: Path) -> None:
    asyncio.run(asyncio.wait_for(scenario(tmp_path), 240))


async def scenario(directory: Path) -> None:
    port = free_port(ROUTER)
    authority, tls = authority_and_server(directory, "api")
    async with api_server(tls) as server, router(port) as peer:
        # Nothing listens for the second peer.
        items = (
            *configuration([port, free_port("127.0.0.3")]),
            *(service(name, f"198.51.100.{n}") for n, name in ((10, "web"), (11, "shop"))),
        )
        for item in items:
            server.put(item)
        kubeconfig = server.kubeconfig(directory / "kubeconfig", ca=str(authority))
        source = {"--kubeconfig": str(kubeconfig)}
        own = {
            "--node-name": NODE,
            "--api-socket": str(directory / "agent.sock"),
            "--ready-timeout-seconds": "1",
        }
        operator = running(OPERATOR_CELLS, **source)
        peer.set_peer("i", NODE_PEER)
        async with operator as leader, running(AGENT_CELLS, **source, **own) as agent:
            local = Path(str(own["--api-socket"]))

            async def accepts_one() -> None:
                await until(lambda: any(f.accepted == 1 for f in peer.peers()[0].families))

            await accepts_one()
            # This agent ends the session: its hold time has changed.
            config = next(item for item in items if item["kind"] == "CiliumBGPPeerConfig")
            config["spec"]["timers"]["holdTimeSeconds"] = 60
            server.put(config)
            await until(lambda: peer.peers()[0].hold_time == 60)
            await accepts_one()
            # What another program would have to do: the speaker has lost a peer.
            speaker = agent.get(SpeakerPort)  # type: ignore[type-abstract]
            speaker.remove_peer("main", "tor-2")
            await asyncio.to_thread(at_socket(local).post, "/v1/verify")
            targets = {
                "agent": agent.get(HttpServer).address,
                "operator": leader.get(HttpServer).address,
            }
            with bfd_and_kernel() as address:
                prometheus = Prometheus(directory, {**targets, "bfd-and-kernel": address})
                try:
                    await until(lambda: bool(peer.peers() and peer.peers()[0].established))
                    await prometheus.wait()
                    await check(prometheus)
                finally:
                    prometheus.stop()


@contextlib.contextmanager
def bfd_and_kernel() -> Iterator[tuple[str, int]]:
    """Serve the metrics of a BFD session and of routes in the kernel, which need rights."""
    writer = MemoryWriter()
    writer.foreign.add((MAIN, wire(OCCUPIED)))
    kernel = KernelAgent(writer).start().table(BOTH, PREFIX, OCCUPIED)
    change = Change(Reason.MISSING, (Routes(MAIN, wire(PREFIX)),))
    writer.report(Changed(Cause.EVENT, (change,)))
    with kernel.db.write(*of_bfd(kernel.intent)) as txn:
        for table, row in zip(of_bfd(kernel.intent), (BFD_UP, COUNTERS, PROCESS), strict=True):
            table.upsert(txn, row)
    registry = CollectorRegistry()
    registry.register(BfdMetrics(kernel.db, kernel.intent))
    registry.register(KernelMetrics(kernel.kernel))
    server, thread = start_http_server(0, "127.0.0.1", registry=registry)
    try:
        yield "127.0.0.1", server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def of_bfd(intent: IntentTables) -> tuple[Table[Any], ...]:
    """Return the tables of the BFD sessions."""
    return (intent.bfd_sessions, intent.bfd_counters, intent.bfd_process)


async def check(prometheus: Prometheus) -> None:
    """Run all queries, and look at the alerts, until the last scrapes have all that they ask for."""
    for _ in range(TRIES):
        try:
            await check_once(prometheus)
        except AssertionError as error:
            failure = error
            await asyncio.sleep(0.5)
        else:
            return
    raise failure


async def check_once(prometheus: Prometheus) -> None:
    """Run all queries, and look at the alerts."""
    without = [
        (where, expression)
        for where, expression in asked()
        if not await prometheus.series(expression)
    ]
    assert without == []
    for choice in choices():
        assert await label_values(prometheus, choice) == EXPECTED[choice.label], choice.where
    for alert in ALERTS:
        for name in re.findall(r"waggle_\w+", alert.expression):
            assert await prometheus.series(f"count({name})"), (alert.name, name)
    groups = (await prometheus.ask("rules"))["groups"]
    states = {rule["name"]: rule for group in groups for rule in group["rules"]}
    assert {name: rule["lastError"] for name, rule in states.items() if rule.get("lastError")} == {}
    pending = {name for name, rule in states.items() if rule["state"] != "inactive"}
    # The route that waits is a part of the configuration that is not in effect. The API server's
    # certificate is one for a day.
    assert pending == {
        "WaggleCertificateExpiring",
        "WaggleConfigStale",
        "WaggleKernelRoutesFailing",
        "WaggleRoutesWaiting",
        "WaggleSessionDown",
    }
    (down,) = states["WaggleSessionDown"]["alerts"]
    assert down["labels"]["peer"] == "tor-2"
    assert down["labels"]["instance"] == "main", "the label of the metric, and not of the target"
