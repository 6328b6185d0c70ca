"""A model of merging FRRConfigurations, written from the documentation of FRR-k8s and docs/frrk8s.md.

It knows nothing of the code: JSON in; problems, or the merged routers as plain values, out. Its objects
are from `random_objects`: valid by their schema, addresses and prefixes in one spelling.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final

Spec = dict[str, Any]
Objects = Mapping[str, Spec]
"""``spec.bgp`` by the name of the object."""
Problems = Counter[tuple[str, str, str]]
"""Category, names of the objects, last part of the field."""

UNSET_VALUES: Final[Mapping[str, Any]] = {
    "port": 179,
    "sourceaddress": None,
    "ebgpMultiHop": False,
    "connectTime": "60s",
    "holdTime": "180s",
    "keepaliveTime": "60s",
    "localASN": None,
}
"""Values of fields that a neighbour leaves unset."""


def vrf_of(one: Spec) -> str:
    return str(one.get("vrf", "")).replace("default", "")


def end_of(neighbor: Spec) -> str:
    return str(neighbor.get("address") or neighbor["interface"])


def has_both(neighbor: Spec) -> bool:
    return "interface" in neighbor or bool(neighbor.get("dualStackAddressFamily"))


def carries(neighbor: Spec, prefix: str) -> bool:
    return has_both(neighbor) or (":" in prefix) == (":" in neighbor["address"])


def available(bgp: Spec, router: Spec, objects: Objects) -> set[str]:
    """Return the prefixes of a router in its object, and of the VRFs that it imports."""
    found = set(router["prefixes"])
    for one in router.get("imports", ()):
        own = [r for r in bgp["routers"] if vrf_of(r) == vrf_of(one)]
        every = [
            r for other in objects.values() for r in other["routers"] if vrf_of(r) == vrf_of(one)
        ]
        found.update(prefix for r in own or every for prefix in r["prefixes"])
    return found


def sent(bgp: Spec, router: Spec, neighbor: Spec, objects: Objects) -> set[str]:
    allowed = neighbor["toAdvertise"]["allowed"]
    if allowed["mode"] == "all":
        return {p for p in available(bgp, router, objects) if carries(neighbor, p)}
    return set(allowed["prefixes"])


def dangling(router: Spec, objects: Objects) -> list[Spec]:
    """Return the imports of VRFs of which no object has a router."""
    routed = {vrf_of(one) for other in objects.values() for one in other["routers"]}
    return [one for one in router.get("imports", ()) if vrf_of(one) not in routed]


def faults(bgp: Spec, objects: Objects) -> Iterator[str]:
    """Yield the fields of the rules that an object breaks alone."""
    for router in bgp["routers"]:
        resolved = not dangling(router, objects)
        for n in router["neighbors"]:
            given, asn = available(bgp, router, objects), n.get("dynamicASN") or n["asn"]
            allowed = sent(bgp, router, n, objects)
            if not resolved:  # the prefixes of the missing VRF are not known
                every = n["toAdvertise"]["allowed"]["mode"] == "all"
                written = [
                    prefix
                    for name in ("withLocalPref", "withCommunity")
                    for entry in n["toAdvertise"].get(name, ())
                    for prefix in entry["prefixes"]
                ]
                allowed = allowed | set(written if every else ())
                given = given | allowed
            yield from (
                "prefixes"
                for p in sent(bgp, router, n, objects)
                if p not in given or not carries(n, p)
            )
            for name, key in (("withLocalPref", "localPref"), ("withCommunity", "community")):
                entries = n["toAdvertise"].get(name, ())
                values = Counter(entry[key] for entry in entries)
                yield from (key for count in values.values() for _ in range(count - 1))
                listed = {prefix for entry in entries for prefix in entry["prefixes"]}
                bad = {p for p in listed if p not in allowed & given or not carries(n, p)}
                yield from ("prefixes" for entry in entries for p in entry["prefixes"] if p in bad)
            if ("holdTime" in n) != ("keepaliveTime" in n):
                yield "holdTime" if "holdTime" in n else "keepaliveTime"
            if "localASN" in n and (
                asn in ("internal", router["asn"]) or n["localASN"] in (asn, router["asn"])
            ):
                yield "localASN"
            if n.get("bfdProfile") and n["bfdProfile"] not in [
                p["name"] for p in bgp["bfdProfiles"]
            ]:
                yield "bfdProfile"
            if (
                "sourceaddress" in n
                and "address" in n
                and (":" in n["sourceaddress"]) != (":" in n["address"])
            ):
                yield "sourceaddress"
            for family in n["toAdvertise"].get("nextHop", {}):
                if not carries(n, {"ipv4": ".", "ipv6": ":"}[family]):
                    yield family
            yield from ({"password", "passwordSecret"} & n.keys() if "interface" in n else ())


def missing(bgp: Spec, objects: Objects, secrets: Mapping[str, str]) -> Iterator[str]:
    """Yield the fields of references that lead nowhere."""
    for router in bgp["routers"]:
        yield from ("vrf" for _ in dangling(router, objects))
        for n in router["neighbors"]:
            if "passwordSecret" in n and n["passwordSecret"]["name"] not in secrets:
                yield "passwordSecret"


def claims(bgp: Spec, secrets: Mapping[str, str]) -> Iterator[tuple[Any, str, Any]]:
    """Yield subject, field and value of everything that may not differ (C1 to C16)."""
    for router in bgp["routers"]:
        vrf = vrf_of(router)
        yield vrf, "asn", router["asn"]
        if router.get("id"):
            yield vrf, "id", router["id"]
        for n in router["neighbors"]:
            subject = (vrf, end_of(n))
            yield subject, "asn", n.get("dynamicASN") or n["asn"]
            yield subject, "dualStackAddressFamily", has_both(n)
            for field, unset in UNSET_VALUES.items():
                yield subject, field, n.get(field, unset)
            secret = n.get("passwordSecret", {}).get("name")
            if secret is None or secret in secrets:
                yield subject, "password", n.get("password") if secret is None else secrets[secret]
            if n.get("bfdProfile"):
                yield subject, "bfdProfile", n["bfdProfile"]
            for family, hop in n["toAdvertise"].get("nextHop", {}).items():
                yield subject, family, hop
            for entry in n["toAdvertise"].get("withLocalPref", ()):
                yield from (
                    ((*subject, p), "localPref", entry["localPref"]) for p in entry["prefixes"]
                )
    for profile in bgp["bfdProfiles"]:
        yield ("profile", profile["name"]), "detectMultiplier", profile.get("detectMultiplier", 3)


def problems(objects: Objects, secrets: Mapping[str, str]) -> Problems:
    """Return the problems of each object, and the conflicts between them."""
    found: Problems = Counter()
    claimed: dict[Any, dict[str, set[Any]]] = defaultdict(lambda: defaultdict(set))
    for name, bgp in objects.items():
        broken = [("invalid", name, field) for field in faults(bgp, objects)]
        found.update(broken)
        if broken:
            found.update(
                ("unresolved", name, "vrf") for r in bgp["routers"] for _ in dangling(r, objects)
            )
            continue
        found.update(("unresolved", name, field) for field in missing(bgp, objects, secrets))
        for subject, field, value in claims(bgp, secrets):
            claimed[subject, field][name].add(value)
    for (_, field), by_name in claimed.items():
        found.update(
            ("conflict", name, field) for name, values in by_name.items() if len(values) > 1
        )
        rest = {name: values for name, values in by_name.items() if len(values) == 1}
        if len(set().union(*rest.values())) > 1:
            found["conflict", " ".join(sorted(rest)), field] += 1
    return found


def merged(objects: Objects) -> dict[str, Any]:
    """Return the routers of objects that go together, by VRF."""
    routers: dict[str, Any] = {}
    for bgp in objects.values():
        for router in bgp["routers"]:
            into = routers.setdefault(
                vrf_of(router), {"id": None, "prefixes": set(), "imports": set(), "peers": {}}
            )
            into["asn"] = router["asn"]
            into["id"] = into["id"] or router.get("id")
            into["prefixes"].update(router["prefixes"])
            into["imports"].update(vrf_of(one) for one in router.get("imports", ()))
            for n in router["neighbors"]:
                new = {
                    "restart": False,
                    "accept": set(),
                    "routes": {},
                    "families": set(),
                    "nextHop": {},
                }
                peer = into["peers"].setdefault(end_of(n), new)
                peer["asn"] = n.get("dynamicASN") or n["asn"]
                peer["restart"] |= n.get("enableGracefulRestart", False)
                peer["families"].update(n.get("addressFamilies", ["unicast"]))
                allowed = n["toReceive"]["allowed"]
                rules = {(s["prefix"], s.get("ge"), s.get("le")) for s in allowed["prefixes"]}
                peer["accept"] |= {"all"} if allowed["mode"] == "all" else rules
                for prefix in sent(bgp, router, n, objects):
                    route = peer["routes"].setdefault(
                        prefix, {"communities": set(), "preference": None}
                    )
                    for entry in n["toAdvertise"].get("withCommunity", ()):
                        route["communities"] |= (
                            {entry["community"]} if prefix in entry["prefixes"] else set()
                        )
                    for entry in n["toAdvertise"].get("withLocalPref", ()):
                        if prefix in entry["prefixes"]:
                            route["preference"] = entry["localPref"]
                peer["nextHop"].update(n["toAdvertise"].get("nextHop", {}))
                for field in ("bfdProfile", *UNSET_VALUES):
                    peer[field] = n.get(field) or peer.get(field)
    return routers


def isolated(objects: Objects, secrets: Mapping[str, str]) -> list[str]:
    """Return the names of the objects that ``isolate`` merges; they are given by age.

    The others are tried again with the accepted objects, until none goes with them.
    """
    accepted: Objects = {}
    while True:
        rest = {n: bgp for n, bgp in objects.items() if n not in accepted}
        waiting = {
            n: bgp for n, bgp in rest.items() if not _conflicts({**accepted, n: bgp}, secrets)
        }
        more = _together(waiting, accepted, secrets)
        if not more:
            return sorted(accepted)
        accepted = {**accepted, **more}


def _together(waiting: Objects, accepted: Objects, secrets: Mapping[str, str]) -> Objects:
    """Return the objects that are accepted one after another, the oldest first.

    A reference to an object that waits is valid. Where that is rejected, what refers to it is not
    accepted; an object that had displaced others is not tried again, the youngest first, and they are.
    """
    while True:
        waiting = _resolved(waiting, accepted, secrets)
        found: Objects = {}
        for name, bgp in waiting.items():
            if not _conflicts({**accepted, **found, name: bgp}, secrets):
                found = {**found, name: bgp}
        rejected = [
            {n: bgp}
            for n, bgp in waiting.items()
            if n not in found and not _conflicts({n: bgp}, secrets)
        ]
        displacing = {n for n in found for o in rejected if _conflicts({n: found[n], **o}, secrets)}
        while gone := [n for n in found if not _is_sound(found[n], {**accepted, **found}, secrets)]:
            if displacing >= set(gone):
                break
            found = {n: bgp for n, bgp in found.items() if n in displacing or n not in gone}
        if not gone:
            return found
        waiting = {n: bgp for n, bgp in waiting.items() if n != gone[-1]}


def _is_sound(bgp: Spec, there: Objects, secrets: Mapping[str, str]) -> bool:
    return not list(faults(bgp, there)) and not list(missing(bgp, there, secrets))


def _resolved(objects: Objects, accepted: Objects, secrets: Mapping[str, str]) -> Objects:
    """Return the objects, without wrong objects and objects that refer to an absent one."""
    while True:
        there = {**accepted, **objects}
        sound = {n: bgp for n, bgp in objects.items() if _is_sound(bgp, there, secrets)}
        if sound == objects:
            return objects
        objects = sound


def _conflicts(objects: Objects, secrets: Mapping[str, str]) -> bool:
    values: dict[Any, set[Any]] = defaultdict(set)
    for bgp in objects.values():
        for subject, field, value in claims(bgp, secrets):
            values[subject, field].add(value)
    return any(len(found) > 1 for found in values.values())
