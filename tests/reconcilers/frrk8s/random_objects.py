"""Random sets of FRRConfigurations of one node, of every field that merging looks at."""

from __future__ import annotations

from random import Random
from typing import Any, Final

Spec = dict[str, Any]

PREFIXES: Final = ("10.1.0.0/16", "10.2.0.0/16", "2001:db8:1::/48", "2001:db8:2::/48")
ENDS: Final[tuple[Spec, ...]] = (
    {"address": "203.0.113.9"},
    {"address": "203.0.113.10"},
    {"address": "2001:db8::9"},
    {"interface": "eth1"},
)
VRFS: Final = ("", "", "default", "red", "blue")
SECRETS: Final = {"one": "correct-horse", "same": "tr0ub4dor"}
"""The Secrets that exist; a neighbour may name another Secret."""
SETTINGS: Final[tuple[Spec, ...]] = (
    {"port": 179},
    {"port": 1179},
    {"sourceaddress": "203.0.113.1"},
    {"password": "tr0ub4dor"},
    {"passwordSecret": {"name": "same"}},
    {"passwordSecret": {"name": "one"}},
    {"passwordSecret": {"name": "gone"}},
    {"bfdProfile": "f"},
    {"bfdProfile": "g"},
    {"ebgpMultiHop": True},
    {"dualStackAddressFamily": True},
    {"holdTime": "90s", "keepaliveTime": "30s"},
    {"holdTime": "90s"},
    {"holdTime": "180s", "keepaliveTime": "60s"},
    {"connectTime": "60s"},
    {"connectTime": "5s"},
    {"localASN": 64800},
    {"localASN": 64950},
    {"addressFamilies": ["unicast"]},
    {"disableMP": True},
)


def random_objects(random: Random) -> dict[str, Spec]:
    """Return ``spec.bgp`` of one to four objects, by name; about half of the sets go together."""
    calm = random.random() < 0.7
    return {f"o{i}": _bgp(random, calm) for i in range(random.randint(1, 4))}


def random_imports(random: Random) -> dict[str, Spec]:
    """Return ``spec.bgp`` of four to six objects that import each other's VRFs, and disagree."""
    return {f"o{i}": _importing(random) for i in range(random.randint(4, 6))}


def _importing(random: Random) -> Spec:
    vrfs = random.sample(("red", "blue", "green"), random.choice((1, 1, 2)))
    allowed: Spec = {"allowed": {"mode": "all", "prefixes": []}}
    neighbor = {
        **random.choice(ENDS[:2]),
        "asn": random.choice((64950, 64951)),
        "toAdvertise": allowed,
        "toReceive": allowed,
    }
    routers = [{"vrf": vrf, "imports": _imports(random, vrf), "neighbors": []} for vrf in vrfs]
    routers.append({"vrf": "", "imports": [], "neighbors": [neighbor]})
    alike = {"asn": 64900, "id": "", "prefixes": []}
    return {"routers": [{**alike, **one} for one in routers], "bfdProfiles": []}


def _imports(random: Random, vrf: str) -> list[Spec]:
    others = [one for one in ("red", "blue", "green") if one != vrf]
    return [{"vrf": one} for one in random.sample(others, random.choice((0, 1, 1)))]


def _bgp(random: Random, calm: bool) -> Spec:
    names = random.sample(("f", "g"), random.choice((0, 1, 2)))
    profiles = [{"name": n, **random.choice(({}, {"detectMultiplier": 3}))} for n in names]
    if profiles and _rarely(random, calm):
        profiles[0]["detectMultiplier"] = 9
    routers = [_router(random, calm, names) for _ in range(random.choice((1, 1, 2)))]
    return {"routers": routers, "bfdProfiles": profiles}


def _rarely(random: Random, calm: bool) -> bool:
    return random.random() < (0.01 if calm else 0.08)


def _router(random: Random, calm: bool, profiles: list[str]) -> Spec:
    vrf = random.choice(VRFS)
    prefixes = random.sample(PREFIXES, random.randint(0, 3))
    found: Spec = {
        "asn": 64901 if _rarely(random, calm) else 64900,
        "vrf": vrf,
        "prefixes": prefixes,
    }
    if random.random() < 0.2:
        found["id"] = "192.0.2.2" if _rarely(random, calm) else "192.0.2.1"
    others = [
        one
        for one in ("default", "red", "blue")
        if one.replace("default", "") != vrf.replace("default", "")
    ]
    if random.random() < 0.15:
        found["imports"] = [{"vrf": random.choice(others)}]
    neighbors = [
        _neighbor(random, calm, prefixes, profiles) for _ in range(random.choice((0, 1, 1, 2)))
    ]
    return found | {"neighbors": neighbors}


def _neighbor(random: Random, calm: bool, prefixes: list[str], profiles: list[str]) -> Spec:
    end = random.choice(ENDS)
    found: Spec = dict(end)
    found |= (
        {"dynamicASN": "external"}
        if _rarely(random, calm)
        else {"asn": random.choice((64950,) * 9 + (64900,)) if not calm else 64950}
    )
    for _ in range(random.choice((0, 1, 2)) if not calm else int(random.random() < 0.1)):
        setting = random.choice(SETTINGS)
        if (
            not {"password", "passwordSecret"} & found.keys() & {"password", "passwordSecret"}
            or not {"password", "passwordSecret"} & setting.keys()
        ):
            found |= setting
    if calm and profiles and random.random() < 0.1:
        found["bfdProfile"] = profiles[0]
    if random.random() < 0.2:
        found["enableGracefulRestart"] = random.choice((True, False))
    both = "interface" in end or found.get("dualStackAddressFamily")
    carried = [p for p in prefixes if both or (":" in p) == (":" in end["address"])]
    listed = random.sample(carried, random.randint(0, len(carried)))
    if _rarely(random, calm):
        listed = [*listed, random.choice(PREFIXES)]
    mode = random.choice(("all", "filtered"))
    advertise: Spec = {"allowed": {"mode": mode, "prefixes": list(dict.fromkeys(listed))}}
    sent = carried if mode == "all" else listed
    if sent and random.random() < 0.4:
        value = random.choice((100, 200)) if _rarely(random, calm) or not calm else 100
        advertise["withLocalPref"] = [
            {"localPref": value, "prefixes": list(dict.fromkeys(sent[:2]))}
        ]
    if sent and random.random() < 0.4:
        values = random.sample(("1:1", "1:2", "large:1:2:3"), random.randint(1, 2))
        advertise["withCommunity"] = [
            {"community": v, "prefixes": [random.choice(sent)]} for v in values
        ]
    if _rarely(random, calm):
        advertise["nextHop"] = random.choice(
            ({"ipv4": "203.0.113.77"}, {"ipv4": "203.0.113.78"}, {"ipv6": "2001:db8::77"})
        )
    rules = random.sample(
        (
            {"prefix": "10.0.0.0/8", "le": 24},
            {"prefix": "10.0.0.0/8", "ge": 9, "le": 24},
            {"prefix": "2001:db8::/32", "ge": 48},
            {"prefix": "10.1.0.0/16"},
        ),
        random.randint(0, 2),
    )
    receive = {"mode": random.choice(("all", "filtered", "filtered")), "prefixes": rules}
    return found | {"toAdvertise": advertise, "toReceive": {"allowed": receive}}
