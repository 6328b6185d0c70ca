"""Scenarios of what is cluster-wide, through a running operator with an API server.

The same directories once more: manifests are objects of the API server, NodeConfigs and conditions
are what the operator has written there. The API server is a stand-in that keeps objects; what a real
one makes of the same writes is in tests/cells/operator/test_real.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import kubernetes_asyncio  # noqa: F401  imported here, as it takes seconds
import pytest

from cells.hive import load
from cells.hive.hive import Hive
from cells.operator import cell
from reconcilers.operator import writes
from resources.kind import Kind
from resources.kubernetes import ElectionTiming, migration
from tests.support import plain_yaml
from tests.support.apiserver import ApiServer
from tests.support.kinds import KINDS
from tests.support.scenario import Scenario, Step, differences, directories
from tests.support.scenario import load as read
from waggle_operator.__main__ import CELLS

SCENARIOS = [path for path in directories() if read(path).operator]
WITHIN = 60.0
"""Seconds."""
QUIET = 0.1
"""For how many seconds nothing may change any more."""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Elections and second attempts within the time of a test."""
    # A process that a busy machine keeps from running goes on leading.
    timing = ElectionTiming(lease=1000, renew=900.0, retry=0.05)
    monkeypatch.setattr(cell.Operator.__init__, "__defaults__", (timing,))
    monkeypatch.setattr(writes, "FIRST_RETRY_SECONDS", 0.05)
    monkeypatch.setattr(writes, "WRITE_INTERVAL_SECONDS", 0.02)
    monkeypatch.setattr(migration, "FIRST_RETRY_SECONDS", 0.05)


def test_there_are_scenarios() -> None:
    assert SCENARIOS


@pytest.mark.parametrize("directory", SCENARIOS, ids=lambda path: path.name)
def test_the_operator_writes_what_the_scenario_expects(directory: Path, tmp_path: Path) -> None:
    async def whole() -> None:
        async with ApiServer() as server, asyncio.timeout(len(described.steps) * WITHIN):
            cluster = Cluster(directory, server)
            running: Running | None = None
            try:
                for step in described.steps:
                    cluster.carry_out(step)
                    if running is None or step.operator is not None:
                        if running is not None:
                            await running.stop()
                        running = Running(server, tmp_path, described, step)
                        await running.start()
                    await settled(cluster, step)
            finally:
                if running is not None:
                    await running.stop()

    described = read(directory)
    asyncio.run(whole())


class Running:
    """One operator."""

    def __init__(self, server: ApiServer, directory: Path, described: Scenario, step: Step) -> None:
        options = {**described.options, **(step.operator or {})}
        flags = {f"--{name}": str(value).lower() for name, value in options.items()}
        policies = flags.pop("--peering-policies", "exclusive")
        flags["--translate-peering-policies"] = str(policies == "translate").lower()
        flags["--kubeconfig"] = str(server.kubeconfig(directory / "kubeconfig"))
        self._hive = Hive(CELLS, load(CELLS, flags=flags))
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start it."""
        started = asyncio.Event()
        self._task = asyncio.create_task(self._hive.run(started.set))
        await started.wait()

    async def stop(self) -> None:
        """End it politely."""
        assert self._task is not None
        self._hive.shutdown()
        await self._task


class Cluster:
    """The objects of a scenario in an API server."""

    def __init__(self, directory: Path, server: ApiServer) -> None:
        self._directory = directory
        self.server = server
        self._files: dict[str, list[tuple[Kind[Any], tuple[str, str]]]] = {}

    def carry_out(self, step: Step) -> None:
        """Put in what a step applies, then delete what is in no file any more."""
        gone = [key for name in step.remove for key in self._files.pop(name)]
        for name in step.apply:
            gone += self._files.pop(name, [])
            self._files[name] = self._put(name)
        there = {(kind.name, key) for keys in self._files.values() for kind, key in keys}
        for kind, (namespace, name) in gone:
            if (kind.name, (namespace, name)) not in there:
                self.server.delete(kind.name, name, namespace)
        self._collect()

    def _put(self, file: str) -> list[tuple[Kind[Any], tuple[str, str]]]:
        keys = []
        for obj in plain_yaml.load_all((self._directory / file).read_text()):
            kind = KINDS.find(obj["apiVersion"], obj["kind"])
            metadata = obj["metadata"]
            if kind is None:
                if obj["kind"] == "CustomResourceDefinition":
                    metadata.setdefault("resourceVersion", "1")
                    self.server.definitions[metadata["name"]] = obj
                continue
            key = (metadata.get("namespace", "") if kind.namespaced else "", metadata["name"])
            before = self.server.objects[kind.plural].get(key, {})
            metadata.setdefault("uid", f"uid-of-{metadata['name']}")
            metadata.setdefault("generation", 1)
            self.server.put(obj | {"status": obj.get("status", before.get("status", {}))})
            keys.append((kind, key))
        return keys

    def _collect(self) -> None:
        """Do what an API server's garbage collector does of NodeConfigs."""
        owners = self.server.objects["ciliumbgpclusterconfigs"].values()
        uids = {owner["metadata"]["uid"] for owner in owners}
        for (_, name), obj in list(self.server.objects["ciliumbgpnodeconfigs"].items()):
            references = obj["metadata"].get("ownerReferences", [])
            if references and all(reference["uid"] not in uids for reference in references):
                self.server.delete("CiliumBGPNodeConfig", name)

    def differences(self, step: Step) -> list[str]:
        """Return the differences between what is written and what a step expects."""
        expect = step.expect
        objects = self.server.objects
        configs = list(objects["ciliumbgpnodeconfigs"].values())
        found: list[str] = []
        of_nodes = [g for g in expect.generated if g.get("kind", "") in ("", "CiliumBGPNodeConfig")]
        found += [
            f"no NodeConfig is like {wanted}"
            for wanted in of_nodes
            if all(differences(wanted, config) for config in configs)
        ]
        if expect.generated_names is not None:
            names = sorted(config["metadata"]["name"] for config in configs)
            if names != sorted(expect.generated_names):
                found.append(f"NodeConfigs {names}, expected {expect.generated_names}")
        conditions = [
            {"kind": obj["kind"], "name": obj["metadata"]["name"], **condition}
            for plural in ("ciliumbgpclusterconfigs", "ciliumbgppeerconfigs")
            for obj in objects[plural].values()
            for condition in obj.get("status", {}).get("conditions", [])
        ]
        found += [
            f"no condition is like {wanted}"
            for wanted in expect.conditions
            if all(differences(wanted, condition) for condition in conditions)
        ]
        for name, types in expect.condition_types.items():
            there = [c["type"] for c in conditions if f"{c['kind']}/{c['name']}" == name]
            if there != types:
                found.append(f"{name} has {there}, expected {types}")
        for name, versions in expect.stored_versions.items():
            stored = self.server.definitions[name]["status"]["storedVersions"]
            if stored != versions:
                found.append(f"{name}: {stored}, expected {versions}")
        for name, version in expect.api_versions.items():
            kind, _, of = name.partition("/")
            stored = [o["apiVersion"] for o in self._of(kind) if o["metadata"]["name"] == of]
            if stored != [version]:
                found.append(f"{name} is of {stored}, expected {version}")
        return found

    def _of(self, kind: str) -> list[Mapping[str, Any]]:
        return [obj for rows in self.server.objects.values() for obj in rows.values()
                if obj["kind"] == kind]  # fmt: skip


async def settled(cluster: Cluster, step: Step) -> None:
    """Wait until everything is as expected, and nothing is written any more."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + WITHIN
    changes, since = -1, loop.time()
    while True:
        found = cluster.differences(step)
        if found or len(cluster.server.history) != changes:
            changes, since = len(cluster.server.history), loop.time()
        elif loop.time() - since > QUIET:
            return
        assert loop.time() < deadline, (step.name, found)
        await asyncio.sleep(0.01)
