"""Objects that are wrong, strange or large, beside fifty good ones, on an agent that runs.

One agent lives through all of them. After each the good sessions and routes are what `--on-conflict`
promises, and what is wrong is a problem that names object and field.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.cells.bad_input.agent_in_process import ADDRESS, NODE, RunningAgent, Session, run
from tests.reconcilers.frrk8s import bad_objects as of_frrk8s
from tests.reconcilers.frrk8s.build import configuration, neighbor, router
from tests.reconcilers.metallb import bad_objects as of_metallb
from tests.reconcilers.metallb.objects import advertisement, peer, pool, profile
from tests.reconcilers.metallb.test_node import endpoints, service

Object = Mapping[str, Any]
CONFIGURATIONS, PEERS = 40, 7
FIRST = "198.18.0.1"
"""The router of the FRRConfiguration that changes with each step."""
YOUNGER = "2026-01-02T00:00:00Z"
HELD = ("invalid", "unresolved", "conflict")
"""Categories of problems with which `keep` applies no FRRConfiguration."""


def node() -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": NODE, "labels": {"bgp": "yes"}},
        "status": {"addresses": [{"type": "InternalIP", "address": ADDRESS}]},
    }


def network() -> dict[str, Any]:
    device = {"name": "eth0", "addresses": [ADDRESS]}
    return {
        "apiVersion": "waggle.dev/v1alpha1",
        "kind": "NodeNetwork",
        "metadata": {"name": NODE},
        "spec": {"devices": [device]},
    }


def good(i: int, prefix: str) -> dict[str, Any]:
    allowed = {"allowed": {"mode": "all"}}
    one = neighbor(address=f"198.18.0.{i + 1}", toAdvertise=allowed)
    return configuration(f"good-{i}", {"bgp": {"routers": [router(one, prefixes=[prefix])]}})


def others() -> list[dict[str, Any]]:
    """Spell the node, 49 objects, and the EndpointSlice of a Service."""
    return [
        node(),
        network(),
        *(good(i, f"10.{100 + i}.0.0/24") for i in range(1, CONFIGURATIONS)),
        *(peer(f"good-{i}", f"198.18.1.{i + 1}", peerASN=64951) for i in range(PEERS)),
        pool("good", "198.18.0.0/16"),
        advertisement("good", ipAddressPools=["good"], peers=[f"good-{i}" for i in range(PEERS)]),
        profile("good"),
        endpoints("s"),
    ]


class Steps:
    """One step after another: wrong objects come, and with them good objects change.

    These are an FRRConfiguration, which `keep` holds back, and a Service, which nothing holds back.
    """

    def __init__(self, it: RunningAgent, mode: str) -> None:
        self._it = it
        self._keeps = mode == "keep"
        self._count = itertools.count()
        self._wanted: dict[str, Session] = {}

    async def begin(self) -> None:
        self._it.write("others.json", *others())
        routes = self._change()
        await self._it.connect()
        self._wanted = self._it.sessions()
        assert len(self._wanted) == CONFIGURATIONS + PEERS
        assert all(one.established and len(one.prefixes) == 1 for one in self._wanted.values())
        self._apply(routes)
        self._check("the begin")
        assert self._it.problems() == []

    def _change(self) -> dict[str, str]:
        """Change the two objects; return their prefixes by router."""
        n = next(self._count)
        prefix, address = f"10.99.{n >> 8}.{n & 255}/32", f"198.18.{2 + (n >> 8)}.{n & 255}"
        self._it.write("good.json", good(0, prefix), service("s", address))
        peers = {f"198.18.1.{i + 1}": f"{address}/32" for i in range(PEERS)}
        return {FIRST: prefix, **peers}

    def _apply(self, routes: Mapping[str, str]) -> None:
        for address, prefix in routes.items():
            self._wanted[address] = self._wanted[address]._replace(prefixes=(prefix,))

    async def step(self, objects: Iterable[Object]) -> list[dict[str, Any]]:
        """Return the problems with these objects beside the good ones."""
        them = [
            {**one, "metadata": {**one["metadata"], "creationTimestamp": YOUNGER}}
            for one in objects
        ]
        routes = self._change()
        self._it.write("bad.json", *them)
        await self._it.settle()
        found = self._it.problems()
        if self._keeps and any(_holds_back(one) for one in found):
            del routes[FIRST]
        self._apply(routes)
        self._check(them)
        for one in found:
            assert one["field"].startswith(("spec", "metadata")), one
            assert any("/bad-" in name for name in one["objects"]), one
            assert len(one["message"]) < 1000
            assert len(one["field"]) < 300
        return found

    def _check(self, at: object) -> None:
        assert self._it.sessions() == self._wanted, at

    async def end(self) -> None:
        """Have the wrong objects go: what was held back is applied."""
        routes = self._change()
        self._it.remove("bad.json")
        await self._it.settle()
        self._apply(routes)
        self._check("the end")
        assert self._it.problems() == []


def _holds_back(problem: Mapping[str, Any]) -> bool:
    of_node = "the session stays down" in problem["message"]
    of_frrk8s = any(name.startswith("FRRConfiguration/") for name in problem["objects"])
    return of_frrk8s and not of_node and problem["category"] in HELD


def batches(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    them = iter(items)
    while found := list(itertools.islice(them, size)):
        yield found


def frrk8s_fields(chunk: Sequence[tuple[Any, ...]]) -> list[Object]:
    values = itertools.product(chunk, of_frrk8s.STRANGE)
    return [of_frrk8s.replaced(path, by, f"bad-{i}") for i, (path, by) in enumerate(values)]


def metallb_fields(kind: str, chunk: Sequence[tuple[Any, ...]]) -> list[Object]:
    values = itertools.product(chunk, of_metallb.VALUES)
    return [of_metallb.changed(kind, path, by, f"bad-{i}") for i, (path, by) in enumerate(values)]


AT_A_TIME = {"isolate": 12, "keep": 40}
"""Objects or fields of a step."""
OF_FIELDS = {"isolate": 1, "keep": 5}
"""Every how many fields: with `keep` a wrong field holds back all others."""


@pytest.mark.parametrize("mode", AT_A_TIME)
def test_frrconfigurations(tmp_path: Path, mode: str) -> None:
    async def scenario(it: RunningAgent) -> None:
        steps = Steps(it, mode)
        await steps.begin()
        for batch in batches(of_frrk8s.BAD, AT_A_TIME[mode]):
            found = await steps.step(
                configuration(f"bad-{i}", bad.spec) for i, bad in enumerate(batch)
            )
            for i, bad in enumerate(batch):
                name = f"FRRConfiguration/frr-k8s-system/bad-{i}"
                named = [one["field"] for one in found if one["objects"][0] == name]
                if bad.field is not None and bad is not of_frrk8s.OWN:
                    assert any(bad.field in field for field in named), (bad.id, named)
        fields = itertools.islice(of_frrk8s.paths(of_frrk8s.WHOLE), 0, None, OF_FIELDS[mode])
        for chunk in batches(fields, AT_A_TIME[mode]):
            await steps.step(frrk8s_fields(chunk))
        unknown = configuration("bad-0", of_frrk8s.of_router(neighbor(extra=1)))
        (one,) = await steps.step([unknown])
        assert one["field"] == "spec.bgp.routers[0].neighbors[0].extra"
        assert one["category"] == "unsupported"
        await steps.end()
        assert it.loop.longest_turn() < 2

    run(tmp_path / "manifests", scenario, **{"--on-conflict": mode})


@pytest.mark.parametrize("mode", AT_A_TIME)
def test_metallb_objects(tmp_path: Path, mode: str) -> None:
    async def scenario(it: RunningAgent) -> None:
        steps = Steps(it, mode)
        await steps.begin()
        for kind in of_metallb.SPECIMENS:
            fields = itertools.islice(of_metallb.fields(kind), 0, None, OF_FIELDS[mode])
            for chunk in batches(fields, AT_A_TIME[mode]):
                await steps.step(metallb_fields(kind, chunk))
        await steps.end()
        assert it.loop.longest_turn() < 2

    run(tmp_path / "manifests", scenario, **{"--on-conflict": mode})
