"""Routes of VRFs in tables of a kernel that has no VRF devices: a NodeNetwork names them.

What `tests/interop/test_vrfs.py` shows with VRF devices, where the kernel has them.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cells.hive import Health
from cells.hive.child_process import stay_connected
from reconcilers.intent_tables import IntentTables
from reconcilers.kernel.options import FibOptions
from reconcilers.kernel.reconciler import KernelReconciler
from reconcilers.kernel.writer.client import WriterClient
from reconcilers.model import Instance, InstanceImport
from reconcilers.target import Runner
from resources.host import Host
from resources.host.kinds import NODE_NETWORK
from speaker.api import (
    NO_PATHS,
    BestPath,
    BestPathChange,
    BestPathItem,
    SelectionEnd,
    TableBegin,
    TableEnd,
)
from speaker.nlri import IPV4_UNICAST, prefix_to_wire
from statedb import Database
from tests.reconcilers.kernel.build import path, paths
from tests.support.kernel_writer import WriterProcess, gateways, index, routes
from tests.support.netns import DEVICE, Link, Namespace
from tests.support.wait import until

pytestmark = [pytest.mark.netns, pytest.mark.program]

TABLES = {"": 254, "red": 1001, "blue": 1002}
CABLES = {"": DEVICE, "red": "to-red", "blue": "to-blue"}
OURS = {"": "10.1.0.1", "red": "10.7.0.1", "blue": "10.7.0.1"}
THEIRS = {"": "10.1.0.2", "red": "10.7.0.2", "blue": "10.7.0.2"}
SHARED = "203.0.113.0/24"
OWN = {"": "198.51.100.0/24", "red": "192.0.2.0/25", "blue": "192.0.2.128/25"}


def name_of(vrf: str) -> str:
    return vrf or "main"


def network() -> dict[str, Any]:
    """Return the NodeNetwork of the node, with its VRFs."""
    devices: list[dict[str, Any]] = [
        {"name": CABLES[vrf], "addresses": [f"{OURS[vrf]}/24"], **({"vrf": vrf} if vrf else {})}
        for vrf in TABLES
    ]
    devices += [{"name": vrf} for vrf in TABLES if vrf]
    vrfs = [{"name": vrf, "table": table} for vrf, table in TABLES.items() if vrf]
    return {
        "apiVersion": "waggle.dev/v1alpha1",
        "kind": "NodeNetwork",
        "metadata": {"name": "n1"},
        "spec": {"devices": devices, "vrfs": vrfs},
    }


def prepare(node: Namespace) -> Host:
    """Make the interfaces, with the networks in the tables in which VRF devices would have them."""
    for vrf, cable in CABLES.items():
        if vrf:
            node.batch(f"link add {cable} type veth peer name {cable}-far")
            node.batch(f"link set {cable} up", f"link set {cable}-far up")
        node.batch(f"addr add {OURS[vrf]}/24 dev {cable}")
        if vrf:
            node.batch(f"route add 10.7.0.0/24 dev {cable} table {TABLES[vrf]} scope link")
    host = NODE_NETWORK.decode(network()).host
    numbered = (
        msgspec.structs.replace(device, index=index(node, device.name))
        if device.name in CABLES.values()
        else device
        for device in host.devices
    )
    return msgspec.structs.replace(host, devices=tuple(numbered))


def in_tables(node: Namespace) -> dict[str, dict[str, set[tuple[str, str, int]]]]:
    """Read gateway, interface and weight of our routes, by VRF."""
    return {
        vrf: {prefix: gateways(row) for prefix, row in routes(node, 4, table).items()}
        for vrf, table in TABLES.items()
    }


def via(vrf: str) -> set[tuple[str, str, int]]:
    return {(THEIRS[vrf], CABLES[vrf], 1)}


def best(vrf: str, *, imported: bool = False) -> BestPath:
    return path(THEIRS[vrf], instance=name_of(vrf), imported=imported)


class Node:
    """The reconciler, with a writer in the namespace."""

    def __init__(self, host: Host) -> None:
        self._db = Database()
        intent = IntentTables(self._db)
        self.client = WriterClient("waggle-agent")
        self.kernel = KernelReconciler(self._db, intent, self.client, FibOptions(), lambda _: True)
        self._runner = Runner(self._db, intent.reconcile_statuses, [self.kernel])
        with self._db.write(intent.instances) as txn:
            for vrf in TABLES:
                imports = tuple(
                    InstanceImport(name_of(other), None)
                    for other in ("", "red")
                    if vrf != "blue" and other != vrf
                )
                row = Instance(name_of(vrf), vrf or None, 64710, "10.1.0.1", imports=imports)
                intent.instances.upsert(txn, row)
        self.kernel.configure(self._db.snapshot())
        self.kernel.host_changed(host)
        self.kernel.end_deferral()

    def table(self, vrf: str, found: dict[str, BestPath]) -> None:
        """Announce a whole table."""
        changes = (
            BestPathChange(IPV4_UNICAST, NO_PATHS, paths(one), (prefix_to_wire(prefix)[1],))
            for prefix, one in found.items()
        )
        items: list[BestPathItem] = [TableBegin(), *changes, TableEnd(), SelectionEnd()]
        self.kernel.best_paths(name_of(vrf), items)

    async def run(self) -> None:
        """Run rounds until cancelled."""
        while True:
            self._runner.run(asyncio.get_running_loop().time())
            await asyncio.sleep(0.01)


def test_same_prefixes_of_two_vrfs_and_imports_both_ways_stand_in_their_tables(
    link: Link, tmp_path: Path
) -> None:
    node, socket = link.left, tmp_path / "kernel.sock"
    host = prepare(node)
    writer = WriterProcess(node, socket)

    async def scenario() -> None:
        agent = Node(host)
        connection = stay_connected(str(socket), lambda: agent.client, Health(), "waggle-kernel")
        tasks = [asyncio.create_task(work) for work in (connection, agent.run())]
        own = {vrf: {OWN[vrf]: best(vrf), **({SHARED: best(vrf)} if vrf else {})} for vrf in TABLES}
        # The default VRF and the red one import each other.
        of_red = {prefix: best("red", imported=True) for prefix in own["red"]}
        agent.table("", own[""] | of_red)
        agent.table("red", own["red"] | {OWN[""]: best("", imported=True)})
        agent.table("blue", own["blue"])
        wanted = {
            "": {OWN[""]: via(""), OWN["red"]: via("red"), SHARED: via("red")},
            "red": {OWN["red"]: via("red"), SHARED: via("red"), OWN[""]: via("")},
            "blue": {OWN["blue"]: via("blue"), SHARED: via("blue")},
        }
        try:
            await until(lambda: in_tables(node) == wanted)
            agent.table("red", {})
            await until(lambda: in_tables(node) == {**wanted, "red": {}})
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    try:
        asyncio.run(scenario())
    finally:
        writer.end()
