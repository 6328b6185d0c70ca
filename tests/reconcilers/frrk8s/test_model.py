"""Merging, and a model of it that is written from the documentation, on random sets of objects.

``MODEL_SETS`` is the number of sets, ``MODEL_SEED`` the first seed; `make properties`
takes 100,000. A failure names the seed of its set.
"""

from __future__ import annotations

import os
from collections import Counter
from random import Random
from typing import Any

import pytest

from reconcilers.frrk8s.merge import Merge
from reconcilers.frrk8s.unit_parts import Unit
from speaker.nlri import prefix_to_text
from tests.reconcilers.frrk8s import model
from tests.reconcilers.frrk8s.build import merge, unit
from tests.reconcilers.frrk8s.random_objects import SECRETS, random_imports, random_objects

SETS = int(os.environ.get("MODEL_SETS", "500"))
FIRST_SEED = int(os.environ.get("MODEL_SEED", "0"))
PARTS = max(4, SETS // 1000)
"""The sets are run in parts, side by side; each is well within the time limit of a test."""


@pytest.mark.parametrize("part", range(PARTS))
def test_the_model_agrees(part: int) -> None:
    merges = 0
    for seed in range(FIRST_SEED + part, FIRST_SEED + SETS, PARTS):
        objects = random_objects(Random(seed))  # noqa: S311  test data
        units = {name: _unit(name, bgp) for name, bgp in objects.items()}
        merges += _check_merge(seed, objects, units)
        _check_isolation(seed, objects, units)
        importing = random_imports(Random(seed))  # noqa: S311  test data
        _check_isolation(
            seed, importing, {name: _unit(name, bgp) for name, bgp in importing.items()}
        )
    assert 0.25 < merges / (SETS / PARTS) < 0.75, (
        "the random objects do not go together often enough"
    )


def _check_merge(seed: int, objects: dict[str, Any], units: dict[str, Unit]) -> bool:
    result = merge(list(units.values()), isolate=False, **SECRETS)
    expected = model.problems(objects, SECRETS)
    assert _problems(result) == expected, f"seed {seed}"
    assert (result.routers is None) is bool(expected), f"seed {seed}"
    if result.routers is None:
        return False
    assert _flat(result) == _wanted(model.merged(objects)), f"seed {seed}"
    return True


def _check_isolation(seed: int, objects: dict[str, Any], units: dict[str, Unit]) -> None:
    result = merge(list(units.values()), isolate=True, **SECRETS)
    taken = sorted({one.ref.name for one in result.accepted})
    assert taken == model.isolated(objects, SECRETS), f"seed {seed}"
    kept = merge([units[name] for name in taken], isolate=False, **SECRETS)
    assert _flat(result) == _flat(kept), f"seed {seed}"


def _unit(name: str, bgp: dict[str, Any]) -> Unit:
    return unit(name, *bgp["routers"], bfdProfiles=bgp["bfdProfiles"])


def _problems(result: Merge) -> model.Problems:
    found: model.Problems = Counter()
    for problem in result.problems:
        if problem.category != "unsupported":
            names = " ".join(ref.name for ref in problem.objects)
            found[problem.category or "", names, _field(problem.category or "", problem.field)] += 1
    return found


def _field(category: str, path: str) -> str:
    """Return the last part of a field; of two spellings of one setting the one of the model."""
    last = path.rpartition(".")[2].partition("[")[0]
    of_setting = {"dynamicASN": "asn", "passwordSecret": "password"}
    return of_setting.get(last, last) if category == "conflict" else last


def _flat(result: Merge) -> dict[str, Any]:
    """Return merged routers as plain values."""
    return {
        router.vrf: {
            "asn": router.asn,
            "id": router.router_id,
            "prefixes": sorted(
                {prefix_to_text(*one) for _, given in router.given for one in given}
            ),
            "imports": sorted(router.imports),
            "peers": {one.key.end: _peer(one) for one in router.neighbors},
        }
        for router in result.routers or ()
    }


def _peer(one: Any) -> dict[str, Any]:  # noqa: ANN401
    session = one.session
    routes: dict[str, tuple[set[str], set[int]]] = {}
    for _, exported in one.exports:
        for prefix, attributes in exported.items():
            communities, preferences = routes.setdefault(prefix_to_text(*prefix), (set(), set()))
            communities |= {f"{c >> 16}:{c & 0xFFFF}" for c in attributes.communities}
            communities |= {f"large:{a}:{b}:{c}" for a, b, c in attributes.large_communities}
            preferences |= {attributes.local_preference} - {None}
    accept = None if one.accept is None else sorted(map(str, one.accept))
    return {
        "session": (
            session.asn,
            session.port,
            session.sourceaddress,
            session.ebgp_multi_hop,
            session.connect_time,
            session.hold_time,
            session.keepalive_time,
            session.local_asn,
            session.bfd_profile,
            session.next_hop_ipv4,
            session.next_hop_ipv6,
            one.graceful_restart,
            sorted(one.families),
        ),
        "accept": None if accept is None else sorted(set(accept)),
        "routes": {p: (sorted(c), *sorted(v)) for p, (c, v) in sorted(routes.items())},
    }


def _wanted(routers: dict[str, Any]) -> dict[str, Any]:
    """Return what the model merges in the form of `_flat`."""
    return {
        vrf: {
            "asn": router["asn"],
            "id": router["id"],
            "prefixes": sorted(router["prefixes"]),
            "imports": sorted(router["imports"]),
            "peers": {end: _wanted_peer(peer) for end, peer in router["peers"].items()},
        }
        for vrf, router in routers.items()
    }


def _wanted_peer(peer: dict[str, Any]) -> dict[str, Any]:
    def value(field: str) -> Any:  # noqa: ANN401
        found = peer[field] if peer[field] is not None else model.UNSET_VALUES.get(field)
        return (
            int(found.removesuffix("s"))
            if isinstance(found, str) and field.endswith("Time")
            else found
        )

    accept = sorted(" ".join(_words(*rule)) for rule in peer["accept"] if rule != "all")
    return {
        "session": (
            peer["asn"],
            value("port"),
            value("sourceaddress"),
            bool(value("ebgpMultiHop")),
            value("connectTime"),
            value("holdTime"),
            value("keepaliveTime"),
            value("localASN"),
            peer["bfdProfile"],
            peer["nextHop"].get("ipv4"),
            peer["nextHop"].get("ipv6"),
            peer["restart"],
            sorted(peer["families"]),
        ),
        "accept": None if "all" in peer["accept"] else accept,
        "routes": {
            prefix: (
                sorted(r["communities"]),
                *([] if r["preference"] is None else [r["preference"]]),
            )
            for prefix, r in sorted(peer["routes"].items())
        },
    }


def _words(prefix: str, ge: int | None, le: int | None) -> list[str]:
    return [prefix, *([f"ge {ge}"] if ge else []), *([f"le {le}"] if le else [])]
