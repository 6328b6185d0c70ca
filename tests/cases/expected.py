"""Compares a document of ``waggle render`` with what a case expects.

Lists have no order, prefixes and addresses are compared as what they mean. ``format`` in the file of
the cases describes what a case holds. A difference is an AssertionError that names the place.
"""

import ipaddress
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

Json = dict[str, Any]

SESSION: Mapping[str, Any] = {
    "peerPort": 179,
    "localAddress": None,
    "localASN": None,
    "holdTime": 180,
    "keepaliveTime": 60,
    "ebgpMultihop": 1,
    "password": False,
    "gracefulRestart": False,
    "bfd": None,
    "peerType": None,
    "nextHopIPv4": None,
    "nextHopIPv6": None,
    "neverAccept": [],
    "allowASInOrigin": False,
    "allowASIn": 0,
}
"""Fields of a peer that its case does not have."""


def same(what: str, got: object, wanted: object) -> None:
    assert got == wanted, f"{what}: {got!r}, wanted {wanted!r}"


def prefix(text: str) -> str:
    return ipaddress.ip_network(text, strict=False).compressed


def address(text: str | None) -> str | None:
    try:
        return None if text is None else ipaddress.ip_address(text).compressed
    except ValueError:
        return text


def rules(found: str | list[Json], families: Iterable[str]) -> object:
    """Return selectors in a form that can be compared, of families that are carried."""
    if not isinstance(found, list):
        return found
    carried = [
        (prefix(one["prefix"]), one.get("ge") or 0, one.get("le") or 0)
        for one in found
        if f"ipv{ipaddress.ip_network(one['prefix'], strict=False).version}-unicast" in families
    ]
    return sorted(carried)


def check_instances(document: Json, wanted: list[Json]) -> None:
    got = {one["vrf"]: one for one in document["instances"]}
    same("VRFs", sorted(map(str, got)), sorted(str(one["vrf"]) for one in wanted))
    for one in wanted:
        found, where = got[one["vrf"]], f"VRF {one['vrf'] or 'default'}"
        same(f"{where} localASN", found["localASN"], one["localASN"])
        if "routerID" in one:
            same(f"{where} routerID", found["routerID"], one["routerID"])
        if "imports" in one:
            same(f"{where} imports", found["imports"], sorted(one["imports"]))
        if "originate" in one:
            originated = sorted(map(prefix, found["originate"]))
            same(f"{where} originate", originated, sorted(map(prefix, one["originate"])))
        peers = {address(peer["address"]) or peer["interface"]: peer for peer in found["peers"]}
        ends = [address(peer.get("address")) or peer["interface"] for peer in one["peers"]]
        same(f"{where} peers", sorted(peers), sorted(ends))
        for end, peer in zip(ends, one["peers"], strict=True):
            check_peer(f"{where} {end}", peers[end], peer, one["localASN"])


def check_peer(where: str, got: Json, wanted: Json, local_asn: int) -> None:
    families = sorted(f"{family}-unicast" for family in wanted["families"])
    same(f"{where} families", sorted(got["families"]), families)
    same(f"{where} peerASN", got["peerASN"], wanted["peerASN"])
    internal = wanted["peerASN"] == (wanted.get("localASN") or local_asn)
    for key, default in SESSION.items():
        if key == "ebgpMultihop" and (internal or wanted.get("peerType") == "internal"):
            continue
        check_setting(f"{where} {key}", key, got[key], wanted.get(key, default), families)
    if "connectRetryTime" in wanted:
        same(f"{where} connect", got["connectRetryTime"], wanted["connectRetryTime"])
    accepted = rules(got["accept"], families)
    same(f"{where} accept", accepted, rules(wanted["accept"], families))
    check_routes(where, got, wanted)


def check_setting(where: str, key: str, got: Any, wanted: Any, families: list[str]) -> None:  # noqa: ANN401
    match key:
        case "gracefulRestart":
            same(where, got is not None, wanted)
        case "localAddress" | "nextHopIPv4" | "nextHopIPv6":
            same(where, address(got), address(wanted))
        case "neverAccept":
            same(where, rules(got, families), rules(wanted, families))
        case "bfd" if got is not None and wanted is not None:
            same(where, {name: got[name] for name in wanted}, wanted)
        case _:
            same(where, got, wanted)


def check_routes(where: str, got: Json, wanted: Json) -> None:
    routes = {prefix(route["prefix"]): route for route in got["advertise"]}
    same(f"{where} routes", sorted(routes), sorted(map(prefix, wanted["advertise"])))
    for text, attributes in wanted["advertise"].items():
        route = routes[prefix(text)]
        for name in ("communities", "largeCommunities"):
            same(f"{where} {text} {name}", sorted(route[name]), sorted(attributes.get(name, [])))
        preference = attributes.get("localPreference")
        same(f"{where} {text} localPreference", route["localPreference"], preference)
        hop = wanted.get("nextHopIPv6" if ":" in text else "nextHopIPv4")
        if hop is not None:
            same(f"{where} {text} nextHop", address(route["nextHop"]), address(hop))


def check_problems(document: Json, wanted: list[Json]) -> None:
    """Each is there; another problem is wrong if it names other objects."""
    all_told = any(one["category"] == "unsupported" for one in wanted)
    found = [p for p in document["problems"] if all_told or p["category"] != "unsupported"]
    left = list(found)
    for one in wanted:
        hit = next((problem for problem in left if _is(problem, one)), None)
        assert hit is not None, f"no problem {one}, but {found}"
        left.remove(hit)
    named = {text for one in wanted for text in one["objects"]}
    for problem in left:
        assert set(problem["objects"]) <= named, f"a problem more: {problem}"


def _is(problem: Json, wanted: Json) -> bool:
    field = re.sub(r"\[[^]]*\]", "", problem["field"])
    parts = wanted.get("field", "").split("|")
    return (
        sorted(problem["objects"]) == wanted["objects"]
        and problem["category"] == wanted["category"]
        and any(part in field for part in parts)
        and wanted.get("mentions", "") in problem["message"]
    )


def check_conditions(document: Json, wanted: list[Json]) -> None:
    for one in wanted:
        assert any(one.items() <= found.items() for found in document["conditions"]), one


def check_written(value: object, place: str = "generated") -> None:
    """No member is empty: an object is written as a person would write it."""
    if isinstance(value, list):
        for number, item in enumerate(value):
            check_written(item, f"{place}[{number}]")
    elif isinstance(value, dict):
        for name, item in value.items():
            assert item not in ("", {}, [], None), f"{place}.{name} is empty"
            check_written(item, f"{place}.{name}")


def check_services(document: Json, wanted: Mapping[str, list[str]]) -> None:
    statuses = [one["status"] for one in document["generated"] if one["kind"] == "ServiceBGPStatus"]
    found = {f"{s['serviceNamespace']}/{s['serviceName']}": sorted(s["peers"]) for s in statuses}
    same("ServiceBGPStatus", found, {name: sorted(peers) for name, peers in wanted.items()})


def check_secrets(document: Json, objects: Iterable[Json]) -> None:
    """No password is in the document, but in generated objects."""
    text = json.dumps({key: value for key, value in document.items() if key != "generated"})
    for one in objects:
        values = list((one.get("stringData") or {}).values())
        if one["kind"] != "Secret":
            values = re.findall(r'"password": "([^"]+)"', json.dumps(one))
        assert not any(len(value) > 4 and value in text for value in values)
